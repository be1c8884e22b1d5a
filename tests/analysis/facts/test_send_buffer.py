"""The cause tcp/send-buffer: right where a small buffer was planted, silent where none was."""

from __future__ import annotations

from dataclasses import replace

import pytest

FIXED = {
    "unsent_bytes_median": 0,
    "in_flight_bytes_median": 130_320,
    "in_flight_bytes_high": 196_928,
    "rtt_seconds_median": 0.013,
    "rtt_seconds_high": 0.0186,
    "min_rtt_seconds": 0.0042,
    "peer_window_bytes_median": 376_832,
    "congestion_window_bytes_median": 211_408,
    "retransmitted_segments": None,
    "retransmitted_bytes": None,
    "loss_ratio": None,
    "send_buffer_bytes": 16_384,
    "receive_buffer_bytes": 566_934,
}
"""smbd with SO_SNDBUF=8192 over 4 ms: bursts that run empty, and nothing in the kernel's count."""
COUNTED = {
    "by": "send-buffer",
    "send_buffer_limited_ratio": 0.9,
    "unsent_bytes_median": 0,
    "in_flight_bytes_median": 98_000,
    "in_flight_bytes_high": 104_000,
    "rtt_seconds_median": 0.0164,
    "min_rtt_seconds": 0.0161,
    "congestion_window_bytes_median": 150_000,
    "send_buffer_bytes": 65_536,
    "loss_ratio": None,
}
"""A program that refills its buffer as it empties, over 16 ms."""
LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"


@pytest.fixture
def near(two_hosts):
    return lambda one=35.9, several=None: two_hosts(one, several or one)


@pytest.mark.parametrize(
    ("name", "side"),
    [("pull.cached", "server"), ("pull.uncached", "server"), ("push.cached", "client")],
)
def test_a_fixed_buffer_that_runs_empty_each_round_trip_is_named(near, sockets, name, side, expect):
    """197 KB per burst over 4.2 ms and 35.9 MB/s: 20.3 MB/s."""
    world = near()
    world.copy(name, (19.5, 20, 20.4), memory=20.2, details={"sockets": sockets(**FIXED)})
    expect(world, f"tcp/{side}/send-buffer")


def test_a_buffer_that_was_seen_full_is_named_beside_a_crowded_cpu(near, sockets, expect):
    """Others take the receiver's cores as well: both are told, and neither is sure."""
    world = near(11.95)
    figures = {**FIXED, "by": "send-buffer", "send_queue_full_ratio": 0.92}
    figures.update(send_buffer_bytes=65_536, min_rtt_seconds=0.016, in_flight_bytes_high=295_391)
    crowded = {"core_busy_ratios": (1.0, 1.0), "other_cpu_seconds": 6.0, "run_delay_seconds": 2.0}
    details = {"sockets": sockets(**figures)}
    world.copy("push.uncached", (5.2, 5.3, 5.4), details=details, server=crowded)
    expect(world, "cpu/server/contention")
    assert world.diagnosis_of().verdict.detail == "or the client's TCP"


def test_the_option_in_smb_conf_is_named(near, sockets, expect):
    world = near()
    world.copy("pull.cached", (19.5, 20, 20.4), details={"sockets": sockets(**FIXED)})
    option = {"option": "socket options", "value": "SO_RCVBUF=8192 SO_SNDBUF=8192"}
    expect(world, "tcp/server/send-buffer", smb_conf=[option])


def test_the_end_of_tcp_wmem_is_named_with_its_number(near, sockets, expect):
    world = near(11.95)
    world.server = replace(world.server, socket_buffers={"net.ipv4.tcp_wmem": "4096 16384 65536"})
    figures = {**FIXED, "send_buffer_bytes": 65_536, "min_rtt_seconds": 0.016}
    figures.update(in_flight_bytes_high=254_848, unsent_bytes_median=13_032)
    world.copy("pull.cached", (6.8, 7.0, 7.2), details={"sockets": sockets(**figures)})
    expect(world, "tcp/server/send-buffer")


def test_the_kernels_own_count_is_enough(near, sockets, expect):
    world = near(6.1, 11.9)
    figures = {**COUNTED, "unread_bytes_median": 0, "send_buffer_bytes": 65_536}
    world.copy("push.cached", (5.9, 6.0, 6.1), details={"sockets": sockets(**figures)})
    expect(world, "tcp/client/send-buffer")


