"""The kernel's figures of a TCP connection: tcp_info decoded by length, and the socket's queues.

Source: include/uapi/linux/tcp.h, struct tcp_info; tcp_get_info in net/ipv4/tcp.c;
include/uapi/linux/sockios.h. Times are the kernel's: microseconds, except where it says jiffies or
milliseconds.
"""

from __future__ import annotations

import contextlib
import socket
import struct
import sys
from typing import Dict, Optional, Sequence, Tuple, Union

Figures = Dict[str, Union[int, float]]

LINUX_OPTIONS = sys.platform.startswith("linux")
"""Whether a socket has the options of linux/tcp.h, linux/in.h and Linux' asm-generic/socket.h."""

INFO_BYTES = 512
"""More than any kernel's struct tcp_info."""
LISTEN = 10
"""The state in which the fields of the queues mean something else (net/tcp_states.h)."""
_MICRO, _MILLI = 1_000_000, 1_000
_U32 = 0xFFFFFFFF

_FIELDS = (
    ("state", 0, "B", 1, None),
    ("rtos_in_a_row", 2, "B", 1, None),
    ("backoffs", 4, "B", 1, None),
    ("rto_seconds", 8, "I", _MICRO, 0),
    ("segment_bytes", 16, "I", 1, 0),
    ("unacknowledged_segments", 24, "I", 1, None),
    ("since_received_seconds", 52, "I", _MILLI, None),
    ("since_acknowledged_seconds", 56, "I", _MILLI, None),
    ("path_mtu_bytes", 60, "I", 1, 0),
    ("rtt_seconds", 68, "I", _MICRO, 0),
    ("congestion_window_segments", 80, "I", 1, 0),
    ("receive_rtt_seconds", 92, "I", _MICRO, 0),
    ("retransmitted_segments", 100, "I", 1, None),
    ("acknowledged_bytes", 120, "Q", 1, None),
    ("received_bytes", 128, "Q", 1, None),
    ("unsent_bytes", 144, "I", 1, None),
    ("min_rtt_seconds", 148, "I", _MICRO, _U32),
    ("busy_seconds", 168, "Q", _MICRO, None),
    ("receive_window_limited_seconds", 176, "Q", _MICRO, None),
    ("send_buffer_limited_seconds", 184, "Q", _MICRO, None),
    ("sent_bytes", 200, "Q", 1, None),
    ("retransmitted_bytes", 208, "Q", 1, None),
    ("duplicates_reported", 216, "I", 1, None),
    ("out_of_order_segments", 224, "I", 1, None),
    ("peer_window_bytes", 228, "I", 1, None),
    ("own_window_bytes", 232, "I", 1, None),
    ("rto_time_seconds", 244, "I", _MILLI, None),
)
"""Name, offset, struct code, divisor, and the value that stands for "unknown".

A kernel that returns less does not know the rest. busy_seconds includes both limited times and is
counted in jiffies; backoffs are those of the timer that runs.
"""

_TIMESTAMPS_AT, _TIMESTAMPS = 5, 1
"""The byte of the connection's options, and the bit of this one."""
_MEMORY = (("receive_buffer_bytes", 1), ("send_buffer_bytes", 3), ("send_queue_bytes", 5))
"""Name and index in the SK_MEMINFO array; a queue's bytes of its buffer include overhead."""
_SO_MEMINFO = 55
_SIOCINQ, _SIOCOUTQNSD = 0x541B, 0x894B


def decode(raw: bytes, little_endian: bool = sys.byteorder == "little") -> Figures:
    """Returns the figures in an answer of getsockopt(TCP_INFO), as many as its length has.

    Unknown figures are absent and not 0; of a listening socket only the state is returned.
    timestamps is 0 or 1 (RFC 7323).
    """
    figures: Figures = {}
    order = "<" if little_endian else ">"
    for name, offset, code, divisor, unknown in _FIELDS:
        if offset + struct.calcsize(code) <= len(raw):
            (value,) = struct.unpack_from(order + code, raw, offset)
            if value != unknown:
                figures[name] = value if divisor == 1 else value / divisor
    if figures.get("state") == LISTEN:
        return {"state": LISTEN}
    if len(raw) > _TIMESTAMPS_AT:
        figures["timestamps"] = raw[_TIMESTAMPS_AT] & _TIMESTAMPS
    return figures


def decode_memory(raw: bytes) -> Figures:
    """Returns the buffers and their use, of SO_MEMINFO or sock_diag's SKMEMINFO attribute.

    Source: include/uapi/linux/sock_diag.h. A writer waits from the moment that its queue exceeds
    the buffer until the queue is back at two thirds of it (sk_stream_write_space).
    """
    return {
        name: struct.unpack_from("=I", raw, 4 * index)[0]
        for name, index in _MEMORY
        if 4 * index + 4 <= len(raw)
    }


