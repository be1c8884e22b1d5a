"""The console: recorded reports and real runs, in every width, colour, encoding and unit."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest

from bottleneck.analysis.finding import Verdict
from bottleneck.analysis.phrases import confidence_text
from bottleneck.documents.console import SECTIONS
from bottleneck.documents.document import Table, columns
from bottleneck.text import units
from probes.host.smb_client import costly
from tests import stored_reports

TESTS = Path(__file__).parent.parent
NAMES = ("server-disk", "no-agent", "server-quota", "strange", "comparisons")
RUNS = ("example", "lab-no-agent")
"""Reports of real runs: the README's with an agent, and one without."""
ANSWERS = sorted((TESTS / "data" / "answers").glob("*.json"))
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def load(name):
    if name == "example":
        return stored_reports.load(TESTS.parent / "examples" / "server-disk-read.json")
    return stored_reports.load(TESTS / "data" / f"report-v1-{name}.json")


@pytest.fixture(params=RUNS)
def run_report(request):
    return load(request.param)


@pytest.mark.parametrize(
    ("name", "width"),
    [("server-disk", 80), ("comparisons", 200), ("example", 120), ("lab-no-agent", 80)],
)
def test_all_sections_read_as_they_were_looked_at(render, golden, name, width):
    golden(f"{name}-{width}", render(load(name), width, verbose=True))


@pytest.mark.parametrize(("name", "section"), [*product(RUNS, SECTIONS[:-1])])
def test_a_section_follows_the_answer_and_is_part_of_all(render, name, section):
    answer, with_it = render(load(name)), render(load(name), sections=(section,))
    assert with_it.startswith(answer)
    headings = with_it[len(answer) :].splitlines()[1:2]
    if headings == [f"Nothing to show in section {section}."]:
        return
    assert all(each in render(load(name), verbose=True) for each in headings)


@pytest.mark.parametrize("height", [20, 24, 40])
@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_the_first_line_is_in_sight_when_the_answer_has_been_written(render, path, height):
    size = {"height": height, "force_terminal": True, "color_system": None}
    lines = render(stored_reports.load(path), 60 if height == 20 else 80, **size).splitlines()
    # The prompt takes the last line.
    assert lines[0].partition(",")[0] in "\n".join(lines[-(height - 1) :])


@pytest.mark.parametrize("path", ANSWERS, ids=lambda path: path.stem)
def test_no_two_rows_read_alike_on_a_narrow_terminal(render, path):
    def labels(width):
        text = render(stored_reports.load(path), width, sections=("limits",))
        tables = [each for each in text.split("\n\n")[1:] if "rate\n" in each or "limit " in each]
        return [len({line.split("  ")[0] for line in each.splitlines()}) for each in tables]

    assert labels(60)[1:] == labels(200)[1:]


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [60, 80, 100, 160])
@pytest.mark.parametrize("style", units.STYLES)
def test_no_line_is_wider_than_the_terminal_or_ends_in_a_space(render, name, width, style):
    with units.shown_as(style):
        text = render(load(name), width, verbose=True)
    for line in text.splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize(
    ("confidence", "text"),
    [(0.97, "high (0.97)"), (0.9, "high (0.90)"), (0.75, "medium (0.75)"), (0.6, "low (0.60)")],
)
def test_confidence_is_a_word_and_a_number(confidence, text):
    assert confidence_text(Verdict("disk", "server", "read", confidence, 1.0, "")) == text
    assert confidence_text(Verdict("unknown", None, "inconclusive", 0.0, None, "")).startswith(
        "none"
    )


def test_a_step_without_a_rate_and_a_report_without_copies_are_shown(render):
    report = load("server-disk")
    tcp = [entry for entry in report.entries if entry[0].stage == "tcp"]
    step, outcome = tcp[0]
    instant = replace(outcome, runs=(outcome.runs[0][:1],))
    text = render(replace(report, entries=((step, instant), tcp[1])))
    assert "No copy was made" not in text
    assert "tcp push 4 connections" in text
    assert "Copies" not in text
    assert "Explorer" not in text


def test_a_name_that_is_too_long_gives_way_and_the_figures_stay(render):
    table = Table("", columns("stage", "rate"))
    table.add("x" * 100, "118 MB/s")
    assert render([table], 40).splitlines()[1] == "x" * 29 + "~  118 MB/s"


