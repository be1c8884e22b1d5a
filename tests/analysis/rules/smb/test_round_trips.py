"""Rule smb/round-trips: named where it was planted, silent where something else holds the copy."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose
from bottleneck.analysis.rtt import rtt

MIB = 1 << 20


def window(in_flight_bytes, request_bytes=MIB, stalls=0, **more):
    return {
        "in_flight_bytes": in_flight_bytes,
        "request_bytes": request_bytes,
        "depth": max(1, in_flight_bytes // request_bytes),
        "credit_stalls": stalls,
        "requests": 200,
        **more,
    }


def far(empty_world, rtt_seconds=0.1, **world_options):
    """A path with a long round trip whose every other component carries more than 500 MB/s."""
    world = empty_world(**world_options)
    if world.agent:
        world.tcp("pull", 1170)
        world.tcp("push", 1170)
        world.disk("server", "read", 800)
        world.disk("server", "write", 800)
    world.disk("client", "write", 800)
    world.matrix("pull", {(65536, 1): 0.65, (MIB, 8): 80}, rtt_seconds)
    return world


def diagnosed(world, at=0):
    return diagnose(world.report()).copies[at]


@pytest.mark.parametrize("name", ["pull.cached", "push.cached", "pull.uncached"])
def test_too_few_bytes_in_flight_for_the_round_trip_are_named(empty_world, name):
    world = far(empty_world)
    took = {"request_seconds_median": 0.105}
    world.copy(name, (78, 80, 81), memory=80, details=window(8 * MIB, **took))
    found = diagnosed(world)
    assert found.verdict.named == ("smb", "path", "round-trips")
    assert found.verdict.confidence >= 0.85
    # 8 MiB per 100 ms, and 0.9 ms for a request of 1 MiB on a 10 Gbit/s link; a push of 320 MB
    # ends with a FLUSH, one more round trip
    expected = 81.0e6 if name.startswith("push") else 83.1e6
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(expected, rel=0.01)
    assert "8 MiB in flight at a round trip of 100 ms carry no more than" in found.verdict.sentence
    assert "more bytes in flight would give about" in found.verdict.sentence
    assert found.advice[0].startswith("More than 8 MiB in flight, as several copies at once keep,")
    assert any("a request of the copy took 105 ms" in line for line in found.evidence)
    assert found.next is not None
    assert found.next.component in {"disk", "network"}


def test_the_requests_own_time_on_the_link_counts_where_one_is_in_flight(empty_world):
    """1 MiB at once over 10 ms and 1 Gbit/s: 55 MB/s, not the 105 of the round trips alone."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 800)
    world.matrix("pull", {(MIB, 1): 55, (MIB, 8): 117}, 0.01)
    world.copy("pull.cached", (53, 54, 55), details=window(MIB))
    verdict = diagnosed(world).verdict
    assert verdict.named == ("smb", "path", "round-trips")
    assert verdict.ceiling_bytes_per_second == pytest.approx(55.4e6, rel=0.01)


@pytest.mark.parametrize(
    ("cells", "ceiling", "standing"),
    [
        # the same requests alone, and deeper ones that were faster
        ({(MIB, 8): 76, (MIB, 32): 277}, 76e6, "measured"),
        # nothing was faster: the window is not shown to be the limit of them
        ({(MIB, 8): 76, (MIB, 32): 77}, 83.1e6, "inferred"),
        # so slow that the round trip is no reason
        ({(MIB, 8): 20, (MIB, 32): 277}, 83.1e6, "inferred"),
        # other requests
        ({(MIB, 16): 76, (MIB, 32): 277}, 83.1e6, "inferred"),
    ],
)
def test_where_the_same_requests_were_measured_alone_that_is_the_ceiling(
    empty_world, cells, ceiling, standing
):
    world = far(empty_world)
    world.entries = [e for e in world.entries if e[0].stage != "smb-matrix"]
    world.matrix("push", {(MIB, 8): 33, (MIB, 32): 400}, 0.1)  # of the other direction
    at = world.matrix("pull", cells, 0.1)
    world.copy("pull.cached", (73, 74, 75), details=window(8 * MIB))
    claimed = next(each for each in diagnosed(world).ceilings if each.component == "smb")
    assert claimed.bytes_per_second == pytest.approx(ceiling, rel=0.01)
    assert claimed.standing == standing
    assert (at in claimed.steps) == (standing == "measured")


