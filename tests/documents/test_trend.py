"""The trend on a terminal: the result first, a line a copy, and what is unusual."""

from __future__ import annotations

import pytest

from bottleneck.documents import terminal
from bottleneck.documents.trend import print_trends, sparkline, summary
from bottleneck.records.trend import Trends
from tests.records.test_trend import DISK, LINK, trend


def trends(*copies, left_out=()):
    points = copies[0].points
    return Trends(len(points), points[0].started, points[-1].started, copies, left_out)


@pytest.fixture
def trends_text(render):

    def of(*copies, left_out=(), **terminal) -> str:
        overview = trends(*copies, left_out=left_out)
        return render(
            lambda console: print_trends(overview, console), color_system=None, **terminal
        )

    return of


def test_each_copy_has_one_line_and_remarks_say_what_is_out_of_the_ordinary(trends_text):
    text = trends_text(
        trend(100, 103, 98, 101, 70, caps=(LINK, LINK, LINK, LINK, DISK)),
        trend(50, 50, 50, 50, 50, copy="push.cached"),
        left_out=("2026-11-03T02:00:00+00:00: share //other/x",),
    )
    assert text.splitlines()[0] == (
        "Unusual in the last report: pull.uncached is lower than in the others"
    )
    assert "5 reports since 2026-11-01" in text
    lines = [
        " ".join(line.split()) for line in text.splitlines() if line.startswith(("pull", "push"))
    ]
    assert lines == [
        "pull.uncached SMB 3.1.1 ████▆ 100 MB/s 70.0 MB/s -30% lower",
        "push.cached SMB 3.1.1 █████ 50.0 MB/s 50.0 MB/s 0% usual",
    ]
    flat = " ".join(text.split())
    remark = "70.0 MB/s on 2026-11-05 02:00 is lower than in the 4 other reports (97.0–104 MB/s)"
    assert remark in flat
    assert "bottleneck changed on 2026-11-05 from network: link speed to server disk: read" in flat
    assert "share //other/x" in flat
    assert max(map(len, text.splitlines())) <= 80


def test_the_result_counts_unusual_reports_before_the_last() -> None:
    assert summary(trends(trend(100, 50, 101))) == "Unusual: pull.uncached in 1 of 3 reports"
    assert summary(trends(trend(100, 99, 101))) == "Nothing unusual"


def test_a_terminal_without_blocks_has_a_sparkline_of_its_own(trends_text):
    text = trends_text(trend(100, 50, 1, 100), encoding="ascii")
    assert "#=_#" in text


@pytest.mark.parametrize("width", [80, 200])
def test_a_long_trend_stays_within_the_width(trends_text, width):
    text = trends_text(trend(*range(100, 128), copy="server.push.uncached"), width=width)
    assert max(map(len, text.splitlines())) <= width


def test_a_sparkline_begins_at_nothing() -> None:
    assert sparkline([97.0, 103.0], 8, terminal.UNICODE) == "██"
    assert sparkline([1.0, 2.0, 100.0], 2, terminal.UNICODE) == "▁█"
