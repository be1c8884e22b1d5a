"""Repeated runs: which lie far off, how they spread, and what a terminal shows of them."""

from __future__ import annotations

import io
import re
from dataclasses import replace

import pytest
from rich.console import Console

from bottleneck.report import WARMED_UP, Report, Step
from bottleneck.reports import terminal
from bottleneck.reports.copies import cache_growth
from bottleneck.reports.runs import histogram, outliers, runs
from probes.records import Measured, Sample, Usage

IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)


@pytest.mark.parametrize(
    ("values", "far"),
    [
        ([5.0, 500.0], 0),
        ([9.8, 10.0, 10.2], 0),
        ([9.8, 10.0, 10.2, 14.0], 1),
        ([10.1, 10.0, 9.9, 10.0, 10.2, 30.0, 1.0], 2),
        ([10.0] * 7 + [10.1], 1),
    ],
)
def test_an_outlier_lies_ten_deviations_from_the_median(values, far):
    assert outliers(values) == far


def test_a_histogram_has_the_fullest_bin_as_a_whole_block():
    assert histogram([1.0, 1.0, 1.0, 1.0, 2.0]) == "\u2588" + " " * 10 + "\u2582"
    assert histogram([3.0, 3.0]).strip() == "\u2588"


@pytest.mark.parametrize(
    ("copy", "grown", "lines"),
    [("pull.uncached", 64 << 20, 1), ("pull.cached", 0, 0), ("push.cached", 64 << 20, 0)],
)
def test_what_a_pull_left_in_its_senders_page_cache_is_shown(copy, grown, lines):
    sender = replace(IDLE, memory_cached_growth_bytes=grown)
    step = Step("smb-copy", {"copy": copy, "dialect": "3.1.1", "end": "folder"}, "client")
    entries = ((step, Measured(((Sample(0.0, 0), Sample(1.0, 5)),), IDLE, sender)),)
    report = Report("complete", {}, "", 1.0, {}, None, None, entries)
    found = list(cache_growth(report))
    assert len(found) == lines
    assert not found or "64 MiB in one run" in str(found[0])


def shown(rates, encoding="utf-8"):
    each = tuple((Sample(0.0, 0), Sample(2.0, round(2e6 * rate))) for rate in rates)
    step = Step("tcp", {"verb": "push", "streams": 1}, "client")
    entries = ((step, Measured(each, IDLE, None)),)
    report = Report("complete", {}, "", 1.0, {}, None, None, entries, (WARMED_UP,))
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding)
    terminal.show(Console(file=file, width=100), runs(report))
    file.flush()
    return raw.getvalue().decode(encoding)


def test_mean_deviation_range_and_outliers_stand_in_a_line_of_the_test():
    text = shown([100, 102, 98, 100, 30])
    assert re.search(r"tcp push +86\.0 \u00b1 31\.3 +30\.0 \u2026 102 +5 +\S", text)
    assert "tcp push: 1 of 5 runs is an outlier" in text
    assert "outlier" not in shown([100, 102, 98])


def test_a_test_that_was_made_once_has_no_line():
    assert shown([100]) == ""


def test_an_encoding_without_blocks_has_digits():
    text = shown([100, 102, 98], "ascii")
    assert "100 +- 2.00" in text and "98.0 ... 102" in text and re.search(r"8 +8 +8$", text, re.M)
