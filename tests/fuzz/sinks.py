"""A report through every document there is, see SINKS.

Each can be read by what it is for, and none holds what a name smuggled in.
"""

from __future__ import annotations

import functools
import io
import json
import unicodedata
import xml.etree.ElementTree as ET
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path

from prometheus_client.openmetrics.parser import text_string_to_metric_families
from rich.console import Console

from bottleneck.analysis.changes import compare
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import check_runs
from bottleneck.cli.documents import text_of
from bottleneck.documents.compare import print_change
from bottleneck.documents.console import print_report
from bottleneck.documents.formats import ALL
from bottleneck.documents.github import github_summary
from bottleneck.gate.judging import judge
from bottleneck.records.redaction import Redaction
from bottleneck.report import report
from bottleneck.report.report import Report, ReportError
from probes.core.records import SIDES

EXAMPLE = Path(__file__).parents[2] / "examples" / "server-disk-read.json"
COMMANDS = ("::error", "::warning", "::notice", "::group::", "::endgroup::")
"""Of a GitHub runner, those that we give."""


def again(known: Report, diagnosis: Diagnosis) -> None:
    """As a report, which reads the same."""
    assert report.loads(report.dumps(known, diagnosis).encode()) == known


def printed(show: Callable[..., None], *told: object, more: object, width: int = 100) -> None:
    """On a terminal; more: the sections, or whether all is shown."""
    file = io.StringIO()
    show(*told, Console(file=file, width=width), more)
    plain(file.getvalue())


def console(known: Report, diagnosis: Diagnosis) -> None:
    printed(print_report, known, diagnosis, more=(ALL,))


def narrow(known: Report, diagnosis: Diagnosis) -> None:
    printed(print_report, known, diagnosis, more=(), width=60)


def change(known: Report, diagnosis: Diagnosis) -> None:
    """Compared with itself."""
    printed(print_change, compare(known, known), more=True)


def ticket(known: Report, diagnosis: Diagnosis) -> None:
    """As a ticket."""
    plain(text_of("ticket", known, diagnosis))


def html(known: Report, diagnosis: Diagnosis) -> None:
    """As a page of the tags and attributes that the example's has, and no others."""
    text = text_of("html", known, diagnosis)
    plain(text)
    found = markup(text)
    assert found <= usual(), found - usual()


def answer(known: Report, diagnosis: Diagnosis, form: str) -> str:
    """What the gate says in a format."""
    text = check_runs.rendered(judge(known, diagnosis), form)
    if form != "junit":
        plain(text)
    return text


def junit(known: Report, diagnosis: Diagnosis) -> None:
    ET.fromstring(answer(known, diagnosis, "junit"))


def nagios(known: Report, diagnosis: Diagnosis) -> None:
    """Figures stand behind one bar."""
    text = answer(known, diagnosis, "nagios")
    assert text.count("|") <= 1, text


def metrics(known: Report, diagnosis: Diagnosis) -> None:
    list(text_string_to_metric_families(answer(known, diagnosis, "openmetrics")))


def github(known: Report, diagnosis: Diagnosis) -> None:
    """Commands of ours alone."""
    for line in answer(known, diagnosis, "github").splitlines():
        assert not line.startswith("::") or line.startswith(COMMANDS), line
    plain(github_summary(judge(known, diagnosis)))


def words(known: Report, diagnosis: Diagnosis) -> None:
    """In words, and as JSON."""
    answer(known, diagnosis, "text")
    json.loads(check_runs.rendered(judge(known, diagnosis), "json"))


def redacted(known: Report, diagnosis: Diagnosis) -> None:
    """Without names: it can be shown again, or is refused in one line."""
    try:
        shown = Redaction().report(known)
    except ReportError as error:
        assert "\n" not in str(error)
        return
    for side in SIDES:
        before, after = getattr(known, side), getattr(shown, side)
        assert (before is None) == (after is None)
        assert not before or len(before.name) < 16 or before.name not in after.name


SINKS = (
    *(again, console, narrow, change, ticket, html),
    *(junit, nagios, metrics, github, words, redacted),
)


def plain(text: str) -> None:
    """Nothing in it moves a cursor, hides or reorders; a blank may be one of any width."""
    for each in text:
        blank = each == "\n" or unicodedata.category(each) == "Zs"
        assert blank or each.isprintable(), ascii(text)


@functools.cache
def usual() -> frozenset[str]:
    """Tags and attributes of a page whose names are harmless."""
    example = report.load(EXAMPLE)
    return markup(text_of("html", example, diagnose(example)))


def markup(text: str) -> frozenset[str]:
    """Tags, and the attributes of each."""
    found = set[str]()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            found.update((tag, *(f"{tag} {name}" for name, _ in attributes)))
            found.update(f"to {to}" for name, to in attributes if name == "href" and to[:1] != "#")

    Reader().feed(text)
    return frozenset(found)
