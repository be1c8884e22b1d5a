"""The Report: all measurements of one run, loaded, saved and checked against its schema.

History of the schema `copy-bottleneck/report/1`:
    1: first. Keys may be added, never renamed; `diagnosis` is written and never read back.
       Added: `diagnosis.comparisons`, `diagnosis.altered`, `target_rate_bytes_per_second`,
       `diagnosis.copies[].ladder`, `diagnosis.copies[].target`, `tool.command`.
"""

from __future__ import annotations

import codecs
import json
import stat
import statistics
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from probes.core import bounded, lenient, typed
from probes.core.records import (
    SIDES,
    Failed,
    HostFacts,
    Measured,
    Outcome,
    Run,
    Sample,
    Skipped,
    Usage,
    rates,
    run_rate,
)
from probes.core.typed import details, to_compact, to_plain
from probes.system.platform import os

SCHEMA = "copy-bottleneck/report/1"
STATUSES = ("complete", "partial", "interrupted", "failed")
LIMITS = bounded.USUAL
"""Limits of one file: many times the size of a report of hours, at most 200 MiB of memory."""
MOST_STEPS = 2_000
MOST_NOTES = 1_000
WARMED_UP = "1 run to warm up: not counted"
"""Note of a report whose runs are as many as were requested."""
_TOLD_RATE_TOLERANCE = 0.02


class ReportError(ValueError):
    """A file is no report; its message is one line that says where and why."""


class OtherDocument(ReportError):
    """A document of another kind, whole and readable."""


@dataclass(frozen=True)
class Step:
    """A measurement that a run tried: its stage and setting."""

    stage: str
    setting: dict[str, Any]
    initiator: str
    """Side that ran it: client or server."""
    why: str = field(default="", compare=False)
    """Purpose of the step; empty: none was given."""


@dataclass(frozen=True)
class Report:
    """Measurements of one run; the diagnosis is computed from them, and is no part of them."""

    status: str
    tool: dict[str, Any]
    """Versions: version, python, fio ..."""
    started: str
    """Start of the run, ISO 8601 with offset."""
    elapsed_seconds: float
    target: dict[str, Any]
    client: HostFacts | None
    server: HostFacts | None
    entries: tuple[tuple[Step, Outcome], ...] = ()
    notes: tuple[str, ...] = ()
    target_rate_bytes_per_second: float | None = None
    """Rate that the user wants each copy to reach; None: none was given."""


def started_utc(report: Report) -> datetime | None:
    """Returns the start of a run; None: it has no offset, or lies beyond the calendar."""
    try:
        started = datetime.fromisoformat(report.started)
        return started.astimezone(UTC) if started.tzinfo else None
    except (OverflowError, ValueError):
        return None


# -- writing -----------------------------------------------------------------------------------


def to_json(report: Report, diagnosis: object) -> dict[str, Any]:
    """Returns the JSON document of a report: plain values, bytes, seconds and ratios.

    diagnosis: result of bottleneck.analysis.diagnosis.diagnose for the report.
    """
    target_rate = report.target_rate_bytes_per_second
    return {
        "schema": SCHEMA,
        "status": report.status,
        "tool": to_plain(report.tool),
        "started": report.started,
        "elapsed_seconds": report.elapsed_seconds,
        "target": to_plain(report.target),
        "hosts": {"client": to_compact(report.client), "server": to_compact(report.server)},
        "steps": [
            {
                "stage": step.stage,
                "setting": to_plain(step.setting),
                "initiator": step.initiator,
                **({"why": step.why} if step.why else {}),
                "outcome": _outcome_to_json(outcome, step.initiator),
            }
            for step, outcome in report.entries
        ],
        "notes": list(report.notes),
        **({} if target_rate is None else {"target_rate_bytes_per_second": target_rate}),
        "diagnosis": _diagnosis_to_json(diagnosis),
    }


def _diagnosis_to_json(diagnosis: object) -> dict[str, Any]:
    """Returns the diagnosis without `time` and `view` of copies that were not watched."""
    document: dict[str, Any] = to_plain(diagnosis)
    for copy in document["copies"]:
        if not copy["time"]:
            del copy["time"], copy["view"]
    return document