def test_the_servers_credits_are_the_servers_to_mend(empty_world):
    world = far(empty_world, 0.02)
    details = window(512 << 10, request_bytes=65536, stalls=180)
    world.copy("pull.cached", (24, 25, 25.5), details=details)
    found = diagnosed(world)
    assert found.verdict.named == ("smb", "server", "round-trips")
    assert "all that the server allows" in found.verdict.sentence
    assert "smb2 max credits" in found.advice[0]
    assert any("no credits left for the next request, 180 times" in e for e in found.evidence)


def test_a_window_that_is_always_full_of_travelling_requests_is_the_cap(empty_world):
    """Though more was once in flight: what mostly was follows from the rate (Little's law)."""
    world = far(empty_world, 0.01)
    details = window(960 << 10, 65536, 199, request_seconds_median=0.012)
    world.copy("pull.cached", (39, 40, 41), details=details)
    found = diagnosed(world)
    assert found.verdict.named == ("smb", "server", "round-trips")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(48e6)


@pytest.mark.parametrize(
    ("stalls", "took_seconds"),
    [
        (199, 0.03),  # a request takes far longer than the round trip: something holds it there
        (60, 0.012),  # the window was full now and then
    ],
)
def test_a_window_that_something_else_fills_is_not_the_cap(empty_world, stalls, took_seconds):
    world = far(empty_world, 0.01)
    details = window(960 << 10, 65536, stalls, request_seconds_median=took_seconds)
    world.copy("pull.cached", (39, 40, 41), details=details)
    assert diagnosed(world).verdict.component == "unknown"


@pytest.mark.parametrize(
    ("target", "dialect", "side"),
    [
        ({"dialect": "3.1.1", "max_read_bytes": 65536}, "3.1.1", "server"),
        ({"dialect": "3.1.1", "max_read_bytes": 8 * MIB}, "3.1.1", "path"),
        ({"dialect": "3.1.1", "max_read_bytes": "much"}, "3.1.1", "path"),
        ({"dialect": "2.1", "max_read_bytes": 65536}, "3.1.1", "path"),  # another session's
        ({}, "smb1", "server"),  # MaxMpxCount
    ],
)
def test_the_side_is_the_servers_where_its_own_limits_are_small(empty_world, target, dialect, side):
    world = far(empty_world)
    world.copy("pull.cached", (19, 20, 20.5), dialect=dialect, details=window(2 * MIB, 65536))
    report = world.report(target=target)
    assert diagnose(report).copies[0].verdict.side == side


# -- decoys ------------------------------------------------------------------------------------


def test_a_slow_disk_on_a_far_path_is_still_the_disk(empty_world):
    world = far(empty_world)
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "client"]
    world.disk("client", "write", 25)
    world.copy("pull.cached", (23, 24, 24.5), memory=80, details=window(8 * MIB))
    found = diagnosed(world)
    assert found.verdict.named == ("disk", "client", "write")
    # and what comes next is the window, which the prediction does not pass
    assert (found.next.component, found.next.cause) == ("smb", "round-trips")
    assert found.predicted_bytes_per_second.high <= 95e6


def test_a_slow_disk_that_nobody_measured_is_not_taken_for_it(empty_world):
    world = far(empty_world, agent=False)
    world.copy("pull.uncached", (23, 24, 24.5), memory=80, details=window(8 * MIB))
    assert diagnosed(world).verdict.component == "unknown"


def test_a_deep_window_is_no_cap(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 800)
    world.matrix("pull", {(65536, 1): 6, (MIB, 32): 117}, 0.01)
    world.copy("pull.cached", (114, 115, 116), memory=116, details=window(32 * MIB))
    found = diagnosed(world)
    assert found.verdict.named == ("network", "path", "link-rate")
    assert "smb" in {each.component for each in found.ceilings}


