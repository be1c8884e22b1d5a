"""Without an agent loss is told by the client's own socket, where its law explains the rate."""

from __future__ import annotations

import pytest

from bottleneck.analysis.diagnosis import diagnose

LOSS = ("network", "path", "loss")
NOBODY = ("unknown", None, "inconclusive")

PUSH = {
    "by": "network",
    "congestion_control": "reno",
    "receiver_seen": False,
    "retransmitted_segments": 45,
    "loss_ratio": 0.0103,
    "unsent_bytes_median": 391_616,
    "in_flight_bytes_median": 17_375,
    "rtt_seconds_median": 0.0223,
    "min_rtt_seconds": 0.02,
    "peer_window_bytes_median": 925_696,
    "unread_bytes_median": None,
    "full_ratio": None,
    "own_window_bytes_median": None,
}
PULL = {
    "by": "unknown",
    "sender_seen": False,
    "receiver_seen": True,
    "unread_bytes_median": 0,
    "out_of_order_segments": 400,
    "own_window_bytes_median": 847_872,
    "receiver_rtt_seconds_median": 0.0213,
    "receiver_min_rtt_seconds": 0.0205,
}


@pytest.fixture
def alone(empty_world):
    """A client without an agent on the server."""
    return empty_world(agent=False)


@pytest.mark.parametrize(("rate", "lost"), [(0.84, 0.0103), (0.6, 0.02), (1.3, 0.005)])
def test_a_push_at_the_rate_that_its_loss_allows_is_held_by_it(alone, sockets, rate, lost):
    alone.copy("push.cached", rate, details={"sockets": sockets(**{**PUSH, "loss_ratio": lost})})
    assert alone.named("push.cached") == LOSS
    copy = diagnose(alone.report()).copies[0]
    assert copy.verdict.confidence <= 0.7
    assert any("--agent" in line for line in copy.evidence)


@pytest.mark.parametrize(
    ("rate", "changes"),
    [
        (0.84, {"rtt_seconds_median": 0.05}),  # a queue stands: the link is full
        (6.0, {}),  # faster than so much loss allows
        (0.1, {}),  # and far slower
        (0.84, {"loss_ratio": 0.0005, "rtt_seconds_median": 0.0205}),
        (0.84, {"loss_ratio": None}),
        (0.84, {"rtt_seconds_median": None}),
        (0.84, {"congestion_control": "bbr"}),
        (0.84, {"unsent_bytes_median": 0}),  # nothing waits for the path
        (1.175, {}),  # 10 Mbit/s: a policed link drops what is too much
        (40.0, {"rtt_seconds_median": 0.0005, "min_rtt_seconds": 0.0004}),
    ],
)
def test_a_push_that_loses_packets_for_another_reason_is_not(alone, sockets, rate, changes):
    alone.copy("push.cached", rate, details={"sockets": sockets(**{**PUSH, **changes})})
    assert alone.named("push.cached") != LOSS


@pytest.mark.parametrize("rate", [0.7, 0.81, 1.0])
def test_a_pull_whose_packets_come_after_holes_is_held_by_loss(alone, rate):
    alone.copy("pull.cached", rate, details={"sockets": PULL})
    assert alone.named("pull.cached") == LOSS
    assert diagnose(alone.report()).copies[0].verdict.confidence <= 0.6


@pytest.mark.parametrize(
    ("rate", "changes"),
    [
        (0.81, {"out_of_order_segments": 20}),  # one hole
        (10.8, {"out_of_order_segments": 4000}),  # a full link with a short queue
        (0.81, {"own_window_bytes_median": 18_000}),  # the window is all that there is
        (0.81, {"unread_bytes_median": 40_000}),  # the client does not take what came
        (0.81, {"receiver_rtt_seconds_median": None}),
        (0.81, {"unread_bytes_median": None}),
        (0.81, {"own_window_bytes_median": None}),
    ],
)
def test_a_pull_with_few_holes_or_another_limit_is_not(alone, rate, changes):
    alone.copy("pull.cached", rate, details={"sockets": {**PULL, **changes}})
    assert alone.named("pull.cached") != LOSS


def test_with_an_agent_both_ends_are_asked(world):
    world.copy("pull.cached", 0.81, details={"sockets": PULL})
    assert world.named("pull.cached") != LOSS
