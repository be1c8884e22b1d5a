"""Copies over time, their hosts' cores, and their trend over many runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis import steps
from bottleneck.report import median_run
from bottleneck.reports.plots.copies import Span, trend_plots
from bottleneck.trend import Point, Trend
from probes.records import Measured, Sample


def test_over_time_the_headlines_rate_is_that_of_its_samples(drawn, example):
    plot, drawing = drawn(example, "timeline")
    (copy,) = (e for e in steps.copies(example) if e.name == "pull.uncached" and e.made)
    run = median_run(copy.made.outcome)
    span = Span(copy, copy.made, run, 0.0)
    moved = sum((end - begin) * rate for begin, end, rate in span.rates)
    assert moved == pytest.approx(run[-1].moved_bytes)
    assert plot.rows[0][:2] == ("1", "pull.uncached")
    (curve,) = drawing.having("line-accent", "polyline")
    total = sum(
        median_run(e.made.outcome)[-1].elapsed_seconds for e in steps.copies(example) if e.made
    )
    curves = drawing.having("stroke", "polyline")
    whole = max(each.right for each in curves) - min(each.left for each in curves)
    assert curve.width / whole == pytest.approx(run[-1].elapsed_seconds / total, abs=0.01)


def test_memory_is_a_point_at_each_runs_end_and_no_line(drawn, example):
    plot, drawing = drawn(example, "timeline")
    for name, kind in (("fill-series-2", "rect"), ("fill-series-3", "circle")):
        # One for each copy and host, and the key's.
        assert len(drawing.having(name, kind)) == 2 * len(plot.rows) + 1
    curves = drawing.having("stroke", "polyline")
    assert len(curves) == len(plot.rows)


def test_memory_that_is_not_known_is_not_drawn(drawn, example):
    def forgetful(usage):
        names = ("memory_used_bytes", "memory_cached_bytes", "memory_dirty_bytes")
        return None if usage is None else replace(usage, **dict.fromkeys(names))

    entries = [
        (step, replace(o, initiator=forgetful(o.initiator), responder=forgetful(o.responder)))
        if isinstance(o, Measured)
        else (step, o)
        for step, o in example.entries
    ]
    plot, drawing = drawn(replace(example, entries=tuple(entries)), "timeline")
    assert plot.title == "Rate over time"
    assert not drawing.having("fill-series-3")
    assert {row[5:] for row in plot.rows} == {("",) * 6}


def test_samples_close_together_are_no_rate_of_their_own():
    run = [Sample(0.0, 0), *(Sample(at, 10 * at) for at in (1.0, 2.0)), Sample(2.0, 60)]
    assert Span(None, None, tuple(run), 0.0).rates == [(0.0, 1.0, 10.0), (1.0, 2.0, 50.0)]
    run += [Sample(3.0, 70), Sample(4.0, 80), Sample(4.001, 100)]
    *_, last = Span(None, None, tuple(run), 0.0).rates
    assert last == (3.0, 4.001, pytest.approx(30 / 1.001))


def test_a_cores_bar_is_as_high_as_it_was_busy(drawn, report):
    plot, drawing = drawn(report, "cores")
    (row,) = (row for row in plot.rows if row[0] == "smb-tax pull encrypted")
    assert row[2].startswith("97%, ")
    pair = drawing.saying("smb-tax pull encrypted, core 1: 97%")
    track, bar = pair
    assert (bar.bottom - bar.top) / (track.bottom - track.top) == pytest.approx(0.97, abs=0.01)


def test_a_host_without_an_agent_is_not_known_and_not_idle(drawn, example):
    entries = [
        (step, replace(o, responder=None) if isinstance(o, Measured) else o)
        for step, o in example.entries
        if step.initiator == "client"
    ]
    plot, drawing = drawn(replace(example, entries=tuple(entries)), "cores")
    assert {row[2] for row in plot.rows} == {"unknown"}
    assert drawing.words.count("unknown") == len(plot.rows)


def test_many_stages_are_bounded_and_it_is_said(drawn, report):
    plot, _ = drawn(report, "cores")
    assert len(plot.rows) == 20
    assert "The 20 tests with the busiest cores are drawn, of 45." in plot.sentence
    # Idle as its cores are, the headline's copy is among them.
    assert "pull.cached native" in [row[0] for row in plot.rows]


def test_many_cores_are_bounded_and_it_is_said(drawn, example):
    step, outcome = example.entries[-1]
    usage = replace(outcome.initiator, core_busy_ratios=(0.5,) * 128)
    one = replace(example, entries=((step, replace(outcome, initiator=usage)),))
    plot, drawing = drawn(one, "cores")
    assert "The first 32 cores of 128 are drawn." in plot.sentence
    assert all(each.right <= drawing.width for each in drawing.marks)


def trend(rates, caps, copy="pull.uncached"):
    points = [
        Point(f"2026-11-{at + 1:02}T02:00:00+00:00", rate, 0.9 * rate, 1.1 * rate, cap, 0.9)
        for at, (rate, cap) in enumerate(zip(rates, caps, strict=True))
    ]
    return Trend(copy, "3.1.1", tuple(points))


def test_a_trend_has_a_point_and_a_whisker_a_run_and_marks_the_caps_change(drawing):
    told = trend([1e8, 1.1e8, 6e7], ["network/path/link-rate"] * 2 + ["disk/server/read"])
    (plot,) = trend_plots((told,))
    marks = drawing(plot)
    dots = marks.having("fill-series-1", "circle")
    assert len(dots) == len(marks.having("whisker")) == len(plot.rows) == 3
    (turn,) = marks.having("turn")
    assert dots[1].centre < turn.centre < dots[2].centre
    assert any("from 2026-11-03: disk/server/read" in each for each in marks.words)
    assert "changed once" in plot.sentence
    middles = [(each.top + each.bottom) / 2 for each in dots]
    assert middles[1] < middles[0] < middles[2]


def test_one_run_is_no_trend_and_long_ones_are_bounded(drawing):
    assert trend_plots(()) == ()
    assert trend_plots((trend([1e8], ["x"]),)) == ()
    long = Trend("pull.cached", "3.1.1", trend([1e8], ["x"]).points * 1000)
    (plot,) = trend_plots((long,))
    assert len(plot.rows) == 120
    assert "the newest of 1000" in plot.sentence
    assert len(trend_plots((trend([1e8, 1e8], ["x", "x"]),) * 40)) == 8
