"""One transfer between two ends, memory to memory, by the receiver's count.

The stages tcp, loopback, sweep and matrix are made of it. Its window opens at the receiver when
the warm-up is over, and closes there when the time is over or the first stream ends: all streams
run for all of it, nothing that is still under way is counted, and no clock but the receiver's is.
"""

from __future__ import annotations

import contextlib
import functools
import os
import secrets
import socket
import time
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass
from typing import Generator, Iterator, List, Optional, Tuple

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last
from probes.files import payload
from probes.host.counters import busy_cores, process_seconds, read_cores
from probes.net import flow as flows
from probes.net import port
from probes.net.flow import Flow
from probes.net.port import Meeting
from probes.net.sampling import Arrivals, Sampling, spacing_seconds
from probes.net.windows import drained
from probes.sockets import limits, tcp_info

VERBS = ("push", "pull")
INTERVAL_SECONDS = 0.1
"""Between two samples at least: shorter ones show bursts of the path and not its rate."""
MAX_WARM_UP_SECONDS = 2.0
WARM_UP_RATIO = 0.35
ENOUGH_SECONDS = 2.4
"""To measure: a run that has more needs it for a long path's slow start."""
WHOLE_RATIO = 0.1
"""Of the time, in which a moment without a hole is waited for where the window opens or closes."""
LEAST_RATIO = 0.25
"""Of the time: a window that is shorter shows a burst and not a rate."""
DRAIN_SECONDS = 0.1
"""What is still under way then is let through for so long: it would be in the next step's way."""
REASON_SECONDS = 0.5
MOST_BUFFER_BYTES = 256 << 20
"""Of all streams together: a probe has no more than twice of it."""
MOST_WINDOW_BYTES = 1 << 30


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
    window_bytes: int = 0
    """SO_SNDBUF of the sender and SO_RCVBUF of the receiver, as asked for; 0: autotuned."""
    zero_copy: bool = False
    """Whether the sender's kernel takes the payload from a file in memory without copying it."""
    bytes_per_second: float = 0.0
    """The sender's kernel paces all streams together to it; 0: as fast as it goes."""
    copies: bool = False
    """Whether the receiver copies the payload out of its kernel, as whoever uses it has to."""

    def __post_init__(self) -> None:
        if self.verb not in VERBS or not 0 < self.streams <= port.MOST_CONNECTIONS:
            raise ValueError(f"no such transfer: {self.verb}, {self.streams} streams")
        if not 0 < self.buffer_bytes <= payload.LONGEST_BLOCK_BYTES or not self.seconds > 0:
            raise ValueError(f"no such transfer: {self.buffer_bytes} bytes, {self.seconds} s")
        if self.streams * self.buffer_bytes > MOST_BUFFER_BYTES:
            raise ValueError(f"{self.streams} buffers of {self.buffer_bytes} bytes are too many")
        if not 0 <= self.window_bytes <= MOST_WINDOW_BYTES:
            raise ValueError(f"no such window: {self.window_bytes} bytes")
        if not self.bytes_per_second >= 0:
            raise ValueError(f"no such rate: {self.bytes_per_second} bytes/s")


@dataclass(frozen=True)
class Moved:
    """What a transfer came to.

    Each end tells of its own window, by its own clock: `seconds`; `moved_bytes` and the `calls`
    that carried them; `seconds_per_call`, of one stream; `granted_bytes`, SO_SNDBUF or SO_RCVBUF
    as the kernel keeps it at the end (Linux: twice what was asked for); `cpu_seconds`, of all
    cores that this host may use, by whomever, interrupts included; `user_seconds` and
    `system_seconds`, the CPU time of the process that moves the payload. What is not known is
    absent.
    """

    samples: Tuple[Sample, ...]
    """From (0.0, 0), where the warm-up ends, to a Last; the receiver's."""
    sender: Details
    receiver: Details
    limits: Details
    """limits.step_details()."""
    congestion_control: Optional[str]
    """Of the sending socket."""
    rtt_unloaded_seconds: Optional[float]
    """The least round trip of the sender's connections before any payload."""


