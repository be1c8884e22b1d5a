"""The disks' comparisons: the curve in words, a file's place, single reads, writing for long."""

from __future__ import annotations

from typing import Any

import pytest

from bottleneck.analysis import diagnose

MB = 1e6


def told(world: Any, about: str) -> list[Any]:
    return [each for each in diagnose(world.report()).comparisons if each.about == about]


def step(world: Any, verb: str, rate: float, pattern: str, **details: Any) -> None:
    setting = {"side": "server", "verb": verb, "cache": "uncached", "pattern": pattern}
    world.add("disk", "server", setting, rate, {"device": "sda", **details})


def zones(rates: list[float]) -> list[dict[str, float]]:
    many = len(rates)
    return [
        {"from_ratio": at / many, "to_ratio": (at + 1) / many, "bytes_per_second": rate * MB}
        for at, rate in enumerate(rates)
    ]


def disc(outer: float, inner: float, many: int = 9) -> list[float]:
    places = [(at + 0.5) / many for at in range(many)]
    return [(outer**2 - at * (outer**2 - inner**2)) ** 0.5 for at in places]


def test_a_spinning_disc_is_told_by_its_edges_and_its_weak_zone(empty_world):
    world = empty_world()
    rates = disc(180, 92)
    rates[4] = 60
    step(world, "read", 120, "zones", zones=zones(rates), seek_seconds=0.0083)
    (found,) = told(world, "zones")
    assert found.sentence == (
        "The server's disk sda reads 180 MB/s at its outer edge and 92 MB/s at the inner, 1.96 to "
        "1, as a spinning disc does; zone 5 is weak (60 MB/s where 143 MB/s were due). A jump to "
        "another place costs 8.3 ms."
    )
    assert found.ratio == pytest.approx(180 / 92, rel=0.001)
    assert found.significant
    assert [row["zone"] for row in found.rows if row["standing"] == "weak"] == [5]


@pytest.mark.parametrize(
    ("rates", "words"),
    [
        ([500, 505, 498, 510, 502], "502 MB/s" + "|" + "the same everywhere within 2 %"),
        ([60, 30], "30-60 MB/s in 2 zones, too few for a curve"),
        ([500, 90, 400, 60, 300, 510, 80], "on no curve that a disc would have"),
        (disc(92, 180), "92 MB/s at its first address and 180 MB/s at its last"),
    ],
)
def test_what_is_no_spinning_disc_is_said_to_be_none(empty_world, rates, words):
    world = empty_world()
    step(world, "read", 100, "zones", zones=zones(rates))
    (found,) = told(world, "zones")
    assert words.rpartition("|")[2] in found.sentence
    assert not found.significant
    assert "as a spinning disc does" not in found.sentence


PLACE = {
    "device": "sda",
    "device_bytes": 10**12,
    "located": True,
    "bytes": 1 << 30,
    "fragments": 1,
    "from_ratio": 0.9,
    "to_ratio": 1.0,
    "centre_ratio": 0.95,
    "spans": [{"from_ratio": 0.9, "to_ratio": 1.0, "bytes": 1 << 30}],
}


def test_a_files_place_is_held_against_the_edge(empty_world):
    world = empty_world()
    step(world, "read", 45, "zones", zones=zones(disc(60, 30)), seek_seconds=0.008)
    step(world, "read", 32, "sequential", place=PLACE)
    step(world, "read", 20, "file", place={**PLACE, "fragments": 1001, "unwritten_bytes": 4096})
    own, named = told(world, "place")
    assert own.sentence == (
        "This run's own file lies from 90 % to 100 % of the server's sda in one piece, which can "
        "give 32.1 MB/s; one piece at the outer edge would give 60 MB/s; it was read at 32 MB/s."
    )
    assert own.significant
    (row,) = named.rows
    assert row["place_bytes_per_second"] == pytest.approx(
        (1 << 30) / ((1 << 30) / 32.1e6 + 8), 0.01
    )
    assert "in 1,001 pieces" in named.sentence
    assert "4 KiB of it were never written" in named.sentence


def test_without_zones_the_place_alone_is_told(empty_world):
    world = empty_world()
    step(world, "read", 32, "sequential", place=PLACE)
    (found,) = told(world, "place")
    assert found.sentence.endswith("sda in one piece; it was read at 32 MB/s.")
    assert found.ratio is None


def test_one_small_read_at_a_time_against_many(empty_world):
    world = empty_world()
    random = {"bytes": 4096, "depth_1_per_second": 120, "depth_32_per_second": 300}
    step(world, "read", 45, "zones", zones=zones(disc(60, 30)), seek_seconds=0.008, random=random)
    (found,) = told(world, "random")
    assert found.ratio == pytest.approx(2.5)
    assert "reads 120 a second one at a time (0.492 MB/s)" in found.sentence
    assert [row["depth"] for row in found.rows] == [1, 32]


LONG = {"acknowledged_bytes_per_second": 9e8, "sustained_bytes_per_second": 1e8}


@pytest.mark.parametrize(
    ("knee", "limit", "words"),
    [
        (800 << 20, 819 << 20, "that is where the kernel's dirty limit (819 MiB) lies"),
        (8 << 30, 819 << 20, "a cache in the disk or its controller"),
        (100 << 20, 819 << 20, "a limit of a container"),
        (800 << 20, None, "then at 100 MB/s; the flush"),
        (None, 819 << 20, "at 900 MB/s throughout"),
    ],
)
def test_the_knee_is_held_against_the_dirty_limit(empty_world, knee, limit, words):
    world = empty_world()
    more = {"knee_bytes": knee, "dirty_limit_bytes": limit, "flush_seconds": 3.0}
    step(world, "write", 200, "sustained", **LONG, **more)
    (found,) = told(world, "sustained")
    assert words in found.sentence
    assert found.ratio == pytest.approx(9.0)


def test_forced_writes_stand_beside_those_that_are_flushed_once(empty_world):
    world = empty_world()
    step(world, "write", 108, "sequential")
    assert told(world, "sustained") == []
    sync = {"median": 0.03, "p99": 0.06}
    step(world, "write", 20, "synced", request_bytes=1 << 20, sync_seconds=sync)
    (found,) = told(world, "sustained")
    assert found.sentence == (
        "With each 1 MiB forced to the server's disk before the next it takes 20 MB/s (30 ms of "
        "waiting each), against 108 MB/s flushed once at the end."
    )
    assert found.ratio == pytest.approx(5.4)


def test_one_depth_of_small_reads_alone_is_told_without_a_gain(empty_world):
    world = empty_world()
    random = {"bytes": 4096, "depth_32_per_second": 300}
    step(world, "read", 45, "zones", zones=zones(disc(60, 30)), random=random)
    (found,) = told(world, "random")
    assert found.ratio is None
    assert not found.significant
    assert found.sentence.endswith("reads 300 a second 32 at once (1.23 MB/s).")


def test_forced_writes_beside_long_ones_alone_are_told_without_the_flush(empty_world):
    world = empty_world()
    step(world, "write", 200, "sustained", **LONG, knee_bytes=800 << 20)
    step(world, "write", 20, "synced", request_bytes=1 << 20)
    (found,) = told(world, "sustained")
    assert found.sentence.endswith(
        "With each 1 MiB forced to the server's disk before the next it takes 20 MB/s."
    )
