"""The tcp stage's transfer with classic ttcp or pcattcp at the other end, as sender and receiver.

Its protocol is none: one connection to port 5001 whose bytes are the payload, and whose end is the
end of the test. Of a push counts what the other host's TCP has acknowledged; the clock stops when
that end closes, having read all. Source: ttcp.c (Mike Muuss, Terry Slattery, 1984-1987).
"""

from __future__ import annotations

import contextlib
import secrets
import socket
import time
from contextlib import closing
from dataclasses import dataclass

from probes.drivers import iperf3
from probes.host import payload, tcp_info
from probes.meaning import Count
from probes.net import flow as flows
from probes.net.flow import Flow
from probes.records import Endpoint, Sample
from probes.stage import Last, Running, Unavailable

PORT = 5001
CONNECT_SECONDS = 5.0
CALL_SECONDS = 15.0
"""How long somebody at the other host has to start its sender."""
STALL_SECONDS = 10.0
INTERVAL_SECONDS = 0.1
WARM_UP_RATIO = 0.2
"""Of a push's time: the start of TCP."""


@dataclass(frozen=True)
class Setting(iperf3.Setting):
    """One transfer; of a pull the other end alone decides when it is over."""

    buffer_bytes: Count = 64 << 10


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """push: sends to `ttcp -r -s` there; pull: waits here for what `ttcp -t -s` there sends.

    peer: host and port. Raises Unavailable where nobody is there or calls, RuntimeError where the
    transfer breaks.
    """
    if setting.streams != 1:
        raise Unavailable("ttcp supports one stream only")
    if setting.verb == "push":
        return (yield from _push(setting, peer))
    return (yield from _pull(setting, peer))


def _push(setting: Setting, peer: Endpoint) -> Running:
    ring = payload.ring(secrets.token_bytes(16))
    port = peer.port or PORT
    try:
        connection = socket.create_connection((peer.host, port), CONNECT_SECONDS)
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise Unavailable(
            f"ttcp at {peer.host} port {port}: {why}; on that host, run: ttcp -r -s (pcattcp -r)"
        ) from None
    with closing(connection):
        connection.settimeout(STALL_SECONDS)
        flow = Flow([connection])
        if setting.window_bytes:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, setting.window_bytes)
        if setting.bytes_per_second:
            flow.pace(setting.bytes_per_second)
        flow.run(flows.send, ring, setting.buffer_bytes, time.monotonic() + setting.seconds)
        flow.ended.wait(WARM_UP_RATIO * setting.seconds)
        began, base = time.monotonic(), _acknowledged(flow)
        yield Sample(0.0, 0)
        while not flow.ended.wait(INTERVAL_SECONDS):
            yield Sample(time.monotonic() - began, _acknowledged(flow) - base)
        if flow.errors:
            raise RuntimeError(f"{peer.host}: the transfer failed{flow.why()}")
        figures, control = tcp_info.read(connection), tcp_info.congestion_control(connection)
        _await_close(connection, peer, time.monotonic() + STALL_SECONDS)
        acknowledged = tcp_info.read(connection).get("acknowledged_bytes")
        if acknowledged is not None and acknowledged < sum(flow.moved):
            # the rest moved nowhere
            raise RuntimeError(f"{peer.host}: its ttcp ended before it had received all data")
        yield Last(time.monotonic() - began, sum(flow.moved) - base)
    limits = {"by": "unknown", **figures}
    return {"engine": "ttcp", "limits": limits, "congestion_control": control}


def _acknowledged(flow: Flow) -> int:
    """Bytes that the other host's TCP has."""
    waiting = (tcp_info.unacknowledged_bytes(each) or 0 for each in flow.connections)
    return sum(flow.moved) - sum(waiting)


def _await_close(connection: socket.socket, peer: Endpoint, until: float) -> None:
    """A receiver closes when it has read all; until: by the monotonic clock, whatever it says."""
    with contextlib.suppress(ConnectionResetError):  # how some close
        while (left := until - time.monotonic()) > 0:
            connection.settimeout(left)
            try:
                if not connection.recv(4096):
                    return
            except TimeoutError:
                break
        raise RuntimeError(f"{peer.host}: its ttcp did not end after the last byte")


def _pull(setting: Setting, peer: Endpoint) -> Running:
    port = peer.port or PORT
    with closing(_answer(peer, port)) as connection:
        connection.settimeout(STALL_SECONDS)
        flow = Flow([connection])
        flow.run(flows.receive, setting.buffer_bytes)
        deadline = time.monotonic() + setting.seconds + STALL_SECONDS
        began = time.monotonic()
        yield Sample(0.0, 0)
        while not flow.ended.wait(INTERVAL_SECONDS) and time.monotonic() < deadline:
            yield Sample(time.monotonic() - began, sum(flow.moved))
        if flow.errors:
            raise RuntimeError(f"{peer.host}: the transfer failed{flow.why()}")
        yield Last(time.monotonic() - began, sum(flow.moved))
    return {"engine": "ttcp", "limits": {"by": "unknown"}, "congestion_control": None}


def _answer(peer: Endpoint, port: int) -> socket.socket:
    """The call of that host and of no other."""
    wanted = {each[4][0] for each in socket.getaddrinfo(peer.host, None, socket.AF_INET)}
    try:
        listener = socket.create_server(("", port))
    except OSError as error:
        raise Unavailable(f"port {port} of this host is in use ({error.strerror})") from None
    until = time.monotonic() + CALL_SECONDS
    with closing(listener):
        while (left := until - time.monotonic()) > 0:
            listener.settimeout(left)
            try:
                connection, (address, _) = listener.accept()
            except TimeoutError:
                break
            if address in wanted:
                return connection
            connection.close()
    raise Unavailable(
        f"no connection from {peer.host} within {CALL_SECONDS:.0f} s; run there, towards "
        "this host: ttcp -t -s -l 65536 -n 16384 (pcattcp -t)"
    )
