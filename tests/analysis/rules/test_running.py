"""A copy that was watched while it ran: its own time names its cap, and what was not seen is said.

Recorded ones are in tests/data/traces.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.analysis.conftest import World

SECONDS = 4.0
RUN_BYTES = 47_040_000
"""Bytes of a planted run at the rate below."""
RATE = 11.76
"""MB/s of payload on 100 Mbit/s."""
NOTHING = "unknown/inconclusive"
AT = [round(0.1 * each, 3) for each in range(1, 40)]
"""When both hosts looked."""


def bins(read: float = 0.0, write: float = 0.0, send: float = 0.0, cpu: float = 0.05) -> Any:
    """Builds bins of a program that spends these shares of its time so; the rest is waits."""
    rows = []
    for n in range(17):
        walls = (0.0, send / 4, read / 4, write / 4, 0.0) if n else (0.0,) * 5
        rows.append([n / 4, *walls, cpu * n / 4, 0.0])
    return rows


def connection(**figures: float) -> dict[str, Any]:
    """A connection that looked the same at each look, and carried the copy at an even rate."""
    columns: dict[str, Any] = {"elapsed_seconds": AT}
    usual = {"unread_bytes": 0, "unsent_bytes": 0, "in_flight_bytes": 0, "queued_bytes": 0}
    usual |= {"peer_window_bytes": 3 << 20, "rtt_seconds": 3e-4, "min_rtt_seconds": 3e-4}
    usual |= {"since_acknowledged_seconds": 0.0, "since_received_seconds": 0.0}
    for name, value in {**usual, **figures}.items():
        columns[name] = [value] * len(AT)
    for name in ("acknowledged_bytes", "received_bytes"):
        columns[name] = [int(RUN_BYTES * n / SECONDS) for n in AT]
    return {**columns, "send_buffer_bytes": 4 << 20, "receive_buffer_bytes": 6 << 20} | {
        "segment_bytes": 1448
    }


def host(disk: float = 0.0, cpu: float = 0.1, written: int | None = None, **figures: float) -> Any:
    """Builds a host's looks: its connection, its threads' state and CPU, its device's bytes."""
    threads: dict[str, Any] = {"elapsed_seconds": AT}
    for name, value in (("disk", disk), ("running", cpu), ("busiest_ratio", cpu)):
        threads[name] = [value] * len(AT)
    threads["all_ratio"] = threads["busiest_ratio"]
    counts = {"elapsed_seconds": [0.0, SECONDS], "device_written_bytes": [0, written]}
    return {"connection": connection(**figures), "threads": threads, "counts": counts}


FULL = {"unsent_bytes": 3 << 20, "in_flight_bytes": 240_000, "rtt_seconds": 0.02}
"""A sender's connection when it always has more than the path takes."""
UNREAD = {"unread_bytes": 3 << 20}


def watch_world(looks, rows=None, verb="push", over="smb", rate=RATE, sockets=None, **extra):
    """Makes a world of `watch` at the client, with the other end's agent or without."""
    world = World(agent="server" in looks)
    details = {"trace": {"bins": bins() if rows is None else rows, "requests": []}}
    details |= {"looks": looks, "sockets": {"sender_seen": True, **(sockets or {})}, **extra}
    setting = {"copy": verb, "dialect": "unknown", "engine": "running"}
    world.add("running-copy", "client", {**setting, "over": over}, rate, details)
    return world


NAMED = {
    "a path that always has more to carry": pytest.param(
        "network/path/link-rate", {"client": host(**FULL), "server": host()}
    ),
    "one end alone": ("network/path/link-rate", {"client": host(**FULL)}),
    "a server that waits for its disk": pytest.param(
        "disk/server/write", {"client": host(), "server": host(disk=0.95)}
    ),
    "a server whose cores are full": pytest.param(
        "cpu/server/one-core", {"client": host(), "server": host(cpu=0.97)}
    ),
    "a receiver that rests with bytes unread has no full core": (
        NOTHING,
        {
            "client": host(unsent_bytes=3 << 20, in_flight_bytes=90_000, peer_window_bytes=90_000),
            "server": host(cpu=0.01, **UNREAD),
        },
    ),
    "none at work": (NOTHING, {"client": host(), "server": host()}),
    "a client that is silent was not seen": pytest.param(
        NOTHING, {"server": host(since_received_seconds=0.5)}
    ),
}


