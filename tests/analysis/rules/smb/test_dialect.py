"""Cause smb/dialect: an old dialect that a far path holds, where a newer one was seen to run."""

import pytest

from bottleneck.analysis import diagnose

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


def far(empty_world, link=117.6):
    """20 ms to a server whose disks are faster than the path."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, link)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 400)
    return world


def of_old(world, dialect="smb1"):
    copies = diagnose(world.report()).copies
    return next(each for each in copies if each.dialect == dialect)


def test_smb1_on_a_far_path_is_named_where_smb3_fills_the_link(empty_world):
    world = far(empty_world)
    world.copy("push.uncached", (107, 108, 109), details=NEW)
    world.copy("push.uncached", (49, 49.3, 50), dialect="smb1", details=OLD)
    found = of_old(world)
    assert found.verdict.named == ("smb", "client", "dialect")
    assert found.verdict.confidence >= 0.85
    assert found.verdict.sentence.startswith(
        "Pushing this file uncached over SMB1 runs at 49.3 MB/s: over SMB1 1.24 MiB in flight, all "
        "that the server allows, at a round trip of 20 ms carry no more than "
    )
    assert "while the same copy runs at 108 MB/s over SMB 3.1.1, with 64 MiB in flight" in (
        found.verdict.sentence
    )
    assert "a newer dialect would give about " in found.verdict.sentence.lower()
    assert found.advice[0].startswith("SMB 3.1.1 instead of SMB1 on the client (it ran the same ")
    assert "108 MB/s" in found.advice[0]
    assert ("smb", "server", "round-trips") not in [each.named for each in found.ceilings]


def test_requests_that_waited_for_more_than_the_way_leave_it_to_the_rate(empty_world):
    """It reaches what the round trips allow all the same, a little less sure."""
    world = far(empty_world)
    world.copy("pull.cached", (107, 108, 109), details=NEW)
    old = window(1_300_480, 130_048, 0.05)
    world.copy("pull.cached", (55, 56, 57), dialect="smb1", details=old)
    assert of_old(world).verdict.named == ("smb", "client", "dialect")


def test_smb2_0_2_that_is_started_by_the_server_is_the_servers_to_change(empty_world):
    world = far(empty_world)
    new = {"initiator": "server", "details": NEW}
    world.copy("server.pull.cached", (107, 108, 109), **new)
    old = window(MIB, 65536, 0.0215)
    world.copy("server.pull.cached", (47, 48, 49), dialect="2.0.2", initiator="server", details=old)
    assert of_old(world, "2.0.2").verdict.named == ("smb", "server", "dialect")


# -- decoys ------------------------------------------------------------------------------------


def test_two_dialects_that_run_alike_are_held_by_something_else(empty_world):
    world = far(empty_world, link=48)
    world.copy("pull.cached", (46, 47, 48), details=NEW)
    world.copy("pull.cached", (45, 46, 47), dialect="smb1", details=OLD)
    assert of_old(world).verdict.named == ("network", "path", "link-rate")
    assert all(each.cause != "dialect" for each in of_old(world).ceilings)


def test_on_a_short_path_the_round_trips_are_no_reason(empty_world):
    world = far(empty_world)
    near = {"rtt_seconds": 0.0002}
    world.copy("pull.cached", (107, 108, 109), details={**NEW, **near})
    world.copy("pull.cached", (49, 50, 51), dialect="smb1", details={**OLD, **near})
    assert of_old(world).verdict.component == "unknown"


def test_round_trips_that_allow_far_more_than_the_copy_took_are_not_it(empty_world):
    world = far(empty_world)
    world.copy("pull.cached", (107, 108, 109), details=NEW)
    world.copy("pull.cached", (19, 20, 21), dialect="smb1", details=OLD)
    assert of_old(world).verdict.component == "unknown"


def test_the_same_in_flight_in_both_dialects_is_the_paths_affair(empty_world):
    """Then a newer dialect is faster for another reason."""
    world = far(empty_world)
    new = window(1_300_480, 130_048, 0.0218)
    world.copy("pull.cached", (80, 81, 82), details=new)
    world.copy("pull.cached", (49, 50, 51), dialect="smb1", details=OLD)
    assert all(each.cause != "dialect" for each in of_old(world).ceilings)


@pytest.mark.parametrize(
    "newer",
    [
        None,
        {"details": {**NEW, "hash_ok": False}},
        {"details": {**NEW, "in_flight_bytes": None}},
        {"proven": False},
        {"rate": (30, 31, 32)},
        {"initiator": "server", "name": "server.pull.cached"},
        {"dialect": "2.0.2"},
    ],
    ids=["none", "altered", "untold", "source", "slower", "other initiator", "as old"],
)
def test_without_a_newer_dialect_that_is_faster_it_stays_with_the_round_trips(empty_world, newer):
    world = far(empty_world)
    if newer is not None:
        name, rate = newer.pop("name", "pull.cached"), newer.pop("rate", (107, 108, 109))
        world.copy(name, rate, **{"details": NEW, **newer})
    world.copy("pull.cached", (55, 56, 57), dialect="smb1", details=OLD)
    assert of_old(world).verdict.named == ("smb", "server", "round-trips")


def test_a_newer_dialect_on_a_far_path_stays_with_the_round_trips(empty_world):
    world = far(empty_world)
    world.copy("pull.cached", (107, 108, 109), dialect="3.1.1", details=NEW)
    world.copy("pull.cached", (55, 56, 57), dialect="2.1", details=OLD)
    assert of_old(world, "2.1").verdict.named == ("smb", "path", "round-trips")


def test_a_copy_whose_request_time_is_not_told_is_judged_by_its_rate(empty_world):
    world = far(empty_world)
    world.copy("pull.cached", (107, 108, 109), details=NEW)
    old = {name: value for name, value in OLD.items() if name != "request_seconds_median"}
    world.copy("pull.cached", (55, 56, 57), dialect="smb1", details=old)
    assert of_old(world).verdict.named == ("smb", "client", "dialect")
