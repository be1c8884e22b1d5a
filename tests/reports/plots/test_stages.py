"""Sweep, latency, zones: marks stand where the stage's figures say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis.comparisons.disks import all_zones
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.reports.disks import zone_curves
from bottleneck.reports.html import plots


def altered(report, stage, **details):
    """The report with details of a stage replaced."""
    entries = [
        (step, replace(outcome, details={**outcome.details, **details}))
        if step.stage == stage
        else (step, outcome)
        for step, outcome in report.entries
    ]
    return replace(report, entries=tuple(entries))


def without(report, *stages):
    left = tuple(each for each in report.entries if each[0].stage not in stages)
    return replace(report, entries=left)


def names(report):
    return [each.name for each in plots(report, diagnose(report))]


def test_the_knees_mark_stands_at_knee_bytes(drawn, report):
    plot, drawing = drawn(report, "sweep-1")
    (knee,) = drawing.having("knee")
    (at,) = (row[0] for row in plot.rows if row[-1] == "knee")
    assert at == "256 KiB"
    (point,) = (e for e in drawing.having("fill-series-1", "circle") if e.text.startswith(at))
    assert knee.centre == pytest.approx(point.centre, abs=0.1)
    assert len(drawing.having("fill-series-1", "circle")) == len(plot.rows)


def test_points_of_a_sweep_are_as_high_as_their_rates(drawn, report):
    _, drawing = drawn(report, "sweep-1")
    details = next(
        outcome.details
        for step, outcome in report.entries
        if step.stage == "sweep" and step.setting["over"] == "loopback"
    )
    dots = drawing.having("fill-series-1", "circle")
    bottom = max(each.bottom for each in drawing.having("axis", "line")) - 4
    heights = [bottom - (each.top + each.bottom) / 2 for each in dots]
    rates = [each["bytes_per_second"] for each in details["points"]]
    assert [h / heights[-1] for h in heights] == pytest.approx(
        [rate / rates[-1] for rate in rates], abs=0.01
    )
    across = [each.centre for each in dots]
    assert across == sorted(across)


def test_a_knee_that_was_not_measured_is_not_drawn(drawn, report):
    _, drawing = drawn(altered(report, "sweep", knee_bytes=12345), "sweep-1")
    assert not drawing.having("knee")


def test_the_line_of_latency_passes_through_its_own_points(drawn, report):
    plot, drawing = drawn(report, "latency-1")
    (line,) = drawing.having("line-series-1", "polyline")
    warm = drawing.having("fill-series-1", "circle")[:-1]
    assert line.left == pytest.approx(warm[0].centre, abs=0.2)
    assert line.right == pytest.approx(warm[-1].centre, abs=0.2)
    assert line.top == pytest.approx((warm[-1].top + warm[-1].bottom) / 2, abs=1)
    assert line.bottom == pytest.approx((warm[0].top + warm[0].bottom) / 2, abs=1)
    words = " ".join(drawing.words)
    assert "t(n) = 10.2 ms + n / 112 MB/s" in words
    assert plot.rows[0][0] == "1 B"


def test_the_half_rates_mark_stands_where_a_message_takes_twice_the_latency(drawn, report):
    slow = {"latency_seconds": 0.0001, "bandwidth_bytes_per_second": 1e8, "n_half_bytes": 1e4}
    _, drawing = drawn(altered(report, "latency", fit=slow), "latency-1")
    (half,) = drawing.having("half")
    assert any("9.77 KiB" in each for each in drawing.words)
    tens = [each.centre for each in drawing.having("fill-series-1", "circle")[:-1]]
    assert half.centre == pytest.approx(tens[4], abs=0.2)


def test_without_a_fit_there_are_points_and_no_line(drawn, report):
    bare = altered(report, "latency", fit={"refused": "too few sizes"})
    plot, drawing = drawn(bare, "latency-1")
    assert not drawing.having("line-series-1")
    assert {row[-1] for row in plot.rows} == {""}


def test_a_zones_bar_stands_at_its_place_and_is_as_high_as_its_rate(drawn, report):
    plot, drawing = drawn(report, "zones-1")
    (zones,) = all_zones(report)
    bars = [each for each in drawing.having("", "rect") if "zone" in each.text]
    assert len(bars) == len(zones.zones) == 9
    left, width = bars[0].left, bars[-1].right - bars[0].left
    highest = max(each.bottom - each.top for each in bars)
    fastest = max(zone.bytes_per_second for zone in zones.zones)
    for bar, zone in zip(bars, zones.zones, strict=True):
        assert (bar.left - left) / width == pytest.approx(zone.from_ratio, abs=0.01)
        share = (bar.bottom - bar.top) / highest
        assert share == pytest.approx(zone.bytes_per_second / fastest, abs=0.01)
    assert [row[-1] for row in plot.rows].count("weak") == 1


def test_the_weak_zone_is_hatched_and_named(drawn, report):
    _, drawing = drawn(report, "zones-1")
    (bar,) = drawing.saying("weak zone 4")
    (hatch,) = drawing.having("line-cap", "path")
    assert bar.left <= hatch.left <= hatch.right <= bar.right
    assert bar.top <= hatch.top <= hatch.bottom <= bar.bottom
    (word,) = (each for each in drawing.having("strong", "text") if each.text == "weak")
    assert bar.left <= word.centre <= bar.right


def test_the_files_place_stands_below_its_zones(drawn, report):
    _, drawing = drawn(report, "zones-1")
    (curve,) = zone_curves(report)
    bars = [each for each in drawing.having("", "rect") if "zone" in each.text]
    left, width = bars[0].left, bars[-1].right + 1 - bars[0].left
    for file in curve.files:
        (mark,) = drawing.saying(f"{file.text}, ")
        begin, end = file.spans[0]
        assert mark.left == pytest.approx(left + begin * width, abs=0.5)
        assert mark.right == pytest.approx(left + end * width, abs=0.5)
        assert file.text in drawing.words


@pytest.mark.parametrize(
    ("stages", "plot"),
    [
        (("sweep",), "sweep-1"),
        (("latency",), "latency-1"),
        (("disk",), "zones-1"),
        (("matrix",), "windows-1"),
        (("smb-matrix",), "requests-1"),
        (("smb-copy", "native-copy"), "timeline"),
    ],
)
def test_what_was_not_measured_is_not_drawn(report, stages, plot):
    assert plot in names(report)
    assert plot not in names(without(report, *stages))


def test_an_empty_report_has_no_plot(report):
    empty = replace(report, entries=())
    assert plots(empty, diagnose(empty)) == ()