@pytest.mark.parametrize(("cap", "looks"), NAMED.values(), ids=NAMED)
def test_the_component_with_work_is_named_and_none_where_none_was_seen(cap, looks, expect):
    expect(watch_world(looks), cap)


@pytest.mark.parametrize(("rate", "cap"), [(23.6, "network/path/link-rate"), (22.0, NOTHING)])
def test_the_rate_of_the_sender_s_shaper_is_that_shaper_s_where_no_look_saw_it(rate, cap, expect):
    world = watch_world({"client": host(), "server": host()}, rate=rate)
    world.change_interface("client", qdisc="tbf", qdisc_rate_bytes_per_second=25_000_000)
    expect(world, cap)


@pytest.mark.parametrize(
    ("cap", "rows"),
    [
        ("disk/client/read", bins(read=0.9)),
        ("disk/client/write", bins(read=0.2, write=0.75)),
        ("cpu/client/one-core", bins(cpu=0.95)),
        (NOTHING, bins(read=0.3)),
        (NOTHING, []),
    ],
    ids=["reads", "writes", "runs", "waits-for-nothing", "not-to-be-seen"],
)
def test_a_copy_between_two_folders_is_held_by_what_its_program_waits_for(cap, rows, expect):
    expect(watch_world({"client": {**host(), "connection": {}}}, rows, over="disk"), cap)


@pytest.mark.parametrize(
    ("verb", "cap", "figures"),
    [
        ("push", "network/path/link-rate", FULL),
        ("push", NOTHING, {}),
        ("pull", "network/path/link-rate", {"own_window_bytes": 3 << 20}),
        ("pull", NOTHING, {"own_window_bytes": 3 << 20, **UNREAD}),
        ("pull", NOTHING, {"since_received_seconds": 0.5}),
    ],
    ids=["full", "nothing-to-send", "read-at-once", "unread", "silent"],
)
def test_of_a_program_that_was_not_to_be_seen_the_path_alone_is_named(verb, cap, figures, expect):
    """Another user's: its disk and its CPU may hold it."""
    world = watch_world({"client": host(**figures), "server": host()}, verb=verb)
    world.entries[0][1].details["trace"]["unseen"] = True
    expect(world, cap)


def test_how_many_requests_a_program_has_on_a_far_path_is_not_guessed_from_one_end(expect):
    """Silence there may be the server's, or that of a program that asks for little."""
    far = {"rtt_seconds": 0.04, "min_rtt_seconds": 0.04, "since_received_seconds": 0.5}
    expect(watch_world({"client": host(**far)}, verb="pull"), NOTHING)


@pytest.mark.parametrize("by", ["receiver", "sender"])
def test_without_a_cap_the_end_where_the_bytes_waited_is_told(expect, by):
    expect(watch_world({"client": host(), "server": host()}, sockets={"by": by}), NOTHING)


def test_what_is_not_on_the_disk_yet_is_told(expect):
    looks = {"client": host(**FULL), "server": host(written=RUN_BYTES // 2)}
    expect(watch_world(looks, cache={"proven": True}), "network/path/link-rate")


STRANGE: list[dict[str, Any]] = [{"looks": odd} for odd in ([], {"client": 7}, {"server": {}})]
STRANGE += [{"sockets": []}, {"trace": 5}, {"trace": {"bins": [[1, 2]]}}]


@pytest.mark.parametrize("odd", STRANGE, ids=repr)
def test_strange_details_raise_nothing(odd, expect):
    world = watch_world({"client": host(), "server": host()})
    world.entries[0][1].details.update(odd)
    expect(world, NOTHING)


def test_a_copy_that_moved_nothing_has_no_verdict(expect):
    expect(watch_world({"client": host()}, rate=0.0), "unknown/not-measured")