def test_what_costs_in_the_servers_configuration_is_told(render):
    """Options of a foreign file are shown as text, whatever they hold."""
    words = {"value": "SO_SNDBUF=8192", "why": "\x1b[31mslow", "remedy": "take it out"}
    options = [{"option": "socket options", **words}, "nonsense"]
    report = load("comparisons")
    text = render(replace(report, target={**report.target, "smb_conf": options}), verbose=True)
    assert "- socket options = SO_SNDBUF=8192: " in text
    assert "\x1b" not in text and "nonsense" not in text


@pytest.mark.parametrize(("stage", "shows"), [("small-files", True), ("tcp", False)])
def test_a_setting_for_small_files_is_shown_where_they_were_measured(render, stage, shows):
    """`case sensitive = Auto` is Samba's default: it says nothing of a long file."""
    words = {"value": "Auto", "why": "slow", "remedy": "wait", "matters_for": "small-files"}
    report = load("comparisons")
    of_stage = tuple(each for each in report.entries if each[0].stage == stage)
    assert of_stage
    target = {**report.target, "smb_conf": [{"option": "case sensitive", **words}]}
    text = render(replace(report, target=target, entries=of_stage), verbose=True)
    assert ("case sensitive = Auto" in text) is shows


# -- colours, encodings, units -----------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_no_colour_vanishes_on_a_light_or_a_dark_background(render, name):
    """Red and magenta are read on both; white, black, yellow and bright ones on one alone."""
    text = render(load(name), force_terminal=True, color_system="standard", verbose=True)
    codes = {code for sequence in SGR.findall(text) for code in sequence.split(";")}
    assert codes <= {"0", "1", "2", "31", "35"}


def test_no_color_leaves_no_colour_and_the_same_words(render, run_report, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    options = {"force_terminal": True, "color_system": "truecolor", "verbose": True, "height": 999}
    coloured = render(run_report, **options)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = render(run_report, **options)
    codes = {code for sequence in SGR.findall(plain) for code in sequence.split(";")}
    assert codes <= {"0", "1", "2"}
    assert "31" in {code for sequence in SGR.findall(coloured) for code in sequence.split(";")}
    assert SGR.sub("", plain) == SGR.sub("", coloured) == render(run_report, verbose=True)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r"])
def test_where_block_characters_cannot_be_printed_ascii_is(render, run_report, encoding):
    text = render(run_report, encoding=encoding, verbose=True)
    assert text.isascii()
    assert "<- bottleneck" in text
    assert "##" in text
    old = {"legacy_windows": True, "force_terminal": True, "color_system": None}
    assert render(run_report, **old).isascii()


def test_a_name_that_the_encoding_has_no_characters_for_is_escaped(render, run_report):
    foreign = replace(run_report, notes=("caf\u00e9 \u65e5\u672c",))
    assert "- caf\u00e9 \u65e5\u672c" in render(foreign, verbose=True)
    assert "- caf\\xe9 \\u65e5\\u672c" in render(foreign, encoding="ascii", verbose=True)
    assert "- caf\u00e9 \\u65e5\\u672c" in render(foreign, encoding="latin-1", verbose=True)


@pytest.mark.parametrize(("style", "strange"), [("iec", r"[kMG]B/s"), ("bits", r"[KMGk]i?B/s")])
@pytest.mark.parametrize("name", ["server-disk", "comparisons", "lab-with-agent"])
def test_every_rate_of_a_report_is_in_the_style_that_is_asked_for(render, name, style, strange):
    with units.shown_as(style):
        text = render(load(name), verbose=True)
    assert "Explorer" in text
    note = next(line for line in text.splitlines() if "Explorer" in line)
    body = text.replace(note, "").replace(text[text.index(note) :].splitlines()[1], "")
    assert not re.search(rf"(?<![A-Za-z]){strange}", body)


def test_settings_of_the_clients_own_smb_client_are_told_with_their_command(render):
    """A server's are not: copies that start there are made by another client."""
    run = load("example")
    settings = tuple(costly({"EnableBandwidthThrottling": "True"}))
    hosts = {
        side: replace(getattr(run, side), smb_settings=settings) for side in ("client", "server")
    }
    text = " ".join(render(replace(run, **hosts), 200, sections=("settings",)).split())
    assert "SMB client (known to cost on other systems)" in text
    command = "`Set-SmbClientConfiguration -EnableBandwidthThrottling $false`"
    assert f"run {command} (untested on such a system)" in text
    assert text.count(command) == 1
