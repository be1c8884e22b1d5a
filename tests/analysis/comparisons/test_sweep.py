"""Buffer sizes: the one that is enough, what the usual one gets, and what a call costs."""

import json
from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

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


def test_the_knee_and_what_eight_kilobytes_get(world):
    index = sweep(world, SEED)
    (found,) = compared(world)
    assert found.sentence == (
        "From the client to the server calls of 64 KiB reach 95 % of the best (105 MB/s); 8 KiB "
        "gives 32 % of it. A call costs 240 us, even with 8 KiB."
    )
    assert found.ratio == pytest.approx(105 / 34.12)
    assert found.significant
    assert found.steps == (index,)
    assert [row["buffer_bytes"] for row in found.rows] == list(SEED)
    row = found.rows[0]
    assert row["best_ratio"] == pytest.approx(34.12 / 105)
    assert [row["buffer_bytes"] for row in found.rows if row["standing"] == "knee"] == [64 << 10]
    assert row["calls_per_second"] == pytest.approx(4165, abs=1)
    assert row["sender_cpu_seconds_per_byte"] == 2e-9


@pytest.mark.parametrize(
    ("over", "verb", "words"),
    [
        ("tcp", "pull", "From the server to the client calls"),
        ("loopback", "push", "On the client alone calls"),
    ],
)
def test_it_says_where_that_is(world, over, verb, words):
    sweep(world, SEED, over, verb)
    assert compared(world)[0].sentence.startswith(words)


def test_where_the_smallest_is_enough_no_size_is_recommended(world):
    rates = {512: 11.7, 8 * KIB: 11.8, 64 * KIB: 11.75}
    sweep(world, rates, knee_bytes=512)
    (found,) = compared(world)
    assert found.sentence == (
        "From the client to the server calls of 512 B already reach 95 % of the best (11.8 MB/s)."
    )
    assert not found.significant


def test_where_the_usual_size_is_enough_the_smallest_is_held_against_the_best(world):
    sweep(world, {512: 20.0, 8 * KIB: 111.0, 64 * KIB: 112.0}, knee_bytes=8 * KIB)
    (found,) = compared(world)
    assert "calls of 8 KiB reach 95 %" in found.sentence
    assert "512 B gives 18 % of it" in found.sentence


def test_passes_that_meet_are_no_difference(world):
    sweep(world, {8 * KIB: 70.0, 64 * KIB: 100.0}, spread=0.3)
    (found,) = compared(world)
    assert not found.significant


def test_a_knee_that_is_not_told_is_found(world):
    sweep(world, SEED, knee_bytes=None)
    assert "calls of 64 KiB reach" in compared(world)[0].sentence


@pytest.mark.parametrize("points", [None, [], [{}], "x", [{"buffer_bytes": 1}], [1, None]])
def test_without_points_there_is_nothing_to_compare(world, points):
    sweep(world, SEED, points=points)
    assert compared(world) == []


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


def test_a_rate_beyond_the_link_is_not_believed(world):
    world.client = replace(
        world.client, interface=replace(world.client.interface, rate_bits_per_second=10**9)
    )
    sweep(world, {8 * KIB: 34.0, 64 * KIB: 400.0})
    (found,) = compared(world)
    assert found.sentence.endswith("not believed.")
    assert not found.significant


def test_a_knee_below_95_percent_of_the_best_is_told_as_what_it_is(world):
    """The best did not reach its rate again, and the stage took the lower one for it."""
    sweep(
        world,
        {512: 120.0, 8 * KIB: 1140.0, 32 * KIB: 1560.0, 64 * KIB: 2000.0},
        over="loopback",
        knee_bytes=32 * KIB,
    )
    assert "calls of 32 KiB reach 78 % of the best (2 GB/s)" in compared(world)[0].sentence
