"""Builds copies whose trace shows one thing at a time."""

from __future__ import annotations

from typing import Any

from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import read
from probes.core.copy_trace import KINDS
from tests.analysis.conftest import usage

MIB = 1 << 20
SECONDS, LOOKS = 4.0, 80
SEGMENT = 1448.0
IDLE_SOCKET = {
    "unread_bytes": 0,
    "unsent_bytes": 0,
    "in_flight_bytes": 0,
    "peer_window_bytes": 4 * MIB,
    "own_window_bytes": 4 * MIB,
    "rtt_seconds": 2e-4,
    "min_rtt_seconds": 2e-4,
    "receive_rtt_seconds": 2e-4,
    "queued_bytes": 0,
    "retransmitted_bytes": 0,
    "out_of_order_segments": 0,
    "backoffs": 0,
    "since_acknowledged_seconds": 0,
    "since_received_seconds": 0,
}
SENDING = {"unsent_bytes": MIB, "in_flight_bytes": 64 << 10}
"""It has more than the path takes."""


def columns(count: int = LOOKS, **figures: Any) -> dict[str, list[Any]]:
    """Builds columns: a figure is the same at each look, or a function of its number."""
    rows = {
        name: [each(n) if callable(each) else each for n in range(count)]
        for name, each in figures.items()
    }
    return {"elapsed_seconds": [(n + 0.5) * SECONDS / count for n in range(count)], **rows}


def socket(moves: str = "", rate: float = 25e6, **figures: Any) -> dict[str, Any]:
    """A connection; moves: the count that grows, acknowledged_bytes or received_bytes."""
    counts = dict.fromkeys(("acknowledged_bytes", "received_bytes"), 0)

    def grows(n: int) -> float:
        return n * rate * SECONDS / LOOKS

    rows = columns(**{**IDLE_SOCKET, **counts, **({moves: grows} if moves else {}), **figures})
    buffers = {"send_buffer_bytes": 4 * MIB, "receive_buffer_bytes": 6 * MIB}
    return {**rows, **buffers, "segment_bytes": SEGMENT}


def threads(**figures: Any) -> dict[str, Any]:
    """The file server's; asleep unless told otherwise."""
    asleep = {"running": 0, "disk": 0, "busiest_ratio": 0.02, "all_ratio": 0.03}
    return columns(**{**asleep, "run_seconds": 0.1, "wait_seconds": 0.0, **figures})


def looks(connection: dict[str, Any], **extra: Any) -> dict[str, Any]:
    return {"connection": connection, "threads": {}, "counts": {}, **extra}


def bins(run: float = 0.05, wait: float = 0.0, **walls: float) -> list[list[float]]:
    """Builds bins of 50 ms each; run, wait and walls: shares of the time."""
    count = int(SECONDS / 0.05)
    return [
        [
            0.05 * n,
            *(0.05 * walls.get(kind, 0.0) if n else 0.0 for kind in KINDS),
            0.05 * n * run,
            0.05 * n * wait,
        ]
        for n in range(count + 1)
    ]


def copy(
    pull: bool = True,
    bins: list[list[float]] | None = None,
    requests: list[Any] | None = None,
    client: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    rate: float = 25e6,
    **extra: Any,
) -> TimedCopy:
    """A copy between a client, which makes it, and a server; without more, nobody works."""
    if bins is None:
        bins = globals()["bins"]()
    sends, gets = socket("acknowledged_bytes", rate), socket("received_bytes", rate)
    near = looks(gets if pull else sends) if client is None else client
    far = looks(sends if pull else gets, threads=threads()) if server is None else server
    sides = {"client": near} if server == {} else {"client": near, "server": far}
    trace = read({"trace": {"bins": bins, "requests": requests or []}, "looks": sides}, "client")
    assert trace is not None
    figures = {
        "flush_seconds": 0.0,
        "usages": {"client": usage(), "server": usage()},
        "link_rates": {},
        "flushes": 1.0,
        "requests": 100.0,
        "moved_bytes": rate * SECONDS,
        **extra,
    }
    return TimedCopy(trace=trace, pull=pull, asking="client", serving="server", **figures)
