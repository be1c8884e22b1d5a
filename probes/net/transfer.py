"""One transfer between two ends, memory to memory, by the receiver's count.

The stages tcp, loopback, sweep and matrix are made of it.
"""

from __future__ import annotations

import secrets
import statistics
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Any, Dict, Generator, Iterator, List, Optional, Tuple

from probes.host import payload, tcp_info
from probes.net import flow as flows
from probes.net import port
from probes.net.flow import Flow
from probes.net.port import Meeting
from probes.records import Details, Endpoint, Sample
from probes.stage import Last

VERBS = ("push", "pull")
INTERVAL_SECONDS = 0.1
MAX_WARM_UP_SECONDS = 0.6
WARM_UP_RATIO = 0.35
"""Several streams lose packets at a shallow queue at first; what lies beyond a hole is not counted
as arrived until it is filled, and would seem to come faster than the link."""


@dataclass(frozen=True)
class Shape:
    """What one transfer is like."""

    verb: str = "push"
    """push: the initiator sends; pull: it receives."""
    streams: int = 1
    buffer_bytes: int = 256 << 10
    """Of each send and receive call, at most payload.LONGEST_BLOCK_BYTES."""
    seconds: float = 2.0
    """Its whole time, warm-up included."""

    def __post_init__(self) -> None:
        if self.verb not in VERBS or not 0 < self.streams <= port.MOST_CONNECTIONS:
            raise ValueError(f"no such transfer: {self.verb}, {self.streams} streams")
        if not 0 < self.buffer_bytes <= payload.LONGEST_BLOCK_BYTES or not self.seconds > 0:
            raise ValueError(f"no such transfer: {self.buffer_bytes} bytes, {self.seconds} s")


@dataclass(frozen=True)
class Moved:
    """What a transfer came to."""

    samples: Tuple[Sample, ...]
    """From (0.0, 0), where the warm-up ends, to a Last; the receiver's."""
    sender: Details
    """calls, cpu_seconds, granted_bytes (SO_SNDBUF as the kernel keeps it), figures ..."""
    receiver: Details
    """calls, cpu_seconds, granted_bytes (SO_RCVBUF), unread ..."""
    limits: Details
    congestion_control: Optional[str]
    """Of the sending socket."""


def respond(
    address: str, most_seconds: float, receive_buffer_bytes: int = 0, send_buffer_bytes: int = 0
) -> AbstractContextManager[Endpoint]:
    """Answers transfers of up to most_seconds each until closed; see port.opened."""
    # Made before anybody waits: a CPU quota can stretch it to seconds.
    ring = payload.ring(secrets.token_bytes(16))

    def serve(meeting: Meeting) -> None:
        request = dict(meeting.request)
        shape = Shape(**{name: request[name] for name in Shape.__dataclass_fields__})
        if shape.seconds > most_seconds or shape.streams != len(meeting.connections):
            raise ValueError("another transfer than this session's")
        _respond(meeting, shape, ring)

    del send_buffer_bytes
    return port.opened(address, serve, receive_buffer_bytes)


def initiate(
    shape: Shape, peer: Endpoint, send_buffer_bytes: int = 0, receive_buffer_bytes: int = 0
) -> Generator[Sample, None, Moved]:
    """Moves payload for the shape's seconds; yields the receiver's samples.

    Raises Unavailable where the port cannot be reached, RuntimeError where the transfer breaks.
    """
    ring = payload.ring(secrets.token_bytes(16))
    meeting = port.meet(peer, asdict(shape), shape.streams, send_buffer_bytes, receive_buffer_bytes)
    try:
        if shape.verb == "push":
            samples, receiver, sender = yield from _push(meeting, shape, ring)
        else:
            samples, receiver, sender = yield from _pull(meeting, shape)
    except (EOFError, ConnectionResetError):
        raise RuntimeError(f"{peer.host}: the data connection was closed before its end") from None
    finally:
        meeting.close()
    figures = sender["figures"]
    return Moved(
        tuple(samples),
        sender,
        receiver,
        limits(figures, receiver["unread"], figures.get("busy_seconds", 0.0)),
        sender["congestion_control"],
    )


Halves = Tuple[List[Sample], Details, Details]


def _push(meeting: Meeting, shape: Shape, ring: memoryview) -> Generator[Sample, None, Halves]:
    flow = Flow(meeting.connections)
    flow.run(flows.send, ring, shape.buffer_bytes, time.monotonic() + shape.seconds)
    flow.ended.wait(_warm_up_seconds(shape))
    yield Sample(0.0, 0)
    sender = _watch_sender(flow, shape)
    told = meeting.hear(shape.seconds + port.STALL_SECONDS)
    samples = [Sample(float(e), int(m)) for e, m in told.pop("samples")]
    yield from samples[1:-1]
    samples[-1] = Last(samples[-1].elapsed_seconds, samples[-1].moved_bytes)
    yield samples[-1]
    return samples, told, sender


