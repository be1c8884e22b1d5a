"""What an agent tells of a run is taken only where it can be."""

import pytest

from bottleneck import told
from probes.records import Sample


@pytest.mark.parametrize("value", [5, [], [1], [1, 2, 3], ["1", 2], [-1, 2], [1, float("inf")]])
def test_what_is_no_sample_is_refused(value):
    with pytest.raises(ValueError):
        told.sample(value)


@pytest.mark.parametrize(
    ("samples", "is_window"),
    [
        ([(0.0, 0), (1.0, 5)], True),
        ([(0.0, 0), (0.5, 3), (0.5, 3), (1.0, 3)], True),
        ([(0.0, 0), (1.0, 0)], True),
        ([], False),
        ([(1.0, 5)], False),
        ([(1.0, 5), (1.0, 9)], False),
        ([(0.0, 5), (1.0, 4)], False),
        ([(0.0, 0), (2.0, 4), (1.0, 5)], False),
    ],
)
def test_a_window_has_a_duration_and_nothing_in_it_runs_backwards(samples, is_window):
    assert told.is_window([Sample(*each) for each in samples]) is is_window


@pytest.mark.parametrize(
    "value", [5, [], {"window_rates_bytes_per_second": ["x"]}, {"window_rates_bytes_per_second": 5}]
)
def test_details_that_no_rate_can_be_derived_from_are_refused(value):
    with pytest.raises(ValueError):
        told.details(value)
    assert told.details({"anything": ["x"]}) == {"anything": ["x"]}
