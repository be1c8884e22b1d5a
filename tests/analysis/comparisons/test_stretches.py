"""A change of the rate on the way: found where it lasts, and not where it is noise."""

import random

import pytest

from bottleneck.analysis.comparisons import beginning
from probes.records import Sample

MB = 1_000_000


def run(*rates, every=0.1, flush=0.05):
    """Samples of windows at these rates in MB/s, and the flush."""
    samples, moved = [Sample(0.0, 0)], 0.0
    for at, rate in enumerate(rates, 1):
        moved += rate * MB * every
        samples.append(Sample(at * every, int(moved)))
    return (*samples, Sample(len(rates) * every + flush, int(moved)))


def test_a_fall_is_found_with_its_time_and_bytes():
    found = beginning.change(run(*[118] * 10, *[25] * 20))
    assert found.falls
    assert found.seconds == pytest.approx(1.0)
    assert found.moved_bytes == pytest.approx(118 * MB)
    assert found.first.rate == pytest.approx(118 * MB)
    assert found.rest.rate == pytest.approx(25 * MB)


def test_a_rise_is_found():
    found = beginning.change(run(*[20] * 10, *[110] * 20))
    assert not found.falls
    assert found.seconds == pytest.approx(1.0)


def test_a_window_that_holds_the_change_itself_hides_nothing():
    found = beginning.change(run(*[118] * 10, 60, *[25] * 20))
    assert found.seconds == pytest.approx(1.05, abs=0.06)


def test_one_odd_window_in_eight_hides_nothing():
    found = beginning.change(run(*[118] * 5, 10, *[118] * 5, *[25] * 20))
    assert found.falls
    assert found.seconds == pytest.approx(1.1)


@pytest.mark.parametrize(
    "rates",
    [
        [100] * 30,
        [19, 30] * 15,
        [100, 98, 103] * 4 + [90, 92, 88] * 6,
        [118] * 26 + [20] * 4,
        [20] * 4 + [118] * 26,
        [118] * 12 + [0] * 12,
        [118] * 6 + [25] * 3,
    ],
    ids=["steady", "ripple", "small", "too late", "too early", "a stall", "too few"],
)
def test_what_is_no_lasting_change_is_none(rates):
    assert beginning.change(run(*rates)) is None


def test_noise_alone_makes_no_change():
    found = 0
    for seed in range(500):
        rates = random.Random(seed)
        told = run(*[rates.gauss(100, 15) for _ in range(30)])
        found += beginning.change(told) is not None
    assert found <= 1


def test_what_fills_and_drains_the_pipe_of_a_push_is_no_change():
    """8 MiB in flight over 12 MB/s: nothing is acknowledged at first, much at once at the end."""
    told = run(*[1] * 7, *[12] * 20, *[16] * 5)
    assert beginning.change(told) is not None
    assert beginning.change(told, fill_bytes=8e6) is None


def test_a_long_run_is_looked_at_in_forty_windows():
    found = beginning.change(run(*[118] * 100, *[25] * 300))
    assert len(found.first.window_rates) + len(found.rest.window_rates) <= 40
    assert found.seconds == pytest.approx(10.0, abs=1.1)


def test_a_clock_that_stands_still_divides_nothing():
    told = list(run(*[118] * 10, *[25] * 20))
    told.insert(5, told[4])
    assert beginning.change(tuple(told)).falls


def test_a_run_without_samples_between_has_no_change():
    assert beginning.change((Sample(0.0, 0), Sample(1.0, 100))) is None


def test_a_run_is_split_at_a_moment():
    found = beginning.split(run(*[100] * 80), 5.0)
    assert found.seconds == pytest.approx(5.0, abs=0.2)
    assert found.first.rate == pytest.approx(found.rest.rate)


@pytest.mark.parametrize("seconds", [0.1, 7.9, 20.0])
def test_a_moment_outside_of_the_run_splits_nothing(seconds):
    assert beginning.split(run(*[100] * 80), seconds) is None
