"""Rules network/loss and tcp/congestion-control: right where planted, silent where not."""

from __future__ import annotations

import pytest

from bottleneck.analysis import diagnose
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
SLOW_TO_RECOVER = {
    "congestion_control": "cubic",
    "segment_bytes": 1448,
    "unsent_bytes_median": 4_000_000,
    "in_flight_bytes_median": 600_000,
    "in_flight_bytes_high": 700_000,
    "rtt_seconds_median": 0.101,
    "min_rtt_seconds": 0.1,
    "peer_window_bytes_median": 6_180_864,
    "congestion_window_bytes_median": 620_000,
    "retransmitted_segments": 2,
    "loss_ratio": 0.00005,
    "unread_bytes_median": 0,
}
"""One loss, long ago, over 100 ms."""


def path(empty_world, one, several, limits, many=None):
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, one, limits=limits)
        if several is not None:
            world.tcp(verb, several, streams=4, limits=many or limits)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 400)
    return world


def test_the_bracket_is_mathis_law():
    """Measured with reno over 10 ms: 4.99 MB/s at 0.1 %, 1.91 at 1 % (which is a little above)."""
    found = loss.bracket(1448, 0.0105, 0.001, "reno")
    assert (found.low, found.high) == pytest.approx((3.05e6, 5.32e6), rel=0.01)
    assert loss.bracket(1448, 0.0105, 0.001, "cubic").high > 7.9e6


