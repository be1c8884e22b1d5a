"""A copy that was watched while it ran: right where something was planted, silent where not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

LINK_100 = 11.76
"""MB/s of payload on 100 Mbit/s."""
PATH = {
    "by": "network",
    "unsent_bytes_median": 3 << 20,
    "in_flight_bytes_median": 240_000,
    "in_flight_bytes_high": 280_000,
    "min_rtt_seconds": 0.0003,
    "rtt_seconds_median": 0.021,
    "segment_bytes": 1448,
    "peer_window_bytes_median": 3 << 20,
    "retransmitted_segments": 0,
    "loss_ratio": 0.0,
    "congestion_control": "cubic",
    "send_queue_full_ratio": 1.0,
}
"""A sender that always has more than the path takes, as its own host saw it."""
WAITS = {**PATH, "by": "sender", "unsent_bytes_median": 0, "rtt_seconds_median": 0.0004}
"""A sender that waits for something to send."""
READ_AT_ONCE = {"unread_bytes_median": 0, "full_ratio": 0.0}
SECONDS, RUN_BYTES = 4.0, 47_040_000
"""Of a made report's run at LINK_100."""


def end(reads=None, writes=None, waits=0.0, busy=0.05, moved=RUN_BYTES, dirty=None, **more):
    """What one host saw: a disk that its file is read from, or written to, with so much of it."""
    name = "read" if reads else "written"
    told: dict[str, Any]
    told = {"processes": {"looks": 80, "disk_wait_ratio": waits}, "kernel": False, "alone": False}
    told["processes"][f"disk_{name}_bytes"] = moved if reads or writes else 0
    row = {"name": reads or writes, "read_bytes": 0, "written_bytes": 0, "busy_ratio": busy}
    row[f"{name}_bytes"] = moved
    told["disks"] = [row, {"name": "other", "read_bytes": 5, "written_bytes": 5, "busy_ratio": 1}]
    if reads or writes:
        told["reads" if reads else "writes"] = {"device": reads or writes, "remote": False}
    if dirty is not None:
        told["dirty"] = {"high_bytes": dirty, "free_run_bytes": 1 << 30}
    return {**told, **more}


@pytest.fixture
def watched(empty_world):
    """Makes a world of `watch` at the client, with the other end's agent or without."""

    def make(sockets=None, ends=None, verb="push", rate=LINK_100, over="smb", agent=True, **more):
        world = empty_world(agent=agent)
        loads = {side: more.pop(side) for side in ("client", "server") if side in more}
        ends = {"client": end(), "server": end(), **(ends or {})}
        ends = {side: each for side, each in ends.items() if each is not None}
        details = {"sockets": {"sender_seen": True, **(sockets or {})}, "ends": ends, **more}
        setting = {"copy": f"{verb}.cached", "dialect": "unknown", "engine": "running"}
        setting["over"] = over
        world.add("running-copy", "client", setting, rate, details, **loads)
        return world

    return make


LINK = "network/path/link-rate"
SHARED = "network/path/contention"
NOTHING = "unknown/inconclusive"
ONE_END = {"ends": {"server": None}, "agent": False}


# -- the network ---------------------------------------------------------------------------------

FULL = {"interface_received_bytes": int(123.0e6 * SECONDS)}
"""Of a pull the client sees no send queue, but what its interface takes."""
UNSEEN = {"verb": "pull", "sockets": {"by": "unknown"}}
LOSSY = {
    **PATH,
    "min_rtt_seconds": 0.02,
    "rtt_seconds_median": 0.0205,
    "in_flight_bytes_median": 20_000,
    "in_flight_bytes_high": 40_000,
    "retransmitted_segments": 90,
    "loss_ratio": 0.01,
}
NETWORKS = {
    "a sender that always has more is held by the link": (
        *(LINK, {"sockets": {**PATH, **READ_AT_ONCE, "receiver_seen": True}}),
    ),
    "a path of no standard rate is named with less confidence": (
        *(LINK, {"rate": 30.0, "sockets": PATH}),
    ),
    "a round trip that is not known is left out": (
        LINK,
        {"sockets": {name: value for name, value in PATH.items() if "rtt" not in name}},
    ),
    "one end alone is never sure and says what the other would add": (
        *(LINK, {"sockets": PATH, **ONE_END}),
    ),
    "a full interface is the link though no queue was seen": (
        *(LINK, {**UNSEEN, "rate": 117.0, "client": FULL}),
    ),
    "an interface that is full of unread bytes is not blamed": (
        *(NOTHING, {"verb": "pull", "rate": 117.0, "sockets": {"by": "receiver"}, "client": FULL}),
    ),
    "a steady rate that is a link's is likely that link": (
        *(LINK, {**UNSEEN, **ONE_END, "window_spread_ratio": 0.03}),
    ),
    "an unsteady one is not": (NOTHING, {**UNSEEN, "window_spread_ratio": 0.4}),
    "one that may be unsteady is not": (NOTHING, UNSEEN),
    "a steady rate of no link is none": (
        *(NOTHING, {**UNSEEN, "rate": 15.0, "window_spread_ratio": 0.03}),
    ),
    "others on the link: together a 100 Mbit/s link's": (
        SHARED,
        {
            **{"rate": 5.0, "sockets": PATH},
            "client": {"interface_sent_bytes": int(12.3e6 * SECONDS)},
        },
    ),
    "others on a path of no standard rate": (
        SHARED,
        {
            **{"rate": 8.0, "sockets": PATH},
            "client": {"interface_sent_bytes": int(30.0e6 * SECONDS)},
        },
    ),
    "a path that loses packets": ("network/path/loss", {"rate": 0.9, "sockets": LOSSY}),
    "losses on a full link are the link's own": (
        *(LINK, {"sockets": {**LOSSY, "rtt_seconds_median": 0.08}}),
    ),
    "a strange report without its sender names no path": (
        *(NOTHING, {"sockets": {"by": "network", "sender_seen": False}}),
    ),
    "a CPU that is full is named by the rule for every copy": (
        "cpu/server/quota",
        {
            "sockets": WAITS,
            "server": {"throttled_ratio": 0.9, "quota_cores": 0.2, "core_busy_ratios": (0.2, 0.0)},
        },
    ),
}


