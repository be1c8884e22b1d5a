"""One transfer between two ends, memory to memory, by the receiver's count.

The stages tcp, loopback, sweep and matrix use it. Its window opens at the receiver after the
warm-up, and closes there when the time is over or the first stream ends: all streams run for all
of it, nothing that is still under way is counted, and only the receiver's clock is used.
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
from probes.net.windows import run_to_end
from probes.sockets import limits, tcp_info

VERBS = ("push", "pull")
INTERVAL_SECONDS = 0.1
"""Shortest time between two samples: a shorter one shows bursts of the path, not its rate."""
MAX_WARM_UP_SECONDS = 2.0
WARM_UP_RATIO = 0.35
ENOUGH_SECONDS = 2.4
"""Time to measure that suffices: the rest of a longer run is for a long path's slow start."""
WHOLE_RATIO = 0.1
"""Share of the time to wait for a moment without a hole where the window opens or closes."""
LEAST_RATIO = 0.25
"""Shortest window as a share of the time: a shorter one shows a burst, not a rate."""
DRAIN_SECONDS = 0.1
"""Wait after the window for what is under way, which would disturb the next step."""
REASON_SECONDS = 0.5
MOST_BUFFER_BYTES = 256 << 20
"""Buffers of all streams together: a probe's memory limit is twice as much."""
MOST_WINDOW_BYTES = 1 << 30


@dataclass(frozen=True)
class Shape:
    """The settings of one transfer."""

    verb: str = "push"
    """push: the initiator sends; pull: it receives."""
    streams: int = 1
    buffer_bytes: int = 256 << 10
    """Size of each send and receive call, at most payload.LONGEST_BLOCK_BYTES."""
    seconds: float = 2.0
    """The whole time, warm-up included."""
    window_bytes: int = 0
    """SO_SNDBUF of the sender and SO_RCVBUF of the receiver, as requested; 0: autotuned."""
    zero_copy: bool = False
    """Whether the sender's kernel takes the payload from a file in memory without copying it."""
    bytes_per_second: float = 0.0
    """Rate to which the sender's kernel paces all streams together; 0: unlimited."""
    copies: bool = False
    """Whether the receiver copies the payload out of its kernel, as any program that uses it."""

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
class Transfer:
    """The figures of a finished transfer.

    Each end describes its own window, by its own clock: `seconds`; `moved_bytes` and the `calls`
    that carried them; `seconds_per_call`, of one stream; `granted_bytes`, SO_SNDBUF or SO_RCVBUF
    as the kernel reports it at the end (Linux: twice the requested size); `cpu_seconds` of all
    processes and interrupts on the cores that this host may use; `user_seconds` and
    `system_seconds`, the CPU time of the process that moves the payload. Unknown ones are absent.
    """

    samples: Tuple[Sample, ...]
    """The receiver's, from (0.0, 0), where the warm-up ends, to a Last."""
    sender: Details
    receiver: Details
    limits: Details
    congestion_control: Optional[str]
    """Algorithm of the sending socket."""
    rtt_unloaded_seconds: Optional[float]
    """The shortest round trip of the sender's connections before any payload."""


def respond(
    address: str, most_seconds: float, window_bytes: int = 0
) -> AbstractContextManager[Endpoint]:
    """Answers transfers of up to most_seconds and one window each until closed; see port.listen."""
    # Made before a peer waits for it: a CPU quota can stretch it to seconds.
    ring = _process_ring()

    def serve(meeting: Meeting) -> None:
        request = dict(meeting.request)
        shape = Shape(**{name: request[name] for name in Shape.__dataclass_fields__})
        if shape.seconds > most_seconds or shape.streams != len(meeting.connections):
            raise ValueError("another transfer than this session's")
        if shape.window_bytes != window_bytes:
            raise ValueError(f"this session's window is {window_bytes} bytes")
        _respond(meeting, shape, ring)

    return port.listen(address, serve, window_bytes)


def initiate(shape: Shape, peer: Endpoint) -> Generator[Sample, None, Transfer]:
    """Moves payload for the shape's seconds; yields the receiver's samples.

    Raises Unavailable where the port cannot be reached, RuntimeError where the transfer breaks.
    """
    pushes = shape.verb == "push"
    ring = _process_ring() if pushes else memoryview(b"")
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
    return Transfer(
        tuple(samples),
        sender,
        receiver,
        limits.step_details(sender.pop("seen"), receiver.pop("seen"), name),
        name,
        sender.pop("rtt_unloaded_seconds", None),
    )


