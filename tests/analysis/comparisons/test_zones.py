"""The disks' comparisons: the curve in words, a file's place, single reads, writing for long."""

from __future__ import annotations

from typing import Any

import pytest

ABOUT = ("zones", "place", "random", "sustained")

MB = 1e6


def step(world: Any, verb: str, rate: float, pattern: str, **details: Any) -> None:
    setting = {"side": "server", "verb": verb, "cache": "uncached", "pattern": pattern}
    world.add("disk", "server", setting, rate, {"device": "sda", **details})


def zones(rates: list[float]) -> list[dict[str, float]]:
    many = len(rates)
    return [
        {"from_ratio": n / many, "to_ratio": (n + 1) / many, "bytes_per_second": rate * MB}
        for n, rate in enumerate(rates)
    ]


def disc(outer: float, inner: float, many: int = 9) -> list[float]:
    places = [(place + 0.5) / many for place in range(many)]
    return [(outer**2 - place * (outer**2 - inner**2)) ** 0.5 for place in places]


def test_a_spinning_disc_is_told_by_its_edges_and_its_weak_zone(hosts, store):
    rates = disc(180, 92)
    rates[4] = 60
    step(hosts, "read", 120, "zones", zones=zones(rates), seek_seconds=0.0083)
    store(hosts)


@pytest.mark.parametrize(
    "rates", [[500, 505, 498, 510, 502], [60, 30], [500, 90, 400, 60, 300, 510, 80], disc(92, 180)]
)
def test_what_is_no_spinning_disc_is_said_to_be_none(hosts, rates, store):
    step(hosts, "read", 100, "zones", zones=zones(rates))
    store(hosts)


def place_zones(places: list[float], rates: list[float]) -> list[dict[str, float]]:
    """Files of 1 % of the disk."""
    pairs = zip(places, rates, strict=True)
    return [
        {"from_ratio": place, "to_ratio": place + 0.01, "bytes_per_second": rate * MB}
        for place, rate in pairs
    ]


def test_of_a_disc_that_was_read_and_written_both_rates_of_a_place_are_told(hosts, store):
    step(hosts, "read", 120, "zones", zones=zones(disc(180, 90)))
    places = [0.05, 0.15, 0.25, 0.35, 0.45]
    written = [0.95 * (180**2 - place * (180**2 - 90**2)) ** 0.5 for place in places]
    step(hosts, "write", 120, "zones", zones=place_zones(places, written))
    store(hosts)


@pytest.mark.parametrize("rates", [[60, 60.4, 59.8, 60.1, 60.2], [70, 69, 71, 68, 68]])
def test_a_part_of_a_disk_tells_one_rate_or_no_curve(hosts, rates, store):
    step(hosts, "write", 60, "zones", zones=place_zones([0.05, 0.15, 0.25, 0.35, 0.45], rates))
    store(hosts)


@pytest.mark.parametrize("why", ["", "ssd", "untold"])
def test_where_one_part_of_the_disk_is_reached_no_curve_is_told(hosts, why, store):
    near = place_zones([0.05, 0.1, 0.15], [70, 69, 68])
    step(hosts, "write", 70, "zones", zones=zones([480]) if why else near, one_place=why)
    store(hosts)


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


def test_a_files_place_is_held_against_the_edge(hosts, store):
    step(hosts, "read", 45, "zones", zones=zones(disc(60, 30)), seek_seconds=0.008)
    step(hosts, "read", 32, "sequential", place=PLACE)
    step(hosts, "read", 20, "file", place={**PLACE, "fragments": 1001, "unwritten_bytes": 4096})
    store(hosts)


def test_without_zones_the_place_alone_is_told(hosts, store):
    step(hosts, "read", 32, "sequential", place=PLACE)
    store(hosts)


def test_one_small_read_at_a_time_against_many(hosts, store):
    random = {"bytes": 4096, "depth_1_per_second": 120, "depth_32_per_second": 300}
    step(hosts, "read", 45, "zones", zones=zones(disc(60, 30)), seek_seconds=0.008, random=random)
    store(hosts)


LONG = {"acknowledged_bytes_per_second": 9e8, "sustained_bytes_per_second": 1e8}


@pytest.mark.parametrize(
    ("knee", "limit"),
    [
        (800 << 20, 819 << 20),
        (8 << 30, 819 << 20),
        (100 << 20, 819 << 20),
        (800 << 20, None),
        (None, 819 << 20),
    ],
)
def test_the_knee_is_held_against_the_dirty_limit(hosts, knee, limit, store):
    extra = {"knee_bytes": knee, "dirty_limit_bytes": limit, "flush_seconds": 3.0}
    step(hosts, "write", 200, "sustained", **LONG, **extra)
    store(hosts)


def test_forced_writes_stand_beside_those_that_are_flushed_once(hosts, store):
    step(hosts, "write", 108, "sequential")
    store(hosts)
    sync = {"median": 0.03, "p99": 0.06}
    step(hosts, "write", 20, "synced", request_bytes=1 << 20, sync_seconds=sync)
    store(hosts)


def test_one_depth_of_small_reads_alone_is_told_without_a_gain(hosts, store):
    random = {"bytes": 4096, "depth_32_per_second": 300}
    step(hosts, "read", 45, "zones", zones=zones(disc(60, 30)), random=random)
    store(hosts)


def test_forced_writes_beside_long_ones_alone_are_told_without_the_flush(hosts, store):
    step(hosts, "write", 200, "sustained", **LONG, knee_bytes=800 << 20)
    step(hosts, "write", 20, "synced", request_bytes=1 << 20)
    store(hosts)
