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


def columns(count: int = LOOKS, **told: Any) -> dict[str, list[Any]]:
    """The same figure at each look, or one by its number."""
    made = {
        name: [each(at) if callable(each) else each for at in range(count)]
        for name, each in told.items()
    }
    return {"elapsed_seconds": [(at + 0.5) * SECONDS / count for at in range(count)], **made}


def socket(moves: str = "", rate: float = 25e6, **told: Any) -> dict[str, Any]:
    """A connection; moves: the count that grows, acknowledged_bytes or received_bytes."""
    counts = dict.fromkeys(("acknowledged_bytes", "received_bytes"), 0)

    def grows(at: int) -> float:
        return at * rate * SECONDS / LOOKS

    made = columns(**{**IDLE_SOCKET, **counts, **({moves: grows} if moves else {}), **told})
    buffers = {"send_buffer_bytes": 4 * MIB, "receive_buffer_bytes": 6 * MIB}
    return {**made, **buffers, "segment_bytes": SEGMENT}


def threads(**told: Any) -> dict[str, Any]:
    """The file server's; asleep unless told otherwise."""
    asleep = {"running": 0, "disk": 0, "busiest_ratio": 0.02, "all_ratio": 0.03}
    return columns(**{**asleep, "run_seconds": 0.1, "wait_seconds": 0.0, **told})


def looks(connection: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"connection": connection, "threads": {}, "counts": {}, **more}


def bins(run: float = 0.05, wait: float = 0.0, **walls: float) -> list[list[float]]:
    """Of 50 ms each; run, wait and walls: shares of the time."""
    count = int(SECONDS / 0.05)
    return [
        [
            0.05 * at,
            *(0.05 * walls.get(kind, 0.0) if at else 0.0 for kind in KINDS),
            0.05 * at * run,
            0.05 * at * wait,
        ]
        for at in range(count + 1)
    ]


def copy(
    pull: bool = True,
    bins: list[list[float]] | None = None,
    requests: list[Any] | None = None,
    client: dict[str, Any] | None = None,
    server: dict[str, Any] | None = None,
    rate: float = 25e6,
    **more: Any,
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
    told = {
        "flush_seconds": 0.0,
        "usages": {"client": usage(), "server": usage()},
        "link_rates": {},
        "flushes": 1.0,
        "requests": 100.0,
        "moved_bytes": rate * SECONDS,
        **more,
    }
    return TimedCopy(trace=trace, pull=pull, asking="client", serving="server", **told)
