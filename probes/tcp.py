"""TCP between two hosts, memory to memory, by the receiver's count.

The data port is opened for this session alone: a connection that does not present the session's
nonce within two seconds is closed and counts for nothing. A control connection carries what the
responder saw; the data connections carry payload and nothing else.
"""

from __future__ import annotations

import contextlib
import hmac
import json
import secrets
import socket
import statistics
import struct
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Dict, Iterator, List, Optional, Tuple

from probes.host import payload, tcp_info
from probes.records import Details, Endpoint, Sample
from probes.stage import Last, Running, Unavailable

NAME = "tcp"

CONNECT_SECONDS = 5.0
HELLO_SECONDS = 2.0
STALL_SECONDS = 10.0
INTERVAL_SECONDS = 0.1
MAX_WARM_UP_SECONDS = 0.6
WARM_UP_RATIO = 0.35
"""Several streams lose packets at a shallow queue at first; what lies beyond a hole is not counted
as arrived until it is filled, and would seem to come faster than the link."""
_HELLO = struct.Struct("!8s32s4sH")
_MAGIC = b"cb-data1"
_CONTROL = 0xFFFF
_MAX_WAITING = 16


@dataclass(frozen=True)
class Setting:
    """One transfer: seconds is its whole time, warm-up included."""

    verb: str = "push"
    streams: int = 1
    buffer_bytes: int = 256 << 10
    seconds: float = 2.0
    address: str = ""
    """The responder's address to listen on; empty, or not one of its own: every address."""


