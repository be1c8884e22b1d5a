"""The smallest buffer that is enough, whatever the noise."""

from __future__ import annotations

import pytest

from probes.net.knee import knee

KIB = 1 << 10


def points(rates, spread=0.0):
    return [
        {
            "buffer_bytes": size,
            "bytes_per_second": rate,
            "high_bytes_per_second": rate * (1 + spread),
        }
        for size, rate in rates.items()
    ]


SEED = {8 * KIB: 34.12e6, 16 * KIB: 64e6, 32 * KIB: 93.16e6, 64 * KIB: 105e6, 128 * KIB: 103.73e6}


def test_it_is_the_first_that_reaches_95_percent_of_the_best():
    assert knee(points(SEED)) == 64 * KIB
    assert knee(points({4 * KIB: 94.9, 8 * KIB: 95.0, 16 * KIB: 100.0})) == 8 * KIB


@pytest.mark.parametrize(("rate", "found"), [(94.0, 4 * KIB), (91.0, 4 * KIB), (89.0, 8 * KIB)])
def test_one_whose_fastest_pass_reaches_it_is_enough_if_it_is_not_far_below(rate, found):
    assert knee(points({4 * KIB: rate, 8 * KIB: 100.0}, spread=0.07)) == found


@pytest.mark.parametrize(("again", "found"), [(None, 8 * KIB), (100.0, 4 * KIB), (1.0, 4 * KIB)])
def test_a_best_that_was_luck_is_not_what_the_others_have_to_reach(again, found):
    assert knee(points({2 * KIB: 70.0, 4 * KIB: 97.0, 8 * KIB: 120.0}), again) == found


def test_of_nothing_there_is_none():
    assert knee([]) is None