def _outcome_to_json(outcome: Outcome, initiator: str) -> dict[str, Any]:
    match outcome:
        case Skipped(reason):
            return {"kind": "skipped", "reason": reason}
        case Failed(error, samples):
            return {"kind": "failed", "error": error, "samples": _run_to_json(samples)}
        case Measured(runs, initiator_usage, responder_usage, details):
            try:
                spread = rates(outcome)
            except ValueError as error:
                last = runs[-1] if runs else ()
                return {"kind": "failed", "error": str(error), "samples": _run_to_json(last)}
            both = (initiator_usage, responder_usage)
            usages = both if initiator == "client" else both[::-1]
            return {
                "kind": "measured",
                # A stage that moves no payload has no rate, which is not a rate of 0.
                **({"bytes_per_second": to_plain(spread)} if spread.high > 0 else {}),
                "samples": _run_to_json(median_run(outcome)),
                "runs": [_run_to_json(run) for run in runs],
                "usage": {
                    side: to_compact(usage) for side, usage in zip(SIDES, usages, strict=True)
                },
                "details": to_plain(details),
            }


def _run_to_json(run: Run) -> list[list[float]]:
    return [[sample.elapsed_seconds, sample.moved_bytes] for sample in run]


def median_run(outcome: Measured) -> Run:
    """Returns the run with the median rate; of an even number the one below the middle."""
    ordered = sorted(outcome.runs, key=run_rate)
    return ordered[statistics.median_low(range(len(ordered)))]


def dumps(report: Report, diagnosis: object) -> str:
    """Returns the document as text, ASCII only: a name that is no UTF-8 survives as escapes."""
    return json.dumps(to_json(report, diagnosis), indent=1, allow_nan=False) + "\n"


# -- reading -----------------------------------------------------------------------------------


def load(path: str | Path) -> Report:
    """Loads the report in a file. Errors: ReportError; OSError if it cannot be opened."""
    return loads(read(path))


def read(path: str | Path) -> bytes:
    """Reads a regular file, up to one byte more than a report may have. Errors: as load()."""
    # Opening a pipe without a writer would wait for ever; a terminal would become ours.
    at_once = os.O_NONBLOCK | os.O_NOCTTY
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ReportError("not a regular file")
        content: bytes | None = file.read(LIMITS.content_bytes + 1)
    if not content:  # None: a file of the kernel's with nothing to read now
        raise ReportError("empty")
    return content.removeprefix(codecs.BOM_UTF8)


def loads(content: bytes) -> Report:
    """Loads the report in a document. Errors: ReportError."""
    return from_elsewhere(document(content))


def document(content: bytes) -> dict[str, Any]:
    """Parses a JSON object within the limits of a report. Errors: ReportError."""
    try:
        value = bounded.loads(content, LIMITS)
    except bounded.NotBounded as error:
        raise ReportError(str(error)) from None
    if not isinstance(value, dict):
        raise OtherDocument("a report must be an object")
    return value


def from_elsewhere(document: dict[str, Any]) -> Report:
    """Reads a report as from_json() does, and drops the command that it claims was typed.

    A stranger's command must not be pasted: only documents of the run itself show it.
    Errors: ReportError.
    """
    report = from_json(document)
    return replace(report, tool={key: report.tool[key] for key in report.tool if key != "command"})


def from_json(document: dict[str, Any]) -> Report:
    """Reads a parsed document strictly; unknown keys and the diagnosis are ignored.

    Errors: ReportError, one line.
    """
    try:
        return _report(document)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _report(document: dict[str, Any]) -> Report:
    schema = document.get("schema")
    if schema != SCHEMA:
        raise OtherDocument(f"schema is {str(schema)[:80]!r}, this program reads {SCHEMA!r}")
    hosts = typed.mapping(document.get("hosts"), "hosts")
    facts = {
        side: None
        if hosts.get(side) is None
        else typed.record(HostFacts, hosts[side], f"hosts.{side}")
        for side in SIDES
    }
    started = typed.text(document.get("started"), "started")
    try:
        datetime.fromisoformat(started)
    except ValueError:
        raise ReportError("started is not a time as ISO 8601 writes it") from None
    steps = _few(document.get("steps"), "steps", MOST_STEPS)
    notes = _few(document.get("notes", []), "notes", MOST_NOTES)
    return Report(
        status=_one_of(STATUSES, document.get("status"), "status"),
        tool=typed.mapping(document.get("tool"), "tool"),
        started=started,
        elapsed_seconds=typed.number(document.get("elapsed_seconds"), "elapsed_seconds"),
        target=typed.mapping(document.get("target"), "target"),
        client=facts["client"],
        server=facts["server"],
        entries=tuple(_entry(step, f"steps[{index}]") for index, step in enumerate(steps)),
        notes=tuple(typed.text(note, f"notes[{index}]") for index, note in enumerate(notes)),
        target_rate_bytes_per_second=_target_rate(document),
    )


def _few(value: object, where: str, limit: int) -> list[Any]:
    values = typed.array(value, where)
    if len(values) > limit:
        raise ReportError(f"{where}: {len(values)} entries, at most {limit} are read")
    return values