def _pull(meeting: Meeting, shape: Shape) -> Generator[Sample, None, Halves]:
    flow = Flow(meeting.connections)
    flow.run(flows.receive, shape.buffer_bytes)
    unread: List[int] = []
    samples: List[Sample] = []
    for sample in _watch_receiver(flow, shape, unread):
        samples.append(sample)
        yield sample
    told = meeting.hear(shape.seconds + port.STALL_SECONDS)
    return samples, {"unread": unread, "calls": sum(flow.calls)}, told


def _respond(meeting: Meeting, shape: Shape, ring: memoryview) -> None:
    """The responder's half; what it saw goes back over the control connection."""
    flow = Flow(meeting.connections)
    if shape.verb == "push":
        unread: List[int] = []
        flow.run(flows.receive, shape.buffer_bytes)
        samples = list(_watch_receiver(flow, shape, unread))
        meeting.tell(
            {
                "samples": [[s.elapsed_seconds, s.moved_bytes] for s in samples],
                "unread": unread,
                "calls": sum(flow.calls),
            }
        )
    else:
        flow.run(flows.send, ring, shape.buffer_bytes, time.monotonic() + shape.seconds)
        meeting.tell(_watch_sender(flow, shape))


def _warm_up_seconds(shape: Shape) -> float:
    return min(MAX_WARM_UP_SECONDS, WARM_UP_RATIO * shape.seconds)


def _watch_receiver(flow: Flow, shape: Shape, seen: List[int]) -> Iterator[Sample]:
    """Samples of a receiving flow; the window opens after the warm-up, at payload's arrival.

    What counts is what has arrived, read or not: a receiver that was kept waiting and then empties
    its socket would else seem faster than the link.
    """
    deadline = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while not any(flow.moved):
        if flow.ended.wait(0.001) or time.monotonic() > deadline:
            raise RuntimeError(f"no payload arrived{flow.why()}")
    flow.ended.wait(_warm_up_seconds(shape))
    began, base = time.monotonic(), _arrived(flow, [])
    moved = 0
    yield Sample(0.0, 0)
    while not flow.ended.wait(INTERVAL_SECONDS):
        now = time.monotonic()
        moved = max(moved, _arrived(flow, seen) - base)
        yield Sample(now - began, moved)
        if now > deadline:
            raise RuntimeError(f"the transfer stalled after {sum(flow.moved)} bytes")
    if flow.errors:
        raise RuntimeError(f"the transfer broke{flow.why()}")
    yield Last(time.monotonic() - began, sum(flow.moved) - base)


def _arrived(flow: Flow, seen: List[int]) -> int:
    """Payload that reached this host; the sockets' unread queues are added to `seen`."""
    total = sum(flow.moved)
    for connection in flow.connections:
        unread = tcp_info.unread_bytes(connection)
        if unread is not None:
            seen.append(unread)
            total += unread
    return total


def _watch_sender(flow: Flow, shape: Shape) -> Details:
    """Waits for the sending flow's end; what its kernel knows of who limited it."""
    unsent: List[int] = []
    figures: Dict[str, Any] = {}
    name: Optional[str] = None
    deadline = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while not flow.ended.wait(INTERVAL_SECONDS) and time.monotonic() < deadline:
        for connection in flow.connections:
            waiting = tcp_info.unsent_bytes(connection)
            if waiting is not None:
                unsent.append(waiting)
        figures = tcp_info.read(flow.connections[0])
        name = tcp_info.congestion_control(flow.connections[0])
    if flow.errors:
        raise RuntimeError(f"the transfer broke{flow.why()}")
    if unsent:
        figures["unsent_bytes_median"] = statistics.median(unsent)
    return {"figures": figures, "congestion_control": name, "calls": sum(flow.calls)}


def limits(figures: Dict[str, Any], unread: List[int], busy_seconds: float) -> Details:
    """Who limits one transfer, with the figures behind it.

    Source: the order of the tests is that of Dapper (SOSR 2017) with thresholds measured over 81
    planted cases: the receiver's unread queue, then the sender's chronographs, then its queue.
    """
    told = dict(figures)
    if unread:
        told["unread_bytes_median"] = statistics.median(unread)
    by = "unknown"
    if figures and unread and busy_seconds > 0:
        by = "network"
        if told["unread_bytes_median"] >= 16 << 10:
            by = "receiver"
        elif figures.get("send_buffer_limited_seconds", 0) / busy_seconds > 0.2:
            by = "send-buffer"
        elif figures.get("receive_window_limited_seconds", 0) / busy_seconds > 0.2:
            by = "receive-window"
        elif figures.get("unsent_bytes_median", 1 << 30) < 64 << 10:
            by = "sender"
    return {"by": by, **told}


def window_rates(samples: Tuple[Sample, ...], windows: int = 3) -> List[float]:
    """Bytes per second of consecutive parts of one transfer; none where it was too short."""
    if len(samples) < 3 * windows:
        return []
    size = len(samples) // windows
    edges = [*(samples[i * size] for i in range(windows)), samples[-2]]
    return [
        (b.moved_bytes - a.moved_bytes) / (b.elapsed_seconds - a.elapsed_seconds)
        for a, b in zip(edges, edges[1:])
        if b.elapsed_seconds > a.elapsed_seconds
    ]