def respond(
    address: str, most_seconds: float, window_bytes: int = 0
) -> AbstractContextManager[Endpoint]:
    """Answers transfers of up to most_seconds and one window each until closed; see port.opened."""
    # Made before anybody waits: a CPU quota can stretch it to seconds.
    ring = _ring()

    def serve(meeting: Meeting) -> None:
        request = dict(meeting.request)
        shape = Shape(**{name: request[name] for name in Shape.__dataclass_fields__})
        if shape.seconds > most_seconds or shape.streams != len(meeting.connections):
            raise ValueError("another transfer than this session's")
        if shape.window_bytes != window_bytes:
            raise ValueError(f"this session's window is {window_bytes} bytes")
        _respond(meeting, shape, ring)

    return port.opened(address, serve, window_bytes)


def initiate(shape: Shape, peer: Endpoint) -> Generator[Sample, None, Moved]:
    """Moves payload for the shape's seconds; yields the receiver's samples.

    Raises Unavailable where the port cannot be reached, RuntimeError where the transfer breaks.
    """
    pushes = shape.verb == "push"
    ring = _ring() if pushes else memoryview(b"")
    window = (shape.window_bytes, 0) if pushes else (0, shape.window_bytes)
    meeting = port.meet(peer, asdict(shape), shape.streams, *window)
    flow = Flow(meeting.connections)
    try:
        move = _push(meeting, flow, shape, ring) if pushes else _pull(meeting, flow, shape)
        halves = yield from move
    except (EOFError, ConnectionError):
        raise RuntimeError(f"{peer.host}: the data connection was closed before its end") from None
    finally:
        flow.stop()
        flow.released.set()
        meeting.close()
    samples, sender, receiver = halves
    name = sender.pop("congestion_control", None)
    return Moved(
        tuple(samples),
        sender,
        receiver,
        limits.step_details(sender.pop("seen"), receiver.pop("seen"), name),
        name,
        sender.pop("rtt_unloaded_seconds", None),
    )


@functools.lru_cache(maxsize=1)
def _ring() -> memoryview:
    """This process's payload: a sweep has dozens of transfers, each of which begins at once."""
    return payload.ring(secrets.token_bytes(16))


Halves = Tuple[List[Sample], Details, Details]


def _push(
    meeting: Meeting, flow: Flow, shape: Shape, ring: memoryview
) -> Generator[Sample, None, Halves]:
    began = time.monotonic()
    sending = _Sending(flow, shape, ring)
    told: Details = {}
    under_way = shape.streams * max(shape.buffer_bytes, flows.GROUP_BYTES)
    passing = [Sample(0.0, 0)]
    yield passing[0]
    watching = sending.watch()
    while True:
        try:
            with _reason(meeting):
                next(watching)
        except StopIteration as end:
            sender: Details = end.value
            break
        if "samples" not in told and meeting.waits():
            told = meeting.hear(port.STALL_SECONDS)
            if "sample" in told:
                passing += _samples([told["sample"]])
                sent = sum(flow.moved) + under_way
                _check(passing[-2:], sent, 0.0, time.monotonic() - began)
                yield passing[-1]
    until = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while "samples" not in told:
        told = meeting.hear(until - time.monotonic())
    samples = _samples(told.pop("samples"))
    # An honest one's window is all behind the warm-up, but for its patience at both ends.
    least = (shape.seconds - _warm_up_seconds(shape)) / 4
    _check(samples, sum(flow.moved), least, time.monotonic() - began)
    samples[-1] = Last(samples[-1].elapsed_seconds, samples[-1].moved_bytes)
    if samples[: len(passing)] != passing:
        raise RuntimeError("the receiver's samples are not those that it told before")
    yield from samples[len(passing) :]
    return samples, sender, told


def _samples(told: List[List[float]]) -> List[Sample]:
    return [Sample(float(elapsed), int(moved)) for elapsed, moved in told]


