"""The Report: everything that one run measured, loaded, saved and checked against its schema.

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
from probes.core.typed import details, to_plain, told_to_plain
from probes.system.platform import os

SCHEMA = "copy-bottleneck/report/1"
STATUSES = ("complete", "partial", "interrupted", "failed")
LIMITS = bounded.USUAL
"""Of one file: many times what a run of hours writes, and 200 MiB of memory at the most."""
MOST_STEPS = 2_000
MOST_NOTES = 1_000
WARMED_UP = "1 run to warm up: not counted"
"""The note of a report whose runs are as many as were asked for."""
_TOLD_RATE_TOLERANCE = 0.02


class ReportError(ValueError):
    """A file that is no report; the text is one line that says where and what."""


class OtherDocument(ReportError):
    """A document of another kind, whole and readable."""


@dataclass(frozen=True)
class Step:
    """What was to be measured."""

    stage: str
    setting: dict[str, Any]
    initiator: str
    """The side that ran it: client or server."""
    why: str = field(default="", compare=False)
    """What it was made for; empty: nobody said."""


@dataclass(frozen=True)
class Report:
    """One run; the diagnosis is computed from it, never part of it."""

    status: str
    tool: dict[str, Any]
    """Versions: version, python, fio ..."""
    started: str
    """ISO 8601 with its offset."""
    elapsed_seconds: float
    target: dict[str, Any]
    client: HostFacts | None
    server: HostFacts | None
    entries: tuple[tuple[Step, Outcome], ...] = ()
    notes: tuple[str, ...] = ()
    target_rate_bytes_per_second: float | None = None
    """The rate that the user wants of each copy; None: none was asked for."""


def started_utc(report: Report) -> datetime | None:
    """When a run began; None: its time has no offset, or lies beyond the calendar."""
    try:
        told = datetime.fromisoformat(report.started)
        return told.astimezone(UTC) if told.tzinfo else None
    except (OverflowError, ValueError):
        return None


# -- writing -----------------------------------------------------------------------------------


def to_json(report: Report, diagnosis: object) -> dict[str, Any]:
    """The document of CONTRACT: plain values, bytes, seconds and ratios.

    diagnosis: what bottleneck.analysis.diagnosis.diagnose made of the report.
    """
    wanted = report.target_rate_bytes_per_second
    return {
        "schema": SCHEMA,
        "status": report.status,
        "tool": to_plain(report.tool),
        "started": report.started,
        "elapsed_seconds": report.elapsed_seconds,
        "target": to_plain(report.target),
        "hosts": {"client": told_to_plain(report.client), "server": told_to_plain(report.server)},
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
        **({} if wanted is None else {"target_rate_bytes_per_second": wanted}),
        "diagnosis": _diagnosis_to_json(diagnosis),
    }


def _diagnosis_to_json(diagnosis: object) -> dict[str, Any]:
    """The time of a copy that nothing watched is absent."""
    found: dict[str, Any] = to_plain(diagnosis)
    for copy in found["copies"]:
        if not copy["time"]:
            del copy["time"], copy["view"]
    return found


def _outcome_to_json(outcome: Outcome, initiator: str) -> dict[str, Any]:
    match outcome:
        case Skipped(reason):
            return {"kind": "skipped", "reason": reason}
        case Failed(error, samples):
            return {"kind": "failed", "error": error, "samples": _run_to_json(samples)}
        case Measured(runs, own, other, details):
            try:
                spread = rates(outcome)
            except ValueError as error:
                last = runs[-1] if runs else ()
                return {"kind": "failed", "error": str(error), "samples": _run_to_json(last)}
            usages = (own, other) if initiator == "client" else (other, own)
            return {
                "kind": "measured",
                # A stage that moves no payload has no rate, and none is not 0.
                **({"bytes_per_second": to_plain(spread)} if spread.high > 0 else {}),
                "samples": _run_to_json(median_run(outcome)),
                "runs": [_run_to_json(run) for run in runs],
                "usage": {
                    side: told_to_plain(usage) for side, usage in zip(SIDES, usages, strict=True)
                },
                "details": to_plain(details),
            }


def _run_to_json(run: Run) -> list[list[float]]:
    return [[sample.elapsed_seconds, sample.moved_bytes] for sample in run]


def median_run(outcome: Measured) -> Run:
    """The run whose rate is the median of all; of an even number the one below the middle."""
    ordered = sorted(outcome.runs, key=run_rate)
    middle = statistics.median_low(range(len(ordered)))
    return ordered[middle]


def dumps(report: Report, diagnosis: object) -> str:
    """The document as text, ASCII only: a name that is no UTF-8 survives as its escapes."""
    return json.dumps(to_json(report, diagnosis), indent=1, allow_nan=False) + "\n"


# -- reading -----------------------------------------------------------------------------------


def load(path: str | Path) -> Report:
    """The report in a file. Errors: ReportError; OSError where it cannot be opened."""
    return loads(read(path))


def read(path: str | Path) -> bytes:
    """What a regular file holds, up to one byte more than a report may. Errors: as load()."""
    # A pipe without a writer would be waited for, for ever; a terminal become this process's own.
    at_once = os.O_NONBLOCK | os.O_NOCTTY
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | at_once)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ReportError("not a regular file")
        content: bytes | None = file.read(LIMITS.content_bytes + 1)
    if not content:  # none: a file of the kernel's that has nothing to read now
        raise ReportError("empty")
    return content.removeprefix(codecs.BOM_UTF8)


def loads(content: bytes) -> Report:
    """The report in a document. Errors: ReportError."""
    return from_elsewhere(document(content))


def document(content: bytes) -> dict[str, Any]:
    """The object in a JSON document of a size and depth that a report may have.

    Errors: ReportError.
    """
    try:
        found = bounded.loads(content, LIMITS)
    except bounded.NotBounded as error:
        raise ReportError(str(error)) from None
    if not isinstance(found, dict):
        raise OtherDocument("a report must be an object")
    return found


def from_elsewhere(document: dict[str, Any]) -> Report:
    """As from_json(), without the command that it says was typed.

    A stranger's is nobody's to paste: the command is shown in the documents of its own run alone.
    Errors: ReportError.
    """
    found = from_json(document)
    return replace(found, tool={key: found.tool[key] for key in found.tool if key != "command"})


def from_json(document: dict[str, Any]) -> Report:
    """The report in a parsed document, strictly; unknown keys and the diagnosis are left aside.

    Errors: ReportError, one line.
    """
    try:
        return _report(document)
    except typed.NotTyped as error:
        raise ReportError(str(error)) from None


def _report(document: dict[str, Any]) -> Report:
    told = document.get("schema")
    if told != SCHEMA:
        raise OtherDocument(f"schema is {str(told)[:80]!r}, this program reads {SCHEMA!r}")
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
        entries=tuple(_entry(step, f"steps[{at}]") for at, step in enumerate(steps)),
        notes=tuple(typed.text(note, f"notes[{at}]") for at, note in enumerate(notes)),
        target_rate_bytes_per_second=_target_rate(document),
    )


def _few(value: object, where: str, most: int) -> list[Any]:
    found = typed.array(value, where)
    if len(found) > most:
        raise ReportError(f"{where}: {len(found)} entries, at most {most} are read")
    return found


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
    told = typed.mapping(value, where)
    setting = typed.mapping(told.get("setting"), f"{where}.setting")
    if "side" in setting:
        _one_of(SIDES, setting["side"], f"{where}.setting.side")
    step = Step(
        stage=typed.text(told.get("stage"), f"{where}.stage"),
        setting=setting,
        initiator=_one_of(SIDES, told.get("initiator"), f"{where}.initiator"),
        why=typed.text(told.get("why", ""), f"{where}.why"),
    )
    outcome = typed.mapping(told.get("outcome"), f"{where}.outcome")
    return step, _outcome(outcome, step.initiator, f"{where}.outcome")


def _outcome(told: dict[str, Any], initiator: str, where: str) -> Outcome:
    match _one_of(("measured", "skipped", "failed"), told.get("kind"), f"{where}.kind"):
        case "skipped":
            return Skipped(typed.text(told.get("reason"), f"{where}.reason"))
        case "failed":
            error = typed.text(told.get("error"), f"{where}.error")
            return Failed(error, _run(told.get("samples", []), f"{where}.samples"))
        case _:
            return _measured(told, initiator, where)


def _measured(told: dict[str, Any], initiator: str, where: str) -> Measured:
    usage = typed.mapping(told.get("usage"), f"{where}.usage")
    own, other = SIDES if initiator == "client" else reversed(SIDES)
    outcome = Measured(
        runs=_runs(told, where),
        initiator=typed.record(Usage, usage.get(own), f"{where}.usage.{own}"),
        responder=None
        if usage.get(other) is None
        else typed.record(Usage, usage[other], f"{where}.usage.{other}"),
        details=details(told.get("details"), f"{where}.details"),
    )
    found = rates(outcome)
    if found.high == 0 and "bytes_per_second" not in told:
        return outcome
    spread = typed.mapping(told.get("bytes_per_second"), f"{where}.bytes_per_second")
    said = typed.number(spread.get("median"), f"{where}.bytes_per_second.median")
    if found.high > lenient.LARGEST:
        raise typed.NotTyped(f"{where}: the rate of its samples is out of range")
    derived = found.median
    if abs(said - derived) > _TOLD_RATE_TOLERANCE * max(said, derived):
        raise typed.NotTyped(
            f"{where}.bytes_per_second.median is {said:.6g}, but its samples give {derived:.6g}"
        )
    return outcome


def _runs(told: dict[str, Any], where: str) -> tuple[Run, ...]:
    if "runs" not in told:
        samples = _run(told.get("samples"), f"{where}.samples")
        # Written by another program: its first sample may be the first after the start.
        opened = samples if samples[:1] == (Sample(0.0, 0),) else (Sample(0.0, 0), *samples)
        return (_lasting(opened, f"{where}.samples"),)
    runs = typed.array(told["runs"], f"{where}.runs")
    if not runs:
        raise typed.NotTyped(f"{where}.runs is empty")
    return tuple(
        _lasting(_run(run, f"{where}.runs[{at}]"), f"{where}.runs[{at}]")
        for at, run in enumerate(runs)
    )


def _lasting(run: Run, where: str) -> Run:
    if len(run) < 2 or run[-1].elapsed_seconds <= run[0].elapsed_seconds:
        raise typed.NotTyped(f"{where} has no duration")
    return run


def _run(value: object, where: str) -> Run:
    samples = []
    before = Sample(0.0, 0)
    for at, pair in enumerate(typed.array(value, where)):
        numbers = typed.array(pair, f"{where}[{at}]")
        if len(numbers) != 2:
            raise typed.NotTyped(f"{where}[{at}] must be [seconds, bytes]")
        sample = Sample(
            typed.number(numbers[0], f"{where}[{at}][0]"),
            typed.whole(numbers[1], f"{where}[{at}][1]"),
        )
        behind = sample.elapsed_seconds < before.elapsed_seconds
        if behind or sample.moved_bytes < before.moved_bytes:
            raise typed.NotTyped(f"{where}[{at}] goes back")
        samples.append(sample)
        before = sample
    return tuple(samples)