@functools.lru_cache(maxsize=1)
def _process_ring() -> memoryview:
    """Returns this process's payload, made once: a sweep has dozens of transfers."""
    return payload.make_ring(secrets.token_bytes(16))


Halves = Tuple[List[Sample], Details, Details]


def _push(
    meeting: Meeting, flow: Flow, shape: Shape, ring: memoryview
) -> Generator[Sample, None, Halves]:
    began = time.monotonic()
    sending = _Sending(flow, shape, ring)
    reply: Details = {}
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
        if "samples" not in reply and meeting.waits():
            reply = meeting.hear(port.STALL_SECONDS)
            if "sample" in reply:
                passing += _samples([reply["sample"]])
                sent = sum(flow.totals) + under_way
                _check(passing[-2:], sent, 0.0, time.monotonic() - began)
                yield passing[-1]
    until = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while "samples" not in reply:
        reply = meeting.hear(until - time.monotonic())
    samples = _samples(reply.pop("samples"))
    # An honest receiver's window begins after the warm-up, but for its patience at both ends.
    shortest = (shape.seconds - _warm_up_seconds(shape)) / 4
    _check(samples, sum(flow.totals), shortest, time.monotonic() - began)
    samples[-1] = Last(samples[-1].elapsed_seconds, samples[-1].moved_bytes)
    if samples[: len(passing)] != passing:
        raise RuntimeError("the receiver's samples are not those that it told before")
    yield from samples[len(passing) :]
    return samples, sender, reply


def _samples(pairs: List[List[float]]) -> List[Sample]:
    return [Sample(float(elapsed), int(total)) for elapsed, total in pairs]


def _check(samples: List[Sample], sent_bytes: int, shortest: float, longest: float) -> None:
    """Raises RuntimeError for samples that run backwards, or exceed the bytes sent or the time."""
    pairs = list(zip(samples, samples[1:]))
    times = all(one.elapsed_seconds < other.elapsed_seconds for one, other in pairs)
    if not (pairs and times and all(one.moved_bytes <= other.moved_bytes for one, other in pairs)):
        raise RuntimeError("the receiver's samples are none")
    if samples[-1].moved_bytes > sent_bytes:
        raise RuntimeError("the receiver reports more bytes than were sent")
    if not shortest <= samples[-1].elapsed_seconds <= longest:
        raise RuntimeError("the receiver reports another time than it was sent to")


def _pull(meeting: Meeting, flow: Flow, shape: Shape) -> Generator[Sample, None, Halves]:
    samples: List[Sample] = []
    receiving = _receive(flow, shape)
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
    """Raises the responder's reason, if any, where the transfer breaks at this end."""
    try:
        yield
    except RuntimeError:
        with contextlib.suppress(EOFError, OSError, ValueError):
            meeting.hear(REASON_SECONDS)
        raise


def _respond(meeting: Meeting, shape: Shape, ring: memoryview) -> None:
    """Does the responder's half; its figures go back over the control connection."""
    flow = Flow(meeting.connections)
    try:
        if shape.verb == "push":
            samples: List[List[float]] = []
            receiving = _receive(flow, shape)
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
            meeting.tell(run_to_end(_Sending(flow, shape, ring).watch()))
        # This host's usage is read before the initiator closes: it includes the threads.
        flow.stop()
        meeting.wait_for_close(port.STALL_SECONDS)
    finally:
        flow.stop()
        flow.released.set()


def _warm_up_seconds(shape: Shape) -> float:
    far = shape.seconds - ENOUGH_SECONDS
    return min(MAX_WARM_UP_SECONDS, max(WARM_UP_RATIO * shape.seconds, far))


class _Window:
    """The window that one end describes, from its creation to `measure`."""

    def __init__(self, flow: Flow, option: int) -> None:
        self._flow, self._option = flow, option
        self._began = time.monotonic()
        self.looks = Sampling(flow, self._began)
        self._cores, self._times = read_cores(), os.times()
        self._moved, self._calls = sum(flow.totals), sum(flow.calls)

    def measure(self) -> Details:
        """Returns the figures that Transfer describes."""
        flow = self._flow
        seconds = time.monotonic() - self._began
        calls = sum(flow.calls) - self._calls
        details: Details = {
            "seconds": seconds,
            "moved_bytes": sum(flow.totals) - self._moved,
            "calls": calls,
            "granted_bytes": flow.connections[flow.busiest].getsockopt(
                socket.SOL_SOCKET, self._option
            ),
        }
        cores = busy_cores(self._cores, read_cores())
        if cores is not None:
            details["cpu_seconds"] = cores * seconds
        details.update(process_seconds(self._times))
        if calls:
            details["seconds_per_call"] = seconds * len(flow.connections) / calls
        return details


