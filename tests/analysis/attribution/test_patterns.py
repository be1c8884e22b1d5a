"""Patterns in the looks at a copy: each is seen where it was planted, and not beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from bottleneck.analysis.attribution import patterns
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import Connection
from tests.analysis.attribution.planted import LOOKS, SECONDS, SENDING, copy, looks, socket
from tests.analysis.conftest import usage
from tests.traces import without_agent

RATE = 25e6
FAR = {"rtt_seconds": 0.02, "min_rtt_seconds": 0.02}


def sends(**figures: Any) -> TimedCopy:
    """A push whose sender has more to send than the path takes."""
    near = looks(socket("acknowledged_bytes", **{**SENDING, **figures}))
    return copy(False, None, None, near)


def gets(**figures: Any) -> TimedCopy:
    """A pull of which its receiver alone was seen, and that lost a part of what it asked for."""
    run = copy(True, None, None, looks(socket("received_bytes", **{**FAR, **figures})))
    return replace(run, trace=without_agent(run.trace), moved_bytes=9e9)


def sender(run: TimedCopy) -> Connection:
    connection = run.connection(run.sender)
    assert connection is not None
    return connection


def test_others_share_a_path_where_their_bytes_are_many_and_the_interface_is_busy() -> None:
    many = int(2 * RATE * SECONDS)
    sent = {"client": usage(interface_sent_bytes=many)}
    received = {"server": usage(interface_received_bytes=many)}
    assert patterns.is_path_shared(replace(sends(), usages=sent))
    assert patterns.is_path_shared(replace(sends(), usages=received))
    room = replace(sends(), usages=sent, link_rates={"client": 1.25e8})
    assert not patterns.is_path_shared(room) and not patterns.is_path_shared(sends())


def test_losses_all_along_are_told_from_those_of_tcps_start() -> None:
    lost = sends(retransmitted_bytes=lambda n: n * 20000)
    start = sends(retransmitted_bytes=lambda n: min(n, 6) * 200000)
    assert patterns.lasts(sender(lost), "retransmitted_bytes")
    assert not patterns.lasts(sender(start), "retransmitted_bytes")


def test_a_copy_that_ends_in_tcps_start_grows_on_a_far_path_alone() -> None:
    grows = sends(**FAR, acknowledged_bytes=lambda n: n**3)
    near = sends(acknowledged_bytes=lambda n: n**3)
    assert patterns.grows(sender(grows), "acknowledged_bytes")
    assert not patterns.grows(sender(near), "acknowledged_bytes")
    assert not patterns.grows(sender(sends(**FAR)), "acknowledged_bytes")


def test_packets_that_vanish_stall_a_sender_from_its_start() -> None:
    vanish = sends(acknowledged_bytes=0, backoffs=4)
    assert patterns.loses_full_packets(vanish, sender(vanish))
    assert not any(patterns.loses_full_packets(sends(), e) for e in (sender(sends()), None))


def test_a_window_that_stands_still_beside_others_traffic_is_not_pinned() -> None:
    still = {"in_flight_bytes": 500_000, "peer_window_bytes": 4 << 20, **FAR}
    pinned = sends(**still)
    assert patterns.is_limited_by_cwnd(pinned)
    assert not patterns.is_limited_by_cwnd(replace(pinned, loss_based=False))
    others = {"client": usage(interface_sent_bytes=int(2 * RATE * SECONDS))}
    assert not patterns.is_limited_by_cwnd(replace(pinned, usages=others))


def test_a_receiver_alone_tells_loss_and_the_start_of_tcp() -> None:
    """A burst of losses now and then is the overflow of a queue, and so are those of a full one."""
    all_along = {"out_of_order_segments": lambda n: 20 * n}
    copies = (
        gets(**all_along, receive_rtt_seconds=0.02),
        gets(**all_along, receive_rtt_seconds=0.03),
        gets(out_of_order_segments=lambda n: n // 30 * 900),
        gets(received_bytes=lambda n: (n / LOOKS) ** 3 * 1e8),
    )
    causes = [patterns.cause_by_receiver(run) for run in copies]
    assert causes == "loss link-rate link-rate delay".split()


@pytest.mark.parametrize("count", range(7))
def test_a_copy_that_was_hardly_looked_at_shows_no_pattern(count: int) -> None:
    """Beside load an agent may look once or twice at a copy that loses packets."""
    lost = socket("acknowledged_bytes", **SENDING, retransmitted_bytes=lambda n: n << 20)
    few = {name: rows[:count] if isinstance(rows, list) else rows for name, rows in lost.items()}
    run = copy(False, None, client=looks(few), moved_bytes=9e9)
    connection = run.connection("client")
    assert connection is None or not patterns.lasts(connection, "retransmitted_bytes")
    assert not patterns.is_limited_by_cwnd(run) and not patterns.loses_full_packets(run, connection)
