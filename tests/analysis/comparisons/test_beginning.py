"""The first seconds against the rest: the mechanism is named where something measured shows it."""

import random
from dataclasses import replace

import pytest

from bottleneck.analysis.comparisons.beginning import change, split
from probes.records import Sample

ABOUT = ("start",)

MB = 1_000_000


def run(*rates, every=0.1, flush=0.05):
    """Samples of windows at these rates in MB/s, and the flush."""
    samples, moved = [Sample(0.0, 0)], 0.0
    for at, rate in enumerate(rates, 1):
        moved += rate * MB * every
        samples.append(Sample(at * every, int(moved)))
    return (*samples, Sample(len(rates) * every + flush, int(moved)))


def sample(world, at, *runs):
    """Gives a step runs of its own."""
    step, outcome = world.entries[at]
    world.entries[at] = (step, replace(outcome, runs=runs))


FALL = run(*[118] * 10, *[25] * 20)
RISE = run(*[10] * 10, *[110] * 28)


def test_a_fall_to_what_the_receivers_disk_writes_is_write_back(path, says):
    path.disk("server", "write", (25, 26, 27))
    sample(path, path.copy("push.cached", 50), FALL)
    says(path)


@pytest.mark.parametrize("written", [200, 90, 10, None])
def test_a_disk_that_writes_at_another_rate_is_not_blamed(path, written, says):
    if written is not None:
        path.disk("server", "write", written)
    sample(path, path.copy("push.cached", 50), FALL)
    says(path)


def test_tcp_alone_that_falls_alike_is_a_shaper(path, says):
    sample(path, path.tcp("pull", 40), FALL)
    path.disk("client", "write", 26)
    sample(path, path.copy("pull.cached", 50), FALL)
    says(path)


@pytest.mark.parametrize("alone", [run(*[118] * 10, *[60] * 20), RISE, run(*[118] * 30)])
def test_tcp_alone_that_does_otherwise_is_no_shaper(path, alone, says):
    sample(path, path.tcp("pull", 40), alone)
    sample(path, path.copy("pull.cached", 50), FALL)
    says(path)


def test_more_than_the_network_carries_went_into_the_mounts_cache(path, says):
    sample(path, path.native("push.cached", 50), run(*[900] * 6, *[110] * 20))
    says(path)


def test_a_beginning_that_the_network_carries_is_not_put_down_to_the_mount(path, says):
    sample(path, path.native("push.cached", 50), FALL)
    says(path)


def test_a_rise_on_a_far_path_is_slow_start(path, says):
    sample(path, path.copy("pull.cached", 90, details={"rtt_seconds": 0.1}), RISE)
    says(path)


@pytest.mark.parametrize("rtt", [None, 0.0004, 0.011])
def test_a_rise_that_takes_longer_than_a_slow_start_is_not_explained(path, rtt, says):
    details = {} if rtt is None else {"rtt_seconds": rtt}
    sample(path, path.copy("pull.cached", 90, details=details), RISE)
    says(path)


def test_a_pull_that_waits_for_its_flush_is_write_back(path, says):
    late = {"acknowledged_bytes_per_second": 117e6, "flush_seconds": 1.5}
    path.copy("pull.cached", 21, details=late)
    says(path)


@pytest.mark.parametrize(
    ("name", "details"),
    [
        ("push.cached", {"acknowledged_bytes_per_second": 117e6, "flush_seconds": 1.5}),
        ("pull.cached", {"acknowledged_bytes_per_second": 22e6, "flush_seconds": 0.1}),
        ("pull.cached", {"acknowledged_bytes_per_second": 117e6}),
        ("pull.cached", {"flush_seconds": 1.5}),
    ],
    ids=["a push: durability tells it", "short", "no time", "no rate"],
)
def test_a_flush_that_is_told_elsewhere_or_matters_not_is_left_out(path, name, details, says):
    path.copy(name, 21, details=details)
    says(path)


def test_a_long_copy_that_runs_as_it_began_is_told_so(path, says):
    sample(path, path.copy("pull.cached", 100), run(*[100, 103] * 40))
    says(path)


