"""Messages: the line, what cold connections and small writes cost, and what small files follow."""

import json

import pytest

from bottleneck.analysis import diagnose

FIT = {
    "latency_seconds": 0.00025,
    "bandwidth_bytes_per_second": 112e6,
    "n_half_bytes": 28_000.0,
    "worst_residual_ratio": 0.03,
}
NAGLE = {"message_bytes": 100, "seconds": 0.0403, "plain_seconds": 0.00026, "ratio": 155.0}


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "messages"]


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


def latency(world, fit=FIT, **told):
    details = {"fit": fit, "table": TABLE, "percentiles": {"p50_seconds": 0.00025}, **told}
    return world.add("latency", "client", {"seconds": 3.0}, 109, details)


def test_the_line_is_told_as_a_formula(world):
    index = latency(world)
    (found,) = compared(world)
    assert found.sentence == (
        "A message of n bytes and its answer take t(n) = 250 us + n / 112 MB/s (3 % off at "
        "worst): half of the rate needs messages of 27.3 KiB. A connection of its own costs each "
        "message 350 us more."
    )
    assert found.steps == (index,)
    assert found.ratio is None and not found.significant


def test_the_rows_have_each_way_and_its_rate(world):
    latency(world)
    small, large = compared(world)[0].rows
    assert small["message_bytes"] == 1 and large["message_bytes"] == 10**6
    assert small["cold_none_seconds"] == 0.00034
    assert "cold_none_bytes_per_second" not in small
    assert small["cold_two_bytes_per_second"] == pytest.approx(2 / 0.0009)
    assert large["warm_one_bytes_per_second"] == pytest.approx(1e6 / 0.0092)
    assert large["warm_two_seconds"] is None
    assert set(small) == set(large)


def test_a_line_that_was_refused_is_told_with_its_reason(world):
    latency(world, {"refused": "the times do not lie on a line", "worst_residual_ratio": 0.4})
    sentence = compared(world)[0].sentence
    assert "no latency and no bandwidth: the times do not lie on a line." in sentence
    assert "t(n)" not in sentence


def test_the_bias_of_cold_connections_is_told_where_there_is_one(world):
    latency(world, cold_fit={"latency_seconds": 0.0006})
    assert "a line through those times would have 600 us for latency" in compared(world)[0].sentence


def test_the_spread_is_told_where_it_is_known(world):
    latency(world, percentiles={"p50_seconds": 0.00025, "p99_seconds": 0.0011})
    told = "half of the exchanges took up to 250 us and 1 in 100 more than 1.1 ms"
    assert told in compared(world)[0].sentence


def test_small_writes_that_wait_for_each_other_are_a_finding(world):
    latency(world, nagle=NAGLE)
    (found,) = compared(world)
    assert "waits 40.3 ms for each answer in place of 260 us (155x)" in found.sentence
    assert found.ratio == 155.0 and found.significant


@pytest.mark.parametrize(
    ("seconds", "plain_seconds"), [(0.00027, 0.00026), (0.082, 0.041), (0.15, 0.08)]
)
def test_one_round_trip_more_is_no_trap(world, seconds, plain_seconds):
    """The other end acknowledges at once: Nagle waits for the head's round trip and no longer."""
    ratio = seconds / plain_seconds
    latency(world, nagle={"seconds": seconds, "plain_seconds": plain_seconds, "ratio": ratio})
    (found,) = compared(world)
    assert "TCP_NODELAY" not in found.sentence
    assert not found.significant


def test_what_a_small_file_costs_follows(world):
    index = latency(world)
    files = world.small_files("pull", 0.0042, 0.00025)
    (found,) = compared(world)
    assert found.sentence.endswith(
        "The 3 round trips of a small file that is pulled are 750 us at least."
    )
    assert found.steps == (index, files)


def test_without_a_fit_the_median_of_one_byte_tells_what_a_small_file_costs(world):
    latency(world, {"refused": "of something"})
    world.small_files("push", 0.0042, 0.00025, round_trips=4.0)
    assert (
        "The 4 round trips of a small file that is pushed are 1 ms" in compared(world)[0].sentence
    )


@pytest.mark.parametrize("table", [None, [], [{}], "x", [1], [row(1, 5, "cold", 0.1)]])
def test_without_a_table_there_is_nothing_to_tell(world, table):
    latency(world, table=table)
    assert compared(world) == []


@pytest.mark.parametrize("strange", [None, -1, 0, 1e-300, 2**63, "x", [], {"a": 1}, float("inf")])
def test_forged_figures_break_nothing(world, strange):
    for part in ("fit", "cold_fit", "percentiles", "nagle"):
        latency(world, **{part: strange})
        latency(world, **{part: dict.fromkeys({**FIT, **NAGLE, "p50_seconds": 1}, strange)})
    latency(world, table=[row(strange, 1, "warm", 0.1), row(1, strange, "cold", 0.1), *TABLE])
    latency(world, table=[row(1, 1, strange, 0.1), row(1, 1, "warm", strange), *TABLE])
    for found in compared(world):
        json.dumps(found.rows, allow_nan=False)
        assert found.sentence


def test_small_files_that_arrived_altered_are_not_reckoned_with(world):
    latency(world)
    world.small_files("pull", 0.0042, 0.00025, hash_ok=False)
    assert "small file" not in compared(world)[0].sentence
