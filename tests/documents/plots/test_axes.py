"""Ticks are round, few and inside; places on a scale are bounded."""

from __future__ import annotations

import math

import pytest

from bottleneck.documents.plots.charts import Scale, rate_ticks, rate_unit, round_ticks
from bottleneck.text.units import rate_text


@pytest.mark.parametrize("high", [1e-9, 0.3, 1, 7, 9.99, 10, 117, 1234.5, 9e18])
def test_round_ticks_are_few_rise_evenly_and_stay_below_the_most(high):
    ticks = round_ticks(high)
    assert 3 <= len(ticks) <= 7
    assert ticks[0] == 0
    assert ticks[-1] <= high * 1.000001
    step = ticks[1]
    assert all(tick == pytest.approx(n * step) for n, tick in enumerate(ticks))
    digit = step / 10 ** math.floor(math.log10(step) + 1e-9)
    assert any(digit == pytest.approx(each) for each in (1, 2, 5, 10))
    assert ticks[-1] >= high / 2


@pytest.mark.parametrize("high", [23.6e6, 117e6, 3.2e9, 4200.0])
def test_ticks_of_a_rate_are_round_in_the_unit_that_it_is_told_in(high):
    unit, ticks = rate_ticks(high)
    assert rate_text(high).endswith(f" {unit}")
    _, scale = rate_unit(high)
    assert [float(each.text.replace(",", "")) for each in ticks] == pytest.approx(
        [each.value / scale for each in ticks]
    )


def test_a_scale_puts_figures_beyond_its_ends_at_them():
    scale = Scale(10.0, 100.0, 0.0)
    assert [scale.place(each) for each in (0, 5, 10, 99, -3)] == [100, 50, 0, 0, 100]
    assert [scale.place(each) for each in (10**400, math.inf)] == [0, 0]
    assert Scale(0.0, 7.0, 9.0).place(3.0) == 7.0
