"""Windows and streams side by side: the knee, the product, what the tuning of the system gets."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

KIB, MIB = 1 << 10, 1 << 20
TRIP = 0.149


def cell(window, streams, rate, **more):
    bound = None if not window else streams * window / TRIP
    told = {
        "window_bytes": window,
        "granted_bytes": 2 * window or 8 * MIB,
        "streams": streams,
        "bytes_per_second": rate * 1e6,
        "rtt_unloaded_seconds": TRIP,
        "rtt_loaded_seconds": TRIP,
        "bound_bytes_per_second": bound,
        **more,
    }
    return {name: value for name, value in told.items() if value is not None}


LONG_PATH = [
    cell(0, 1, 11.2),
    cell(16 * KIB, 1, 0.1),
    cell(16 * KIB, 8, 0.85),
    cell(256 * KIB, 1, 1.7),
    cell(256 * KIB, 8, 11.3),
    cell(4 * MIB, 1, 11.4),
]


def compared(world, cells, verb="push", knee=(256 * KIB, 8), details=None, **loads):
    told = {
        "cells": cells,
        "knee": {"window_bytes": knee[0], "streams": knee[1]},
        "rtt_seconds": TRIP,
        "bdp_bytes": 11.4e6 * TRIP,
        **(details or {}),
    }
    world.add("matrix", "client", {"verb": verb}, 11.4, told, **loads)
    return [each for each in diagnose(world.report()).comparisons if each.about == "windows"]


def test_the_sentence_names_the_knee_the_product_and_what_the_smallest_window_gets(empty_world):
    (found,) = compared(empty_world(), LONG_PATH)
    assert found.sentence == (
        "Pushing, 8 streams x 256 KiB reach 99 % of the best, 11.4 MB/s. At that rate 1.62 MiB are "
        "under way in a round trip of 149 ms (the bandwidth-delay product): one stream needs that "
        "window. The system's own tuning gets 11.2 MB/s with one stream: it is not in the way. "
        "1 stream x 16 KiB gets 0.1 MB/s, as the window over the round trip says."
    )
    assert found.ratio == pytest.approx(11.4 / 11.2)
    assert not found.significant
    assert len(found.rows) == len(LONG_PATH)
    standing = {(r["window_bytes"], r["streams"]): r["standing"] for r in found.rows}
    assert standing[256 * KIB, 8] == "knee"
    assert standing[4 * MIB, 1] == "best"
    assert standing[0, 1] == "autotuned"
    assert sum(each is not None for each in standing.values()) == 3


def test_where_the_systems_tuning_gets_much_less_that_is_a_finding(empty_world):
    cells = [cell(0, 1, 2.8), *LONG_PATH[1:]]
    (found,) = compared(empty_world(), cells, "pull")
    assert found.significant
    assert found.ratio == pytest.approx(11.4 / 2.8)
    assert "Pulling, 8 streams" in found.sentence
    assert "no more than 2.8 MB/s with one stream: what it may grow" in found.sentence


def test_where_the_systems_tuning_is_the_knee_it_is_not_spoken_of_twice(empty_world):
    cells = [cell(0, 1, 11.4), cell(16 * KIB, 1, 0.1), cell(64 * KIB, 1, 0.4)]
    (found,) = compared(empty_world(), cells, knee=(0, 1))
    assert found.sentence.startswith(
        "Pushing, 1 stream with the system's own tuning reaches the most: 11.4 MB/s."
    )
    assert "in the way" not in found.sentence
    assert found.ratio == 1


def test_a_window_that_is_not_granted_is_told(empty_world):
    cells = [
        cell(0, 1, 11.2),
        cell(64 * KIB, 1, 0.4),
        cell(256 * KIB, 1, 1.4, granted_bytes=425_984),
        cell(MIB, 1, 1.4, granted_bytes=425_984),
    ]
    (found,) = compared(empty_world(), cells)
    assert "A window of 256 KiB is not granted in full" in found.sentence


def test_round_trips_that_grow_under_load_are_told_as_a_queue(empty_world):
    cells = [*LONG_PATH[:-1], cell(4 * MIB, 1, 11.4, rtt_loaded_seconds=0.45)]
    (found,) = compared(empty_world(), cells)
    assert "Round trips take 450 ms then, 3.0x as long" in found.sentence


def test_a_small_window_that_something_else_holds_is_not_told_as_held_by_it(empty_world):
    cells = [cell(0, 1, 11.4), cell(16 * KIB, 1, 0.02), cell(4 * MIB, 1, 11.4)]
    (found,) = compared(empty_world(), cells)
    assert "as the window over" not in found.sentence


def test_what_time_or_this_tool_left_out_is_said(empty_world):
    (found,) = compared(
        empty_world(),
        LONG_PATH,
        details={"left_out": True},
        client={"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97},
    )
    assert "The time was too short for all cells." in found.sentence
    assert "This tool itself filled a core of the client there." in found.sentence


def test_a_host_that_was_full_is_not_told_as_bad_tuning(empty_world):
    cells = [cell(0, 1, 2.8), *LONG_PATH[1:]]
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 1.0}
    (found,) = compared(empty_world(), cells, client=full)
    assert "gets 2.8 MB/s with one stream, while " in found.sentence
    assert "what it may grow" not in found.sentence


def test_packets_that_never_left_the_host_have_no_product(empty_world):
    world = empty_world()
    world.client = replace(world.client, interface=replace(world.client.interface, name="lo"))
    (found,) = compared(world, LONG_PATH)
    assert "under way" not in found.sentence
    assert {row["bdp_bytes"] for row in found.rows} == {None}


def test_a_figure_that_is_not_known_stays_unknown(empty_world):
    bare = [
        {"window_bytes": window, "streams": 1, "bytes_per_second": rate}
        for window, rate in ((0, 1e6), (16 * KIB, 2e6))
    ]
    told = {"rtt_seconds": None, "bdp_bytes": "much", "knee": None}
    (found,) = compared(empty_world(), bare, details=told)
    assert {each["rtt_loaded_seconds"] for each in found.rows} == {None}
    assert found.rows[0]["bdp_bytes"] is None
    assert "under way" not in found.sentence


@pytest.mark.parametrize(
    "cells", ["many", [7, {"streams": 0}], [], LONG_PATH[:1], [LONG_PATH[0]] * 3]
)
def test_strange_cells_and_one_alone_tell_nothing(empty_world, cells):
    assert compared(empty_world(), cells) == []


def test_a_rate_beyond_the_link_is_not_believed(empty_world):
    world = empty_world()
    for side in ("client", "server"):
        host = getattr(world, side)
        slow = replace(host.interface, rate_bits_per_second=10**7)
        setattr(world, side, replace(host, interface=slow))
    (found,) = compared(world, [cell(0, 1, 2.8), *LONG_PATH[1:]])
    assert found.sentence.endswith("not believed.")
    assert not found.significant


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ([{"window_bytes": 0, "streams": 8, "reason": "nothing\narrived"}], "One cell has no rate"),
        ([{"reason": "nothing arrived"}, {"reason": "gone"}], "2 cells have no rate"),
    ],
)
def test_cells_that_broke_are_said_with_the_first_reason(empty_world, broken, said):
    (found,) = compared(empty_world(), LONG_PATH, details={"broken": broken})
    assert f"{said}: nothing arrived." in found.sentence


@pytest.mark.parametrize("broken", [5, "x", [5], {"reason": "x"}])
def test_what_is_told_of_broken_cells_otherwise_is_left_aside(empty_world, broken):
    (found,) = compared(empty_world(), LONG_PATH, details={"broken": broken})
    assert "no rate" not in found.sentence


def test_without_the_systems_own_tuning_there_is_nothing_to_compare_it_with(empty_world):
    (found,) = compared(empty_world(), LONG_PATH[1:])
    assert found.ratio is None
    assert "own tuning" not in found.sentence


def test_a_smallest_window_that_gets_what_all_get_is_not_told_as_a_limit(empty_world):
    cells = [cell(0, 1, 11.2), cell(256 * KIB, 8, 11.3), cell(4 * MIB, 8, 11.4)]
    (found,) = compared(empty_world(), cells)
    assert "as the window over the round trip says" not in found.sentence