def _target_rate(document: dict[str, Any]) -> float | None:
    name = "target_rate_bytes_per_second"
    if document.get(name) is None:
        return None
    rate = typed.number(document[name], name)
    if rate < 1:
        raise ReportError(f"{name} is less than a byte")
    return rate


def _one_of(words: tuple[str, ...], value: object, where: str) -> str:
    word = typed.text(value, where)
    if word not in words:
        raise typed.NotTyped(f"{where} must be one of {', '.join(words)}")
    return word


def _entry(value: object, where: str) -> tuple[Step, Outcome]:
    entry = typed.mapping(value, where)
    setting = typed.mapping(entry.get("setting"), f"{where}.setting")
    if "side" in setting:
        _one_of(SIDES, setting["side"], f"{where}.setting.side")
    step = Step(
        stage=typed.text(entry.get("stage"), f"{where}.stage"),
        setting=setting,
        initiator=_one_of(SIDES, entry.get("initiator"), f"{where}.initiator"),
        why=typed.text(entry.get("why", ""), f"{where}.why"),
    )
    outcome = typed.mapping(entry.get("outcome"), f"{where}.outcome")
    return step, _outcome(outcome, step.initiator, f"{where}.outcome")


def _outcome(document: dict[str, Any], initiator: str, where: str) -> Outcome:
    match _one_of(("measured", "skipped", "failed"), document.get("kind"), f"{where}.kind"):
        case "skipped":
            return Skipped(typed.text(document.get("reason"), f"{where}.reason"))
        case "failed":
            error = typed.text(document.get("error"), f"{where}.error")
            return Failed(error, _run_of_pairs(document.get("samples", []), f"{where}.samples"))
        case _:
            return _measured_outcome(document, initiator, where)


def _measured_outcome(document: dict[str, Any], initiator: str, where: str) -> Measured:
    usage = typed.mapping(document.get("usage"), f"{where}.usage")
    initiator_side, responder_side = SIDES if initiator == "client" else reversed(SIDES)
    outcome = Measured(
        runs=_runs(document, where),
        initiator=typed.record(Usage, usage.get(initiator_side), f"{where}.usage.{initiator_side}"),
        responder=None
        if usage.get(responder_side) is None
        else typed.record(Usage, usage[responder_side], f"{where}.usage.{responder_side}"),
        details=details(document.get("details"), f"{where}.details"),
    )
    spread = rates(outcome)
    if spread.high == 0 and "bytes_per_second" not in document:
        return outcome
    stated_rate = typed.mapping(document.get("bytes_per_second"), f"{where}.bytes_per_second")
    stated = typed.number(stated_rate.get("median"), f"{where}.bytes_per_second.median")
    if spread.high > lenient.LARGEST:
        raise typed.NotTyped(f"{where}: the rate of its samples is out of range")
    derived = spread.median
    if abs(stated - derived) > _TOLD_RATE_TOLERANCE * max(stated, derived):
        raise typed.NotTyped(
            f"{where}.bytes_per_second.median is {stated:.6g}, but its samples give {derived:.6g}"
        )
    return outcome


def _runs(document: dict[str, Any], where: str) -> tuple[Run, ...]:
    if "runs" not in document:
        samples = _run_of_pairs(document.get("samples"), f"{where}.samples")
        # Another program's first sample may be the first one after the start.
        opened = samples if samples[:1] == (Sample(0.0, 0),) else (Sample(0.0, 0), *samples)
        return (_checked_run(opened, f"{where}.samples"),)
    runs = typed.array(document["runs"], f"{where}.runs")
    if not runs:
        raise typed.NotTyped(f"{where}.runs is empty")
    return tuple(
        _checked_run(_run_of_pairs(run, f"{where}.runs[{index}]"), f"{where}.runs[{index}]")
        for index, run in enumerate(runs)
    )


def _checked_run(run: Run, where: str) -> Run:
    if len(run) < 2 or run[-1].elapsed_seconds <= run[0].elapsed_seconds:
        raise typed.NotTyped(f"{where} has no duration")
    return run


def _run_of_pairs(value: object, where: str) -> Run:
    samples = []
    previous = Sample(0.0, 0)
    for index, pair in enumerate(typed.array(value, where)):
        numbers = typed.array(pair, f"{where}[{index}]")
        if len(numbers) != 2:
            raise typed.NotTyped(f"{where}[{index}] must be [seconds, bytes]")
        sample = Sample(
            typed.number(numbers[0], f"{where}[{index}][0]"),
            typed.whole_number(numbers[1], f"{where}[{index}][1]"),
        )
        behind = sample.elapsed_seconds < previous.elapsed_seconds
        if behind or sample.moved_bytes < previous.moved_bytes:
            raise typed.NotTyped(f"{where}[{index}] goes back")
        samples.append(sample)
        previous = sample
    return tuple(samples)