def test_credits_that_run_out_on_a_lan_are_told_and_not_blamed(world):
    world.matrix("pull", {(65536, 1): 60, (65536, 8): 117}, 0.0003)
    world.copy("pull.cached", 113, memory=116, details=window(512 << 10, 65536, stalls=190))
    found = diagnosed(world)
    assert found.verdict.named == ("network", "path", "link-rate")
    assert any("no credits left" in line for line in found.evidence)


def test_smb1_has_no_credits_but_a_most_of_requests(world):
    world.copy("pull.cached", 113, dialect="smb1", details=window(512 << 10, 65536, stalls=190))
    assert any("no room (MaxMpxCount) left" in line for line in diagnosed(world).evidence)


def test_requests_that_altered_the_bytes_measure_nothing(empty_world):
    world = far(empty_world)
    altered = {"hash_ok": False}
    world.matrix("pull", {(MIB, 8): 76, (MIB, 32): 277}, 0.1, details=altered)
    world.copy("pull.cached", (73, 74, 75), details=window(8 * MIB))
    claimed = next(each for each in diagnosed(world).ceilings if each.component == "smb")
    assert claimed.standing == "inferred"


def test_a_stall_now_and_then_is_not_told(world):
    world.copy("pull.cached", 113, memory=116, details=window(8 * MIB, stalls=3))
    assert not any("no credits left" in line for line in diagnosed(world).evidence)


def test_a_round_trip_of_a_lan_says_nothing(world):
    world.matrix("pull", {(65536, 1): 60, (MIB, 8): 117}, 0.0004)
    world.copy("pull.cached", 113, memory=116, details=window(65536, 65536))
    assert "smb" not in {each.component for each in diagnosed(world).ceilings}


@pytest.mark.parametrize("strange", [{}, {"in_flight_bytes": 0}, {"in_flight_bytes": "8 MiB"}])
def test_without_the_bytes_in_flight_it_says_nothing(empty_world, strange):
    world = far(empty_world)
    world.copy("pull.cached", 80, details=strange)
    assert "smb" not in {each.component for each in diagnosed(world).ceilings}


# -- the round trip ----------------------------------------------------------------------------


def test_one_connect_names_it_with_less_confidence_and_only_nearby(empty_world):
    world = far(empty_world)
    world.entries = [e for e in world.entries if e[0].stage != "smb-matrix"]
    world.copy("pull.cached", (78, 80, 81), details=window(8 * MIB))
    target = {"dialect": "3.1.1", "connect_seconds": 0.1}
    found = diagnose(world.report(target=target)).copies[0]
    assert found.verdict.named == ("smb", "path", "round-trips")
    assert found.verdict.confidence <= 0.7
    assert any("a rough figure" in line for line in found.evidence)
    near = diagnose(world.report(target={**target, "connect_seconds": 0.02})).copies[0]
    assert "smb" not in {each.component for each in near.ceilings}


def test_the_copys_own_round_trip_comes_first_then_echoes_then_the_connect(world):
    at = world.copy("pull.cached", 100, details={"rtt_seconds": 0.03})
    connected = {"connect_seconds": 0.5}
    made = next(iter(found_copies(world)))
    assert rtt(world.report(), made).seconds == 0.03
    assert rtt(world.report(target=connected)).seconds == 0.5
    assert not rtt(world.report(target=connected)).echoed
    step = world.small_files("pull", 0.05, 0.012)
    world.matrix("pull", {(65536, 1): 6}, 0.011)
    seen = rtt(world.report(target=connected))
    assert (seen.seconds, seen.echoed, seen.steps) == (0.011, True, (step + 1,))
    assert seen.low_seconds == pytest.approx(0.0099)
    world.entries[at] = (world.entries[at][0], replace(world.entries[at][1], details={}))
    assert rtt(world.report(), next(iter(found_copies(world)))).seconds == 0.011


def found_copies(world):
    from bottleneck.analysis import steps

    return steps.measured(world.report(), "smb-copy")


@pytest.mark.parametrize("seconds", [0, 1e-12, 1e9, "1 ms", None])
def test_a_round_trip_that_cannot_be_is_none(world, seconds):
    world.small_files("pull", 0.05, seconds)
    assert rtt(world.report(target={"connect_seconds": seconds})) is None
