"""The drawings: as they were looked at, their marks where the figures say, and bounded."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons.disks import all_zones
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import TimeShare
from bottleneck.documents.plots.copies import rates, stack
from bottleneck.report.report import median_run
from probes.core.records import Sample
from tests.documents.plots.conftest import every_plot

DRAWN = {
    "stages": ("report", ""),
    "run": ("example", ""),
    "time": ("timed_report", "time-1"),
}
"""The report of each golden, and the drawings that it holds."""


def drawing_text(drawn):
    rows = (" | ".join(row) for row in (drawn.columns, *drawn.rows))
    return "\n".join((f"{drawn.name}: {drawn.title}", drawn.sentence, *rows, drawn.svg, ""))


@pytest.mark.parametrize("name", DRAWN)
def test_every_drawing_is_as_it_was_looked_at(golden, request, name):
    which, begin = DRAWN[name]
    plots = every_plot(request.getfixturevalue(which))
    golden(f"plots/{name}", "\n".join(drawing_text(e) for e in plots if e.name.startswith(begin)))


def without(report, *stages):
    entries = tuple(each for each in report.entries if each[0].stage not in stages)
    return replace(report, entries=entries)


def names(report):
    return [each.name for each in every_plot(report)]


def test_a_zones_bar_stands_at_its_place_and_is_as_high_as_its_rate(plot_of, report):
    plot, drawing = plot_of(report, "zones-1")
    (zones,) = all_zones(report)
    bars = [each for each in drawing.having("", "rect") if "zone" in each.text]
    assert len(bars) == len(zones.zones) == 9
    start, width = bars[0].left_x, bars[-1].right - bars[0].left_x
    highest = max(each.bottom - each.top for each in bars)
    fastest = max(zone.bytes_per_second for zone in zones.zones)
    for bar, zone in zip(bars, zones.zones, strict=True):
        assert (bar.left_x - start) / width == pytest.approx(zone.from_ratio, abs=0.01)
        share = (bar.bottom - bar.top) / highest
        assert share == pytest.approx(zone.bytes_per_second / fastest, abs=0.01)
    assert [row[-1] for row in plot.rows].count("weak") == 1


@pytest.mark.parametrize(
    ("stages", "plot"),
    [
        (("disk",), "zones-1"),
        (("smb-copy", "native-copy"), "time-1"),
    ],
)
def test_what_was_not_measured_is_not_drawn(report, stages, plot):
    assert plot in names(report)
    assert plot not in names(without(report, *stages))


def test_the_last_of_too_many_disks_says_that_there_are_more(report):
    step, outcome = next(e for e in report.entries if e[0].setting.get("pattern") == "zones")

    def sentences(count):
        devices = [{**outcome.details, "device": f"sd{letter}"} for letter in "abcde"[:count]]
        entries = tuple((step, replace(outcome, details=each)) for each in devices)
        return [each.sentence for each in every_plot(replace(report, entries=entries))]

    assert len(sentences(3)) == 3
    assert not any("not drawn" in each for each in sentences(3))
    *first, last = sentences(5)
    assert len(first) == 2 and not any("not drawn" in each for each in first)
    assert last.endswith(" 2 more are not drawn.")


def test_zones_beyond_the_limit_are_counted(report):
    step, outcome = next(e for e in report.entries if e[0].setting.get("pattern") == "zones")
    (zone, *_) = outcome.details["zones"]
    many = [{**zone, "from_ratio": n / 500, "to_ratio": (n + 1) / 500} for n in range(500)]
    details = {**outcome.details, "zones": many}
    (plot,) = every_plot(replace(report, entries=((step, replace(outcome, details=details)),)))
    assert plot.sentence.endswith(" 400 of 500 zones are drawn.")


def test_an_empty_report_has_no_plot(report):
    empty = replace(report, entries=())
    assert every_plot(empty) == ()


def test_the_headlines_rate_over_time_is_that_of_its_samples(plot_of, example):
    plot, drawing = plot_of(example, "time-1")
    (copy,) = (e for e in steps.copies(example) if e.name == "pull.uncached" and e.step)
    run = median_run(copy.step.outcome)
    total = sum((end - begin) * rate for begin, end, rate in rates(run))
    assert total == pytest.approx(run[-1].moved_bytes)
    assert plot.title == "pull.uncached, SMB 3.1.1"
    (curve,) = drawing.having("line-accent", "polyline")
    assert curve.right == pytest.approx(drawing.width - 6, abs=0.2)


def test_who_had_work_fills_each_period_and_is_as_large_as_its_share(plot_of, timed_report):
    plot, drawing = plot_of(timed_report, "time-1")
    areas = drawing.having("", "polygon")
    shares = dict(plot.rows)
    assert {each.text for each in areas} <= shares.keys()
    height = max(each.bottom for each in areas) - min(each.top for each in areas)
    assert height == pytest.approx(84, abs=0.5)
    assert shares["server disk"] == "100%"
    assert drawing.saying("server: not sent yet")


def test_a_bar_has_a_part_for_each_component(timed_report):
    main = diagnose(timed_report).main_copy
    shares = tuple(TimeShare(*each) for each in (("disk", "server", 0.7), ("unknown", None, 0.3)))
    bar = stack(replace(main, time=shares))
    assert re.findall(r'width="([0-9.]+)"', bar) == ["69.7", "29.7"]
    assert re.findall("<title>(.*?)</title>", bar) == ["server disk 70%", "unknown 30%"]
    assert stack(replace(main, time=())) == ""


def test_samples_close_together_are_no_rate_of_their_own():
    run = [Sample(0.0, 0), *(Sample(n, 10 * n) for n in (1.0, 2.0)), Sample(2.0, 60)]
    assert rates(tuple(run)) == [(0.0, 1.0, 10.0), (1.0, 2.0, 50.0)]
    run += [Sample(3.0, 70), Sample(4.0, 80), Sample(4.001, 100)]
    *_, last = rates(tuple(run))
    assert last == (3.0, 4.001, pytest.approx(30 / 1.001))