@dataclass
class Flow:
    """The data connections of one transfer, at one end."""

    connections: List[socket.socket]
    moved: List[int] = field(default_factory=list)
    ended: threading.Event = field(default_factory=threading.Event)
    errors: List[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.moved = [0] * len(self.connections)

    def run(self, move: Any, *arguments: Any) -> None:
        """Starts one thread a connection; `ended` is set after the last."""
        threads = [
            threading.Thread(target=self._guard, args=(move, index, *arguments), daemon=True)
            for index in range(len(self.connections))
        ]

        def wait() -> None:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.ended.set()

        threading.Thread(target=wait, daemon=True).start()

    def _guard(self, move: Any, index: int, *arguments: Any) -> None:
        try:
            move(self, index, *arguments)
        except OSError as error:
            self.errors.append(str(error))

    def close(self) -> None:
        """Closes the data connections."""
        for connection in self.connections:
            connection.close()


def _send(flow: Flow, index: int, ring: memoryview, buffer_bytes: int, until: float) -> None:
    connection = flow.connections[index]
    offset = 0
    while time.monotonic() < until:
        block = payload.block(ring, offset, buffer_bytes)
        sent = connection.send(block)
        offset += sent
        flow.moved[index] += sent
    connection.shutdown(socket.SHUT_WR)


def _receive(flow: Flow, index: int, buffer_bytes: int) -> None:
    connection = flow.connections[index]
    buffer = memoryview(bytearray(buffer_bytes))
    while True:
        got = connection.recv_into(buffer)
        if not got:
            return
        flow.moved[index] += got


def _warm_up_seconds(setting: Setting) -> float:
    return min(MAX_WARM_UP_SECONDS, WARM_UP_RATIO * setting.seconds)


def _watch_receiver(flow: Flow, setting: Setting, seen: List[int]) -> Iterator[Sample]:
    """Samples of a receiving flow; the window opens after the warm-up, at payload's arrival.

    What counts is what has arrived, read or not: a receiver that was kept waiting and then empties
    its socket would else seem faster than the link.
    """
    deadline = time.monotonic() + setting.seconds + STALL_SECONDS
    while not any(flow.moved):
        if flow.ended.wait(0.001) or time.monotonic() > deadline:
            raise RuntimeError(f"no payload arrived{_why(flow)}")
    flow.ended.wait(_warm_up_seconds(setting))
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
        raise RuntimeError(f"the transfer broke{_why(flow)}")
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


def _why(flow: Flow) -> str:
    return f": {flow.errors[0]}" if flow.errors else ""


def _watch_sender(flow: Flow, setting: Setting) -> Details:
    """Waits for the sending flow's end; what its kernel knows of who limited it."""
    unsent: List[int] = []
    figures: Dict[str, Any] = {}
    name: Optional[str] = None
    deadline = time.monotonic() + setting.seconds + STALL_SECONDS
    while not flow.ended.wait(INTERVAL_SECONDS) and time.monotonic() < deadline:
        for connection in flow.connections:
            waiting = tcp_info.unsent_bytes(connection)
            if waiting is not None:
                unsent.append(waiting)
        figures = tcp_info.read(flow.connections[0])
        name = tcp_info.congestion_control(flow.connections[0])
    if flow.errors:
        raise RuntimeError(f"the transfer broke{_why(flow)}")
    if unsent:
        figures["unsent_bytes_median"] = statistics.median(unsent)
    return {"figures": figures, "congestion_control": name}


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


def window_rates(samples: List[Sample], windows: int = 3) -> List[float]:
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


# -- the responder -----------------------------------------------------------------------------


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Listens for one session; yields the port and the nonce that opens it."""
    nonce = secrets.token_hex(16)
    listener = _listen(setting.address)
    # Made before anybody waits: a CPU quota can stretch it to seconds.
    ring = payload.ring(secrets.token_bytes(16))
    server = threading.Thread(target=_serve, args=(listener, nonce, ring, setting), daemon=True)
    server.start()
    try:
        yield Endpoint(host=setting.address, port=listener.getsockname()[1], nonce=nonce)
    finally:
        # A thread that waits in accept would keep a merely closed port open.
        with contextlib.suppress(OSError):
            listener.shutdown(socket.SHUT_RDWR)
        listener.close()


def _listen(address: str) -> socket.socket:
    if address:
        family, _, _, _, where = socket.getaddrinfo(address, 0, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.bind(where)
            listener.listen(_MAX_WAITING)
            return listener
        except OSError:
            # Behind an address translation the address that clients use is not the host's own.
            listener.close()
    if socket.has_dualstack_ipv6():
        return socket.create_server(("", 0), family=socket.AF_INET6, dualstack_ipv6=True)
    return socket.create_server(("", 0))


def _serve(listener: socket.socket, nonce: str, ring: memoryview, setting: Setting) -> None:
    rendezvous = _Rendezvous(setting.streams)
    slots = threading.BoundedSemaphore(_MAX_WAITING)
    while True:
        try:
            connection, _ = listener.accept()
        except OSError:
            return
        if not slots.acquire(blocking=False):
            connection.close()
            continue
        threading.Thread(
            target=_admit, args=(connection, nonce, rendezvous, slots, ring, setting), daemon=True
        ).start()


@dataclass
class _Rendezvous:
    """Gathers the connections of one transfer: its control and its streams."""

    streams: int
    lock: threading.Lock = field(default_factory=threading.Lock)
    control: Optional[socket.socket] = None
    data: Dict[int, socket.socket] = field(default_factory=dict)

    def add(self, index: int, connection: socket.socket) -> Optional[Tuple[socket.socket, Flow]]:
        """Takes a connection; with the last one missing, the whole transfer."""
        with self.lock:
            if index == _CONTROL:
                self.control = connection
            elif index < self.streams:
                self.data[index] = connection
            if self.control is None or len(self.data) < self.streams:
                return None
            whole = self.control, Flow([self.data[i] for i in range(self.streams)])
            self.control, self.data = None, {}
            return whole


def _admit(
    connection: socket.socket,
    nonce: str,
    rendezvous: _Rendezvous,
    slots: threading.BoundedSemaphore,
    ring: memoryview,
    setting: Setting,
) -> None:
    try:
        hello = _read_exactly(connection, _HELLO.size, time.monotonic() + HELLO_SECONDS)
        magic, told, verb, index = _HELLO.unpack(hello)
        known = magic == _MAGIC and hmac.compare_digest(told, nonce.encode())
        if not known or verb.decode("ascii", "replace") != setting.verb:
            connection.close()
            return
    except (OSError, EOFError):
        connection.close()
        return
    finally:
        slots.release()
    _prepare(connection)
    whole = rendezvous.add(index, connection)
    if whole is not None:
        _transfer(*whole, ring, setting)


def _read_exactly(connection: socket.socket, size: int, deadline: float) -> bytes:
    got = b""
    while len(got) < size:
        left = deadline - time.monotonic()
        if left <= 0:
            raise EOFError("too late")
        connection.settimeout(left)
        part = connection.recv(size - len(got))
        if not part:
            raise EOFError("closed")
        got += part
    return got


def _prepare(connection: socket.socket) -> None:
    connection.settimeout(None)
    stall = struct.pack("ll", int(STALL_SECONDS), 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, stall)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, stall)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


def _transfer(control: socket.socket, flow: Flow, ring: memoryview, setting: Setting) -> None:
    """The responder's half; what it saw goes back over the control connection."""
    told: Dict[str, Any] = {}
    try:
        control.sendall(b"\n")
        if setting.verb == "push":
            unread: List[int] = []
            flow.run(_receive, setting.buffer_bytes)
            samples = list(_watch_receiver(flow, setting, unread))
            told["samples"] = [[s.elapsed_seconds, s.moved_bytes] for s in samples]
            told["unread"] = unread
        else:
            until = time.monotonic() + setting.seconds
            flow.run(_send, ring, setting.buffer_bytes, until)
            told["sender"] = _watch_sender(flow, setting)
    except (OSError, RuntimeError) as error:
        told["error"] = str(error)
    try:
        control.sendall(json.dumps(told).encode() + b"\n")
    except OSError:
        # The initiator is gone, and with it whoever would want to know.
        control.close()
    control.close()
    flow.close()


# -- the initiator -----------------------------------------------------------------------------


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Moves payload for the setting's seconds; samples are the receiver's.

    Returns:
        limits, congestion_control (of the sender), window_rates_bytes_per_second.
    """
    ring = payload.ring(secrets.token_bytes(16))
    control = _connect(peer, setting.verb, _CONTROL)
    flow = Flow([_connect(peer, setting.verb, index) for index in range(setting.streams)])
    try:
        _read_exactly(control, 1, time.monotonic() + CONNECT_SECONDS)
        if setting.verb == "push":
            samples, unread, sender = yield from _push(flow, control, ring, setting)
        else:
            samples, unread, sender = yield from _pull(flow, control, setting)
    except (EOFError, ConnectionResetError):
        raise RuntimeError(f"{peer.host}: the data connection was closed before its end") from None
    finally:
        control.close()
        flow.close()
    figures = sender["figures"]
    return {
        "limits": limits(figures, unread, figures.get("busy_seconds", 0.0)),
        "congestion_control": sender["congestion_control"],
        "window_rates_bytes_per_second": window_rates(samples),
    }


def _connect(peer: Endpoint, verb: str, index: int) -> socket.socket:
    try:
        connection = socket.create_connection((peer.host, peer.port), CONNECT_SECONDS)
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise Unavailable(
            f"{peer.host} port {peer.port} cannot be reached ({why}): "
            "a firewall blocks the session's data port"
        ) from None
    connection.sendall(_HELLO.pack(_MAGIC, peer.nonce.encode(), verb.encode(), index))
    _prepare(connection)
    return connection


def _heard(control: socket.socket, setting: Setting) -> Dict[str, Any]:
    deadline = time.monotonic() + setting.seconds + STALL_SECONDS
    got = b""
    while not got.endswith(b"\n"):
        got += _read_exactly(control, 1, deadline)
    told: Dict[str, Any] = json.loads(got)
    if "error" in told:
        raise RuntimeError(f"the responder says: {told['error']}")
    return told


Halves = Tuple[List[Sample], List[int], Details]


def _push(flow: Flow, control: socket.socket, ring: memoryview, setting: Setting) -> Any:
    flow.run(_send, ring, setting.buffer_bytes, time.monotonic() + setting.seconds)
    flow.ended.wait(_warm_up_seconds(setting))
    yield Sample(0.0, 0)
    sender = _watch_sender(flow, setting)
    told = _heard(control, setting)
    samples = [Sample(float(e), int(m)) for e, m in told["samples"]]
    yield from samples[1:-1]
    yield Last(samples[-1].elapsed_seconds, samples[-1].moved_bytes)
    return samples, told["unread"], sender


def _pull(flow: Flow, control: socket.socket, setting: Setting) -> Any:
    unread: List[int] = []
    samples: List[Sample] = []
    flow.run(_receive, setting.buffer_bytes)
    for sample in _watch_receiver(flow, setting, unread):
        samples.append(sample)
        yield sample
    return samples, unread, _heard(control, setting)["sender"]
