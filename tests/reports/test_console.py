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
from bottleneck.reports import remarks, units
from bottleneck.reports.console import print_report
from bottleneck.reports.layout import Columns
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


def section(text, heading) -> list[str]:
    """The lines below a heading."""
    lines = text.splitlines()
    start = lines.index(heading) + 1
    return lines[start : lines.index("", start)]


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


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("width", [80, 120, 160, 200])
@pytest.mark.parametrize("style", units.STYLES)
def test_no_line_is_wider_than_the_terminal_or_ends_in_a_space(name, width, style):
    for line in shown(name, width, verbose=True, style=style).splitlines():
        assert len(line) <= width
        assert line == line.rstrip()


@pytest.mark.parametrize("name", NAMES)
def test_the_verdict_comes_first(name):
    report = reports.load(DATA / f"report-v1-{name}.json")
    words = shown(name).split()
    sentence = diagnose(report).summary.split()
    assert words[:8] == sentence[:8]


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_a_terminal_without_block_characters_gets_ascii(encoding):
    text = shown("server-disk", encoding=encoding)
    assert text.isascii()
    assert "####" in text
    assert "<- cap" in text


def test_the_cap_is_marked_once():
    marked = [line for line in shown("server-disk").splitlines() if "◀ cap" in line]
    assert len(marked) == 1
    assert marked[0].startswith("server disk: read")


def test_network_rows_tell_bits_and_the_footnote_explorers_mb():
    text = shown("server-disk")
    assert re.search(r"network: link-rate .* 118 MB/s  940 Mbit/s", text)
    assert "tcp pull" in text
    assert re.search(r"23\.6 MB/s is\s+22\.5 MB/s there", text)


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


def test_what_was_not_measured_is_told_with_its_reason():
    text = shown("no-agent")
    assert "- tcp push, tcp pull: no agent on the server (--agent)" in text
    assert "pull.uncached 3.1.1: the server's page cache cannot be" in text


@pytest.mark.parametrize("options", [{}, {"force_terminal": True, "color_system": "truecolor"}])
def test_foreign_text_neither_controls_the_terminal_nor_is_markup(options):
    text = shown("strange", 120, **options)
    own = re.sub(r"\x1b\[[0-9;]*m", "", text)
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2066-\u2069]", own)
    assert "[bold]no[/bold] such \\u200bshare" in own
    assert "\\x1b]0;x" in own


def test_colour_is_off_when_the_user_says_so(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shown("server-disk", force_terminal=True)
    assert not re.search(r"\x1b\[[0-9;]*3[0-7]", plain)


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
    table = Columns(("stage", "rate"))
    table.add("x" * 100, "118 MB/s")
    table.print(Console(file=file, width=40))
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


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_grid_has_each_copy_at_its_direction_and_cache(encoding):
    head, push, pull = section(shown("server-disk", encoding=encoding), GRID)
    assert re.fullmatch(r" +cached +uncached", head)
    assert re.fullmatch(r"SMB 3\.1\.1  push +109 MB/s  (\S+) +108 MB/s  (\S+)", push)
    found = re.fullmatch(r" +pull +112 MB/s  (\S+) +23\.6 MB/s  (\S+)", pull)
    assert found is not None
    # The longest bar is the best copy's, and the others are as long as their rates say.
    assert len(found[2]) == pytest.approx(len(found[1]) * 23.6 / 112, abs=1)


def test_who_starts_a_copy_and_each_dialect_have_rows_of_their_own():
    rows = section(shown("comparisons"), GRID)[1:]
    starts = ("native", "SMB 3.1.1", "SMB 3.1.1 by server", "SMB1")
    named = [row[:19].strip() for row in rows]
    assert [name for name in named if name not in ("", "push", "pull")] == list(starts)
    assert len(rows) == 8
    assert rows[0].rstrip().endswith("·"), "a copy that was not made has a dot"


def test_a_copy_alone_is_no_grid():
    report = reports.load(DATA / "report-v1-server-disk.json")
    diagnosis = diagnose(report)
    alone = replace(diagnosis, copies=diagnosis.copies[:1])
    file = io.StringIO()
    print_report(report, alone, Console(file=file, width=80))
    assert GRID not in file.getvalue()


def test_a_wide_terminal_tells_of_each_copy_what_comes_after_its_cap():
    row = next(
        line for line in section(shown("server-disk", 200), "Copies") if "server disk: read" in line
    )
    assert row.endswith("25 MB/s  network: link-rate     108–117 MB/s")


def test_verbose_shows_the_ceilings_and_the_ladder_of_every_copy():
    brief, whole = (shown("server-disk", verbose=verbose) for verbose in (False, True))
    assert brief.count("is held by, lowest ceiling first") == 1
    assert whole.count("is held by, lowest ceiling first") == 5
    assert whole.count("If its caps were lifted") == 5


# -- widths, colours, units --------------------------------------------------------------------


def test_no_stage_loses_its_name_to_what_is_beside_it():
    for width in (120, 140, 160, 200):
        assert not any(
            "~" in line.split("  ")[0] for line in shown("comparisons", width).split("\n")
        )


def test_bars_of_stages_are_longer_where_there_is_room():
    lengths = []
    for width in (120, 140, 160):
        lines = shown("server-quota", width).splitlines()
        lengths.append(max(line.count("█") for line in lines if line.startswith("tcp p")))
    assert lengths[0] == 0 < lengths[1] < lengths[2]


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


def test_what_is_missing_is_told_once_for_each_reason():
    report = reports.load(DATA / "report-v1-no-agent.json")
    lines = remarks.missing(report)
    assert "tcp push, tcp pull: no agent on the server (--agent)" in lines
    assert len(lines) == len(set(lines))
