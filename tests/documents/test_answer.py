"""The answer: one screen, the verdict alone in its first line, and no word against another."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[2]
TIMED = ("server-read", "client-write", "falling-link", "sync-alone", "watched-rsync-link")
STORED = [
    *sorted((ROOT / "tests/data").glob("report-v1-*.json")),
    *sorted((ROOT / "tests/data/answers").glob("*.json")),
    ROOT / "examples/server-disk-read.json",
    *(ROOT / f"tests/data/traces/{name}.json.gz" for name in TIMED),
]
MOST_LINES = {100: 30, 80: 40}
BEGINNINGS = ("Bottleneck: ", "No fault found: ", "DATA CORRUPTED: ")
LEAST_GAIN_RATIO = 1.15


@pytest.fixture(params=STORED, ids=lambda path: path.stem)
def stored_report(request):
    return request.param.name.partition(".")[0], stored_reports.load(request.param)


@pytest.mark.parametrize("width", MOST_LINES)
def test_the_answer_is_one_screen(render, golden, stored_report, width):
    name, report = stored_report
    text = render(report, width)
    lines = text.splitlines()
    assert len(lines) <= MOST_LINES[width]
    assert max(map(len, lines)) <= width
    assert lines[0].startswith(BEGINNINGS)
    assert "~" not in re.sub(r"~(?=\d| estimated)", "", text), "a cell was cut"
    golden(f"answer/{name}-{width}", text)


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
@pytest.mark.parametrize("width", [60, 200])
def test_the_answer_at_the_narrowest_and_the_widest(render, golden, width, encoding):
    text = render(stored_reports.load(ROOT / "examples/server-disk-read.json"), width, encoding)
    assert max(map(len, text.splitlines())) <= width
    golden(f"answer/server-disk-read-{width}-{encoding}", text)


def test_no_answer_is_wider_than_60_columns(render, stored_report):
    """The longest cause stands beside the longest name, and no figure is lost."""
    text = render(stored_report[1], 60)
    # A word that is longer than the terminal, as an address or an option, stays whole.
    assert all(len(line) <= 60 or len(line.split()) <= 2 for line in text.splitlines())
    assert "~" not in re.sub(r"~(?=\d| estimated)", "", text), "a cell was cut"


def test_advice_does_not_ask_to_buy_what_somebody_configured(stored_report):
    """12 of 31 reports asked for a faster disk or link where a cgroup or a shaper was the limit."""
    _, report = stored_report
    for copy in diagnose(report).copies:
        if copy.verdict.detail and not copy.verdict.detail.startswith(("or ", "in turn")):
            assert copy.advice
            assert not copy.advice[0].startswith(("Use a disk", "Use a CPU")), copy.advice
            assert not re.match(r"Use a [\d.]+ [GM]bit/s link", copy.advice[0]), copy.advice


def test_no_advice_is_given_for_a_gain_that_is_not_worth_it(stored_report):
    _, report = stored_report
    for copy in diagnose(report).copies:
        predicted = copy.predicted_bytes_per_second
        if predicted is not None and copy.verdict.component not in ("unknown", "instrument"):
            worth = predicted.median >= LEAST_GAIN_RATIO * copy.bytes_per_second
            assert worth != ("alone gains less than 15%" in copy.advice[0]), copy.advice


def test_no_comparison_finds_no_difference_where_its_copies_have_a_cause_for_one(stored_report):
    _, report = stored_report
    for each in diagnose(report).comparisons:
        for part in re.split(r"(?<=\.) ", each.sentence):
            if "no significant difference" in part.lower():
                assert " because " not in part, each.sentence
