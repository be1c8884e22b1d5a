"""What the kernel knows of a TCP connection: tcp_info decoded by length, and the socket's queues.

Source: include/uapi/linux/tcp.h, struct tcp_info; include/uapi/linux/sockios.h.
"""

from __future__ import annotations

import socket
import struct
import sys
from typing import Dict, Optional, Union

Figures = Dict[str, Union[int, float]]

_FIELDS = (
    ("rto_seconds", 8, "I", 1_000_000),
    ("segment_bytes", 16, "I", 1),
    ("rtt_seconds", 68, "I", 1_000_000),
    ("congestion_window_segments", 80, "I", 1),
    ("retransmitted_segments", 100, "I", 1),
    ("acknowledged_bytes", 120, "Q", 1),
    ("min_rtt_seconds", 148, "I", 1_000_000),
    ("busy_seconds", 168, "Q", 1_000_000),
    ("receive_window_limited_seconds", 176, "Q", 1_000_000),
    ("send_buffer_limited_seconds", 184, "Q", 1_000_000),
    ("sent_bytes", 200, "Q", 1),
    ("retransmitted_bytes", 208, "Q", 1),
    ("peer_window_bytes", 228, "I", 1),
)
"""Name, offset, struct code and divisor; a kernel that returns less does not know the rest."""

_SIOCINQ, _SIOCOUTQ, _SIOCOUTQNSD = 0x541B, 0x5411, 0x894B


def decode(raw: bytes) -> Figures:
    """The figures in what getsockopt(TCP_INFO) returned; only those that it is long enough for."""
    figures: Figures = {}
    for name, offset, code, divisor in _FIELDS:
        if offset + struct.calcsize(code) <= len(raw):
            (value,) = struct.unpack_from("=" + code, raw, offset)
            figures[name] = value if divisor == 1 else value / divisor
    return figures


def read(connection: socket.socket) -> Figures:
    """The connection's tcp_info now; nothing where the system has none."""
    if not sys.platform.startswith("linux"):
        return {}
    return decode(connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512))


def _queue(connection: socket.socket, request: int) -> Optional[int]:
    if not sys.platform.startswith("linux"):
        return None
    import fcntl

    answer = fcntl.ioctl(connection.fileno(), request, b"\0" * 4)
    return int(struct.unpack("i", answer)[0])


def unread_bytes(connection: socket.socket) -> Optional[int]:
    """Received and not yet read by the application (SIOCINQ)."""
    return _queue(connection, _SIOCINQ)


def unsent_bytes(connection: socket.socket) -> Optional[int]:
    """Written by the application and not yet sent (SIOCOUTQNSD)."""
    return _queue(connection, _SIOCOUTQNSD)


def congestion_control(connection: socket.socket) -> Optional[str]:
    """Name of the connection's congestion control."""
    if not hasattr(socket, "TCP_CONGESTION"):
        return None
    name = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, 16)
    return name.split(b"\0")[0].decode("ascii", "replace")
