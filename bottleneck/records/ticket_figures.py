"""The figures at the end of a ticket: a report of the copies alone, with the diagnosis of its run.

They are a JSON block of the report's own schema, a line a copy: what reads a report reads them too.
Each run is its beginning and its end, so that a comparison knows the noise of both tickets. The
diagnosis is kept: what the copies' verdicts were found by has no room in a ticket.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from typing import Any

from bottleneck.analysis import rtt, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis, WordError
from bottleneck.analysis.rules.registry import check_words
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError, Step
from bottleneck.text.safe import safe
from probes.core import typed
from probes.core.records import SIDES, HostFacts, InterfaceFacts, Measured, Outcome, Usage, rates

SCHEMA = "copy-bottleneck/ticket/2"
MOST_RUNS = 40
LONGEST_WORD, LONGEST_NAME = 80, 32
LARGEST_BYTES = 1 << 20
"""Of a mail with all that it answers."""
FIGURES = 4
"""Significant ones of an amount: less than any noise."""
TELLING = (
    *("copy", "verb", "side", "cache", "pattern", "streams", "over", "dialect", "end", "engine"),
    *("security", "file_bytes"),
)
"""What makes a step another one."""
LONGEST_SENTENCE = 1000
MOST_COPIES, MOST_ADVICE, MOST_CEILINGS = 8, 3, 5
NOT_TOLD: dict[str, Any] = dict.fromkeys(
    each.name
    for each in fields(Usage)
    if each.name.startswith(("memory_", "interface_", "device_"))
)
"""Of each host's load: counts that a ticket has no room for."""
ASKED_FOR = frozenset(
    (*SIDES, "side", "headline", "next", "bytes_per_second")
    + ("ceiling_bytes_per_second", "predicted_bytes_per_second")
)
"""Keys of the schema that are null, and not absent, where nothing is known."""
_BEFORE_LINE = re.compile(r"^[ \t]*(?:[>|][ \t]?)*")
_CURLED = str.maketrans({"\u201c": '"', "\u201d": '"', "\u201e": '"', "\u00a0": " "})


# -- writing -----------------------------------------------------------------------------------


def lines(known: Report, diagnosis: Diagnosis, most_copies: int = MOST_COPIES) -> list[str]:
    """The block's lines, one JSON object in all, in ASCII; a line for each copy's verdict."""
    kept = _kept(diagnosis, most_copies)
    document = _short(report.to_json(_bounded(known, diagnosis, kept), kept))
    hosts, found = document["hosts"], document["diagnosis"]
    last = found["copies"][-1] if found["copies"] else None
    sides = [f'"{side}":{_dumped(hosts[side])}' for side in SIDES]
    return [
        "{",
        _pairs(document, "schema", "status", "started", "elapsed_seconds"),
        _pairs(document, "tool"),
        _pairs(document, "target"),
        f' "hosts":{{{sides[0]},',
        f"  {sides[1]}}},",
        _pairs(document, "steps"),
        _pairs(document, "notes"),
        ' "diagnosis":{"copies":[',
        *(f"  {_dumped(each)}{',' * (each is not last)}" for each in found["copies"]),
        f"  ],{_pairs(found, 'headline', 'summary', 'healthy', 'altered')[1:-1]}}}",
        "}",
    ]


def _pairs(document: dict[str, Any], *keys: str) -> str:
    return f" {_dumped({key: document[key] for key in keys})[1:-1]},"


def _dumped(value: Any) -> str:
    # A fence inside of a name would end the block.
    return json.dumps(value, allow_nan=False, separators=(",", ":")).replace("`", "\\u0060")


def _short(value: Any) -> Any:
    """Without what is not known, and with so many figures of each amount."""
    if isinstance(value, dict):
        told = {key: _short(each) for key, each in value.items()}
        return {key: each for key, each in told.items() if each is not None or key in ASKED_FOR}
    if isinstance(value, list):
        return [_short(each) for each in value]
    return float(f"{value:.{FIGURES}g}") if isinstance(value, float) else value


