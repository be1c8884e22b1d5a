"""A diagnosis as one page of Markdown for a ticket: what a helpdesk asks for, and no more."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator

from bottleneck import ticket_figures
from bottleneck.analysis import rtt, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.report import Report
from bottleneck.reports import remarks
from bottleneck.reports.interfaces import interface_text
from bottleneck.reports.markdown import WIDTH, fenced, inline, paragraph, table
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    count_text,
    percent_text,
    range_text,
    rate_text,
    seconds_text,
    size_text,
)
from bottleneck.reports.words import cap_text, confidence_text, dialect_text
from probes.records import HostFacts, Spread, Usage

MOST_LINES = 60
MOST_COPIES = 5
MOST_ADVICE = 2
MOST_CEILINGS = 5
MOST_MISSING = 3
LEAST_ROWS = 1
FIXED_FIGURES = 12
"""Lines of the figures' block beside its rows, with its fences."""
NAME_CHARACTERS = 60
LONGEST_COMMAND = 300


def ticket_text(report: Report, diagnosis: Diagnosis) -> str:
    """The ticket: verdict, first step, figures, hosts, gaps, command, and figures to compare.

    At most MOST_LINES lines of at most WIDTH columns, apart from the figures' own lines, which mail
    may wrap. Foreign text is escaped.
    """
    # What is not measured, and what is long, gives way, so that the page is one.
    for most in (3, 2, 1):
        lines = _words(report, diagnosis, most)
        room = MOST_LINES - len(lines) - FIXED_FIGURES - 2
        if room >= LEAST_ROWS:
            break
    figures = ticket_figures.lines(report, diagnosis, max(LEAST_ROWS, room))
    title = "To compare it: bottleneck compare BEFORE.md AFTER.md"
    lines += _section(title, fenced(figures, "json"))
    return "\n".join(lines).rstrip() + "\n"


def _words(report: Report, diagnosis: Diagnosis, most: int) -> list[str]:
    """All of it but the figures' block; most: lines of a point, and points of what is missing."""
    chosen = diagnosis.chosen
    return [
        f"# {_title(chosen)}",
        "",
        *paragraph(_about(report), 400, most=most),
        "",
        *paragraph(f"Verdict: {diagnosis.summary}{_confidence(chosen)}", 700, most=most + 1),
        "",
        *_section("What to do first", _first(chosen, most)),
        *_section("Figures", [*_copies(report, diagnosis), *_around(report, chosen, most)]),
        *_section("Hosts", list(_hosts(report, most))),
        *_section("Not measured", _missing(report, most)),
        *_section("To repeat it", fenced(_command(report)[: most + 1], "sh")),
    ]


def _section(title: str, lines: list[str]) -> list[str]:
    return [f"## {title}", "", *lines, ""] if lines else []


def _title(chosen: CopyDiagnosis | None) -> str:
    if chosen is None or chosen.bytes_per_second is None:
        return "Nothing was copied"
    at = f"{inline(safe(chosen.copy, 40))} at {rate_text(chosen.bytes_per_second)}"
    if chosen.verdict.component == "unknown":
        return f"What caps {at} was not found"
    cap = cap_text(chosen.verdict)
    return f"{cap[0].upper()}{cap[1:]} caps {at}"


def _about(report: Report) -> str:
    share = safe(steps.word(report.target, "share") or "no share", 120)
    version = safe(steps.word(report.tool, "version") or "unknown", 24)
    ended = "" if report.status == "complete" else f"; the run is {report.status}"
    return f"{share}, {report.started[:40]}{ended}. {ticket_figures.SCHEMA} by version {version}."


def _confidence(chosen: CopyDiagnosis | None) -> str:
    if chosen is None or chosen.verdict.component == "unknown":
        return ""
    return f" Confidence: {confidence_text(chosen.verdict)}."


def _first(chosen: CopyDiagnosis | None, most: int) -> list[str]:
    advice = chosen.advice[:MOST_ADVICE] if chosen is not None else ()
    return [line for each in advice for line in paragraph(each, 280, "- ", most)]


def _copies(report: Report, diagnosis: Diagnosis) -> list[str]:
    chosen = diagnosis.chosen
    ordered = sorted(diagnosis.copies, key=lambda each: each is not chosen)
    rows: list[tuple[str, ...]] = []
    for copy in ordered[:MOST_COPIES]:
        rate = copy.bytes_per_second
        spread = _spread(report, copy)
        rows.append(
            (
                copy.copy,
                dialect_text(copy.dialect).removeprefix("SMB "),
                "not made" if rate is None else rate_text(rate),
                _range(spread),
                cap_text(copy.verdict),
                _sure(copy),
            )
        )
    titles = ("copy", "dialect", "rate", "low-high (runs)", "cap", "sure")
    left = len(diagnosis.copies) - len(rows)
    more = [f"and {left} more copies"] if left > 0 else []
    return [*table(titles, rows), *more, ""] if rows else []


