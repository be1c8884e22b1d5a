"""The window that a copy chooses: what the path's RTT needs, and no more."""

from __future__ import annotations

from typing import Any

import pytest

from probes.smb import pipe as flight
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, shape

MIB = 1 << 20


class Idle:
    """A Pipe that is asked for windows and nothing else."""

    outstanding = 0

    def __init__(self, credits_bytes: int = 1 << 30) -> None:
        self.asked: list[tuple[int, int]] = []
        self._credits_bytes = credits_bytes

    def prepare(self, verb: str, request_bytes: int, depth: int) -> tuple[int, int]:
        self.asked.append((request_bytes, depth))
        request_bytes, depth = shape(request_bytes or MIB, 8 * MIB, depth or 4)
        return request_bytes, min(depth, self._credits_bytes // request_bytes)


@pytest.fixture
def path(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the round trips that ECHOs of the path take."""

    def of(*seconds: float) -> None:
        monkeypatch.setattr(flight, "round_trips", lambda *_: list(seconds))

    return of


@pytest.mark.parametrize(
    ("rtt", "depth"), [(0.0001, 4), (0.001, 4), (0.002, 8), (0.01, 32), (0.026, 64), (1.0, 64)]
)
def test_the_window_grows_with_the_rtt_up_to_its_limit(path: Any, rtt: float, depth: int) -> None:
    path(rtt)
    chosen = flight.fitting(Idle(), "read")  # type: ignore[arg-type]
    assert chosen == (MIB, depth, rtt)
    assert depth * MIB <= IN_FLIGHT_LIMIT_BYTES


def test_one_slow_answer_deepens_nothing(path: Any) -> None:
    path(0.3, 0.0002, 0.4)
    assert flight.fitting(Idle(), "write").shape == (MIB, 4)  # type: ignore[arg-type]


def test_the_servers_credits_bound_it(path: Any) -> None:
    path(0.01)
    assert flight.fitting(Idle(8 * MIB), "read").shape == (MIB, 8)  # type: ignore[arg-type]


def test_a_depth_that_was_given_is_kept_and_nothing_is_measured(monkeypatch: Any) -> None:
    monkeypatch.setattr(flight, "round_trips", None)
    pipe: Any = Idle()
    assert flight.fitting(pipe, "read", 64 * 1024, 2) == (64 * 1024, 2, None)
    assert pipe.asked == [(64 * 1024, 2)]


def test_a_least_holds_on_a_short_path_and_gives_way_on_a_long_one(path: Any) -> None:
    pipe: Any = Idle()
    path(0.0001)
    assert flight.fitting(pipe, "read", least_bytes=16 * MIB).depth == 16
    path(0.01)
    assert flight.fitting(pipe, "read", least_bytes=16 * MIB).depth == 32
