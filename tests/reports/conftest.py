"""Judgements for the formats that machines read: of a recorded report, and of a hostile one."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import report as reports
from bottleneck.analysis import diagnose
from bottleneck.gate import judge
from bottleneck.gate.judged import Judged, Judgement

BROWSERS = ("chromium-headless-shell", "chromium", "google-chrome")
DATA = Path(__file__).parent.parent / "data"
HOSTILE = (
    "a|b=1;2;3",
    "first\nsecond\r\n::error::forged",
    "%0A::set-env name=PATH::x%",
    "##[group]forged",
    "'quoted' \"twice\" back\\slash\\",
    "<script>alert(1)</script><!-- ]]> &amp; &#10;",
    "\x1b[31mred\x1b]0;title\x07\x9b1m",
    "\u202egnp.exe\u2066 zero\u200bwidth\ufeff",
    "nul\x00 \ufffe \ud800 \U000e0041",
    "[link](http://evil.example) ![x](//evil.example/i.png) www.evil.example me@evil.example",
    "`code` ``` **bold** _x_ ~~y~~ # h\n- item\n1. one",
    'metric{le="1"} 2 # EOF\n# TYPE x counter',
    "{{ jinja }} ${{ secrets.TOKEN }} $(id) `id`",
    "ünïcödé \u540d\u524d \U0001f4be",
    "x" * 10_000,
)


@pytest.fixture(scope="module")
def browser():
    """A real browser; of a module, since two of them cannot be driven at once."""
    from playwright.sync_api import sync_playwright

    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.fail("no browser is installed: run ./test, which installs chromium-headless-shell")
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=found)
        yield opened
        opened.close()


@pytest.fixture
def judged():
    """One of each state, with figures, ranges and without."""
    return (
        Judged(
            "pull.uncached < 80 MB/s",
            "pull.uncached",
            "warning",
            "pull.uncached runs at 23.6 MB/s",
            23.6e6,
            "bytes_per_second",
            "80000000:",
        ),
        Judged(
            "pull.uncached < 10 MB/s",
            "pull.uncached",
            "ok",
            "pull.uncached runs at 23.6 MB/s",
            23.6e6,
            "bytes_per_second",
            critical="10000000:",
        ),
        Judged("path.rtt > 5 ms", "path.rtt", "ok", "350 us", 0.00035, "seconds", "0.005"),
        Judged("loss > 1 %", "loss", "ok", "no loss", 0.0, "ratio", critical="0.01"),
        Judged("tcp.push < 1 MB/s", "tcp.push", "unknown", "no agent", unit="bytes_per_second"),
        Judged("cap is network", "cap", "critical", "the cap is disk/server/read"),
    )


@pytest.fixture
def recorded():
    """A report of a server with a slow disk."""
    return reports.load(DATA / "report-v1-server-disk.json")


@pytest.fixture
def judgement(recorded, judged):
    """A judgement of that report."""
    return Judgement(
        "critical",
        "the server's disk caps pull.uncached at 23.6 MB/s",
        judged,
        recorded,
        diagnose(recorded),
        age_seconds=3 * 3600.0,
    )


@pytest.fixture(params=sorted(DATA.glob("report-v1-*.json")), ids=lambda path: path.stem[10:])
def judged_report(request):
    """A judgement without expectations of each recorded report."""
    report = reports.load(request.param)
    return judge(report, diagnose(report))


@pytest.fixture
def nothing():
    """A judgement where there is no report."""
    return Judgement("unknown", "there is no report in /var/lib/reports", (), None, None)


@pytest.fixture(params=HOSTILE, ids=range(len(HOSTILE)))
def hostile(request, recorded):
    """A judgement whose every foreign text is a stranger's, and that text."""
    text = request.param
    report = replace(
        recorded,
        target={**recorded.target, "share": text, "dialect": text},
        tool={"version": text, text: text},
        client=replace(recorded.client, name=text),
        notes=(text,),
    )
    found = diagnose(report)
    copies = tuple(replace(each, dialect=text, copy=text) for each in found.copies)
    judged = tuple(
        Judged(text, metric, state, text, value, unit, text, text)
        for metric, state, value, unit in (
            (text, "critical", 1e6, "bytes_per_second"),
            (text + "2", "warning", 0.5, "seconds"),
            ("tcp", "unknown", None, "ratio"),
            ("cap", "ok", None, ""),
        )
    )
    return Judgement(
        "critical", text, judged, report, replace(found, copies=copies, summary=text), 7.0
    )
