"""The whole page: one file that needs nothing else, runs nothing and asks nobody.

The policy (Content Security Policy Level 3, in a meta element) lets nothing in but the one style
sheet, by its hash: what a stranger's name smuggled past the escaping would still not run or load.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterator, Sequence
from datetime import datetime

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report
from bottleneck.reports import remarks
from bottleneck.reports.disks import disk_lines
from bottleneck.reports.html.chain import chain
from bottleneck.reports.html.comparisons import comparisons
from bottleneck.reports.html.copies import copies
from bottleneck.reports.html.evidence import evidence
from bottleneck.reports.html.figures import figure, figures
from bottleneck.reports.html.hosts import hosts
from bottleneck.reports.html.ladder import ladder, target
from bottleneck.reports.html.lists import block, folded, pairs, points
from bottleneck.reports.html.markup import Markup, tag, together
from bottleneck.reports.html.stages import stages
from bottleneck.reports.html.style import sheet
from bottleneck.reports.html.verdict import verdict
from bottleneck.reports.interfaces import interface_lines
from bottleneck.reports.path import path_lines
from bottleneck.reports.plots import plots, trend_plots
from bottleneck.reports.safe import safe
from bottleneck.reports.ticket import command_words
from bottleneck.reports.units import explorer_note, seconds_text
from bottleneck.reports.words import cap_text
from bottleneck.trend import Trend

WATERFALL = "waterfall"
"""The drawing that stands beside the ladder, not among the others."""
TITLE_CHARACTERS = 80
COMMAND_CHARACTERS = 2000
SEEN_AGAIN = ("bottleneck", "explain", "REPORT.json", "--format", "html")


def html_text(report: Report, diagnosis: Diagnosis, trends: Sequence[Trend] = ()) -> str:
    """The page of a diagnosis as ASCII text: the same report gives the same bytes.

    trends: of the same two ends, as a history knows them; none: there is no such section.
    """
    style = Markup(f"\n{sheet()}\n")
    parts = [part for part in _sections(report, diagnosis, trends) if part[2]]
    page = tag(
        "html",
        tag("head", *_head(report, diagnosis, style)),
        tag("body", _banner(report, parts), _main(report, diagnosis, parts), _foot(report)),
        lang="en",
    )
    # ASCII alone, so that every pipe and file takes it.
    return f"<!DOCTYPE html>\n{page}\n".encode("ascii", "xmlcharrefreplace").decode("ascii")


def policy(style: str) -> str:
    """What a page may do whose one style element holds this text: be shown in that style."""
    digest = base64.b64encode(hashlib.sha256(style.encode("ascii")).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'none'; base-uri 'none'; "
        "form-action 'none'"
    )


def _head(report: Report, diagnosis: Diagnosis, style: Markup) -> Iterator[Markup]:
    yield tag("meta", charset="utf-8")
    # By this a page is known as ours: no other file is written over (document_file).
    yield tag("meta", name="generator", content="copy-bottleneck")
    yield tag("meta", http_equiv="Content-Security-Policy", content=policy(style))
    yield tag("meta", name="viewport", content="width=device-width, initial-scale=1")
    yield tag("meta", name="color-scheme", content="light dark")
    yield tag("meta", name="referrer", content="no-referrer")
    yield tag("title", _title(report, diagnosis))
    yield tag("style", style)


def _title(report: Report, diagnosis: Diagnosis) -> str:
    chosen = diagnosis.chosen
    share = safe(steps.word(report.target, "share") or "a file copy", TITLE_CHARACTERS)
    return f"bottleneck: {share}" if chosen is None else f"{cap_text(chosen.verdict)} - {share}"


Section = tuple[str, str, Markup | None]
"""Its name in the page, its heading, and what it holds."""


def _banner(report: Report, parts: Sequence[Section]) -> Markup:
    share = safe(steps.word(report.target, "share") or "", TITLE_CHARACTERS)
    told = f"{share}, {_moment(report.started)}" if share else _moment(report.started)
    names = [tag("li", tag("a", title, href=f"#{name}")) for name, title, _ in parts]
    return tag(
        "header",
        tag("p", tag("strong", "bottleneck"), " ", tag("span", told), class_="origin"),
        tag("nav", tag("ul", *names), aria_label="Parts of this page") if names else None,
    )


def _moment(started: str) -> str:
    when = datetime.fromisoformat(started)
    zone = when.strftime("%z")
    offset = " UTC" if zone in ("+0000", "") else f" UTC{zone[:3]}:{zone[3:5]}"
    return f"{when:%Y-%m-%d %H:%M}{offset if zone else ''}"


def _main(report: Report, diagnosis: Diagnosis, parts: Sequence[Section]) -> Markup:
    sections = [
        tag(
            "section",
            tag("h2", title, id=f"{name}-title"),
            inside,
            id=name,
            aria_labelledby=f"{name}-title",
        )
        for name, title, inside in parts
    ]
    return tag("main", verdict(report, diagnosis), *sections)


def _sections(report: Report, diagnosis: Diagnosis, trends: Sequence[Trend]) -> Iterator[Section]:
    chosen = diagnosis.chosen
    drawn = plots(report, diagnosis)
    front = [figure(plot) for plot in drawn if plot.name == WATERFALL]
    if chosen is not None:
        yield "chain", "From disk to disk", chain(chosen)
    if diagnosis.copies:
        yield "copies", "Copies", copies(diagnosis)
    if chosen is not None:
        held = tag("div", *front, ladder(chosen), class_="held") if front else ladder(chosen)
        yield "ladder", "What holds it", together((held, target(chosen)))
    yield "drawings", "Drawings", figures(plot for plot in drawn if plot.name != WATERFALL)
    yield "trend", "From run to run", figures(trend_plots(trends))
    yield "comparisons", "Side by side", comparisons(diagnosis)
    yield "evidence", "Evidence", evidence(diagnosis)
    yield "stages", "Stages", stages(report)
    yield "hosts", "Hosts", together((hosts(report), _below(report)))
    yield "costs", "Costly settings", _costs(report)
    yield "missing", "Not measured", points(remarks.missing(report))
    yield "notes", "Notes", _notes(report, diagnosis)
    yield "again", "This run", _run(report)


def _below(report: Report) -> Markup:
    found = (
        block("Path between the hosts", points(path_lines(report))),
        block("Interfaces", points(interface_lines(report))),
        block("Disks", points(disk_lines(report))),
    )
    return together(found)


def _costs(report: Report) -> Markup:
    found = (
        block("In the server's smb.conf", points(remarks.costly_server_settings(report))),
        block("Of TCP", points(remarks.costly_host_settings(report, "tcp_settings"))),
        block("Below the folders", points(remarks.costly_host_settings(report, "disk_settings"))),
    )
    return together(found)


def _notes(report: Report, diagnosis: Diagnosis) -> Markup:
    altered = [f"{name}: its bytes did not arrive as they were sent" for name in diagnosis.altered]
    chosen = diagnosis.chosen
    rate = None if chosen is None else chosen.bytes_per_second
    note = tag("p", explorer_note(rate), class_="note") if rate else None
    return together((points((*altered, *report.notes)), note))


def _run(report: Report) -> Markup:
    names = {"version": "bottleneck"}
    versions = ", ".join(
        f"{names.get(name, name)} {told}"
        for name, told in report.tool.items()
        if isinstance(told, str)
    )
    told = [
        ("Started", _moment(report.started)),
        ("Took", seconds_text(report.elapsed_seconds)),
        ("Ended", report.status),
        ("Versions", safe(versions, 400)),
    ]
    again = command_words(report)
    return together(
        (
            pairs(told),
            block("To measure it again", _typed(again)) if again else None,
            block("To see it again, from its report", _typed(SEEN_AGAIN)),
            folded("Why each step was made", points(remarks.reasons(report))),
        )
    )


def _typed(words: Sequence[str]) -> Markup:
    return tag("pre", tag("code", safe(shlex.join(words), COMMAND_CHARACTERS)))


def _foot(report: Report) -> Markup:
    version = safe(steps.word(report.tool, "version") or "of unknown version", 24)
    told = f"Written by bottleneck {version}. A dash in a table: not measured, or not known."
    return tag("footer", tag("p", told))