@pytest.mark.parametrize("name", ["pull.cached", "push.cached", "push.uncached"])
def test_lost_packets_are_named_where_several_connections_carry_more(empty_world, sockets, name):
    world = path(empty_world, 0.70, 2.8, LOSSY)
    world.copy(name, (0.7, 0.78, 0.83), memory=0.8, details={"sockets": sockets(**LOSSY)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("network", "path", "loss")
    assert "loses 0.96 % of its packets, and reno slows down for each" in found.verdict.sentence
    assert any("39 segments were sent again" in line for line in found.evidence)
    assert any("In the other direction TCP alone lost" in line for line in found.evidence)
    links = [each for each in found.ceilings if each.cause == "link-rate"]
    assert [each.standing for each in links] == ["at-least"]


def test_tcp_alone_tells_it_where_the_copys_own_connection_was_not_seen(empty_world):
    world = path(empty_world, 0.70, 2.8, LOSSY)
    world.copy("pull.cached", (0.66, 0.68, 0.7))
    assert world.named() == ("network", "path", "loss")


def test_scattered_runs_of_a_lossy_path_are_its_mark(empty_world, sockets):
    world = path(empty_world, 0.70, 2.8, LOSSY)
    world.copy("pull.cached", (0.5, 0.78, 1.0), details={"sockets": sockets(**LOSSY)})
    verdict = diagnose(world.report()).copies[0].verdict
    assert verdict.named == ("network", "path", "loss")
    assert verdict.confidence <= 0.75


def test_one_burst_of_losses_is_one_event(empty_world, sockets):
    """What slow start overshoots by is lost at once: TCP alone tells the path's own share."""
    world = path(empty_world, 0.66, 3.4, LOSSY)
    burst = {**LOSSY, "retransmitted_segments": 239, "loss_ratio": 0.052}
    world.copy("push.cached", 1.29, memory=0.88, details={"sockets": sockets(**burst)})
    assert world.named() == ("network", "path", "loss")


# -- decoys ------------------------------------------------------------------------------------


def test_a_full_link_drops_packets_and_is_a_full_link(empty_world, sockets):
    """The law of loss holds there as well: several connections together carry no more."""
    dropped = {**LOSSY, "retransmitted_segments": 70, "loss_ratio": 0.0021}
    dropped.update(rtt_seconds_median=0.0334, min_rtt_seconds=0.0162)
    world = path(empty_world, 11.7, 11.75, dropped)
    world.copy("pull.cached", (11.2, 11.3, 11.4), details={"sockets": sockets(**dropped)})
    assert world.named() == ("network", "path", "link-rate")
    assert ("network", "path", "loss") not in world.ceilings()


def test_loss_on_a_path_that_the_disk_never_fills_is_not_the_cap(empty_world, sockets):
    world = path(empty_world, 0.70, 2.8, LOSSY)
    world.entries = [e for e in world.entries if e[0].stage != "disk"]
    world.disk("client", "write", 0.3)
    idle = {**LOSSY, "unsent_bytes_median": 0, "retransmitted_segments": 9}
    world.copy("pull.cached", (0.27, 0.28, 0.29), details={"sockets": sockets(**idle)})
    assert world.named() == ("disk", "client", "write")


def test_a_control_that_does_not_mind_loss_is_never_held_by_it(empty_world, sockets):
    """BBR: 11 times what the law would allow."""
    bbr = {**LOSSY, "congestion_control": "bbr"}
    world = path(empty_world, 11.7, 11.75, bbr)
    world.copy("pull.cached", (0.7, 0.78, 0.83), details={"sockets": sockets(**bbr)})
    assert ("network", "path", "loss") not in world.ceilings()


@pytest.mark.parametrize(
    "change",
    [
        {"congestion_control": None},
        {"loss_ratio": None},
        {"loss_ratio": 0.5},  # so much would allow far less
        {"retransmitted_segments": 3},
        {"unsent_bytes_median": 0},  # nothing waited to be sent
        {"peer_window_bytes_median": 14_000},  # the window holds it
        {"segment_bytes": None},
        {"unread_bytes_median": 5_000_000},  # the reader is slow
        {"rtt_seconds_median": 0.05},  # a queue stands before a full link
    ],
)
def test_half_the_evidence_names_no_loss(empty_world, sockets, change):
    world = path(empty_world, 0.70, 2.8, {"by": "network"})
    told = sockets(**{**LOSSY, **change})
    if told.get("congestion_control") is None:
        told["congestion_control"] = "unheard-of"
    world.copy("pull.cached", (0.7, 0.78, 0.83), details={"sockets": told})
    assert ("network", "path", "loss") not in world.ceilings()


def test_one_stream_alone_that_lost_packets_blames_neither_loss_nor_link(empty_world, sockets):
    world = path(empty_world, 0.70, None, LOSSY)
    world.copy("pull.cached", (0.66, 0.68, 0.7), details={"sockets": sockets(**LOSSY)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.component == "unknown"
    assert [each.standing for each in found.ceilings if each.component == "network"] == ["at-least"]


# -- tcp/congestion-control --------------------------------------------------------------------


@pytest.mark.parametrize("name", ["pull.cached", "push.cached", "pull.uncached"])
def test_a_control_that_grows_too_slowly_is_named(empty_world, sockets, name):
    world = path(empty_world, 6, 24, SLOW_TO_RECOVER)
    world.copy(name, (5.7, 5.9, 6.1), details={"sockets": sockets(**SLOW_TO_RECOVER)})
    verdict = diagnose(world.report()).copies[0].verdict
    side = "server" if name.startswith("pull") else "client"
    assert verdict.named == ("tcp", side, "congestion-control")
    assert "(cubic) keeps one connection at 25 % of what several carry together" in verdict.sentence


@pytest.mark.parametrize(
    ("change", "several"),
    [
        ({}, 7),  # several carry hardly more
        ({"loss_ratio": 0.01, "retransmitted_segments": 90}, 24),  # that is the path's affair
        ({"min_rtt_seconds": 0.001}, 24),
        ({"receive_window_limited_ratio": 0.6}, 24),
        ({"send_buffer_limited_ratio": 0.6}, 24),
        ({"unsent_bytes_median": 0}, 24),  # the program has no more
        ({"in_flight_bytes_median": 100_000}, 24),
        ({"congestion_control": "bbr"}, 24),
        ({"congestion_window_bytes_median": None}, 24),
    ],
)
def test_the_control_is_not_blamed_for_less(empty_world, sockets, change, several):
    world = path(empty_world, 6, several, {**SLOW_TO_RECOVER, **change})
    told = sockets(**{**SLOW_TO_RECOVER, **change})
    world.copy("pull.cached", (5.7, 5.9, 6.1), details={"sockets": told})
    assert ("tcp", "server", "congestion-control") not in world.ceilings()


def test_lost_packets_of_a_copy_that_fills_the_path_all_the_same_are_not_blamed(
    empty_world, sockets
):
    """TCP alone with one stream had a bad moment: the copy itself carries what several do."""
    world = path(empty_world, 0.70, 1.1, LOSSY)
    lossy = sockets(**LOSSY)
    world.copy("pull.cached", (0.86, 0.87, 0.88), details={"sockets": lossy})
    assert ("network", "path", "loss") not in world.ceilings()


def test_the_other_direction_is_told_of_only_where_its_loss_is_known(empty_world, sockets):
    world = path(empty_world, 0.70, 2.8, LOSSY)
    back = {**LOSSY, "loss_ratio": None, "retransmitted_segments": None}
    world.entries = [e for e in world.entries if e[0].setting.get("verb") != "push"]
    world.tcp("push", 0.7, limits={k: v for k, v in back.items() if v is not None})
    world.copy("pull.cached", (0.7, 0.78, 0.83), details={"sockets": sockets(**LOSSY)})
    found = diagnose(world.report()).copies[0]
    assert found.verdict.named == ("network", "path", "loss")
    assert not any("In the other direction" in line for line in found.evidence)
