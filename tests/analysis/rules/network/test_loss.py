"""Rule network/loss: right where planted, silent where not."""

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
LOSS, LINK, NOBODY = "network/path/loss", "network/path/link-rate", "unknown/inconclusive"


@pytest.fixture
def path(between):
    """Makes a path whose connections tell the same of one stream and of four."""
    return lambda one, several, limits: between(
        one, several, limits=limits, limits_of_several=limits
    )


def test_the_bracket_is_mathis_law():
    """Measured with reno over 10 ms: 4.99 MB/s at 0.1 %, 1.91 at 1 % (which is a little above)."""
    found = loss.bracket(1448, 0.0105, 0.001, "reno")
    assert (found.low, found.high) == pytest.approx((3.05e6, 5.32e6), rel=0.01)
    assert loss.bracket(1448, 0.0105, 0.001, "cubic").high > 7.9e6


BURST = {**LOSSY, "retransmitted_segments": 239, "loss_ratio": 0.052}
LOSSES = {
    "a pull": ("pull.cached", (0.7, 0.78, 0.83), LOSSY),
    "a push": ("push.cached", (0.7, 0.78, 0.83), LOSSY),
    "of a disk": ("push.uncached", (0.7, 0.78, 0.83), LOSSY),
    "seen by TCP alone": ("pull.cached", (0.66, 0.68, 0.7), None),
    "scattered runs are its mark": ("pull.cached", (0.5, 0.78, 1.0), LOSSY),
}


@pytest.mark.parametrize(("name", "rates", "seen"), LOSSES.values(), ids=LOSSES)
def test_lost_packets_are_named_where_several_connections_carry_more(
    path, sockets, name, rates, seen, says
):
    world = path(0.70, 2.8, LOSSY)
    world.copy(name, rates, details={"sockets": sockets(**seen)} if seen else {})
    says(world, LOSS)


def test_one_burst_of_losses_is_one_event(path, sockets, says):
    """What slow start overshoots by is lost at once: TCP alone tells the path's own share."""
    world = path(0.66, 3.4, LOSSY)
    world.copy("push.cached", 1.29, memory=0.88, details={"sockets": sockets(**BURST)})
    says(world, LOSS)


def test_the_other_direction_is_told_of_only_where_its_loss_is_known(path, sockets, says):
    world = path(0.70, 2.8, LOSSY)
    world.forget("tcp", verb="push")
    gone = ("loss_ratio", "retransmitted_segments")
    world.tcp("push", 0.7, limits={k: v for k, v in LOSSY.items() if k not in gone})
    world.copy("pull.cached", (0.7, 0.78, 0.83), details={"sockets": sockets(**LOSSY)})
    says(world, LOSS)


# -- decoys ------------------------------------------------------------------------------------


def test_a_full_link_drops_packets_and_is_a_full_link(path, sockets, says):
    """The law of loss holds there as well: several connections together carry no more."""
    dropped = {**LOSSY, "retransmitted_segments": 70, "loss_ratio": 0.0021}
    dropped.update(rtt_seconds_median=0.0334, min_rtt_seconds=0.0162)
    world = path(11.7, 11.75, dropped)
    world.copy("pull.cached", (11.2, 11.3, 11.4), details={"sockets": sockets(**dropped)})
    says(world, LINK)


def test_loss_on_a_path_that_the_disk_never_fills_is_not_the_cap(path, sockets, says):
    world = path(0.70, 2.8, LOSSY)
    world.forget("disk")
    world.disk("client", "write", 0.3)
    idle = {**LOSSY, "unsent_bytes_median": 0, "retransmitted_segments": 9}
    world.copy("pull.cached", (0.27, 0.28, 0.29), details={"sockets": sockets(**idle)})
    says(world, "disk/client/write")


BBR = {**LOSSY, "congestion_control": "bbr"}
OTHERWISE = {
    "a control that does not mind: 11 times what the law would allow": (11.7, 11.75, BBR, 0.78),
    "the copy itself carries what several do": (0.70, 1.1, LOSSY, 0.87),
    "one stream alone tells neither loss nor link": (0.70, None, LOSSY, 0.68),
}


@pytest.mark.parametrize(("one", "several", "seen", "rate"), OTHERWISE.values(), ids=OTHERWISE)
def test_lost_packets_that_do_not_hold_the_copy_are_not_blamed(
    path, sockets, one, several, seen, rate, says
):
    world, rates = path(one, several, seen), (0.98 * rate, rate, 1.02 * rate)
    world.copy("pull.cached", rates, details={"sockets": sockets(**seen)})
    says(world, *([NOBODY] if several is None else []))
    assert ("network", "path", "loss") not in world.ceilings()


HALF = {
    "a control that nobody knows": {"congestion_control": "unheard-of"},
    "not told what was lost": {"loss_ratio": None},
    "so much would allow far less": {"loss_ratio": 0.5},
    "a few segments": {"retransmitted_segments": 3},
    "nothing waited to be sent": {"unsent_bytes_median": 0},
    "the window holds it": {"peer_window_bytes_median": 14_000},
    "no size of a segment": {"segment_bytes": None},
    "the reader is slow": {"unread_bytes_median": 5_000_000},
    "a queue stands before a full link": {"rtt_seconds_median": 0.05},
}


@pytest.mark.parametrize("change", HALF.values(), ids=HALF)
def test_half_the_evidence_names_no_loss(path, sockets, change, says):
    world = path(0.70, 2.8, {"by": "network"})
    told = sockets(**{**LOSSY, **change})
    world.copy("pull.cached", (0.7, 0.78, 0.83), details={"sockets": told})
    says(world)
    assert ("network", "path", "loss") not in world.ceilings()


# -- without an agent, by the client's own socket ------------------------------------------------