def _check(samples: List[Sample], sent_bytes: int, least: float, most: float) -> None:
    """RuntimeError for a receiver's that run backwards, or exceed what we sent or its seconds."""
    pairs = list(zip(samples, samples[1:]))
    times = all(one.elapsed_seconds < other.elapsed_seconds for one, other in pairs)
    if not (pairs and times and all(one.moved_bytes <= other.moved_bytes for one, other in pairs)):
        raise RuntimeError("the receiver's samples are none")
    if samples[-1].moved_bytes > sent_bytes:
        raise RuntimeError("the receiver reports more bytes than were sent")
    if not least <= samples[-1].elapsed_seconds <= most:
        raise RuntimeError("the receiver reports another time than it was sent to")


def _pull(meeting: Meeting, flow: Flow, shape: Shape) -> Generator[Sample, None, Halves]:
    samples: List[Sample] = []
    receiving = _receiving(flow, shape)
    while True:
        try:
            with _reason(meeting):
                sample = next(receiving)
        except StopIteration as end:
            receiver: Details = end.value
            break
        samples.append(sample)
        yield sample
    flow.ended.wait(DRAIN_SECONDS)
    flow.stop()
    return samples, meeting.hear(shape.seconds + port.STALL_SECONDS), receiver


@contextlib.contextmanager
def _reason(meeting: Meeting) -> Iterator[None]:
    """Where the transfer breaks at this end, the responder may say why."""
    try:
        yield
    except RuntimeError:
        with contextlib.suppress(EOFError, OSError, ValueError):
            meeting.hear(REASON_SECONDS)
        raise


def _respond(meeting: Meeting, shape: Shape, ring: memoryview) -> None:
    """The responder's half; what it saw goes back over the control connection."""
    flow = Flow(meeting.connections)
    try:
        if shape.verb == "push":
            samples: List[List[float]] = []
            receiving = _receiving(flow, shape)
            while True:
                try:
                    sample = next(receiving)
                except StopIteration as end:
                    meeting.tell({"samples": samples, **end.value})
                    break
                samples.append([sample.elapsed_seconds, sample.moved_bytes])
                if sample.elapsed_seconds > 0 and not isinstance(sample, Last):
                    meeting.tell({"sample": samples[-1]})
            flow.ended.wait(DRAIN_SECONDS)
        else:
            for each in meeting.connections if shape.window_bytes else ():
                each.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, shape.window_bytes)
            meeting.tell(drained(_Sending(flow, shape, ring).watch()))
        # This host's usage is read before the initiator leaves: the threads are to be in it.
        flow.stop()
        meeting.wait_for_close(port.STALL_SECONDS)
    finally:
        flow.stop()
        flow.released.set()


def _warm_up_seconds(shape: Shape) -> float:
    far = shape.seconds - ENOUGH_SECONDS
    return min(MAX_WARM_UP_SECONDS, max(WARM_UP_RATIO * shape.seconds, far))


class _Window:
    """The span that one end tells of, from its making to `told`."""

    def __init__(self, flow: Flow, option: int) -> None:
        self._flow, self._option = flow, option
        self._began = time.monotonic()
        self.looks = Sampling(flow, self._began)
        self._cores, self._times = read_cores(), os.times()
        self._moved, self._calls = sum(flow.moved), sum(flow.calls)

    def told(self) -> Details:
        """As Moved describes it."""
        flow = self._flow
        seconds = time.monotonic() - self._began
        calls = sum(flow.calls) - self._calls
        told: Details = {
            "seconds": seconds,
            "moved_bytes": sum(flow.moved) - self._moved,
            "calls": calls,
            "granted_bytes": flow.connections[flow.busiest].getsockopt(
                socket.SOL_SOCKET, self._option
            ),
        }
        cores = busy_cores(self._cores, read_cores())
        if cores is not None:
            told["cpu_seconds"] = cores * seconds
        told.update(process_seconds(self._times))
        if calls:
            told["seconds_per_call"] = seconds * len(flow.connections) / calls
        return told


