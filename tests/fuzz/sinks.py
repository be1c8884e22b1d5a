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
"""Commands of a GitHub runner that we give."""


def again(run_report: Report, diagnosis: Diagnosis) -> None:
    """Writes and reads it again as a report, which stays equal."""
    assert report.loads(report.dumps(run_report, diagnosis).encode()) == run_report


def printed(show: Callable[..., None], *texts: object, details: object, width: int = 100) -> None:
    """Prints to a terminal; details: the sections, or whether all is shown."""
    file = io.StringIO()
    show(*texts, Console(file=file, width=width), details)
    plain(file.getvalue())


def console(run_report: Report, diagnosis: Diagnosis) -> None:
    printed(print_report, run_report, diagnosis, details=(ALL,))


def narrow(run_report: Report, diagnosis: Diagnosis) -> None:
    printed(print_report, run_report, diagnosis, details=(), width=60)


def change(run_report: Report, diagnosis: Diagnosis) -> None:
    """Prints the comparison of a report with itself."""
    printed(print_change, compare(run_report, run_report), details=True)


def ticket(run_report: Report, diagnosis: Diagnosis) -> None:
    plain(text_of("ticket", run_report, diagnosis))


def html(run_report: Report, diagnosis: Diagnosis) -> None:
    """Checks a page: it has the tags and attributes of the example's page, and no others."""
    text = text_of("html", run_report, diagnosis)
    plain(text)
    names = markup(text)
    assert names <= usual(), names - usual()


def answer(run_report: Report, diagnosis: Diagnosis, form: str) -> str:
    """Returns the gate's verdict in a format."""
    text = check_runs.judgement_text(judge(run_report, diagnosis), form)
    if form != "junit":
        plain(text)
    return text


def junit(run_report: Report, diagnosis: Diagnosis) -> None:
    ET.fromstring(answer(run_report, diagnosis, "junit"))


def nagios(run_report: Report, diagnosis: Diagnosis) -> None:
    """Checks that the figures stand behind one bar."""
    text = answer(run_report, diagnosis, "nagios")
    assert text.count("|") <= 1, text


def metrics(run_report: Report, diagnosis: Diagnosis) -> None:
    list(text_string_to_metric_families(answer(run_report, diagnosis, "openmetrics")))


def github(run_report: Report, diagnosis: Diagnosis) -> None:
    """Checks that no text becomes a command of the runner."""
    for line in answer(run_report, diagnosis, "github").splitlines():
        assert not line.startswith("::") or line.startswith(COMMANDS), line
    plain(github_summary(judge(run_report, diagnosis)))


def words(run_report: Report, diagnosis: Diagnosis) -> None:
    """Renders the verdict in words and as JSON."""
    answer(run_report, diagnosis, "text")
    json.loads(check_runs.judgement_text(judge(run_report, diagnosis), "json"))


def redacted(run_report: Report, diagnosis: Diagnosis) -> None:
    """Checks that a redacted report has no host's name, or is refused in one line."""
    try:
        nameless = Redaction().report(run_report)
    except ReportError as error:
        assert "\n" not in str(error)
        return
    for side in SIDES:
        host, host_shown = getattr(run_report, side), getattr(nameless, side)
        assert (host is None) == (host_shown is None)
        assert not host or len(host.name) < 16 or host.name not in host_shown.name


READERS = again, console, narrow, change, ticket, html
SINKS = *READERS, junit, nagios, metrics, github, words, redacted


def plain(text: str) -> None:
    """Checks that no character moves a cursor, hides or reorders; blanks have any width."""
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
    names = set[str]()

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
            names.update((tag, *(f"{tag} {name}" for name, _ in attributes)))
            names.update(f"to {to}" for name, to in attributes if name == "href" and to[:1] != "#")

    Reader().feed(text)
    return frozenset(names)
