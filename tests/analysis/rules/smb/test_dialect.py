"""Cause smb/dialect: an old dialect that a far path holds, where a newer one was seen to run."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

MIB = 1 << 20
ROUND_TRIP_SECONDS = 0.02


def window(in_flight_bytes, request_bytes, took_seconds, rtt_seconds=ROUND_TRIP_SECONDS):
    return {
        "in_flight_bytes": in_flight_bytes,
        "request_bytes": request_bytes,
        "depth": in_flight_bytes // request_bytes,
        "credit_stalls": 0,
        "requests": 200,
        "rtt_seconds": rtt_seconds,
        "request_seconds_median": took_seconds,
    }


OLD = window(1_300_480, 130_048, 0.0218)
NEW = window(64 * MIB, MIB, 0.56)
NEAR = {"rtt_seconds": 0.0002}
LIKE_OLD = window(1_300_480, 130_048, 0.0218)
SLOW = window(1_300_480, 130_048, 0.05)
UNTOLD = {name: value for name, value in OLD.items() if name != "request_seconds_median"}
DIALECT, NOBODY = "smb/client/dialect", "unknown/inconclusive"
PAIRS = {
    "SMB1 on a far path, where SMB 3 fills the link": (DIALECT, 108, NEW, 49.3, OLD),
    "requests that waited for more than the way leave it to the rate": (
        DIALECT,
        108,
        NEW,
        56,
        SLOW,
    ),
    "so does a time of theirs that is not told": (DIALECT, 108, NEW, 56, UNTOLD),
    "on a short path the round trips are no reason": pytest.param(
        NOBODY, 108, {**NEW, **NEAR}, 50, {**OLD, **NEAR}
    ),
    "round trips that allow far more than the copy took": (NOBODY, 108, NEW, 20, OLD),
    "as much in flight: a newer dialect is faster for another reason": pytest.param(
        "smb/server/round-trips", 81, LIKE_OLD, 56, OLD
    ),
}


@pytest.mark.parametrize(("cap", "new", "newer", "old", "older"), PAIRS.values(), ids=PAIRS)
def test_an_old_dialect_is_named_where_a_newer_one_shows_more(
    two_hosts, cap, new, newer, old, older, expect
):
    """20 ms to a server whose disks are faster than the path."""
    world = two_hosts()
    world.copy("push.uncached", (0.99 * new, new, 1.01 * new), details=newer)
    rates = (0.98 * old, old, 1.02 * old)
    world.copy("push.uncached", rates, dialect="smb1", details=older)
    expect(world, "network/path/link-rate" if new == 108 else "smb/server/round-trips", cap)


def test_smb2_0_2_that_is_started_by_the_server_is_the_servers_to_change(two_hosts, expect):
    world, old = two_hosts(), window(MIB, 65536, 0.0215)
    world.copy("server.pull.cached", (107, 108, 109), initiator="server", details=NEW)
    extra = {"initiator": "server", "dialect": "2.0.2"}
    world.copy("server.pull.cached", (47, 48, 49), details=old, **extra)
    expect(world, "network/path/link-rate", "smb/server/dialect")


# -- decoys ------------------------------------------------------------------------------------


def test_two_dialects_that_run_alike_are_held_by_something_else(two_hosts, expect):
    world = two_hosts(48)
    world.copy("pull.cached", (46, 47, 48), details=NEW)
    world.copy("pull.cached", (45, 46, 47), dialect="smb1", details=OLD)
    expect(world, "network/path/link-rate", "network/path/link-rate")


NEWER = {
    "altered": {"details": {**NEW, "hash_ok": False}},
    "not told what is in flight": {"details": {**NEW, "in_flight_bytes": None}},
    "another source": {"proven": False},
    "slower": {"rate": (30, 31, 32)},
    "another initiator": {"initiator": "server", "name": "server.pull.cached"},
    "as old": {"dialect": "2.0.2"},
}


@pytest.mark.parametrize("newer", [None, *NEWER.values()], ids=["none", *NEWER])
def test_without_a_newer_dialect_that_is_faster_it_stays_with_the_round_trips(
    two_hosts, newer, expect
):
    world = two_hosts()
    if newer is not None:
        extra = {"name": "pull.cached", "rate": (107, 108, 109), "details": NEW, **newer}
        world.copy(extra.pop("name"), extra.pop("rate"), **extra)
    world.copy("pull.cached", (55, 56, 57), dialect="smb1", details=OLD)
    expect(world)
    old = next(each for each in diagnose(world.report()).copies if each.dialect == "smb1")
    assert old.verdict.key == ("smb", "server", "round-trips")


def test_a_newer_dialect_on_a_far_path_stays_with_the_round_trips(two_hosts, expect):
    world = two_hosts()
    world.copy("pull.cached", (107, 108, 109), dialect="3.1.1", details=NEW)
    world.copy("pull.cached", (55, 56, 57), dialect="2.1", details=OLD)
    expect(world, "network/path/link-rate", "smb/path/round-trips")