def test_a_tiny_buffer_on_a_short_path_waits_for_delayed_acknowledgements(near, sockets, expect):
    """No kernel counts that time: 8 KiB over 0.1 ms would be 80 MB/s and are 2."""
    world = near(900)
    trap = {**FIXED, "in_flight_bytes_median": 8192, "in_flight_bytes_high": 12_000}
    trap.update(min_rtt_seconds=0.0001, rtt_seconds_median=0.0189)
    trap.update(congestion_window_bytes_median=14_480)
    world.copy("pull.cached", (2.0, 2.1, 2.2), details={"sockets": sockets(**trap)})
    expect(world, "tcp/server/send-buffer")


BURSTS = {**FIXED, "segment_bytes": 1448, "send_buffer_bytes": 65_536, "by": "send-buffer"}
ALONE = {
    "in bursts": (35.9, "pull", 20.2, BURSTS, (19.5, 20, 20.1)),
    "counted": (11.9, "push", 6.1, {**COUNTED, "unread_bytes_median": 0}, (5.9, 6.0, 6.1)),
}


@pytest.mark.parametrize(("path", "verb", "one", "limits", "rates"), ALONE.values(), ids=ALONE)
def test_tcp_alone_shows_a_small_buffer_where_the_copys_connection_was_not_seen(
    near, path, verb, one, limits, rates, expect
):
    world = near(path)
    world.forget(streams=1)
    world.tcp(verb, one, limits=limits)
    world.copy(f"{verb}.cached", rates)
    expect(world, f"tcp/{'server' if verb == 'pull' else 'client'}/send-buffer")


def test_one_stream_that_an_end_holds_says_nothing_of_the_link(empty_world, expect):
    world = empty_world()
    world.tcp("pull", 7.1, by="sender")
    world.copy("pull.cached", 7.0)
    expect(world, NOBODY)


def test_a_loopback_that_waits_for_acknowledgements_is_not_the_tools_ceiling(near, expect):
    """A tiny buffer makes it 1.8 MB/s, with an idle core: no copy is blamed on the tool."""
    world = near(11.95)
    idle = {"core_busy_ratios": (0.05, 0.02), "busiest_process_ratio": 0.02}
    index = world.loopback("client", 1.77, client=idle)
    world.entries[index][1].details["limits"] = {"rtt_seconds_median": 0.028}
    world.copy("push.cached", 1.75)
    expect(world, NOBODY)


# -- decoys ------------------------------------------------------------------------------------

SLOW_DISKS = {
    "a buffer that the kernel tunes": {"send_buffer_bytes": 700_000},
    "on a LAN 197 KB a burst carry far more": {
        **{"min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.001}
    },
}


@pytest.mark.parametrize("change", SLOW_DISKS.values(), ids=SLOW_DISKS)
def test_bursts_and_nothing_unsent_may_be_a_slow_disks_at_the_sender(near, sockets, change, expect):
    world = near(117.6)
    world.forget(verb="read")
    world.disk("server", "read", 25)
    figures = {"sockets": sockets(**FIXED | change)}
    world.copy("pull.uncached", (24, 24.5, 25), details=figures)
    expect(world, "disk/server/read")


def test_a_fixed_buffer_that_fills_the_link_is_not_blamed(near, sockets, expect):
    world = near(117.6)
    figures = {**FIXED, "min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0016}
    world.copy("pull.cached", (112, 113, 114), details={"sockets": sockets(**figures)})
    expect(world, LINK)


HALF = {
    "more waits than the path takes": {"unsent_bytes_median": 180_000},
    "the buffer was never full": {"in_flight_bytes_high": 6_000},
    "not told how large it is": {"send_buffer_bytes": None},
    "not told how large it would be": {"congestion_window_bytes_median": None},
    "no round trip": {"min_rtt_seconds": None},
    "its sender was not seen": {"sender_seen": False},
}


@pytest.mark.parametrize("change", HALF.values(), ids=HALF)
def test_half_the_evidence_names_nobody(near, sockets, change, expect):
    world = near()
    figures = sockets(**{**FIXED, **change})
    world.copy("pull.cached", (19.5, 20, 20.4), details={"sockets": figures})
    expect(world, NOBODY)


def test_requests_that_are_too_few_are_not_the_buffers_affair(near, sockets, expect):
    """Small in flight though the buffers are large: SMB asks for no more."""
    world = near(117.6)
    world.matrix("pull", {(65536, 1): 6, (1 << 20, 8): 110}, 0.01)
    figures = {**FIXED, "send_buffer_bytes": 2_000_000, "min_rtt_seconds": 0.0101}
    figures.update(in_flight_bytes_median=65_536, in_flight_bytes_high=65_536)
    details = {"in_flight_bytes": 65_536, "request_bytes": 65_536, "depth": 1, "requests": 400}
    world.copy("pull.cached", (5.9, 6.0, 6.1), details={**details, "sockets": sockets(**figures)})
    expect(world, "smb/path/round-trips")