@pytest.mark.parametrize(("named", "seen"), NETWORKS.values(), ids=NETWORKS)
def test_the_network_that_holds_a_copy_is_named(watched, named, seen, says):
    says(watched(**seen), named)


ODD = 850_000_000
CARDS = {
    "known": {},
    "virtual": {"virtual": True},
    "of no rate": {"rate_bits_per_second": None},
}


@pytest.mark.parametrize("card", [*CARDS, "no interface", "no host"])
def test_an_interface_that_claims_nothing_or_counts_nothing_is_never_full(watched, card, says):
    full = {"interface_received_bytes": int(104.0e6 * SECONDS)}
    world = watched(**UNSEEN, rate=99.0, client=full)
    facts = replace(world.client.interface, rate_bits_per_second=ODD)
    facts = replace(facts, **CARDS[card]) if card in CARDS else None
    world.client = None if card == "no host" else replace(world.client, interface=facts)
    says(world, LINK if card == "known" else NOTHING)


# -- disks ---------------------------------------------------------------------------------------


def changed(told, **changes):
    """What an end tells, with its device's counts changed."""
    told["disks"][0].update(changes)
    return told


def but(told, **changes):
    """The same without what is None."""
    return {name: value for name, value in {**told, **changes}.items() if value is not None}


WRITE, READ = "disk/server/write", "disk/server/read"
BUSY_SOURCE = end(reads="sda", busy=0.99, processes={})
DISKS = {
    "a receiver whose processes wait for their disk": (
        WRITE,
        {"client": end(reads="sda"), "server": end(writes="sdb", waits=0.95, busy=0.97)},
    ),
    "a busy device, where no process was seen": (READ, {"server": BUSY_SOURCE}),
    "found by what it moved, where the file is not known": (
        *(READ, {"server": but(BUSY_SOURCE, reads=None)}),
    ),
    "a sender whose processes wait for their disk": (
        *(READ, {"client": end(writes="sdb"), "server": end(reads="sda", waits=0.8)}),
    ),
    "a mount's processes wait for the network alike": (
        *(NOTHING, {"client": end(reads="sda", waits=0.9, kernel=True)}),
    ),
    "memory full of unwritten bytes holds the writer": (
        *(WRITE, {"server": end(writes="sdb", busy=0.95, dirty=1 << 30, processes={})}),
    ),
    "a disk that others use is shared": (
        "disk/server/contention",
        {"server": changed(end(writes="sdb", waits=0.9, busy=1.0), read_bytes=2 * RUN_BYTES)},
    ),
    "nobody waits": (NOTHING, {"server": end(writes="sdb", waits=0.0, busy=1.0)}),
    "written at leisure": (
        *(NOTHING, {"server": end(writes="sdb", busy=1.0, processes={}, dirty=1 << 20)}),
    ),
    "little of it": (NOTHING, {"server": end(writes="sdb", waits=0.9, moved=RUN_BYTES // 4)}),
    "nothing counted": (
        NOTHING,
        {"server": end(writes="sdb", processes={"disk_wait_ratio": 0.9}, disks=[])},
    ),
    "a folder on another host": (
        *(NOTHING, {"server": end(writes="sdb", waits=0.9) | {"writes": {"remote": True}}}),
    ),
}


@pytest.mark.parametrize(("named", "ends"), DISKS.values(), ids=DISKS)
def test_the_disk_that_a_copy_waits_for_is_named(watched, named, ends, says):
    verb = "pull" if named == READ else "push"
    proven = {"cache": {"proven": True}} if "client" in ends and verb == "push" else {}
    says(watched(WAITS, ends, verb, **proven), named)


def test_a_disk_that_waits_does_not_matter_on_a_path_that_is_full(watched, says):
    ends = {"client": end(reads="sda", waits=0.9, busy=1.0), "server": end(writes="b", waits=0.9)}
    says(watched(PATH, ends), LINK)


def test_unread_bytes_speak_against_the_senders_disk(watched, says):
    says(watched({"by": "receiver"}, {"client": end(reads="sda", waits=0.9)}), NOTHING)


def test_what_is_not_on_the_disk_yet_is_told(watched, says):
    says(watched(PATH, {"server": changed(end(writes="sdb"), written_bytes=RUN_BYTES // 2)}), LINK)


# -- one host ------------------------------------------------------------------------------------


def local(writes, waits=0.9, read_busy=0.1, write_busy=0.1, dirty=None):
    """A copy between two folders: one set of processes, two devices or one."""
    told = end(reads="sda", waits=waits, busy=read_busy, dirty=dirty)
    told["processes"]["disk_written_bytes"] = RUN_BYTES
    told["writes"] = {"device": writes, "remote": False}
    row = {"name": writes, "read_bytes": 0, "written_bytes": RUN_BYTES, "busy_ratio": write_busy}
    if writes == "sda":
        told["disks"][0]["written_bytes"] = RUN_BYTES
    else:
        told["disks"].append(row)
    return told


FROM_MEMORY = changed(local("sdb", write_busy=0.99), read_bytes=0)
FROM_MEMORY["processes"]["disk_read_bytes"] = 0
ON_ONE_HOST = {
    "it waits": ("read", local("sdb")),
    "both are busy": ("read", local("sdb", read_busy=0.95, write_busy=0.99)),
    "the target is busy": ("write", local("sdb", write_busy=0.99)),
    "memory is full": ("write", local("sdb", dirty=1 << 30)),
    "one disk": ("read", local("sda")),
    "a source in memory leaves the target": ("write", FROM_MEMORY),
    "it waits for nothing": (None, local("sdb", waits=0.0)),
}


@pytest.mark.parametrize(("cause", "ends"), ON_ONE_HOST.values(), ids=ON_ONE_HOST)
def test_a_copy_on_one_host_is_held_by_the_disk_at_its_end(watched, cause, ends, says):
    world = watched(ends={"client": ends, "server": None}, over="disk", agent=False)
    says(world, NOTHING if cause is None else f"disk/client/{cause}")


# -- requests ------------------------------------------------------------------------------------

FAR = {**WAITS, "min_rtt_seconds": 0.04, "rtt_seconds_median": 0.0401}
WINDOWS = {
    "full on a long path": ({**FAR, "in_flight_bytes_high": 524_288}, "smb"),
    "not SMB": ({**FAR, "in_flight_bytes_high": 524_288}, "tcp"),
    "half empty": ({**FAR, "in_flight_bytes_high": 4 << 20}, "smb"),
    "tiny": ({**FAR, "in_flight_bytes_high": 4000}, "smb"),
    "near": ({**WAITS, "in_flight_bytes_high": 524_288}, "smb"),
    "unknown": ({**FAR, "in_flight_bytes_high": None}, "smb"),
    "unseen": ({**FAR, "sender_seen": False}, "smb"),
}


@pytest.mark.parametrize("window", WINDOWS)
def test_requests_are_blamed_for_a_full_window_on_a_long_path_alone(watched, window, says):
    sockets, over = WINDOWS[window]
    named = "smb/path/round-trips" if window == "full on a long path" else NOTHING
    says(watched(sockets, rate=12.5, over=over), named)


# -- nothing to name -----------------------------------------------------------------------------

UNNAMED = {
    "a full window without its receiver": (
        *({"by": "unknown", "peer_window_full_ratio": 0.8}, ONE_END),
    ),
    "both ends and no cause ask for a longer watch": ({"by": "unknown"}, {}),
    "from the server it is the client that is missing": (
        *({"by": "unknown"}, {"ends": {"client": None}}),
    ),
}


@pytest.mark.parametrize(("sockets", "more"), UNNAMED.values(), ids=UNNAMED)
def test_what_was_seen_is_told_where_nothing_can_be_named(watched, sockets, more, says):
    says(watched(sockets, rate=15.0, **more), NOTHING)


STRANGE: tuple[dict[str, Any], ...] = (
    *({"ends": []}, {"ends": {"client": 7}}, {"sockets": []}, {"ends": {"server": {}}}),
)


@pytest.mark.parametrize("odd", STRANGE, ids=repr)
def test_strange_details_raise_nothing(watched, odd, says):
    world = watched(ends={"client": None, "server": None})
    world.entries[0][1].details.update(odd)
    says(world, NOTHING)


def test_a_copy_that_moved_nothing_has_no_verdict(watched, says):
    says(watched(rate=0.0), "unknown/not-measured")