def _bounded(known: Report, diagnosis: Diagnosis, kept: Diagnosis) -> Report:
    """The report without what a ticket has no room for, and with no text that fills it."""
    connected = _rtt_seconds(known, diagnosis)
    share = safe(known.target.get("share") or "", LONGEST_WORD)
    version = safe(steps.word(known.tool, "version") or "", LONGEST_WORD)
    copies = [each for each in steps.copies(known) if each.made and each.made.rate.low >= 1]
    entries = [
        known.entries[e.index] for e in copies if any(is_of(copy, e) for copy in kept.copies)
    ]
    return Report(
        status=known.status,
        tool={"version": version, "ticket": SCHEMA},
        started=known.started,
        elapsed_seconds=known.elapsed_seconds,
        target={"share": share, "connect_seconds": connected},
        client=_host(known.client),
        server=_host(known.server),
        entries=tuple((_step(step), _outcome(outcome)) for step, outcome in entries),
        notes=("read from a ticket: its sentences are those of its run, unchecked",),
    )


def _rtt_seconds(known: Report, diagnosis: Diagnosis) -> float | None:
    """Of the headline's own session, where that told one."""
    chosen = diagnosis.chosen
    made = [e.made for e in steps.copies(known) if chosen is not None and is_of(chosen, e)]
    found = rtt.rtt(known, made[0] if made else None)
    return None if found is None else found.seconds


def _kept(diagnosis: Diagnosis, most: int) -> Diagnosis:
    """What a ticket's reader is shown of it, the headline's copy first."""
    ordered = sorted(diagnosis.copies, key=lambda each: each is not diagnosis.chosen)
    copies = tuple(
        replace(
            each,
            ceilings=tuple(replace(e, steps=()) for e in each.ceilings[:most_ceilings]),
            ladder=each.ladder if each is diagnosis.chosen else (),
            evidence=(),
            advice=each.advice[:most_advice],
            target=None,
        )
        for each in ordered[: min(most, MOST_COPIES)]
        for most_ceilings, most_advice in [
            (MOST_CEILINGS, MOST_ADVICE) if each is diagnosis.chosen else (1, 0)
        ]
    )
    return replace(diagnosis, copies=copies, comparisons=())


def _host(host: HostFacts | None) -> HostFacts | None:
    if host is None:
        return None
    link = host.interface and InterfaceFacts(
        name=safe(host.interface.name, LONGEST_NAME),
        address="",
        rate_bits_per_second=host.interface.rate_bits_per_second,
        duplex=None,
        mtu_bytes=host.interface.mtu_bytes,
        driver=None,
        virtual=host.interface.virtual,
    )
    return HostFacts(
        name=safe(host.name, LONGEST_NAME),
        system=safe(host.system, LONGEST_NAME),
        distribution=None,
        python="",
        cores=host.cores,
        quota_cores=host.quota_cores,
        memory_total_bytes=host.memory_total_bytes,
        virtual=None,
        privileged=host.privileged,
        interface=link,
        congestion_control=None,
        socket_buffers={},
        folder=None,
        tools={},
    )


def is_of(told: CopyDiagnosis, copy: steps.Copy) -> bool:
    """Whether a diagnosis speaks of this copy, of several that may bear one name."""
    made = copy.made
    return (
        (told.copy, told.dialect, told.initiator) == (copy.name, copy.dialect, copy.initiator)
        and made is not None
        and told.bytes_per_second == made.rate.median
    )


def _step(step: Step) -> Step:
    setting = {
        name: safe(value, 40) if isinstance(value, str) else value
        for name in TELLING
        if isinstance(value := step.setting.get(name), (str, int)) and value != ""
    }
    return Step(step.stage, setting, step.initiator)