def test_a_copy_that_stood_still_for_its_first_seconds_has_no_rates_to_compare(path, says):
    sample(path, path.copy("pull.cached", 100), run(*[0] * 70, *[100] * 20))
    says(path)


def test_each_run_has_to_change_to_the_same_side(path, says):
    at = path.copy("push.cached", 50)
    sample(path, at, FALL, FALL, FALL)
    says(path)
    sample(path, at, FALL, FALL, run(*[118] * 30))
    says(path)
    sample(path, at, FALL, FALL, RISE)
    says(path)


def test_what_a_push_had_in_flight_is_no_change(path, says):
    filled = run(*[1] * 7, *[12] * 20, *[16] * 5)
    at = path.copy("push.cached", 11, details={"in_flight_bytes": 8_000_000})
    sample(path, at, filled)
    says(path)
    sample(path, path.copy("pull.cached", 11, details={"in_flight_bytes": 8_000_000}), filled)
    says(path)


def test_the_copy_that_changes_most_leads(path, says):
    sample(path, path.copy("push.cached", 50), run(*[118] * 10, *[60] * 20))
    sample(path, path.copy("pull.cached", 50), FALL)
    says(path)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.copy("push.cached", 50, details={"hash_ok": False}),
        lambda w: w.copy("server.push.cached", 50, initiator="server", engine="smbclient"),
    ],
    ids=["altered", "samples by looking at a file that grows in leaps"],
)
def test_what_has_no_samples_to_trust_is_left_out(path, make, says):
    sample(path, make(path), FALL)
    path.fail("pull.cached", "reset")
    says(path)


# -- where a rate changes for good: found where it lasts, and not where it is noise ---------------


def test_a_fall_is_found_with_its_time_and_bytes():
    found = change(run(*[118] * 10, *[25] * 20))
    assert found.falls
    assert found.seconds == pytest.approx(1.0)
    assert found.moved_bytes == pytest.approx(118 * MB)
    assert found.first.rate == pytest.approx(118 * MB)
    assert found.rest.rate == pytest.approx(25 * MB)


def test_a_rise_is_found():
    found = change(run(*[20] * 10, *[110] * 20))
    assert not found.falls
    assert found.seconds == pytest.approx(1.0)


def test_a_window_that_holds_the_change_itself_hides_nothing():
    found = change(run(*[118] * 10, 60, *[25] * 20))
    assert found.seconds == pytest.approx(1.05, abs=0.06)


def test_one_odd_window_in_eight_hides_nothing():
    found = change(run(*[118] * 5, 10, *[118] * 5, *[25] * 20))
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
    assert change(run(*rates)) is None


def test_noise_alone_makes_no_change():
    found = 0
    for seed in range(500):
        rates = random.Random(seed)
        told = run(*[rates.gauss(100, 15) for _ in range(30)])
        found += change(told) is not None
    assert found <= 1


def test_what_fills_and_drains_the_pipe_of_a_push_is_no_change():
    """8 MiB in flight over 12 MB/s: nothing is acknowledged at first, much at once at the end."""
    told = run(*[1] * 7, *[12] * 20, *[16] * 5)
    assert change(told) is not None
    assert change(told, fill_bytes=8e6) is None


def test_a_long_run_is_looked_at_in_forty_windows():
    found = change(run(*[118] * 100, *[25] * 300))
    assert len(found.first.window_rates) + len(found.rest.window_rates) <= 40
    assert found.seconds == pytest.approx(10.0, abs=1.1)


def test_a_clock_that_stands_still_divides_nothing():
    told = list(run(*[118] * 10, *[25] * 20))
    told.insert(5, told[4])
    assert change(tuple(told)).falls


def test_a_run_without_samples_between_has_no_change():
    assert change((Sample(0.0, 0), Sample(1.0, 100))) is None


def test_a_run_is_split_at_a_moment():
    found = split(run(*[100] * 80), 5.0)
    assert found.seconds == pytest.approx(5.0, abs=0.2)
    assert found.first.rate == pytest.approx(found.rest.rate)


@pytest.mark.parametrize("seconds", [0.1, 7.9, 20.0])
def test_a_moment_outside_of_the_run_splits_nothing(seconds):
    assert split(run(*[100] * 80), seconds) is None
