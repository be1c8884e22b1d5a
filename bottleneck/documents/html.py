"""The HTML page: one file that needs no other, runs no script and contacts no host.

The policy (Content Security Policy Level 3, in a meta element) lets nothing in but the one style
sheet, by its hash: what a stranger's name smuggled past the escaping would still not run or load.
"""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any, Literal, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from bottleneck.analysis import steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.phrases import cap_text, confidence_text, first_line, time_text
from bottleneck.documents import copies, stages
from bottleneck.documents.answer import advice, partial_sentence
from bottleneck.documents.comparisons import figures
from bottleneck.documents.disks import disk_points, jobs
from bottleneck.documents.document import (
    Block,
    Facts,
    Heat,
    HeatCell,
    Points,
    Text,
    Verbatim,
    points,
)
from bottleneck.documents.hosts import host_facts, interface_points, path, share_facts
from bottleneck.documents.plots.charts import Plot
from bottleneck.documents.plots.copies import drawings, stack
from bottleneck.documents.plots.shapes import TEMPLATES, sheet
from bottleneck.documents.plots.zones import zones
from bottleneck.documents.ticket import command_words
from bottleneck.report.report import Report
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import SIDES

TITLE_CHARACTERS = 80
COMMAND_CHARACTERS = 2000
SUMMARY_CHARACTERS = 2000
LONGEST_TEXT = 4000
MOST_POINTS = MOST_ROWS = 200
"""A run has tens of stages and copies; a stranger's report may have thousands."""
MOST_COPIES = 64
MOST_HEAT_ROWS, MOST_HEAT_COLUMNS, HEAT_LEVELS = 16, 8, 5
SEEN_AGAIN = ("bottleneck", "explain", "REPORT.json", "--format", "html")


@dataclass(frozen=True)
class Group:
    """Blocks under a heading, set together, or folded away until a click or a key opens them."""

    title: str
    blocks: tuple[Part, ...]
    name: str = ""
    """Place of a section in the page; for others their class in the style sheet."""
    folded: Literal["", "shut", "open"] = ""
    bar: str = ""
    """<svg> element that a folded group always shows; `below` says the same in words."""
    below: str = ""


Part = Block | Plot | Group


class Shade(NamedTuple):
    """A cell of a heat map."""

    step: int
    """Class of the style sheet; the lowest rate's is 0."""
    text: str
    second: str
    framed: bool


def document(report: Report, diagnosis: Diagnosis) -> str:
    """Returns the page of a diagnosis as ASCII text: the same report gives the same bytes."""
    return page(_sections(report, diagnosis), _top(report, diagnosis))


def page(sections: Iterable[Group], top: dict[str, Any]) -> str:
    """Returns a page of sections, below what page.html has at its top."""
    style = sheet("colours", "page", "plots")
    text = (
        _environment()
        .get_template("page.html")
        .render(
            policy=policy(style),
            style=style,
            sections=[each for each in sections if each.blocks],
            most_points=MOST_POINTS,
            most_rows=MOST_ROWS,
            rate_unit=units.megabytes_unit(),
            **top,
        )
    )
    # ASCII alone, so that every pipe and file takes it.
    return f"{text}\n".encode("ascii", "xmlcharrefreplace").decode("ascii")


