"""Figures of a copy in a packet capture, as far as the analysis reads them.

A field's meaning is documented where it is computed (bottleneck/captures/figures.py).
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.core.lenient import Positive


@dataclass(frozen=True)
class CommandRow:
    """Requests of one command, and the waits for their replies."""

    command: str = ""
    requests: float = 0.0
    seconds_median: Positive | None = None
    seconds_high: Positive | None = None
    """Wait that nine of ten stay below."""
    seconds: float = 0.0
    """Sum of the waits."""


@dataclass(frozen=True)
class Turns:
    """Shares of a time by whose turn it was (bottleneck/captures/turns.py)."""

    client_ratio: float = 0.0
    server_ratio: float = 0.0
    moving_ratio: float = 0.0
    pause_ratio: float = 0.0
    loss_ratio: float = 0.0
    window_ratio: float = 0.0
    trip_ratio: float = 0.0


@dataclass(frozen=True)
class Capture(Turns):
    """Figures of a connection in a packet capture (bottleneck/captures/figures.py)."""

    point: str = ""
    points: float = 1
    """Captures of the connection, each from its point."""
    course: tuple[Turns, ...] = ()
    """Shares in each of some parts of the time, all of one length."""
    has_syn: bool = False
    has_stamps: bool = False
    rtt_seconds: Positive | None = None
    queue_seconds: float | None = None
    lost_ratio: float = 0.0
    lost_segments: float = 0.0
    lost_before: float = 0.0
    """Segments lost before they reached the point of the capture."""
    loss_episode_ratio: float = 0.0
    is_stuck: bool = False
    is_unanswered: bool = False
    is_cut: bool = False
    largest_window_bytes: Positive | None = None
    full_window_bytes: Positive | None = None
    is_flight_even: bool = False
    zero_windows: float = 0.0
    request_bytes: Positive | None = None
    depth: Positive | None = None
    asked_bytes: Positive | None = None
    others_ratio: float | None = None
    """Share of others' bytes on the copy's way; None: the capture holds no packet of others."""
    best_bytes_per_second: Positive | None = None
    spread_ratio: float | None = None
    slow_commands_ratio: float | None = None
    unseen_bytes: float = 0.0
    """Bytes that were acknowledged, and that the capture lacks."""
    signed: float = 0.0
    encrypted: float = 0.0
    commands: tuple[CommandRow, ...] = ()
