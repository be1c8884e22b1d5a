"""The causes tcp/receive-window and network/delay: right where planted, silent where not."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"


@pytest.fixture
def far(two_hosts):
    """Makes 100 Mbit/s over 16 ms between disks that are faster."""
    return lambda one=11.95, several=11.9, **extra: two_hosts(one, several, **extra)


@pytest.mark.parametrize(
    ("name", "side"),
    [("pull.cached", "client"), ("pull.uncached", "client"), ("push.cached", "server")],
)
def test_a_window_that_holds_the_copys_own_connection_is_named(far, sockets, name, side, expect):
    world = far(5.1)
    world.copy(name, (4.95, 5.0, 5.05), memory=5.05, details={"sockets": sockets(**SMALL)})
    expect(world, f"tcp/{side}/receive-window")


def test_the_advice_names_the_setting_and_the_window_that_the_path_needs(far, sockets, expect):
    """11.95 MB/s over 16.1 ms are 193 KB; the kernel counts its own overhead beside them."""
    world = far(5.1)
    world.client = replace(world.client, socket_buffers={"net.ipv4.tcp_rmem": "4096 65536 131072"})
    world.copy("pull.cached", (4.95, 5.0, 5.05), details={"sockets": sockets(**SMALL)})
    expect(world, "tcp/client/receive-window")


CONFIGS = {
    "set": [{"option": "socket options", "value": "TCP_NODELAY SO_RCVBUF=8192", "why": "x"}],
    "not set": [],
    "broken": "broken",
}


@pytest.mark.parametrize("smb_conf", CONFIGS.values(), ids=CONFIGS)
def test_a_buffer_that_the_program_fixed_is_its_own_to_mend(far, sockets, smb_conf, expect):
    world = far()
    tiny = {**SMALL, "receive_buffer_bytes": 16_384, "peer_window_bytes_median": 8688}
    tiny.update(in_flight_bytes_median=8688, min_rtt_seconds=0.00416, rtt_seconds_median=0.00437)
    world.copy("push.cached", (1.95, 1.97, 1.99), details={"sockets": sockets(**tiny)})
    expect(world, "tcp/server/receive-window", smb_conf=smb_conf)


ALONE = {
    "it keeps to the window": ("tcp/client/receive-window", 5.1, 11.9, 5.0),
    "far slower: another moment": (LINK, 1.5, 40.0, 1.455),
    "far faster": (LINK, 40.0, 40.0, 38.8),
}


@pytest.mark.parametrize(("cap", "one", "several", "rate"), ALONE.values(), ids=ALONE)
def test_without_the_copys_own_connection_tcp_alone_shows_the_same_window(
    far, cap, one, several, rate, expect
):
    """5.3 MB/s by the window and the round trip."""
    world = far(one, several, limits={**SMALL, "unread_bytes_median": 0})
    world.copy("pull.cached", rate)
    expect(world, *([cap] if one == 5.1 else []))


def test_a_window_on_a_short_path_is_named_where_tcp_alone_carries_more(far, sockets, expect):
    """Late updates and acknowledgements make a round trip longer than the shortest one."""
    world = far(117.6, 117.6)
    near = {**SMALL, "min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0012}
    near.update(peer_window_bytes_median=8688, in_flight_bytes_median=8688)
    world.copy("push.cached", (6.9, 7.0, 7.1), details={"sockets": sockets(**near)})
    expect(world, "tcp/server/receive-window")


# -- decoys ------------------------------------------------------------------------------------


def test_a_long_round_trip_with_good_windows_is_no_window_at_all(far, sockets, expect):
    """40 ms, 200 Mbit/s: the window binds for a moment of slow start."""
    world = far(25.3, 25.3)
    good = {"min_rtt_seconds": 0.0403, "rtt_seconds_median": 0.0687}
    good["receive_window_limited_ratio"] = 0.1
    world.copy("pull.cached", (22, 22.5, 23), details={"sockets": sockets(**good)})
    expect(world, LINK)


def test_a_small_window_is_not_the_cap_where_the_disk_is_slower(far, sockets, expect):
    world = far(5.1)
    world.forget("disk", side="client")
    world.disk("client", "write", 2)
    idle = {**SMALL, "receive_window_limited_ratio": 0.3}
    world.copy("pull.cached", (1.9, 1.95, 2.0), memory=5.0, details={"sockets": sockets(**idle)})
    expect(world, "disk/client/write")


NOT_THE_WINDOW = {
    "a slow reader fills it": {"unread_bytes_median": 81_088, "full_ratio": 0.95},
    "a quarter of it waits to be read": {"unread_bytes_median": 24_000},
    "it waits often": {"full_ratio": 0.6},
    "the sender seldom waits": {"receive_window_limited_ratio": 0.1},
    "not filled": {"in_flight_bytes_median": 20_000},
    "no round trip": {"min_rtt_seconds": None},
}


@pytest.mark.parametrize("change", NOT_THE_WINDOW.values(), ids=NOT_THE_WINDOW)
def test_half_the_evidence_names_nobody(far, sockets, change, expect):
    world = far()
    world.copy("push.cached", (4.9, 5.0, 5.1), details={"sockets": sockets(**{**SMALL, **change})})
    expect(world, NOBODY)


def test_a_window_that_a_queue_on_the_path_fills_is_the_links_affair(far, sockets, expect):
    """The link is full: what lies in its queue makes the window bind, and the round trip longer."""
    world = far()
    queued = {**SMALL, "peer_window_bytes_median": 262_144, "in_flight_bytes_median": 260_000}
    queued.update(rtt_seconds_median=0.0219, min_rtt_seconds=0.002)
    world.copy("pull.cached", (11.5, 11.6, 11.7), details={"sockets": sockets(**queued)})
    expect(world, LINK)


def test_requests_that_wait_for_replies_are_not_the_delays_affair(far, sockets, expect):
    world = far()
    world.copy("pull.cached", 5, details={"sockets": sockets(unsent_bytes_median=0)})
    expect(world, NOBODY)
