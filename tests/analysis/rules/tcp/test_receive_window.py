"""Rules tcp/receive-window and network/delay: right where planted, silent where not."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

SMALL = {
    "by": "receive-window",
    "receive_window_limited_ratio": 0.95,
    "unsent_bytes_median": 333_720,
    "in_flight_bytes_median": 83_984,
    "in_flight_bytes_high": 86_880,
    "rtt_seconds_median": 0.01665,
    "rtt_seconds_high": 0.0172,
    "min_rtt_seconds": 0.01613,
    "peer_window_bytes_median": 85_632,
    "congestion_window_bytes_median": 179_552,
    "retransmitted_segments": 1,
    "retransmitted_bytes": 1448,
    "loss_ratio": 0.00006,
    "own_window_bytes_median": 85_632,
    "receive_buffer_bytes": 131_072,
    "send_buffer_bytes": 571_392,
}
"""A connection over 16 ms whose receiver's buffer ends at 128 KiB."""
READS_SLOWLY = {"unread_bytes_median": 81_088, "full_ratio": 0.95}


def far(empty_world, one=11.95, several=11.9, limits=None):
    """100 Mbit/s over 16 ms between disks that are faster."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, one, limits=limits)
        world.tcp(verb, several, streams=4)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 400)
    return world


@pytest.mark.parametrize(
    ("name", "side"),
    [("pull.cached", "client"), ("pull.uncached", "client"), ("push.cached", "server")],
)
def test_a_window_that_holds_the_copys_own_connection_is_named(empty_world, sockets, name, side):
    world = far(empty_world, one=5.1)
    world.copy(name, (4.95, 5.0, 5.05), memory=5.05, details={"sockets": sockets(**SMALL)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", side, "receive-window")
    assert found.verdict.confidence >= 0.85
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(5.3e6, rel=0.03)
    assert (found.next.component, found.next.cause) == ("network", "link-rate")
    assert f"the {side}'s receive window of " in found.verdict.sentence
    assert any("though what arrived was read at once" in line for line in found.evidence)


def test_the_advice_names_the_setting_and_the_window_that_the_path_needs(empty_world, sockets):
    """11.95 MB/s over 16.1 ms are 193 KB; the kernel counts its own overhead beside them."""
    world = far(empty_world, one=5.1)
    world.client = replace(world.client, socket_buffers={"net.ipv4.tcp_rmem": "4096 65536 131072"})
    world.copy("pull.cached", (4.95, 5.0, 5.05), details={"sockets": sockets(**SMALL)})
    (advice,) = diagnose(world.report()).copies[0].advice
    assert advice.startswith("A receive window of 187 KiB or more on the client (the third ")
    assert "net.ipv4.tcp_rmem is 131072 there: 383894 or more)" in advice


@pytest.mark.parametrize(
    ("smb_conf", "expected"),
    [
        (
            [{"option": "socket options", "value": "TCP_NODELAY SO_RCVBUF=8192", "why": "x"}],
            "take SO_RCVBUF out of the socket options in its smb.conf",
        ),
        ([], "smbd there seems to fix it with SO_RCVBUF: leave that out"),
        ("broken", "smbd there seems to fix it with SO_RCVBUF: leave that out"),
    ],
)
def test_a_buffer_that_the_program_fixed_is_its_own_to_mend(
    empty_world, sockets, smb_conf, expected
):
    world = far(empty_world)
    tiny = {**SMALL, "receive_buffer_bytes": 16_384, "peer_window_bytes_median": 8688}
    tiny.update(in_flight_bytes_median=8688, min_rtt_seconds=0.00416, rtt_seconds_median=0.00437)
    world.copy("push.cached", (1.95, 1.97, 1.99), details={"sockets": sockets(**tiny)})
    report = world.report()
    report = replace(report, target={**report.target, "smb_conf": smb_conf})
    (found,) = diagnose(report).copies
    assert found.verdict.named == ("tcp", "server", "receive-window")
    assert expected in found.advice[0]


def test_without_the_copys_own_connection_tcp_alone_shows_the_same_window(empty_world):
    world = far(empty_world, one=5.1, limits={**SMALL, "unread_bytes_median": 0})
    world.copy("pull.cached", 5.0)
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "client", "receive-window")
    assert found.ceilings[0].standing == "measured"


def test_a_window_on_a_short_path_is_named_where_tcp_alone_carries_more(empty_world, sockets):
    """Late updates and acknowledgements make a round trip longer than the shortest one."""
    world = far(empty_world, one=117.6, several=117.6)
    near = {**SMALL, "min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0012}
    near.update(peer_window_bytes_median=8688, in_flight_bytes_median=8688)
    world.copy("push.cached", (6.9, 7.0, 7.1), details={"sockets": sockets(**near)})
    assert world.named() == ("tcp", "server", "receive-window")


# -- decoys ------------------------------------------------------------------------------------


def test_a_long_round_trip_with_good_windows_is_no_window_at_all(empty_world, sockets):
    """40 ms, 200 Mbit/s: the window binds for a moment of slow start."""
    world = far(empty_world, one=25.3, several=25.3)
    good = sockets(
        min_rtt_seconds=0.0403, rtt_seconds_median=0.0687, receive_window_limited_ratio=0.1
    )
    world.copy("pull.cached", (22, 22.5, 23), details={"sockets": good})
    assert world.named() == ("network", "path", "link-rate")
    assert ("tcp", "client", "receive-window") not in world.ceilings()


def test_a_small_window_is_not_the_cap_where_the_disk_is_slower(empty_world, sockets):
    world = far(empty_world, one=5.1)
    world.entries = [e for e in world.entries if e[0].setting.get("side") != "client"]
    world.disk("client", "write", 2)
    idle = {**SMALL, "receive_window_limited_ratio": 0.3}
    world.copy("pull.cached", (1.9, 1.95, 2.0), memory=5.0, details={"sockets": sockets(**idle)})
    assert world.named() == ("disk", "client", "write")


@pytest.mark.parametrize(
    "change",
    [
        READS_SLOWLY,
        {"unread_bytes_median": 24_000},  # a quarter of the window waits to be read
        {"full_ratio": 0.6},
        {"unread_bytes_median": None, "full_ratio": None, "receiver_seen": False},
    ],
)
def test_a_window_that_a_slow_reader_fills_is_not_blamed(empty_world, sockets, change):
    world = far(empty_world)
    world.copy("push.cached", (4.9, 5.0, 5.1), details={"sockets": sockets(**{**SMALL, **change})})
    assert ("tcp", "server", "receive-window") not in world.ceilings()
    assert world.named()[0] == "unknown"


@pytest.mark.parametrize(
    "change",
    [
        {"receive_window_limited_ratio": 0.1},
        {"in_flight_bytes_median": 20_000},
        {"peer_window_bytes_median": None},
        {"min_rtt_seconds": None},
        {"sender_seen": False},
    ],
)
def test_half_the_evidence_names_nobody(empty_world, sockets, change):
    world = far(empty_world)
    told = sockets(**{**SMALL, **change})
    world.copy("pull.cached", (4.9, 5.0, 5.1), details={"sockets": told})
    assert world.named()[0] == "unknown"


def test_a_window_that_a_queue_on_the_path_fills_is_the_links_affair(empty_world, sockets):
    """The link is full: what lies in its queue makes the window bind, and the round trip longer."""
    world = far(empty_world)
    queued = {**SMALL, "peer_window_bytes_median": 262_144, "in_flight_bytes_median": 260_000}
    queued.update(rtt_seconds_median=0.0219, min_rtt_seconds=0.002)
    world.copy("pull.cached", (11.5, 11.6, 11.7), details={"sockets": sockets(**queued)})
    assert world.named() == ("network", "path", "link-rate")


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        ({}, "link-rate"),
        ({"rtt_seconds_median": 0.042}, "inconclusive"),  # no queue: the link was not full
        ({"unsent_bytes_median": 0}, "inconclusive"),  # nothing waited to be sent
        ({"by": "sender"}, "inconclusive"),
        ({"min_rtt_seconds": 0.0004, "rtt_seconds_median": 0.002}, "inconclusive"),  # a LAN
    ],
)
def test_a_far_link_is_full_where_the_copys_own_packets_stood_before_it(
    empty_world, sockets, change, cause
):
    """At 78 % of it: the first round trips, and the flush, took the rest."""
    world = far(empty_world, one=24.8, several=24.8)
    told = {"min_rtt_seconds": 0.0403, "rtt_seconds_median": 0.0687, **change}
    world.copy("push.uncached", 19.3, details={"sockets": sockets(**told)})
    assert world.named()[2] == cause


# -- network/delay -----------------------------------------------------------------------------


def huge(sockets, window=32 << 20):
    """A window of a host that is set up for long paths, full at 300 ms."""
    return sockets(
        **{
            **SMALL,
            "peer_window_bytes_median": window,
            "in_flight_bytes_median": window * 0.95,
            "min_rtt_seconds": 0.6,
            "rtt_seconds_median": 0.61,
            "own_window_bytes_median": window,
        }
    )


@pytest.mark.parametrize("name", ["pull.cached", "push.cached", "push.uncached"])
def test_the_delay_is_the_cause_where_the_window_is_as_large_as_hosts_have_it(
    empty_world, sockets, name
):
    world = far(empty_world, one=54.5, several=117.6)
    world.copy(name, (53, 54, 55), details={"sockets": huge(sockets)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("network", "path", "delay")
    assert found.verdict.confidence <= 0.7
    assert "several connections would give about" in found.verdict.sentence


@pytest.mark.parametrize(
    ("window", "rate"),
    [
        (8 << 20, 13.2),  # can be raised
        (32 << 20, 20),  # far below what it carries
    ],
)
def test_the_delay_is_not_blamed_otherwise(empty_world, sockets, window, rate):
    world = far(empty_world, one=27, several=27)
    world.copy("pull.cached", rate, details={"sockets": huge(sockets, window)})
    assert world.named() != ("network", "path", "delay")


def test_requests_that_wait_for_replies_are_not_the_delays_affair(empty_world, sockets):
    world = far(empty_world)
    world.copy("pull.cached", 5, details={"sockets": sockets(unsent_bytes_median=0)})
    assert ("network", "path", "delay") not in world.ceilings()


@pytest.mark.parametrize("alone", [1.5, 40.0])
def test_a_window_that_tcp_alone_did_not_keep_to_is_none(empty_world, alone):
    """5.3 MB/s by the window and the round trip: one of the figures is of another moment."""
    world = far(empty_world, one=alone, several=40.0, limits={**SMALL, "unread_bytes_median": 0})
    world.copy("pull.cached", alone * 0.97)
    assert ("tcp", "client", "receive-window") not in world.ceilings()
