"""Rule tcp/send-buffer: right where a small buffer was planted, silent where none was."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose

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


def near(empty_world, one, several=None):
    """A link between disks that are faster."""
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, one)
        world.tcp(verb, several or one, streams=4)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 400)
    return world


@pytest.mark.parametrize(
    ("name", "side"),
    [("pull.cached", "server"), ("pull.uncached", "server"), ("push.cached", "client")],
)
def test_a_fixed_buffer_that_runs_empty_each_round_trip_is_named(empty_world, sockets, name, side):
    """197 KB per burst over 4.2 ms and 35.9 MB/s: 20.3 MB/s."""
    world = near(empty_world, 35.9)
    world.copy(name, (19.5, 20, 20.4), memory=20.2, details={"sockets": sockets(**FIXED)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", side, "send-buffer")
    assert found.verdict.ceiling_bytes_per_second == pytest.approx(20.3e6, rel=0.01)
    assert (found.next.component, found.next.cause) == ("network", "link-rate")
    assert "a larger send buffer would give about" in found.verdict.sentence
    assert any("smaller than the kernel's own tuning" in line for line in found.evidence)


def test_a_buffer_that_was_seen_full_is_named_beside_a_crowded_cpu(empty_world, sockets):
    """Others take the receiver's cores as well: both are told, and neither is sure."""
    world = near(empty_world, 11.95)
    told = {**FIXED, "by": "send-buffer", "send_queue_full_ratio": 0.92}
    told.update(send_buffer_bytes=65_536, min_rtt_seconds=0.016, in_flight_bytes_high=295_391)
    crowded = {"core_busy_ratios": (1.0, 1.0), "other_cpu_seconds": 6.0, "run_delay_seconds": 2.0}
    details = {"sockets": sockets(**told)}
    world.copy("push.uncached", (5.2, 5.3, 5.4), details=details, server=crowded)
    verdict = diagnose(world.report()).copies[0].verdict
    assert verdict.named == ("tcp", "client", "send-buffer")
    assert verdict.confidence <= 0.6
    assert "too close to tell from it: other processes take" in verdict.sentence


def test_the_option_in_smb_conf_is_named(empty_world, sockets):
    world = near(empty_world, 35.9)
    world.copy("pull.cached", (19.5, 20, 20.4), details={"sockets": sockets(**FIXED)})
    option = {"option": "socket options", "value": "SO_RCVBUF=8192 SO_SNDBUF=8192"}
    report = world.report()
    report = replace(report, target={**report.target, "smb_conf": [option]})
    (advice,) = diagnose(report).copies[0].advice
    assert advice.startswith(
        "A send buffer of 147 KiB or more on the server (take SO_SNDBUF out of the socket options "
        "in its smb.conf) would lift this copy to "
    )


def test_the_end_of_tcp_wmem_is_named_with_its_number(empty_world, sockets):
    world = near(empty_world, 11.95)
    world.server = replace(world.server, socket_buffers={"net.ipv4.tcp_wmem": "4096 16384 65536"})
    told = {**FIXED, "send_buffer_bytes": 65_536, "min_rtt_seconds": 0.016}
    told.update(in_flight_bytes_high=254_848, unsent_bytes_median=13_032)
    world.copy("pull.cached", (6.8, 7.0, 7.2), details={"sockets": sockets(**told)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "server", "send-buffer")
    assert "net.ipv4.tcp_wmem is 65536 there: 382400 or more" in found.advice[0]


@pytest.mark.parametrize("own", [True, False])
def test_the_kernels_own_count_is_enough(empty_world, sockets, own):
    world = near(empty_world, 6.1, 11.9)
    told = {**COUNTED, "unread_bytes_median": 0}
    if not own:
        world.entries = []
        world = near(empty_world, 11.9)
        world.entries = [e for e in world.entries if e[0].setting.get("streams") != 1]
        world.tcp("push", 6.1, limits=told)
    world.copy("push.cached", (5.9, 6.0, 6.1), details={"sockets": sockets(**told)} if own else {})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "client", "send-buffer")
    assert found.ceilings[0].standing == ("inferred" if own else "measured")


def test_a_tiny_buffer_on_a_short_path_waits_for_delayed_acknowledgements(empty_world, sockets):
    """No kernel counts that time: 8 KiB over 0.1 ms would be 80 MB/s and are 2."""
    world = near(empty_world, 900)
    trap = {**FIXED, "in_flight_bytes_median": 8192, "in_flight_bytes_high": 12_000}
    trap.update(min_rtt_seconds=0.0001, rtt_seconds_median=0.0189)
    trap.update(congestion_window_bytes_median=14_480)
    world.copy("pull.cached", (2.0, 2.1, 2.2), details={"sockets": sockets(**trap)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "server", "send-buffer")
    assert "wait for delayed acknowledgements" in found.verdict.sentence


def test_tcp_alone_shows_a_small_buffer_where_the_copys_connection_was_not_seen(empty_world):
    world = near(empty_world, 35.9)
    world.entries = [e for e in world.entries if e[0].setting.get("streams") != 1]
    told = {**FIXED, "segment_bytes": 1448, "send_buffer_bytes": 65_536, "by": "send-buffer"}
    world.tcp("pull", 20.2, limits=told)
    world.copy("pull.cached", (19.5, 20, 20.1))
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "server", "send-buffer")
    assert found.ceilings[0].standing == "measured"


