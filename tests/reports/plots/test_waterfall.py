"""The waterfall: bars as long as their rates, the cap and what is not measured told apart."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose
from bottleneck.analysis.finding import Ceiling
from bottleneck.reports.plots import plots
from bottleneck.reports.plots.waterfall import BAR, waterfall
from bottleneck.reports.units import rate_text


def bars(drawing):
    """The lines' bars from top to bottom."""
    found = [each for each in drawing.having("", "rect") if each.bottom - each.top == BAR]
    return sorted(found, key=lambda each: each.top)


def test_the_bar_of_the_cap_is_as_long_as_its_rate_says(drawn, example):
    plot, drawing = drawn(example, "waterfall")
    diagnosis = diagnose(example)
    own, cap, *_ = bars(drawing)
    assert "fill-accent" in own.name
    assert "fill-cap" in cap.name
    rate = diagnosis.chosen.bytes_per_second
    ceiling = diagnosis.chosen.verdict.ceiling_bytes_per_second
    assert cap.width / own.width == pytest.approx(ceiling / rate, rel=0.01)
    assert [row[0] for row in plot.rows if row[-1] == "the cap"] == ["server disk: read"]
    assert sum("the cap" in word for word in drawing.words) == 1


def test_every_ceiling_is_drawn_lowest_first_and_told_in_the_table(drawn, example):
    plot, drawing = drawn(example, "waterfall")
    ceilings = diagnose(example).chosen.ceilings
    assert len(bars(drawing)) == len(ceilings) + 1 == len(plot.rows)
    assert [row[1] for row in plot.rows[1:]] == [rate_text(e.bytes_per_second) for e in ceilings]
    assert sorted(e.bytes_per_second for e in ceilings) == [e.bytes_per_second for e in ceilings]


def test_a_cap_without_room_beside_its_bar_is_named_in_front(drawing, example):
    diagnosis = diagnose(example)
    chosen = diagnosis.chosen
    high = 20 * chosen.bytes_per_second
    cap = replace(chosen.ceilings[0], bytes_per_second=high, high_bytes_per_second=high)
    verdict = replace(chosen.verdict, ceiling_bytes_per_second=high)
    copy = replace(chosen, verdict=verdict, ceilings=(cap,), next=None)
    (plot,) = waterfall(replace(diagnosis, copies=(copy,)))
    assert "the cap, server disk: read" in drawing(plot).words


def test_what_is_beyond_the_scale_ends_in_an_arrow(drawn, example):
    _, drawing = drawn(example, "waterfall")
    arrows = drawing.having("fill-series-6", "polygon")
    beyond = [each for each in bars(drawing) if each.right >= drawing.width - 12.1]
    assert len(arrows) == len(beyond) > 0
    assert all(each.right <= drawing.width for each in arrows)


@pytest.mark.parametrize(
    ("standing", "sign", "shape"),
    [
        ("at-least", "> ", "open dashed"),
        ("estimated", "~ ", "thin"),
        ("inferred", "~ ", "dots"),
        ("measured", "", "fill-series-6"),
    ],
)
def test_how_a_ceiling_is_known_is_told_by_shape_and_in_words(
    drawing, example, standing, sign, shape
):
    diagnosis = diagnose(example)
    chosen = diagnosis.chosen
    rate = 3 * chosen.bytes_per_second
    other = Ceiling("network", "path", "delay", rate, rate, rate, (0,), standing)
    copy = replace(chosen, ceilings=(chosen.ceilings[0], other), next=None)
    others = tuple(each for each in diagnosis.copies if each is not chosen)
    (plot,) = waterfall(replace(diagnosis, copies=(copy, *others)))
    marks = drawing(plot)
    assert f"{sign}{rate_text(rate)}" in marks.words
    assert marks.having(shape)
    assert plot.rows[-1][3] in marks.words
    assert len({row[3] for row in plot.rows[1:]}) == len({"measured", standing})


def test_ranges_are_whiskers_at_their_places(drawing, example):
    diagnosis = diagnose(example)
    chosen = diagnosis.chosen
    rate = chosen.bytes_per_second
    wide = Ceiling("network", "path", "delay", rate, 0.5 * rate, 1.5 * rate, (0,), "measured")
    copy = replace(chosen, ceilings=(wide,), next=None)
    (plot,) = waterfall(replace(diagnosis, copies=(copy,)))
    marks = drawing(plot)
    (whisker,) = marks.having("whisker")
    own = bars(marks)[0]
    assert whisker.left == pytest.approx(0.5 * own.width, abs=0.2)
    assert whisker.right == pytest.approx(1.5 * own.width, abs=0.2)


def test_a_copy_that_was_not_made_has_none(example):
    diagnosis = diagnose(example)
    copies = [replace(each, bytes_per_second=None) for each in diagnosis.copies]
    assert not list(waterfall(replace(diagnosis, copies=tuple(copies))))
    assert not list(waterfall(replace(diagnosis, headline=None)))
    copies = [replace(each, ceilings=()) for each in diagnosis.copies]
    assert not list(waterfall(replace(diagnosis, copies=tuple(copies))))


def test_it_comes_first(report):
    assert plots(report, diagnose(report))[0].name == "waterfall"


def test_so_many_ceilings_are_drawn_and_it_is_said_that_there_are_more(drawing, example):
    diagnosis = diagnose(example)
    chosen = diagnosis.chosen
    many = replace(chosen, ceilings=chosen.ceilings[:1] * 40)
    (plot,) = waterfall(replace(diagnosis, copies=(many,)))
    assert len(bars(drawing(plot))) == 17
    assert "16 of 40" in plot.sentence
