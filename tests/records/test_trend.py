"""The trend over reports: what is unusual is named, noise and other paths are not."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.records.trend import Point, Trend, cap_change, drift, trends, unusual
from tests import stored_reports

DATA = Path(__file__).parents[1] / "data"
DISK, LINK, NONE = "disk/server/read", "network/path/link-rate", "unknown/inconclusive"


def trend(*rates: float, caps: tuple[str, ...] = (), copy: str = "pull.uncached") -> Trend:
    """Reports a day apart, in MB/s, each with a spread of 1 % to both sides."""
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
    return Trend(copy, "3.1.1", points, tuple(unusual(points)))


@pytest.mark.parametrize(
    ("rates", "standings"),
    [
        ((100, 103, 98, 101, 70), {70: "lower"}),
        ((100, 103, 98, 101, 140), {140: "higher"}),
        ((100, 50, 101), {50: "lower"}),
        ((100, 80, 120, 101, 85), {}),
        ((100, 100, 100, 91), {}),
        ((100, 85, 101), {}),
        ((100, 20), {}),
        ((100, 101, 30, 99, 100, 60), {30: "lower", 60: "lower"}),
    ],
    ids="below above one-of-three among-the-others a-tenth-or-less a-fifth-of-few too-few "
    "of-many-each-bad-night".split(),
)
def test_a_report_is_unusual_outside_of_what_the_others_show(rates, standings):
    assert {e.bytes_per_second / 1e6: e.standing for e in trend(*rates).unusual} == standings


def test_a_change_of_cap_is_found_past_runs_that_named_none() -> None:
    change = cap_change(trend(100, 99, 98, 60, caps=(LINK, LINK, NONE, DISK)))
    assert change is not None
    assert (change[0].cap, change[1].cap) == (LINK, DISK)
    assert cap_change(trend(100, 99, caps=(LINK, NONE))) is None


def test_reports_are_in_the_order_of_their_runs_and_of_the_path_of_the_last() -> None:
    report = stored_reports.load(DATA / "report-v1-lab-with-agent.json")
    first, last = (replace(report, started=f"2026-11-0{day}T00:00:00+00:00") for day in (1, 3))
    other = replace(first, started="2026-11-02T00:00:00", target={"share": "//other/x"})
    summary = trends([last, other, first])
    assert (summary.reports, summary.started, summary.ended) == (2, first.started, last.started)
    assert summary.left_out == ("2026-11-02T00:00:00: share //other/x",)
    assert {len(each.points) for each in summary.copies} == {2}
    assert all(each.unusual == () for each in summary.copies)


NIGHTS = [100 - 2 * night for night in range(12)]


@pytest.mark.parametrize(
    ("rates", "lost"),
    [
        (NIGHTS, 0.22),
        (NIGHTS[::-1], -0.28),
        ([*NIGHTS[:6], 30, *NIGHTS[7:]], 0.22),
        ([100] * 5 + [80] * 6, 0.2),
        ([100, 101, 99, 100, 60, 100, 99, 101, 100, 98, 101, 100], None),
        ([100, 103, 97, 104, 99, 96, 105, 100, 98, 102, 95, 103], None),
        ([100, 99.5, 99, 98.5, 98, 97.5, 97, 96.5, 96, 95.5], None),
        ([100, 90, 80, 70, 60], None),
    ],
    ids=(
        "22 % in twelve nights,faster,a bad night among them,from one night on,one bad night,"
        "noise,within noise,too few"
    ).split(","),
)
def test_a_rate_that_falls_from_report_to_report_is_told_as_one_change(rates, lost):
    decline = drift(trend(*rates).points)
    assert (decline and decline.loss) == (lost and pytest.approx(lost, abs=0.03))
    if lost == 0.22:
        assert decline is not None and decline.words == "22% less since 2026-11-01"
