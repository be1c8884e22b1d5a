"""The window that a copy chooses: what the path's RTT needs, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from probes.smb import pipe as flight
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, shape

MIB = 1 << 20


class Idle:
    """A Pipe that is asked for windows and nothing else."""

    in_flight = 0

    def __init__(self, credits_bytes: int = 1 << 30) -> None:
        self.asked: list[tuple[int, int]] = []
        self._credits_bytes = credits_bytes

    def prepare(self, verb: str, request_bytes: int, depth: int) -> tuple[int, int]:
        self.asked.append((request_bytes, depth))
        request_bytes, depth = shape(request_bytes or MIB, 8 * MIB, depth or 4)
        return request_bytes, min(depth, self._credits_bytes // request_bytes)


@pytest.mark.parametrize(
    ("rtts", "credits_bytes", "least_bytes", "depth"),
    [
        *[([rtt], 1 << 30, 0, n) for rtt, n in ((0.0001, 4), (0.001, 4), (0.002, 8))],
        *[([rtt], 1 << 30, 0, n) for rtt, n in ((0.01, 32), (0.026, 64), (1.0, 64))],
        # one slow answer deepens nothing
        ([0.3, 0.0002, 0.4], 1 << 30, 0, 4),
        # the server's credits bound it
        ([0.01], 8 * MIB, 0, 8),
        # a least holds on a short path and gives way on a long one
        *[([rtt], 1 << 30, 16 * MIB, n) for rtt, n in ((0.0001, 16), (0.01, 32))],
    ],
)
def test_the_window_grows_with_the_rtt_up_to_its_limit(
    monkeypatch: Any, rtts: list[float], credits_bytes: int, least_bytes: int, depth: int
) -> None:
    monkeypatch.setattr(flight, "round_trips", lambda *_: rtts)
    pipe: Any = Idle(credits_bytes)
    assert flight.plan_flight(pipe, "read", least_bytes=least_bytes) == (MIB, depth, min(rtts))
    assert depth * MIB <= IN_FLIGHT_LIMIT_BYTES


def test_a_depth_that_was_given_is_kept_and_nothing_is_measured(monkeypatch: Any) -> None:
    monkeypatch.setattr(flight, "round_trips", None)
    pipe: Any = Idle()
    assert flight.plan_flight(pipe, "read", 64 * 1024, 2) == (64 * 1024, 2, None)
    assert pipe.asked == [(64 * 1024, 2)]
