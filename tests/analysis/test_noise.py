"""When two rates differ by more than their noise."""

import pytest

from bottleneck.analysis.noise import differ, factor
from probes.core.records import Spread


def spread(low, median, high, runs=3):
    return Spread(median, low, high, runs)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (spread(98, 100, 102), spread(118, 120, 122), True),
        (spread(98, 100, 119), spread(118, 120, 122), False),  # the runs meet
        (spread(98, 100, 102), spread(104, 106, 108), False),  # too little to matter
        (spread(100, 100, 100, 1), spread(118, 120, 122), False),  # one run alone
        (spread(100, 100, 100, 1), spread(126, 126, 126, 1), True),
        (spread(100, 100, 100, 1), spread(124, 124, 124, 1), False),
        (spread(50, 100, 150), spread(140, 140, 140, 1), False),  # among the other's runs
        (spread(98, 100, 102), spread(140, 140, 140, 1), True),
    ],
)
def test_a_difference_counts_beyond_the_noise_of_both(first, second, expected):
    assert differ(first, second) is expected
    assert differ(second, first) is expected


def test_the_factor_is_the_greater_over_the_lesser():
    assert factor(50, 100) == factor(100, 50) == 2
