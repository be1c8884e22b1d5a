"""The effect of lost packets on a connection, and on what TCP alone shows of a link."""

from __future__ import annotations

import pytest

from bottleneck.analysis.rules.network import loss

LOSSY = {
    "congestion_control": "reno",
    "segment_bytes": 1448,
    "unsent_bytes_median": 315_664,
    "in_flight_bytes_median": 13_032,
    "in_flight_bytes_high": 26_064,
    "rtt_seconds_median": 0.0222,
    "min_rtt_seconds": 0.02,
    "peer_window_bytes_median": 6_180_864,
    "congestion_window_bytes_median": 14_480,
    "retransmitted_segments": 39,
    "retransmitted_bytes": 56_472,
    "sent_bytes": 5_900_000,
    "loss_ratio": 0.0096,
    "unread_bytes_median": 0,
}
"""1 % of the packets lost over 20 ms, reno."""
LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"


@pytest.fixture
def path(two_hosts):
    """Makes a path whose connections tell the same of one stream and of four."""
    return lambda one, several, limits: two_hosts(
        one, several, limits=limits, limits_of_several=limits
    )


def test_the_bracket_is_mathis_law():
    """Measured with reno over 10 ms: 4.99 MB/s at 0.1 %, 1.91 at 1 % (which is a little above)."""
    rates = loss.bracket(1448, 0.0105, 0.001, "reno")
    assert (rates.low, rates.high) == pytest.approx((3.05e6, 5.32e6), rel=0.01)
    assert loss.bracket(1448, 0.0105, 0.001, "cubic").high > 7.9e6


def test_a_full_link_drops_packets_and_is_a_full_link(path, sockets, expect):
    """The law of loss holds there as well: several connections together carry no more."""
    dropped = {**LOSSY, "retransmitted_segments": 70, "loss_ratio": 0.0021}
    dropped.update(rtt_seconds_median=0.0334, min_rtt_seconds=0.0162)
    world = path(11.7, 11.75, dropped)
    world.copy("pull.cached", (11.2, 11.3, 11.4), details={"sockets": sockets(**dropped)})
    expect(world, LINK)


def test_loss_on_a_path_that_the_disk_never_fills_is_not_the_cap(path, sockets, expect):
    world = path(0.70, 2.8, LOSSY)
    world.forget("disk")
    world.disk("client", "write", 0.3)
    idle = {**LOSSY, "unsent_bytes_median": 0, "retransmitted_segments": 9}
    world.copy("pull.cached", (0.27, 0.28, 0.29), details={"sockets": sockets(**idle)})
    expect(world, "disk/client/write")


def test_one_stream_that_loses_packets_tells_of_no_link(path, sockets, expect):
    """Its rate is what the law of loss allows: the link may carry far more."""
    world = path(0.70, None, LOSSY)
    world.copy("pull.cached", (0.67, 0.68, 0.69), details={"sockets": sockets(**LOSSY)})
    expect(world, "network/path/loss")
