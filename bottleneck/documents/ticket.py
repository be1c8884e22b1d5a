"""A diagnosis as one page of Markdown for a ticket: what a helpdesk asks for, and no more.

Its figures for programs are the report's, a file beside it.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from bottleneck.analysis import phrases, rtt, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.documents import stages
from bottleneck.documents.answer import advice
from bottleneck.documents.document import Block, Table, Verbatim, columns, points
from bottleneck.documents.hosts import interface_text
from bottleneck.documents.markdown import WIDTH, inline, paragraph, section
from bottleneck.report.report import Report
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import HostFacts, Usage

SCHEMA = "copy-bottleneck/ticket/3"
DATA = "Attach the run's report (.json) too: 'bottleneck explain' reads it."
MOST_LINES = 60
MOST_COPIES = 5
MOST_ADVICE = 3
MOST_CEILINGS = 5
MOST_POINT_LINES = 6
NAME_CHARACTERS = 60
LONGEST_COMMAND = 300


def document(report: Report, diagnosis: Diagnosis) -> str:
    """Returns the ticket: verdict, first step, figures, hosts, gaps, and the command.

    At most MOST_LINES lines of at most WIDTH columns, as mail takes them. Foreign text is escaped.
    """
    # Long points and the list of gaps give way, so that it stays one page.
    for limit in (MOST_POINT_LINES, 3, 2, 1):
        lines = _lines(report, diagnosis, limit)
        if len(lines) <= MOST_LINES:
            break
    return "\n".join(lines).rstrip() + "\n"


def _lines(report: Report, diagnosis: Diagnosis, limit: int) -> list[str]:
    """Returns all of it; limit: lines of a point, and points of what is missing."""
    copy = diagnosis.main_copy
    summary = f"{diagnosis.summary}{_confidence(copy)}"
    return [
        f"# {inline(phrases.first_line(diagnosis).replace('`', ''))}",
        "",
        *section("What to do", _advice(diagnosis, copy), limit),
        *paragraph(summary.replace("`", "'"), 700, limit=limit + 1),
        "",
        *paragraph(_origin(report), 400, limit=limit),
        "",
        *section("Figures", [*_copies(report, diagnosis), *_details(report, copy)], limit),
        *section("Hosts", _hosts(report), limit),
        *section("Not measured", points("", stages.missing_lines(report), limit, 400), limit),
        *section("Repeat the run", _command(report), limit),
        DATA,
    ]


def _origin(report: Report) -> str:
    share = safe(steps.word(report.target, "share") or "no share", 120)
    version = safe(steps.word(report.tool, "version") or "unknown", 24)
    ended = "" if report.status == "complete" else f"; {stages.ENDINGS.get(report.status, '')}"
    return f"{share}, {report.started[:40]}{ended}. {SCHEMA}, version {version}."


def _confidence(copy: CopyDiagnosis | None) -> str:
    if copy is None or copy.verdict.component == "unknown":
        return ""
    return f" Confidence: {phrases.confidence_text(copy.verdict)}."


def _advice(diagnosis: Diagnosis, copy: CopyDiagnosis | None) -> Iterator[Block]:
    sentences = advice(diagnosis, copy)[:MOST_ADVICE] if copy is not None else ()
    # Escaped backticks would be read as a part of the command.
    sentences = tuple(each.replace("`", "'") for each in sentences)
    yield from points("", sentences, longest=280)


def _copies(report: Report, diagnosis: Diagnosis) -> Iterator[Block]:
    main_copy = diagnosis.main_copy
    ordered = sorted(diagnosis.copies, key=lambda each: each is not main_copy)
    titles = ("copy", "SMB", "rate", "range (runs)", "limited by", "confidence")
    table = Table("", columns(*titles))
    for copy in ordered[:MOST_COPIES]:
        rate = copy.bytes_per_second
        table.add(
            copy.copy,
            phrases.dialect_text(copy.dialect).removeprefix("SMB "),
            "not made" if rate is None else units.rate_text(rate),
            _range(_test_of(report, copy)),
            phrases.cap_text(copy.verdict),
            "-" if copy.verdict.component == "unknown" else f"{copy.verdict.confidence:.2f}",
        )
    rest = len(ordered) - len(table.rows)
    table.note = f"and {rest} more copies" if rest > 0 else ""
    if table.rows:
        yield table


def _test_of(report: Report, copy: CopyDiagnosis) -> steps.MeasuredStep | None:
    rate = copy.bytes_per_second or 0.0
    return steps.made_copies(report).get((copy.copy, copy.dialect, copy.initiator, rate))


def _range(test: steps.MeasuredStep | None) -> str:
    if test is None:
        return "-"
    # Its unit is that of the rate beside it.
    span = units.range_text(test.rate.low, test.rate.high).rpartition(" ")[0]
    return f"{span} ({test.rate.runs})"


def _details(report: Report, copy: CopyDiagnosis | None) -> Iterator[Block]:
    """Yields the ceilings, the time, the round trip, and the load of both hosts."""
    if copy is None:
        return
    test = _test_of(report, copy)
    ceilings = [
        f"{phrases.cap_text(e)} {phrases.DOUBT_SIGNS[e.standing]}"
        f"{units.rate_text(e.bytes_per_second)}"
        for e in copy.ceilings
    ]
    if ceilings:
        text = "; ".join(ceilings[:MOST_CEILINGS])
        yield from points("", [f"Limits of {copy.copy}: {text}."], longest=500)
    if copy.time:
        text = f"Time of {copy.copy} (seen from {copy.view}): {phrases.time_text(copy.time)}."
        yield from points("", [text])
    delay = rtt.rtt(report, test)
    trip = "not measured" if delay is None else units.seconds_text(delay.seconds)
    trip = f"RTT: {trip}" + ("" if delay is None or delay.is_echo else " (of one connection)")
    busy = [] if test is None else [_busy(side, test.usage(side)) for side in ("client", "server")]
    yield from points("", ["; ".join([trip, *busy]) + "."], longest=400)


def _busy(side: str, usage: Usage | None) -> str:
    if usage is None or not usage.core_busy_ratios:
        return f"{side}: CPU and memory not measured"
    core = f"{side}: busiest core {units.percent_text(min(1.0, usage.busiest_core_ratio))}"
    used = usage.memory_used_bytes
    return core if used is None else f"{core}, memory in use {units.size_text(used)}"


def _hosts(report: Report) -> Iterator[Block]:
    for side, host in (("client", report.client), ("server", report.server)):
        facts = "not measured (no agent)" if host is None else ", ".join(_host(host))
        yield from points("", [f"{side}: {facts}"], longest=390)


def _host(host: HostFacts) -> Iterator[str]:
    yield safe(host.name, NAME_CHARACTERS)
    if host.system or host.distribution:
        yield safe(host.distribution or host.system, NAME_CHARACTERS)
    if host.cores:
        yield f"{units.count_text(host.cores)} core{'s' * (host.cores > 1)}"
    if host.memory_total_bytes is not None:
        yield f"{units.size_text(host.memory_total_bytes)} memory"
    if host.interface is not None:
        yield safe(interface_text(host.interface), 120)
    if host.folder is not None:
        disk = [safe(each, 24) for each in (host.folder.filesystem, host.folder.device) if each]
        spins = host.folder.rotational
        kind = [] if spins is None else ["rotational" if spins else "not rotational"]
        if disk or kind:
            yield f"disk {' on '.join(disk)}{' (' + kind[0] + ')' if kind else ''}"


def _command(report: Report) -> Iterator[Block]:
    """Yields the command that repeats the run, for a shell; nothing for a loaded report."""
    words = command_words(report)
    if not words:
        return
    lines = [""]
    for word in (safe(shlex.quote(each), LONGEST_COMMAND) for each in words):
        if len(lines[-1]) + len(word) > WIDTH - 4 and lines[-1].strip():
            lines[-1] += " \\"
            lines.append("   ")
        lines[-1] += f" {word}" if lines[-1] else word
    yield Verbatim(tuple(lines), "sh")
    if any("exec:..." in each for each in words):
        yield from points("", ["In place of exec:... goes the command that reaches the server."])


def command_words(report: Report) -> list[str]:
    """Returns the command that started this very process, without secrets; not safe.

    Empty for a report that was loaded: nobody should paste what a stranger typed.
    """
    return list(steps.texts(report.tool, "command"))
