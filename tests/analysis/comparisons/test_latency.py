"""Messages: the line, what cold connections and small writes cost, and what small files follow."""

import json

import pytest

from bottleneck.analysis.diagnosis import diagnose

ABOUT = ("messages",)

FIT = {
    "latency_seconds": 0.00025,
    "bandwidth_bytes_per_second": 112e6,
    "n_half_bytes": 28_000.0,
    "worst_residual_ratio": 0.03,
}
NAGLE = {"message_bytes": 100, "seconds": 0.0403, "plain_seconds": 0.00026, "ratio": 155.0}


def row(size, round_trips, connection, seconds):
    return {
        "message_bytes": size,
        "round_trips": round_trips,
        "connection": connection,
        "seconds": seconds,
    }


TABLE = [
    *(row(1, trips, "cold", seconds) for trips, seconds in enumerate((0.00034, 0.0006, 0.0009))),
    *(row(1, trips, "warm", trips * 0.00025) for trips in (1, 2)),
    *(row(10**6, trips, "cold", 0.00034 + 0.009 * trips) for trips in (0, 1, 2)),
    row(10**6, 1, "warm", 0.0092),
]


def latency(world, fit=FIT, **figures):
    details = {"fit": fit, "table": TABLE, "percentiles": {"p50_seconds": 0.00025}, **figures}
    return world.add("latency", "client", {"seconds": 3.0}, 109, details)


TOLD = {
    "the line as a formula, and a row a size with each way and its rate": {},
    "a line that was refused, with its reason": {
        "fit": {"refused": "the times do not fit a straight line", "worst_residual_ratio": 0.4}
    },
    "a line for each of two regimes": {
        "fit": {
            **FIT,
            "pieces": [
                {"to_bytes": 30_000, "seconds": 0.00025, "bandwidth_bytes_per_second": 1.1e9},
                {"seconds": -0.0011, "bandwidth_bytes_per_second": 112e6},
            ],
        }
    },
    "a first regime in which longer messages take no longer": {
        "fit": {
            **FIT,
            "pieces": [
                {"to_bytes": 3000, "seconds": 0.00025, "bandwidth_bytes_per_second": None},
                {"seconds": 0.04, "bandwidth_bytes_per_second": 112e6},
            ],
        }
    },
    "the bias of cold connections where there is one": {"cold_fit": {"latency_seconds": 0.0006}},
    "the spread": {"percentiles": {"p50_seconds": 0.00025, "p99_seconds": 0.0011}},
    "small writes that wait for each other": {"nagle": NAGLE},
}


@pytest.mark.parametrize("details", TOLD.values(), ids=TOLD)
def test_what_a_latency_stage_tells(world, details, store):
    latency(world, **details)
    store(world)


@pytest.mark.parametrize(
    ("seconds", "plain_seconds"), [(0.00027, 0.00026), (0.082, 0.041), (0.15, 0.08)]
)
def test_one_round_trip_more_is_no_trap(world, seconds, plain_seconds, store):
    """The other end acknowledges at once: Nagle waits for the head's round trip and no longer."""
    ratio = seconds / plain_seconds
    latency(world, nagle={"seconds": seconds, "plain_seconds": plain_seconds, "ratio": ratio})
    store(world)


def test_what_a_small_file_costs_follows(world, store):
    latency(world)
    world.small_files("pull", 0.0042, 0.00025)
    store(world)


def test_without_a_fit_the_median_of_one_byte_tells_what_a_small_file_costs(world, store):
    latency(world, {"refused": "of something"})
    world.small_files("push", 0.0042, 0.00025, round_trips=4.0)
    store(world)


@pytest.mark.parametrize("table", [None, [], [{}], "x", [1], [row(1, 5, "cold", 0.1)]])
def test_without_a_table_there_is_nothing_to_tell(world, table, store):
    latency(world, table=table)
    store(world)


@pytest.mark.parametrize("strange", [None, -1, 0, 1e-300, 2**63, "x", [], {"a": 1}, float("inf")])
def test_forged_figures_break_nothing(world, strange):
    for part in ("fit", "cold_fit", "percentiles", "nagle"):
        latency(world, **{part: strange})
        latency(world, **{part: dict.fromkeys({**FIT, **NAGLE, "p50_seconds": 1}, strange)})
    latency(world, table=[row(strange, 1, "warm", 0.1), row(1, strange, "cold", 0.1), *TABLE])
    latency(world, table=[row(1, 1, strange, 0.1), row(1, 1, "warm", strange), *TABLE])
    for comparison in diagnose(world.report()).comparisons:
        json.dumps(comparison.rows, allow_nan=False)
        assert comparison.sentence


def test_small_files_that_arrived_altered_are_not_reckoned_with(world, store):
    latency(world)
    world.small_files("pull", 0.0042, 0.00025, hash_ok=False)
    store(world)
