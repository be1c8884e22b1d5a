"""A terminal, goldens, a browser, and judgements for the formats that machines read."""

from __future__ import annotations

import io
import os
import shutil
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck.documents.console import print_report
from bottleneck.documents.formats import ALL
from bottleneck.documents.terminal import show
from bottleneck.gate.judged import Judgement, Ruling
from bottleneck.gate.judging import judge
from bottleneck.report.report import Report
from tests import stored_reports
from tests.stored_reports import diagnose

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
DATA = Path(__file__).parent.parent / "data"
GOLDEN = Path(__file__).parent / "golden"


@pytest.fixture(scope="module")
def browser():
    """A real browser; of a module, since two of them cannot be driven at once."""
    from playwright.sync_api import sync_playwright

    program = next(filter(None, map(shutil.which, BROWSERS)), None)
    if program is None:
        pytest.fail("no browser is installed: run ./test, which installs chromium-headless-shell")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=program)
        yield opened
        opened.close()


@pytest.fixture
def rulings():
    """One of each state, with figures, ranges and without."""
    return (
        Ruling(
            "pull.uncached < 80 MB/s",
            "pull.uncached",
            "warning",
            "pull.uncached runs at 23.6 MB/s",
            23.6e6,
            "bytes_per_second",
            "80000000:",
        ),
        Ruling(
            "pull.uncached < 10 MB/s",
            "pull.uncached",
            "ok",
            "pull.uncached runs at 23.6 MB/s",
            23.6e6,
            "bytes_per_second",
            critical="10000000:",
        ),
        Ruling("path.rtt > 5 ms", "path.rtt", "ok", "350 us", 0.00035, "seconds", "0.005"),
        Ruling("loss > 1 %", "loss", "ok", "no loss", 0.0, "ratio", critical="0.01"),
        Ruling("tcp.push < 1 MB/s", "tcp.push", "unknown", "no agent", unit="bytes_per_second"),
        Ruling("cap is network", "cap", "critical", "the cap is disk/server/read"),
    )


@pytest.fixture
def recorded_report():
    return stored_reports.load(DATA / "report-v1-server-disk.json")


@pytest.fixture
def judgement(recorded_report, rulings):
    return Judgement(
        "critical",
        "the server's disk caps pull.uncached at 23.6 MB/s",
        rulings,
        recorded_report,
        diagnose(recorded_report),
        age_seconds=3 * 3600.0,
    )


@pytest.fixture(params=sorted(DATA.glob("report-v1-*.json")), ids=lambda path: path.stem[10:])
def judged_report(request):
    """A judgement without expectations of each recorded report."""
    report = stored_reports.load(request.param)
    return judge(report, diagnose(report))


@pytest.fixture
def empty_judgement():
    return Judgement("unknown", "there is no report in /var/lib/reports", (), None, None)


@pytest.fixture(scope="session")
def render():
    """Renders a report, blocks, or output of a callable for a terminal; returns the text."""

    def of(what, width=80, encoding="utf-8", verbose=False, sections=(), **options) -> str:
        raw = io.BytesIO()
        file = io.TextIOWrapper(raw, encoding=encoding, write_through=True, newline="\n")
        # As consoles of Windows are since version 10; wine's own is older.
        console = Console(file=file, width=width, **{"legacy_windows": False, **options})
        if isinstance(what, Report):
            print_report(what, diagnose(what), console, (ALL,) if verbose else sections)
        elif callable(what):
            what(console)
        else:
            show(console, what)
        return raw.getvalue().decode(encoding)

    return of


@pytest.fixture(scope="session")
def golden():
    """Holds a text against one that was looked at; `UPDATE_GOLDEN=1` writes that anew."""

    def same(name, text):
        path = GOLDEN / f"{name}.txt"
        if os.environ.get("UPDATE_GOLDEN"):
            path.write_text(text, encoding="utf-8")
        assert text == path.read_text(encoding="utf-8")

    return same
