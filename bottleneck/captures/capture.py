"""A capture file: its SMB connections, and the bytes of all else; one pass, bounded memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import IO

from bottleneck.captures.connection import Connection
from bottleneck.captures.framing import MAGICS
from bottleneck.captures.packets import packets
from bottleneck.captures.segments import SYN, Segment, datagram_of, segment_of

SMB_PORTS = (445, 139)
MOST_CONNECTIONS, MOST_OTHERS = 64, 50_000
PROGRESS_PACKETS = 20_000
"""Packets between two calls of the progress function."""
Host = tuple[bytes, int]
"""Address and port."""


@dataclass
class Capture:
    """Contents of a file."""

    connections: dict[tuple[Host, Host], Connection] = field(default_factory=dict)
    """By client and server."""
    other_bytes: Counter[tuple[bytes, bytes, int]] = field(default_factory=Counter)
    """Payload bytes of all other IP packets, by source, target and second."""
    packets: int = 0
    cut_packets: int = 0
    """Packets of which the capture kept a part."""


def read(file: IO[bytes], tell_progress: Callable[[], None] = lambda: None) -> Capture:
    """Returns what a file holds. Errors: CaptureError."""
    capture = Capture()
    for packet in packets(file):
        capture.packets += 1
        capture.cut_packets += packet.wire_bytes > len(packet.data)
        if capture.packets % PROGRESS_PACKETS == 0:
            tell_progress()
        datagram = datagram_of(packet)
        if datagram is None:
            continue
        segment = segment_of(packet, datagram)
        if segment is None or not _take(capture.connections, segment):
            key = datagram.source, datagram.target, int(packet.seconds)
            if key in capture.other_bytes or len(capture.other_bytes) < MOST_OTHERS:
                capture.other_bytes[key] += datagram.size
    return capture


def _take(connections: dict[tuple[Host, Host], Connection], segment: Segment) -> bool:
    """Gives a segment to its SMB connection, which it may begin; returns whether it has one."""
    if (connection := connections.get((segment.source, segment.target))) is not None:
        connection.add(segment, from_client=True)
    elif (connection := connections.get((segment.target, segment.source))) is not None:
        connection.add(segment, from_client=False)
    elif len(connections) < MOST_CONNECTIONS and _is_smb(segment):
        from_client = _is_from_client(segment)
        ends = (segment.source, segment.target)
        connection = connections[ends if from_client else ends[::-1]] = Connection()
        connection.has_syn = bool(segment.flags & SYN)
        connection.add(segment, from_client)
    return connection is not None


def _is_smb(segment: Segment) -> bool:
    if segment.target[1] in SMB_PORTS or segment.source[1] in SMB_PORTS:
        return True
    return segment.data[:1] == b"\0" and segment.data[4:8] in MAGICS


def _is_from_client(segment: Segment) -> bool:
    """Whether the client sent a connection's first segment: by its port, else the SMB 2 flag."""
    if segment.target[1] in SMB_PORTS:
        return True
    # SMB2_FLAGS_SERVER_TO_REDIR (MS-SMB2 2.2.1.2)
    is_reply = len(segment.data) > 20 and segment.data[20] & 1
    return segment.source[1] not in SMB_PORTS and not is_reply