def test_one_stream_that_an_end_holds_says_nothing_of_the_link(empty_world):
    world = empty_world()
    world.tcp("pull", 7.1, by="sender")
    world.copy("pull.cached", 7.0)
    found = diagnose(world.report()).copies[0]
    assert found.verdict.component == "unknown"
    assert any("while the sender did not keep up" in line for line in found.evidence)


def test_a_loopback_that_waits_for_acknowledgements_is_not_the_tools_ceiling(empty_world):
    """A tiny buffer makes it 1.8 MB/s, with an idle core: no copy is blamed on the tool."""
    world = near(empty_world, 11.95)
    idle = {"core_busy_ratios": (0.05, 0.02), "busiest_process_ratio": 0.02}
    at = world.loopback("client", 1.77, client=idle)
    step, outcome = world.entries[at]
    waited = {"limits": {"rtt_seconds_median": 0.028}}
    world.entries[at] = (step, replace(outcome, details=waited))
    world.copy("push.cached", 1.75)
    assert ("instrument", "client", "ceiling") not in [
        each.named for each in diagnose(world.report()).copies[0].ceilings if each.tool
    ]
    assert world.named()[0] != "instrument"


# -- decoys ------------------------------------------------------------------------------------


def test_a_buffer_that_the_kernel_tunes_is_not_blamed_for_a_slow_program(empty_world, sockets):
    """The disk at the sender is slow: bursts, nothing unsent, but a buffer with room."""
    world = near(empty_world, 117.6)
    world.entries = [e for e in world.entries if e[0].setting.get("verb") != "read"]
    world.disk("server", "read", 25)
    told = {**FIXED, "send_buffer_bytes": 700_000}
    world.copy("pull.uncached", (24, 24.5, 25), details={"sockets": sockets(**told)})
    assert world.named() == ("disk", "server", "read")
    assert ("tcp", "server", "send-buffer") not in world.ceilings()


def test_a_fixed_buffer_is_not_the_cap_where_the_disk_is_slower(empty_world, sockets):
    """On a LAN 197 KB a burst carry far more than the disk reads."""
    world = near(empty_world, 117.6)
    world.entries = [e for e in world.entries if e[0].setting.get("verb") != "read"]
    world.disk("server", "read", 25)
    told = {**FIXED, "min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.001}
    world.copy("pull.uncached", (24, 24.5, 25), details={"sockets": sockets(**told)})
    assert world.named() == ("disk", "server", "read")


def test_a_fixed_buffer_that_fills_the_link_is_not_blamed(empty_world, sockets):
    world = near(empty_world, 117.6)
    told = {**FIXED, "min_rtt_seconds": 0.0002, "rtt_seconds_median": 0.0016}
    world.copy("pull.cached", (112, 113, 114), details={"sockets": sockets(**told)})
    assert world.named() == ("network", "path", "link-rate")
    assert ("tcp", "server", "send-buffer") not in world.ceilings()


@pytest.mark.parametrize(
    "change",
    [
        {"unsent_bytes_median": 180_000},  # more waits than the path takes
        {"in_flight_bytes_high": 6_000},  # the buffer was never full
        {"send_buffer_bytes": None},
        {"congestion_window_bytes_median": None},
        {"min_rtt_seconds": None},
        {"sender_seen": False},
    ],
)
def test_half_the_evidence_names_nobody(empty_world, sockets, change):
    world = near(empty_world, 35.9)
    told = sockets(**{**FIXED, **change})
    world.copy("pull.cached", (19.5, 20, 20.4), details={"sockets": told})
    assert world.named()[0] == "unknown"


def test_requests_that_are_too_few_are_not_the_buffers_affair(empty_world, sockets):
    """Small in flight though the buffers are large: SMB asks for no more."""
    world = near(empty_world, 117.6)
    world.matrix("pull", {(65536, 1): 6, (1 << 20, 8): 110}, 0.01)
    told = {**FIXED, "send_buffer_bytes": 2_000_000, "min_rtt_seconds": 0.0101}
    told.update(in_flight_bytes_median=65_536, in_flight_bytes_high=65_536)
    details = {"in_flight_bytes": 65_536, "request_bytes": 65_536, "depth": 1, "requests": 400}
    details["sockets"] = sockets(**told)
    world.copy("pull.cached", (5.9, 6.0, 6.1), details=details)
    assert world.named() == ("smb", "path", "round-trips")


def test_a_buffer_that_is_as_large_as_the_path_needs_gets_no_number_to_grow_to(
    empty_world, sockets
):
    """The kernel saw it run empty all the same: the program refills it late."""
    world = near(empty_world, 6.1, 11.9)
    told = {**COUNTED, "unread_bytes_median": 0, "send_buffer_bytes": 400_000}
    world.copy("push.cached", (5.9, 6.0, 6.1), details={"sockets": sockets(**told)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("tcp", "client", "send-buffer")
    assert "or more on the client" not in found.advice[0]
