"""The trend on a terminal: what is remarkable is said, noise and foreign text are not."""

from __future__ import annotations

import pytest

from bottleneck.reports import terminal
from bottleneck.reports.trend import print_trend, sparkline
from bottleneck.trend import Point, Trend, cap_change, standing, usual_range

DISK, LINK, NONE = "disk/server/read", "network/path/link-rate", "unknown/inconclusive"


def trend(*rates: float, caps: tuple[str, ...] = (), copy: str = "pull.uncached") -> Trend:
    """Runs a day apart, in MB/s, each with a spread of 1 % to both sides."""
    points = tuple(
        Point(
            f"2026-11-{day:02d}T02:00:00+00:00",
            rate * 1e6,
            rate * 0.99e6,
            rate * 1.01e6,
            caps[day - 1] if caps else DISK,
            0.97,
        )
        for day, rate in enumerate(rates, 1)
    )
    return Trend(copy, "3.1.1", points)


@pytest.fixture
def printed(shown):
    """What a terminal gets of trends."""

    def of(*trends: Trend, **terminal) -> str:
        return shown(lambda console: print_trend(trends, console), color_system=None, **terminal)

    return of


@pytest.mark.parametrize(
    ("rates", "found"),
    [
        ((100, 103, 98, 101, 70), "lower"),
        ((100, 103, 98, 101, 140), "higher"),
        ((100, 80, 120, 101, 85), "usual"),
        ((100, 100, 100, 91), "usual"),
        ((100, 100, 20), "unknown"),
        ((100, 101, 30, 99, 100, 60), "lower"),
    ],
    ids=("below", "above", "among", "a-tenth-or-less", "too-few", "one-bad-night-hides-no-other"),
)
def test_a_run_stands_where_those_before_it_have_it(rates, found):
    assert standing(trend(*rates)) == found
    assert (usual_range(trend(*rates)) is None) == (found == "unknown")


def test_a_change_of_cap_is_found_past_runs_that_named_none() -> None:
    found = cap_change(trend(100, 99, 98, 60, caps=(LINK, LINK, NONE, DISK)))
    assert found is not None
    assert (found[0].cap, found[1].cap) == (LINK, DISK)
    assert cap_change(trend(100, 99, caps=(LINK, NONE))) is None


def test_each_copy_has_one_line_and_remarks_say_what_is_out_of_the_ordinary(printed):
    text = printed(
        trend(100, 103, 98, 101, 70, caps=(LINK, LINK, LINK, LINK, DISK)),
        trend(50, 50, 50, 50, 50, copy="push.cached"),
    )
    assert "Trend: 5 runs since 2026-11-01" in text
    lines = [
        " ".join(line.split()) for line in text.splitlines() if line.startswith(("pull", "push"))
    ]
    assert lines == [
        "pull.uncached SMB 3.1.1 ████▆ 100 MB/s 70.0 MB/s -30% lower",
        "push.cached SMB 3.1.1 █████ 50.0 MB/s 50.0 MB/s 0% usual",
    ]
    flat = " ".join(text.split())
    told = "70.0 MB/s, is lower than the usual range of the 4 runs before (97.0–104 MB/s)"
    assert told in flat
    assert "bottleneck changed on 2026-11-05 from network: link speed to server disk: read" in flat
    assert max(map(len, text.splitlines())) <= 80


def test_one_run_alone_is_no_trend(printed):
    assert printed(trend(100)) == ""
    assert printed() == ""


def test_a_terminal_without_blocks_has_a_sparkline_of_its_own(printed):
    text = printed(trend(100, 50, 1, 100), encoding="ascii")
    assert "#=_#" in text


@pytest.mark.parametrize("width", [80, 200])
def test_a_long_history_stays_within_the_width(printed, width):
    text = printed(trend(*range(100, 128), copy="server.push.uncached"), width=width)
    assert max(map(len, text.splitlines())) <= width


def test_a_sparkline_begins_at_nothing() -> None:
    assert sparkline([97.0, 103.0], 8, terminal.UNICODE) == "██"
    assert sparkline([1.0, 2.0, 100.0], 2, terminal.UNICODE) == "▁█"
