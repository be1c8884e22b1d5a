"""The console, against outputs that were looked at; `UPDATE_GOLDEN=1` writes them anew."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck import report as reports
from bottleneck.analysis import diagnose
from bottleneck.analysis.finding import Verdict
from bottleneck.reports import units
from bottleneck.reports.console import print_report
from bottleneck.reports.document import Table, columns
from bottleneck.reports.terminal import show
from bottleneck.reports.words import confidence_text

DATA = Path(__file__).parent.parent / "data"
GOLDEN = Path(__file__).parent / "golden"
NAMES = ("server-disk", "no-agent", "server-quota", "strange", "comparisons")


def shown(
    name, width=80, encoding="utf-8", verbose=False, style: units.Style = "si", **options
) -> str:
    report = reports.load(DATA / f"report-v1-{name}.json")
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    with units.shown_as(style):
        console = Console(file=file, width=width, **options)
        print_report(report, diagnose(report), console, verbose)
    return raw.getvalue().decode(encoding)


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("server-disk", 80),
        ("no-agent", 80),
        ("server-quota", 120),
        ("comparisons", 80),
        ("comparisons", 200),
    ],
)
def test_the_output_is_the_one_that_was_looked_at(name, width):
    path = GOLDEN / f"{name}-{width}.txt"
    text = shown(name, width)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 160])
@pytest.mark.parametrize("style", units.STYLES)
def test_no_line_is_wider_than_the_terminal_or_ends_in_a_space(name, width, style):
    for line in shown(name, width, verbose=True, style=style).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


def test_verbose_shows_every_copys_reasons():
    text = shown("server-disk", verbose=True)
    assert text.count("Evidence (") == 5
    assert "Evidence (pull.uncached, SMB1)" in text


def test_long_evidence_is_cut_with_a_word():
    report = reports.load(DATA / "report-v1-server-disk.json")
    diagnosis = diagnose(report)
    chosen = diagnosis.chosen
    assert chosen is not None
    file = io.StringIO()
    many = type(chosen)(**{**vars(chosen), "evidence": tuple(f"point {n}" for n in range(11))})
    print_report(report, type(diagnosis)(chosen.copy, (many,), "s"), Console(file=file, width=80))
    assert "and 3 more with --verbose" in file.getvalue()


def test_an_old_windows_console_gets_ascii():
    assert shown("server-disk", legacy_windows=True, color_system=None).isascii()


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.97, "high (0.97)"), (0.9, "high (0.90)"), (0.75, "fair (0.75)"), (0.6, "low (0.60)")],
)
def test_confidence_is_a_word_and_a_number(confidence, text):
    assert confidence_text(Verdict("disk", "server", "read", confidence, 1.0, "")) == text
    assert confidence_text(Verdict("unknown", None, "inconclusive", 0.0, None, "")) == "-"


def test_a_step_without_a_rate_and_a_report_without_copies_are_shown():
    report = reports.load(DATA / "report-v1-server-disk.json")
    tcp = [entry for entry in report.entries if entry[0].stage == "tcp"]
    step, outcome = tcp[0]
    instant = replace(outcome, runs=(outcome.runs[0][:1],))
    bare = replace(report, entries=((step, instant), tcp[1]))
    file = io.StringIO()
    print_report(bare, diagnose(bare), Console(file=file, width=80))
    text = file.getvalue()
    assert text.startswith("No copy was tried")
    assert "tcp push x4" in text
    assert "Copies" not in text
    assert "Explorer" not in text


def test_a_name_that_is_too_long_gives_way_and_the_figures_stay():
    file = io.StringIO()
    table = Table("", columns("stage", "rate"))
    table.add("x" * 100, "118 MB/s")
    show(Console(file=file, width=40), [table])
    assert file.getvalue().splitlines()[1] == "x" * 29 + "~  118 MB/s"


def test_what_costs_in_the_servers_configuration_is_told():
    """Of a foreign file: shown as text, whatever it holds."""
    words = {"value": "SO_SNDBUF=8192", "why": "\x1b[31mslow", "remedy": "take it out"}
    told = [{"option": "socket options", **words}, "nonsense"]
    report = reports.load(DATA / "report-v1-comparisons.json")
    report = replace(report, target={**report.target, "smb_conf": told})
    file = io.StringIO()
    print_report(report, diagnose(report), Console(file=file, width=80))
    assert "- socket options = SO_SNDBUF=8192: " in file.getvalue()
    assert "\x1b" not in file.getvalue() and "nonsense" not in file.getvalue()


# -- the copies --------------------------------------------------------------------------------

GRID = "Push and pull, the source cached and not"


def test_a_copy_alone_is_no_grid():
    report = reports.load(DATA / "report-v1-server-disk.json")
    diagnosis = diagnose(report)
    alone = replace(diagnosis, copies=diagnosis.copies[:1])
    file = io.StringIO()
    print_report(report, alone, Console(file=file, width=80))
    assert GRID not in file.getvalue()


# -- widths, colours, units --------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_colour_vanishes_on_a_light_or_a_dark_background(name):
    """Red and magenta are read on both; white, black, yellow and bright ones on one alone."""
    text = shown(name, force_terminal=True, color_system="standard", verbose=True)
    codes = {code for found in re.findall(r"\x1b\[([0-9;]*)m", text) for code in found.split(";")}
    assert codes <= {"0", "1", "2", "31", "35"}


@pytest.mark.parametrize(("style", "strange"), [("iec", r"[kMG]B/s"), ("bits", r"[KMGk]i?B/s")])
@pytest.mark.parametrize("name", ["server-disk", "comparisons", "lab-with-agent"])
def test_every_rate_of_a_report_is_in_the_style_that_is_asked_for(name, style, strange):
    text = shown(name, verbose=True, style=style)
    body, _, note = text.rpartition("\n\n")
    assert "Explorer" in note
    assert not re.search(rf"(?<![A-Za-z]){strange}", body)