class _Sending:
    """The sending end; its creation starts it and waits for the end of the warm-up."""

    def __init__(self, flow: Flow, shape: Shape, ring: memoryview) -> None:
        self._flow, self._shape = flow, shape
        rtts = [tcp_info.read(each).get("min_rtt_seconds") for each in flow.connections]
        self._rtts = [each for each in rtts if each is not None]
        for each in flow.connections:
            # As in any bulk copy: a short rest of one call goes with the next, not as a packet.
            each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 0)
        if shape.bytes_per_second:
            flow.pace(shape.bytes_per_second)
        self._file = flows.payload_file(ring, shape.buffer_bytes) if shape.zero_copy else None
        self._until = time.monotonic() + shape.seconds
        if self._file:
            flow.start_threads(flows.send_file, self._file, shape.buffer_bytes, self._until)
        else:
            flow.start_threads(flows.send, ring, shape.buffer_bytes, self._until)
        flow.one_ended.wait(_warm_up_seconds(shape))
        self._window = _Window(flow, socket.SO_SNDBUF)

    def watch(self) -> Generator[None, None, Details]:
        """Yields at each sample until the time is over; returns the window's figures."""
        flow, sampling = self._flow, self._window.looks
        spacing = spacing_seconds(self._shape.seconds)
        while not flow.one_ended.is_set():
            sampling.at_sender()
            yield
            remaining = self._until - time.monotonic()
            if remaining <= 0 or flow.one_ended.wait(min(remaining, spacing)):
                break
        name = tcp_info.congestion_control(flow.connections[flow.busiest])
        details: Details = self._window.measure()
        # A call that waits for room in the buffer would outlast the time.
        flow.stop(socket.SHUT_WR)
        flow.ended.wait(port.STALL_SECONDS)
        if self._file:
            self._file.close()
        if flow.errors:
            raise RuntimeError(f"the transfer failed{flow.error_text()}")
        if name:
            details["congestion_control"] = name
        if self._rtts:
            details["rtt_unloaded_seconds"] = min(self._rtts)
        return {**details, "seen": sampling.sender_details()}


def _receive(flow: Flow, shape: Shape) -> Generator[Sample, None, Details]:
    """Receives; yields samples of what has arrived, read or not; returns the window's figures."""
    flow.start_threads(flows.receive, shape.buffer_bytes, shape.copies)
    deadline = time.monotonic() + shape.seconds + port.STALL_SECONDS
    while not any(flow.totals):
        if flow.ended.wait(0.001) or time.monotonic() > deadline:
            raise RuntimeError(f"no payload arrived{flow.error_text()}")
    closing = time.monotonic() + shape.seconds
    arrivals, patience = Arrivals(flow), WHOLE_RATIO * shape.seconds
    flow.one_ended.wait(_warm_up_seconds(shape))
    flow.gather(sum(flow.totals) / (time.monotonic() - closing + shape.seconds))
    opened = arrivals.count_without_hole(patience)
    base = opened.moved_bytes + opened.beyond_bytes
    window = _Window(flow, socket.SO_RCVBUF)
    yield Sample(0.0, 0)
    moved_bytes, sampled, spacing = 0, opened.before_seconds, spacing_seconds(shape.seconds)
    while not flow.one_ended.wait(max(0.0, min(spacing, closing - time.monotonic()))):
        if time.monotonic() >= closing:
            break
        count = arrivals.count()
        window.looks.at_receiver(count)
        is_exact = not count.beyond_bytes and count.moved_bytes >= base + moved_bytes
        if is_exact and count.after_seconds - sampled >= INTERVAL_SECONDS:
            moved_bytes, sampled = count.moved_bytes - base, count.after_seconds
            yield Sample(sampled - opened.before_seconds, moved_bytes)
    closed = arrivals.count_without_hole(0.0 if flow.one_ended.is_set() else patience)
    details = window.measure()
    moved_bytes = max(moved_bytes, closed.moved_bytes - base)
    if flow.errors:
        raise RuntimeError(f"the transfer failed{flow.error_text()}")
    if not moved_bytes:
        raise RuntimeError("nothing arrived after the warm-up")
    seconds = closed.after_seconds - opened.before_seconds
    if seconds < LEAST_RATIO * shape.seconds:
        raise RuntimeError(f"the transfer ended {seconds:.3f} s after its warm-up")
    yield Last(seconds, moved_bytes)
    return {**details, "seen": window.looks.receiver_details()}
