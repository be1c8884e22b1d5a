"""Rule smb/round-trips: named where it was planted, silent where something else holds the copy."""

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.rtt import rtt
from tests.analysis.conftest import World

MIB = 1 << 20
PATH, SERVER = "smb/path/round-trips", "smb/server/round-trips"
NOBODY, LINK = "unknown/inconclusive", "network/path/link-rate"


def window(in_flight_bytes, request_bytes=MIB, stalls=0, **extra):
    return {
        "in_flight_bytes": in_flight_bytes,
        "request_bytes": request_bytes,
        "depth": max(1, in_flight_bytes // request_bytes),
        "credit_stalls": stalls,
        "requests": 200,
        **extra,
    }


def far(rtt_seconds=0.1, agent=True, matrix=True):
    """Makes a path with a long round trip whose every other component carries 500 MB/s."""
    world = World(agent=agent)
    if agent:
        world.tcp("pull", 1170)
        world.tcp("push", 1170)
        world.disk("server", "read", 800)
        world.disk("server", "write", 800)
    world.disk("client", "write", 800)
    if matrix:
        world.matrix("pull", {(65536, 1): 0.65, (MIB, 8): 80}, rtt_seconds)
    return world


@pytest.mark.parametrize("name", ["pull.cached", "push.cached", "pull.uncached"])
def test_too_few_bytes_in_flight_for_the_round_trip_are_named(name, expect):
    """8 MiB per 100 ms, and 0.9 ms for a request of 1 MiB on a 10 Gbit/s link; a push ends with a
    FLUSH, one more round trip."""
    world, took = far(), {"request_seconds_median": 0.105}
    world.copy(name, (78, 80, 81), memory=80, details=window(8 * MIB, **took))
    expect(world, PATH)


def test_the_requests_own_time_on_the_link_counts_where_one_is_in_flight(empty_world, expect):
    """1 MiB at once over 10 ms and 1 Gbit/s: 55 MB/s, not the 105 of the round trips alone."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 800)
    world.matrix("pull", {(MIB, 1): 55, (MIB, 8): 117}, 0.01)
    world.copy("pull.cached", (53, 54, 55), details=window(MIB))
    expect(world, PATH)


STALLS = {
    "the server's credits are the server's to mend": pytest.param(
        SERVER, 0.02, (24, 25, 25.5), window(512 << 10, 65536, 180)
    ),
    "a window that is always full of travelling requests is the cap": pytest.param(
        SERVER, 0.01, (39, 40, 41), window(960 << 10, 65536, 199, request_seconds_median=0.012)
    ),
    "something holds each request far longer than the round trip": pytest.param(
        NOBODY, 0.01, (39, 40, 41), window(960 << 10, 65536, 199, request_seconds_median=0.03)
    ),
    "the window was full now and then": pytest.param(
        NOBODY, 0.01, (39, 40, 41), window(960 << 10, 65536, 60, request_seconds_median=0.012)
    ),
}


@pytest.mark.parametrize(("cap", "trip", "rates", "details"), STALLS.values(), ids=STALLS)
def test_a_window_that_credits_keep_small(cap, trip, rates, details, expect):
    world = far(trip)
    world.copy("pull.cached", rates, details=details)
    expect(world, cap)


def test_the_line_of_smb_conf_that_keeps_credits_few_is_named(expect):
    world, few = far(), [{"option": "smb2 max credits", "value": "32"}]
    world.copy("pull.cached", (19, 20, 21), details=window(2 * MIB, MIB, 150))
    expect(world, SERVER, smb_conf=few)


SIDES = {
    "its longest READ is short": (SERVER, {"max_read_bytes": 65536}, "3.1.1"),
    "it is long": (PATH, {"max_read_bytes": 8 * MIB}, "3.1.1"),
    "strange": (PATH, {"max_read_bytes": "much"}, "3.1.1"),
    "another session's": (PATH, {"dialect": "2.1", "max_read_bytes": 65536}, "3.1.1"),
    "MaxMpxCount": (SERVER, {}, "smb1"),
}


@pytest.mark.parametrize(("cap", "target", "dialect"), SIDES.values(), ids=SIDES)
def test_the_side_is_the_servers_where_its_own_limits_are_small(cap, target, dialect, expect):
    world = far()
    world.copy("pull.cached", (19, 20, 20.5), dialect=dialect, details=window(2 * MIB, 65536))
    expect(world, cap, **target)


# -- decoys ------------------------------------------------------------------------------------


def test_a_slow_disk_on_a_far_path_is_still_the_disk(expect):
    """And what comes next is the window, which the prediction does not pass."""
    world = far()
    world.forget("disk", side="client")
    world.disk("client", "write", 25)
    world.copy("pull.cached", (23, 24, 24.5), memory=80, details=window(8 * MIB))
    expect(world, "disk/client/write")


def test_a_slow_disk_that_nobody_measured_is_not_taken_for_it(expect):
    world = far(agent=False)
    world.copy("pull.uncached", (23, 24, 24.5), memory=80, details=window(8 * MIB))
    expect(world, "disk/server/read")


NEAR = {
    "a deep window": (0.01, {(65536, 1): 6, (MIB, 32): 117}, "3.1.1", window(32 * MIB)),
    "credits that run out are told": pytest.param(
        0.0003, {(65536, 1): 60, (65536, 8): 117}, "3.1.1", window(512 << 10, 65536, 190)
    ),
    "SMB1 has no credits but a most of requests": pytest.param(
        0.0003, {(65536, 1): 60}, "smb1", window(512 << 10, 65536, 190)
    ),
    "a stall now and then is not told": pytest.param(
        0.0003, {(65536, 1): 60}, "3.1.1", window(8 * MIB, stalls=3)
    ),
    "a round trip of a LAN says nothing": pytest.param(
        0.0004, {(65536, 1): 60, (MIB, 8): 117}, "3.1.1", window(65536, 65536)
    ),
}


@pytest.mark.parametrize(("trip", "cells", "dialect", "details"), NEAR.values(), ids=NEAR)
def test_on_a_full_link_requests_are_no_cap(world, trip, cells, dialect, details, expect):
    world.matrix("pull", cells, trip)
    world.copy("pull.cached", 113, memory=116, dialect=dialect, details=details)
    expect(world, LINK)


@pytest.mark.parametrize("strange", [{}, {"in_flight_bytes": 0}, {"in_flight_bytes": "8 MiB"}])
def test_without_the_bytes_in_flight_it_says_nothing(strange, expect):
    world = far()
    world.copy("pull.cached", 80, details=strange)
    expect(world, NOBODY)


# -- the round trip ----------------------------------------------------------------------------


@pytest.mark.parametrize(("seconds", "cap"), [(0.1, PATH), (0.02, NOBODY)])
def test_one_connect_names_it_with_less_confidence_and_only_nearby(seconds, cap, expect):
    world = far(matrix=False)
    world.copy("pull.cached", (78, 80, 81), details=window(8 * MIB))
    expect(world, cap, connect_seconds=seconds)


def test_the_copys_own_round_trip_comes_first_then_echoes_then_the_connect(world):
    world.copy("pull.cached", 100, details={"rtt_seconds": 0.03})
    world.copy("push.cached", 100)
    connected = {"connect_seconds": 0.5}
    first, other = steps.measured_steps(world.report(), "smb-copy")
    assert rtt(world.report(), first).seconds == 0.03
    assert rtt(world.report(target=connected), other).seconds == 0.5
    assert not rtt(world.report(target=connected)).is_echo
    step = world.small_files("pull", 0.05, 0.012)
    world.matrix("pull", {(65536, 1): 6}, 0.011)
    trip = rtt(world.report(target=connected), other)
    assert (trip.seconds, trip.is_echo, trip.step_indices) == (0.011, True, (step + 1,))
    assert trip.low_seconds == pytest.approx(0.0099)


@pytest.mark.parametrize("seconds", [0, 1e-12, 1e9, "1 ms", None])
def test_a_round_trip_that_cannot_be_is_none(world, seconds):
    world.small_files("pull", 0.05, seconds)
    assert rtt(world.report(target={"connect_seconds": seconds})) is None


def test_a_flush_has_no_requests_beside_it(empty_world, sockets, expect):
    """Few credits let 20 MB/s be answered; the disk took the rest of the time."""
    no_agent = empty_world(agent=False)
    no_agent.disk("client", "read", 900)
    figures = {
        **window(576 << 10, 64 << 10, stalls=180),
        **{"rtt_seconds": 0.0128, "request_seconds_median": 0.0136},
        **{"flush_seconds": 1.085, "acknowledged_bytes_per_second": 20.04e6},
    }
    no_agent.copy("push.cached", 2.55, details={**figures, "sockets": sockets(by="sender")})
    no_agent.matrix("push", {(65536, 1): 4.9}, 0.0128)
    expect(no_agent, "disk/server/write")