@cache
def _environment() -> Environment:
    """Returns templates whose texts are made safe and escaped wherever they are shown."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: safe(value, LONGEST_TEXT) if type(value) is str else value,
    )
    environment.filters["shaded"] = shaded_table
    environment.filters["coded"] = code_markup
    environment.filters["kind"] = lambda block: type(block).__name__
    return environment


def code_markup(text: str) -> Markup:
    """Returns text with the parts between backticks as code; escaped."""
    parts = safe(text, LONGEST_TEXT).split("`")
    if len(parts) % 2 == 0:
        return escape("`".join(parts))
    code = Markup("<code>{}</code>")
    return Markup("").join(code.format(e) if index % 2 else e for index, e in enumerate(parts))


def shaded_table(heat: Heat) -> tuple[list[str], list[tuple[str, list[Shade | None]]]]:
    """Returns a map as a table: column titles, and each row by its name; at most 16 rows of 8."""
    cells = {(each.row, each.column): each for each in heat.cells}
    rows = sorted({row for row, _ in cells})[:MOST_HEAT_ROWS]
    across = sorted({column for _, column in cells})[:MOST_HEAT_COLUMNS]
    highest = max((each.bytes_per_second for each in heat.cells), default=0.0) or 1.0

    def shade(cell: HeatCell | None) -> Shade | None:
        if cell is None:
            return None
        # Equal steps of the highest rate.
        step = min(HEAT_LEVELS - 1, int(HEAT_LEVELS * cell.bytes_per_second / highest))
        return Shade(step, units.megabytes_text(cell.bytes_per_second), cell.second, cell.framed)

    return [heat.column_text(each) for each in across], [
        (heat.row_text(row), [shade(cells.get((row, each))) for each in across]) for row in rows
    ]


def policy(style: str) -> str:
    """Returns the policy of a page with this one style element: it may use that style, no more."""
    digest = base64.b64encode(hashlib.sha256(style.encode("ascii")).digest()).decode("ascii")
    return (
        f"default-src 'none'; style-src 'sha256-{digest}'; img-src 'none'; base-uri 'none'; "
        "form-action 'none'"
    )


def _top(report: Report, diagnosis: Diagnosis) -> dict[str, Any]:
    """Returns the values at the top of the page: result, confidence and first advice."""
    copy = diagnosis.main_copy
    headline, rest = first_line(diagnosis), safe(diagnosis.summary, SUMMARY_CHARACTERS)
    share = safe(steps.word(report.target, "share") or "", TITLE_CHARACTERS)
    subject = share or "a file copy"
    title = f"{headline} - {subject}"
    moment = _moment(report.started)
    return {
        "title": title,
        "origin": f"{share}, {moment}" if share else moment,
        "named": copy is not None and copy.verdict.component != "unknown",
        "headline": headline,
        "rest": "" if rest == headline else rest,
        "figures": Facts(tuple(_figures(report, copy)), "facts") if copy else None,
        "ending": safe(partial_sentence(report, copy), SUMMARY_CHARACTERS),
        "advice": advice(diagnosis, copy) if copy else (),
        "version": safe(steps.word(report.tool, "version") or "of unknown version", 24),
    }


def _figures(report: Report, copy: CopyDiagnosis) -> Iterator[tuple[str, str]]:
    yield "Copy", copies.name_text(copy)
    yield "Rate", _rate_of(copy)
    yield "Confidence", confidence_text(copy.verdict)
    for side, load in zip(SIDES, copies.loads(report, [copy])[0], strict=True):
        if load:
            yield f"CPU, RAM of the {side}", load


def _rate_of(copy: CopyDiagnosis) -> str:
    rate = copy.bytes_per_second
    return "not made" if rate is None else units.rate_text(rate)


def _moment(started: str) -> str:
    when = datetime.fromisoformat(started)
    zone = when.strftime("%z")
    offset = " UTC" if zone in ("+0000", "") else f" UTC{zone[:3]}:{zone[3:5]}"
    return f"{when:%Y-%m-%d %H:%M}{offset if zone else ''}"


def _sections(report: Report, diagnosis: Diagnosis) -> Iterator[Group]:
    main_copy = diagnosis.main_copy
    yield Group("Where the time went", tuple(_times(report, diagnosis)), "times")
    yield Group("Copies", tuple(copies.copies(report, diagnosis)), "copies")
    if main_copy is not None:
        limits = (*copies.ceilings(main_copy), *copies.ladder(main_copy), *copies.target(main_copy))
        yield Group("Limits", limits, "ladder")
    yield Group("Evidence", tuple(_evidence(diagnosis)), "evidence")
    yield Group("Plots", _group("plots", zones(report, diagnosis)), "drawings")
    yield Group("Comparisons", _group("columns", _comparison_groups(diagnosis)), "comparisons")
    hosts = (
        Group("Client", (host_facts(report.client),)),
        Group("Server", (host_facts(report.server),)),
        Group("Share", (share_facts(report),)),
    )
    below = (*path(report), *interface_points(report), *disk_points(report))
    yield Group("Hosts", (*_group("beside", hosts), *below), "hosts")
    yield Group("Settings", tuple(stages.costly(report)), "costs")
    measured = (
        *stages.stages(report),
        *jobs(report),
        *stages.runs(report),
        *copies.work(report),
        *stages.transfers(report),
    )
    yield Group("Measurements", measured, "stages")
    yield Group("Not measured", tuple(stages.missing_tests(report)), "missing")
    yield Group("Notes", tuple(_notes(report, diagnosis)), "notes")
    yield Group("This run", tuple(_run_parts(report)), "again")


def _times(report: Report, diagnosis: Diagnosis) -> Iterator[Group]:
    """Yields each copy's time as one bar, which opens its course; the main copy's first."""
    for copy, plot in drawings(report, diagnosis):
        view = f" (seen from {copy.view})" if copy.time else ""
        title = f"{copies.name_text(copy)}, {_rate_of(copy)}{view}"
        yield Group(title, (plot,), folded="shut", bar=stack(copy), below=time_text(copy.time, 4))


def _group(name: str, blocks: Iterable[Part]) -> tuple[Group, ...]:
    """Returns blocks that are set together; nothing where there are none."""
    parts = tuple(blocks)
    return (Group("", parts, name),) if parts else ()


def _comparison_groups(diagnosis: Diagnosis) -> Iterator[Group]:
    """Yields the sentences of each kind, and the figures behind them."""
    for kind, group in groupby(diagnosis.comparisons, key=lambda each: each.about):
        sentences, maps, table = figures(kind, list(group))
        details = Group("Figures", (table,), folded="shut")
        yield Group(table.title, (Points("", tuple(sentences)), *maps, details))


def _evidence(diagnosis: Diagnosis) -> Iterator[Part]:
    """Yields each copy in a part that opens; the main one first, open, without its verdict."""
    main_copy = diagnosis.main_copy
    ordered = sorted(diagnosis.copies, key=lambda copy: copy is not main_copy)
    for copy in ordered[:MOST_COPIES]:
        title = f"{copies.name_text(copy)}: {_rate_of(copy)}, {cap_text(copy.verdict)}"
        blocks: list[Part] = [*points("Evidence", copy.evidence)]
        if copy is not main_copy:
            blocks.insert(0, Text(safe(copy.verdict.sentence, LONGEST_TEXT)))
            blocks += [*points("Advice", copy.advice), *copies.ceilings(copy)]
            blocks += [*copies.ladder(copy), *copies.target(copy)]
        if blocks:
            yield Group(title, tuple(blocks), folded="open" if copy is main_copy else "shut")
    if len(ordered) > MOST_COPIES:
        yield Text(f"{len(ordered) - MOST_COPIES} more in the report", "quiet")


def _notes(report: Report, diagnosis: Diagnosis) -> Iterator[Block]:
    altered = [
        f"DATA CORRUPTED: {name}: the received bytes differ from the sent bytes"
        for name in diagnosis.altered
    ]
    if altered:
        yield Points("", tuple(safe(each) for each in altered))
    yield from points("Notes", report.notes)
    rate = diagnosis.main_copy.bytes_per_second if diagnosis.main_copy else None
    if rate:
        yield Text(units.explorer_note(rate), "quiet")


def _run_parts(report: Report) -> Iterator[Part]:
    names = {"version": "bottleneck"}
    versions = ", ".join(
        f"{names.get(name, name)} {version}"
        for name, version in report.tool.items()
        if isinstance(version, str)
    )
    yield Facts(
        (
            ("Started", _moment(report.started)),
            ("Took", units.seconds_text(report.elapsed_seconds)),
            ("Ended", report.status),
            ("Versions", safe(versions, 400)),
        )
    )
    words = command_words(report)
    if words:
        yield Group("Repeat the run", (_command_block(words),))
    yield Group("Show the report again", (_command_block(SEEN_AGAIN),))
    for each in stages.reasons(report):
        yield Group(each.title, (Points("", each.lines),), folded="shut")


def _command_block(words: Sequence[str]) -> Verbatim:
    return Verbatim((safe(shlex.join(words), COMMAND_CHARACTERS),), "sh")