def _sure(copy: CopyDiagnosis) -> str:
    return "-" if copy.verdict.component == "unknown" else f"{copy.verdict.confidence:.2f}"


def _made(report: Report, copy: CopyDiagnosis) -> steps.Found | None:
    for each in steps.copies(report):
        if ticket_figures.is_of(copy, each):
            return each.made
    return None


def _spread(report: Report, copy: CopyDiagnosis) -> Spread | None:
    made = _made(report, copy)
    return None if made is None else made.rate


def _range(spread: Spread | None) -> str:
    if spread is None:
        return "-"
    return f"{range_text(spread.low, spread.high)} ({spread.runs})"


def _around(report: Report, chosen: CopyDiagnosis | None, most: int) -> list[str]:
    """The ceilings, the round trip, and what both hosts were busy with."""
    if chosen is None:
        return []
    lines: list[str] = []
    made = _made(report, chosen)
    ceilings = [f"{cap_text(e)} {rate_text(e.bytes_per_second)}" for e in chosen.ceilings]
    if ceilings:
        told = "; ".join(ceilings[:MOST_CEILINGS])
        lines += paragraph(f"Ceilings of {chosen.copy}: {told}.", 500, "- ", most)
    after = chosen.predicted_bytes_per_second
    if after is not None:
        told = f"Once its cap is lifted: {range_text(after.low, after.high)}."
        lines += paragraph(told, 200, "- ", most)
    found = rtt.rtt(report, made)
    trip = "Round trip: not known" if found is None else f"Round trip: {_trip(found)}"
    busy = [] if made is None else [_busy(side, made.usage(side)) for side in ("client", "server")]
    return [*lines, *paragraph("; ".join([trip, *busy]) + ".", 400, "- ", most)]


def _trip(found: rtt.Rtt) -> str:
    return seconds_text(found.seconds) + ("" if found.echoed else " (of one connect)")


def _busy(side: str, usage: Usage | None) -> str:
    if usage is None or not usage.core_busy_ratios:
        return f"{side}: CPU and RAM not seen"
    core = f"{side}: busiest core {percent_text(min(1.0, usage.busiest_core_ratio))}"
    used = usage.memory_used_bytes
    return core if used is None else f"{core}, RAM in use {size_text(used)}"


def _hosts(report: Report, most: int) -> Iterator[str]:
    for side, host in (("client", report.client), ("server", report.server)):
        if host is None:
            yield f"- {side}: nothing is known of it (no agent there)"
        else:
            yield from paragraph(f"{side}: {', '.join(_host(host))}", 390, "- ", most)


def _host(host: HostFacts) -> Iterator[str]:
    yield safe(host.name, NAME_CHARACTERS)
    if host.system or host.distribution:
        yield safe(host.distribution or host.system, NAME_CHARACTERS)
    if host.cores:
        yield f"{count_text(host.cores)} core{'s' * (host.cores > 1)}"
    if host.memory_total_bytes is not None:
        yield f"{size_text(host.memory_total_bytes)} RAM"
    if host.interface is not None:
        yield safe(interface_text(host.interface), 120)
    if host.folder is not None:
        disk = [safe(each, 24) for each in (host.folder.filesystem, host.folder.device) if each]
        spins = host.folder.rotational
        kind = [] if spins is None else ["rotational" if spins else "not rotational"]
        if disk or kind:
            yield f"disk {' on '.join(disk)}{' (' + kind[0] + ')' if kind else ''}"


def _missing(report: Report, most: int) -> list[str]:
    told = remarks.missing(report)
    lines = [line for each in told[:most] for line in paragraph(each, 190, "- ", most)]
    more = len(told) - most
    return [*lines, f"- and {more} more"] if more > 0 else lines


def _command(report: Report) -> list[str]:
    """What repeats the run, for a shell; of a report that does not tell it, as far as it can be."""
    words = command_words(report)
    if not words:
        return ["# figures that were told: there is no run to repeat"]
    text = safe(shlex.join(words), LONGEST_COMMAND)
    return textwrap.wrap(
        text, WIDTH - 4, subsequent_indent="    ", break_on_hyphens=False, break_long_words=False
    )


def command_words(report: Report) -> list[str]:
    """The command that repeats the run, without secrets; not safe. Empty: there is none."""
    return list(steps.texts(report.tool, "command")) or _rebuilt(report)


def _rebuilt(report: Report) -> list[str]:
    share = steps.word(report.target, "share")
    if share is None or "observations" in report.tool or "ticket" in report.tool:
        return []
    return ["bottleneck", "diagnose", share, *(["--agent", "..."] if report.server else [])]
