"""Buffer sizes: the one that is enough, what the usual one gets, and what a call costs."""

import json
from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose

ABOUT = ("buffers",)

KIB = 1 << 10
SEED = {8 * KIB: 34.12, 16 * KIB: 64.0, 32 * KIB: 93.16, 64 * KIB: 105.0, 128 * KIB: 103.73}
"""MB/s, as people measured a gigabit card of 2005 with ttcp."""


def sweep(world, rates, over="tcp", verb="push", spread=0.02, **figures):
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
    details = {"points": points, "knee_bytes": 64 * KIB, **figures}
    return world.add("sweep", "client", setting, max(rates.values()), details)


ODD = {512: 120.0, 8 * KIB: 1140.0, 32 * KIB: 1560.0, 64 * KIB: 2000.0}
SWEPT = {
    "the knee, and what 8 KiB get": (SEED, {}),
    "of a pull": (SEED, {"verb": "pull"}),
    "on one host": (SEED, {"over": "loopback"}),
    "where the smallest is enough no size is recommended": pytest.param(
        {512: 11.7, 8 * KIB: 11.8, 64 * KIB: 11.75}, {"knee_bytes": 512}
    ),
    "where the usual size is enough the smallest is held against the best": pytest.param(
        {512: 20.0, 8 * KIB: 111.0, 64 * KIB: 112.0}, {"knee_bytes": 8 * KIB}
    ),
    "passes that meet are no difference": ({8 * KIB: 70.0, 64 * KIB: 100.0}, {"spread": 0.3}),
    "a knee that is not told is found": (SEED, {"knee_bytes": None}),
    "a best that did not reach its rate again leaves a knee below 95 %": pytest.param(
        ODD, {"over": "loopback", "knee_bytes": 32 * KIB}
    ),
}


@pytest.mark.parametrize(("rates", "extra"), SWEPT.values(), ids=SWEPT)
def test_the_buffer_that_is_enough(world, rates, extra, store):
    sweep(world, rates, **extra)
    store(world)


@pytest.mark.parametrize("points", [None, [], [{}], "x", [{"buffer_bytes": 1}], [1, None]])
def test_without_points_there_is_nothing_to_compare(world, points, store):
    sweep(world, SEED, points=points)
    store(world)


@pytest.mark.parametrize("strange", [None, -1, 0, 1e-300, 2**63, "x", [], {"a": 1}, float("inf")])
@pytest.mark.parametrize("key", ["buffer_bytes", "bytes_per_second", "high_bytes_per_second"])
def test_a_forged_point_breaks_nothing(world, key, strange):
    index = sweep(world, SEED)
    step, outcome = world.entries[index]
    outcome.details["points"][1][key] = strange
    for comparison in diagnose(world.report()).comparisons:
        json.dumps(comparison.rows, allow_nan=False)
    outcome.details["knee_bytes"] = strange
    assert all(each.sentence for each in diagnose(world.report()).comparisons)


def test_a_rate_beyond_the_link_is_not_believed(world, store):
    world.client = replace(
        world.client, interface=replace(world.client.interface, rate_bits_per_second=10**9)
    )
    sweep(world, {8 * KIB: 34.0, 64 * KIB: 400.0})
    store(world)