def raw_memory(connection: socket.socket) -> bytes:
    """Reads the connection's SK_MEMINFO for decode_memory(); empty where the system has none."""
    if LINUX_OPTIONS:
        # Before Linux 4.12 there is no such option, and the figures go without.
        with contextlib.suppress(OSError):
            return connection.getsockopt(socket.SOL_SOCKET, _SO_MEMINFO, 64)
    return b""


def raw(connection: socket.socket) -> bytes:
    """Reads the connection's struct tcp_info for decode(); empty where the system has none."""
    if not LINUX_OPTIONS:
        return b""
    return connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES)


def read(connection: socket.socket) -> Figures:
    """Reads the connection's tcp_info and buffers; nothing where the system has none."""
    info = raw(connection)
    return {**decode(info), **decode_memory(raw_memory(connection))} if info else {}


def _queue(connection: socket.socket, request: int) -> Optional[int]:
    if not LINUX_OPTIONS:
        return None
    import fcntl

    answer = fcntl.ioctl(connection.fileno(), request, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def unread_bytes(connection: socket.socket) -> Optional[int]:
    """Returns the bytes received and not yet read by the application (SIOCINQ)."""
    return _queue(connection, _SIOCINQ)


def unsent_bytes(connection: socket.socket) -> Optional[int]:
    """Returns the bytes written by the application and not yet sent (SIOCOUTQNSD)."""
    return _queue(connection, _SIOCOUTQNSD)


def congestion_control(connection: socket.socket) -> Optional[str]:
    if not hasattr(socket, "TCP_CONGESTION"):
        return None
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0")[0].decode("ascii", "replace")


WINDOWS = sys.platform == "win32"
WHOLE = 0 if WINDOWS else socket.MSG_WAITALL
"""Flag that has a blocking receive fill its buffer, up to a timeout; 0: not with a timeout."""
SILENT = (BlockingIOError, TimeoutError)
"""Errors of a call that wait_at_most() ends."""
RECEIVING = (socket.SO_RCVTIMEO,)
BOTH = (socket.SO_RCVTIMEO, socket.SO_SNDTIMEO)
_LARGEST_BYTES = 64


def wait_at_most(connection: socket.socket, seconds: float, calls: Tuple[int, ...] = BOTH) -> None:
    """Has calls (RECEIVING, or BOTH: sending too) raise one of SILENT after some seconds.

    The socket stays blocking, so that WHOLE has an effect. Errors: ValueError for no time at all,
    which the kernel would take for no limit.
    """
    if not seconds > 0:
        raise ValueError(f"no time to wait: {seconds} s")
    if WINDOWS:
        # On Windows a socket is unusable after its own time-out (winsock, SO_RCVTIMEO).
        connection.settimeout(seconds)
        return
    for option in calls:
        # The kernel reports the size: it depends on the time_t of the option's number, not on long
        # (asm-generic/socket.h: SO_RCVTIMEO_OLD, SO_RCVTIMEO_NEW).
        size = len(connection.getsockopt(socket.SOL_SOCKET, option, _LARGEST_BYTES))
        connection.setsockopt(socket.SOL_SOCKET, option, timeval(seconds, size))


def keep_alive(
    connection: socket.socket, idle_seconds: int, again_seconds: int, tries: int, silent_ms: int
) -> None:
    """Has the kernel notice a lost connection, by those of its settings that the system has."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    values = {
        "TCP_KEEPIDLE": idle_seconds,
        "TCP_KEEPALIVE": idle_seconds,  # macOS has it by this name
        "TCP_KEEPINTVL": again_seconds,
        "TCP_KEEPCNT": tries,
        "TCP_USER_TIMEOUT": silent_ms,
    }
    for name, value in values.items():
        # Python may have a name that the system lacks; the other settings still work.
        with contextlib.suppress(OSError):
            if hasattr(socket, name):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def send_parts(
    connection: socket.socket, parts: Sequence[Union[bytes, bytearray, memoryview]]
) -> int:
    """Sends parts in one call; returns how many bytes were sent."""
    return connection.send(b"".join(parts)) if WINDOWS else connection.sendmsg(parts)


def timeval(seconds: float, size_bytes: int) -> bytes:
    """Returns a struct timeval of 8 or 16 bytes; pure."""
    full_seconds, micro = divmod(max(1, round(seconds * 1e6)), 1_000_000)
    return struct.pack({8: "@ii", 16: "@qq"}[size_bytes], full_seconds, micro)
