"""Buffer sizes: the one that is enough, what the usual one gets, and what a call costs."""

import json
from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose

ABOUT = ("buffers",)

KIB = 1 << 10
SEED = {8 * KIB: 34.12, 16 * KIB: 64.0, 32 * KIB: 93.16, 64 * KIB: 105.0, 128 * KIB: 103.73}
"""MB/s, as people measured a gigabit card of 2005 with ttcp."""


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "buffers"]


def sweep(world, rates, over="tcp", verb="push", spread=0.02, **told):
    points = [
        {
            "buffer_bytes": size,
            "bytes_per_second": rate * 1e6,
            "low_bytes_per_second": rate * 1e6 * (1 - spread),
            "high_bytes_per_second": rate * 1e6 * (1 + spread),
            "calls": 1000,
            "cpu_seconds": 0.1,
            "seconds_per_call": size / rate / 1e6,
            "calls_per_second": rate * 1e6 / size,
            "sender_cpu_seconds_per_byte": 2e-9,
            "receiver_cpu_seconds_per_byte": 3e-9,
        }
        for size, rate in rates.items()
    ]
    setting = {"over": over, "verb": verb, "seconds": 0.45}
    details = {"points": points, "knee_bytes": 64 * KIB, **told}
    return world.add("sweep", "client", setting, max(rates.values()), details)


def test_the_knee_and_what_eight_kilobytes_get(world, says):
    sweep(world, SEED)
    says(world)


@pytest.mark.parametrize(("over", "verb"), [("tcp", "pull"), ("loopback", "push")])
def test_it_says_where_that_is(world, over, verb, says):
    sweep(world, SEED, over, verb)
    says(world)


def test_where_the_smallest_is_enough_no_size_is_recommended(world, says):
    rates = {512: 11.7, 8 * KIB: 11.8, 64 * KIB: 11.75}
    sweep(world, rates, knee_bytes=512)
    says(world)


def test_where_the_usual_size_is_enough_the_smallest_is_held_against_the_best(world, says):
    sweep(world, {512: 20.0, 8 * KIB: 111.0, 64 * KIB: 112.0}, knee_bytes=8 * KIB)
    says(world)


def test_passes_that_meet_are_no_difference(world, says):
    sweep(world, {8 * KIB: 70.0, 64 * KIB: 100.0}, spread=0.3)
    says(world)


def test_a_knee_that_is_not_told_is_found(world, says):
    sweep(world, SEED, knee_bytes=None)
    says(world)


@pytest.mark.parametrize("points", [None, [], [{}], "x", [{"buffer_bytes": 1}], [1, None]])
def test_without_points_there_is_nothing_to_compare(world, points, says):
    sweep(world, SEED, points=points)
    says(world)


@pytest.mark.parametrize("strange", [None, -1, 0, 1e-300, 2**63, "x", [], {"a": 1}, float("inf")])
@pytest.mark.parametrize("key", ["buffer_bytes", "bytes_per_second", "high_bytes_per_second"])
def test_a_forged_point_breaks_nothing(world, key, strange):
    index = sweep(world, SEED)
    step, outcome = world.entries[index]
    outcome.details["points"][1][key] = strange
    for found in compared(world):
        json.dumps(found.rows, allow_nan=False)
    outcome.details["knee_bytes"] = strange
    assert all(each.sentence for each in compared(world))


def test_a_rate_beyond_the_link_is_not_believed(world, says):
    world.client = replace(
        world.client, interface=replace(world.client.interface, rate_bits_per_second=10**9)
    )
    sweep(world, {8 * KIB: 34.0, 64 * KIB: 400.0})
    says(world)


def test_a_knee_below_95_percent_of_the_best_is_told_as_what_it_is(world, says):
    """The best did not reach its rate again, and the stage took the lower one for it."""
    sweep(
        world,
        {512: 120.0, 8 * KIB: 1140.0, 32 * KIB: 1560.0, 64 * KIB: 2000.0},
        over="loopback",
        knee_bytes=32 * KIB,
    )
    says(world)
