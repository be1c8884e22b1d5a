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
from probes.core.records import Measured, Sample
from tests.documents.plots.conftest import every_plot


def alter(report, stage, **details):
    return changed_outcomes(report, lambda o: replace(o, details={**o.details, **details}), stage)


def changed_outcomes(report, change, stage=""):
    entries = (
        (step, change(o) if isinstance(o, Measured) and stage in ("", step.stage) else o)
        for step, o in report.entries
    )
    return replace(report, entries=tuple(entries))


def many_cores_report(report):
    step, outcome = report.entries[-1]
    usage = replace(outcome.initiator, core_busy_ratios=(0.5,) * 128)
    return replace(report, entries=((step, replace(outcome, initiator=usage)),))


SLOW = {"latency_seconds": 0.0001, "bandwidth_bytes_per_second": 1e8, "n_half_bytes": 1e4}
DRAWN = {
    "stages": ("report", "", lambda report: report),
    "run": ("example", "", lambda report: report),
    "other-knee": ("report", "sweep-1", lambda report: alter(report, "sweep", knee_bytes=12345)),
    "slow": ("report", "latency", lambda report: alter(report, "latency", fit=SLOW)),
    "no-fit": ("report", "latency", lambda report: alter(report, "latency", fit={"refused": ""})),
    "time": ("timed_report", "time-1", lambda report: report),
    "no-agent": (
        "example",
        "cores",
        lambda report: changed_outcomes(report, lambda outcome: replace(outcome, responder=None)),
    ),
    "many-cores": ("example", "cores", many_cores_report),
}
"""The report of each golden, the drawings that it holds, and what is changed before."""


def drawing_text(drawn):
    rows = (" | ".join(row) for row in (drawn.columns, *drawn.rows))
    return "\n".join((f"{drawn.name}: {drawn.title}", drawn.sentence, *rows, drawn.svg, ""))


@pytest.mark.parametrize("name", DRAWN)
def test_every_drawing_is_as_it_was_looked_at(golden, request, name):
    which, begin, change = DRAWN[name]
    report = change(request.getfixturevalue(which))
    plots = every_plot(report)
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
        (("sweep",), "sweep-1"),
        (("latency",), "latency-1"),
        (("disk",), "zones-1"),
        (("smb-copy", "native-copy"), "time-1"),
    ],
)
def test_what_was_not_measured_is_not_drawn(report, stages, plot):
    assert plot in names(report)
    assert plot not in names(without(report, *stages))


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