class _Sending:
    """The sending end, at work from its making; its warm-up is over then."""

    def __init__(self, flow: Flow, shape: Shape, ring: memoryview) -> None:
        self._flow, self._shape = flow, shape
        rtts = [tcp_info.read(each).get("min_rtt_seconds") for each in flow.connections]
        self._rtts = [each for each in rtts if each is not None]
        for each in flow.connections:
            # As in any bulk copy: a short rest of one call goes with the next, and not as a packet.
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        if shape.bytes_per_second:
            flow.pace(shape.bytes_per_second)
        self._file = flows.payload_file(ring, shape.buffer_bytes) if shape.zero_copy else None
        self._until = time.monotonic() + shape.seconds
        if self._file:
            flow.run(flows.send_file, self._file, shape.buffer_bytes, self._until)
        else:
            flow.run(flows.send, ring, shape.buffer_bytes, self._until)
        flow.first.wait(_warm_up_seconds(shape))
        self._window = _Window(flow, socket.SO_SNDBUF)

    def watch(self) -> Generator[None, None, Details]:
        """Yields at each look until its time is over; what its kernel knows of who limited it."""
        flow, looks = self._flow, self._window.looks
        spacing = spacing_seconds(self._shape.seconds)
        while not flow.first.is_set():
            looks.at_sender()
            yield
            left = self._until - time.monotonic()
            if left <= 0 or flow.first.wait(min(left, spacing)):
                break
        name = tcp_info.congestion_control(flow.connections[flow.busiest])
        told: Details = self._window.told()
        # A call that waits for room would hold on beyond the time.
        flow.stop(socket.SHUT_WR)
        flow.ended.wait(port.STALL_SECONDS)
        if self._file:
            self._file.close()
        if flow.errors:
            raise RuntimeError(f"the transfer failed{flow.why()}")
        if name:
            told["congestion_control"] = name
        if self._rtts:
            told["rtt_unloaded_seconds"] = min(self._rtts)
        return {**told, "seen": looks.of_sender()}


def _receiving(flow: Flow, shape: Shape) -> Generator[Sample, None, Details]:
    """The receiving end: samples of what has arrived, read or not; returns as Moved describes."""
    flow.run(flows.receive, shape.buffer_bytes, shape.copies)
    deadline = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while not any(flow.moved):
        if flow.ended.wait(0.001) or time.monotonic() > deadline:
            raise RuntimeError(f"no payload arrived{flow.why()}")
    closing = time.monotonic() + shape.seconds
    arrivals, patience = Arrivals(flow), WHOLE_RATIO * shape.seconds
    flow.first.wait(_warm_up_seconds(shape))
    flow.gather(sum(flow.moved) / (time.monotonic() - closing + shape.seconds))
    opened = arrivals.whole(patience)
    base = opened.moved_bytes + opened.beyond_bytes
    window = _Window(flow, socket.SO_RCVBUF)
    yield Sample(0.0, 0)
    moved, sampled, spacing = 0, opened.before_seconds, spacing_seconds(shape.seconds)
    while not flow.first.wait(max(0.0, min(spacing, closing - time.monotonic()))):
        if time.monotonic() >= closing:
            break
        count = arrivals.count()
        window.looks.at_receiver(count)
        whole = not count.beyond_bytes and count.moved_bytes >= base + moved
        if whole and count.after_seconds - sampled >= INTERVAL_SECONDS:
            moved, sampled = count.moved_bytes - base, count.after_seconds
            yield Sample(sampled - opened.before_seconds, moved)
    closed = arrivals.whole(0.0 if flow.first.is_set() else patience)
    told = window.told()
    moved = max(moved, closed.moved_bytes - base)
    if flow.errors:
        raise RuntimeError(f"the transfer failed{flow.why()}")
    if not moved:
        raise RuntimeError("nothing arrived after the warm-up")
    seconds = closed.after_seconds - opened.before_seconds
    if seconds < LEAST_RATIO * shape.seconds:
        raise RuntimeError(f"the transfer ended {seconds:.3f} s after its warm-up")
    yield Last(seconds, moved)
    return {**told, "seen": window.looks.of_receiver()}