def _outcome(outcome: Outcome) -> Outcome:
    """Each run's beginning and end, both hosts' load, and whether the cache was as it had to be."""
    if not isinstance(outcome, Measured):
        return outcome
    spread = rates(outcome)
    details: dict[str, Any] = {"told_by": "a ticket"}
    if spread.runs == 1 and spread.low < spread.high:
        details["window_rates_bytes_per_second"] = [spread.low, spread.high]
    proven = steps.flag(outcome.details, "cache", "proven")
    if proven is not None:
        side = steps.word(outcome.details, "cache", "side")
        details["cache"] = {"side": side and safe(side, LONGEST_NAME), "proven": proven}
    return Measured(
        runs=tuple((run[0], run[-1]) for run in outcome.runs[:MOST_RUNS]),
        initiator=replace(outcome.initiator, **NOT_TOLD),
        responder=outcome.responder and replace(outcome.responder, **NOT_TOLD),
        details=details,
    )


# -- reading -----------------------------------------------------------------------------------


def is_ticket(content: bytes) -> bool:
    """Whether a text, and no report, holds the figures of a ticket, of any version."""
    return b"copy-bottleneck/ticket/" in content and content.lstrip()[:1] != b"{"


def report_of(content: bytes) -> Report:
    """The report that a ticket ends with, whatever mail did to it.

    Quoting marks and the line breaks of mail are undone. Errors: ReportError, one line.
    """
    if len(content) > LARGEST_BYTES:
        raise ReportError(f"larger than {LARGEST_BYTES} bytes, and no ticket")
    try:
        document = report.document(_block(content).encode("utf-8", "backslashreplace"))
        return with_diagnosis(report.from_elsewhere(document), document)
    except ReportError as error:
        raise ReportError(f"the ticket's figures are damaged: {error}") from None


def with_diagnosis(known: Report, document: dict[str, Any]) -> Report:
    """A ticket's report with the diagnosis that its document holds; any other report as it is.

    Its copies have the rates of the report's steps. Errors: ReportError, one line.
    """
    told = document.get("diagnosis")
    if "ticket" not in known.tool or not isinstance(told, dict) or not told.get("summary"):
        return known
    try:
        found = typed.record(Diagnosis, _safe({**told, "comparisons": []}), "diagnosis")
        if found.headline is not None and found.chosen is None:
            raise ReportError("diagnosis: its headline is none of its copies")
        for copy in found.copies:
            if copy.verdict.confidence > 1:
                raise ReportError("diagnosis: a confidence above 1")
            for each in (copy.verdict, copy.next, *copy.ceilings, *copy.ladder):
                if each is not None:
                    check_words(*each.named)
    except (typed.NotTyped, WordError) as error:
        raise ReportError(str(error)) from None
    rates_told: dict[tuple[str, str, str], float] = {}
    for name, dialect, initiator, rate in steps.made_copies(known):
        rates_told.setdefault((name, dialect, initiator), rate)
    copies = (
        replace(each, bytes_per_second=rates_told.get((each.copy, each.dialect, each.initiator)))
        for each in found.copies
    )
    return replace(known, ticket_diagnosis=replace(found, copies=tuple(copies)))


def _safe(value: Any) -> Any:
    """The same with every text as our own sentences are: no controls, no more than a sentence."""
    if isinstance(value, dict):
        return {key: _safe(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_safe(each) for each in value]
    return " ".join(safe(value, LONGEST_SENTENCE).split()) if isinstance(value, str) else value


def _block(content: bytes) -> str:
    """The JSON object of the figures, on one line."""
    text = content.decode("utf-8", "replace").translate(_CURLED)
    joined = " ".join(_BEFORE_LINE.sub("", line.rstrip()) for line in text.splitlines())
    mark = joined.find(f'"{SCHEMA}"')
    if mark < 0:
        raise ReportError(f"they are not of {SCHEMA}, which this program reads")
    start = joined.rfind(f'"{report.SCHEMA}"', 0, mark)
    start = joined.rfind("{", 0, max(0, start))
    end = joined.find("```", mark)
    body = joined[max(0, start) : end if end >= 0 else len(joined)]
    return body[: body.rfind("}") + 1]
