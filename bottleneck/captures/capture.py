"""A capture file: its SMB connections, and the bytes of all else; one pass, bounded memory."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import IO

from bottleneck.captures.connection import Connection
from bottleneck.captures.framing import MAGICS
from bottleneck.captures.packets import packets
from bottleneck.captures.segments import SYN, Segment, datagram_of, segment_of
from bottleneck.captures.turns import blocks_of_a_file

SMB_PORTS = (445, 139)
MOST_CONNECTIONS, MOST_OTHERS = 48, 30_000
PROGRESS_PACKETS = 20_000
"""Packets between two calls of the progress function."""
Host = tuple[bytes, int]
"""Address and port."""


@dataclass
class Capture:
    """Contents of a file."""

    connections: dict[tuple[Host, Host], Connection] = field(default_factory=dict)
    """By client and server."""
    lanes: dict[tuple[Host, Host], tuple[Connection, bool]] = field(default_factory=dict)
    """Each connection by source and target, and whether the client sends."""
    other_bytes: Counter[tuple[bytes, bytes, int]] = field(default_factory=Counter)
    """Payload bytes of all other IP packets, by source, target and second."""
    blocks: Iterator[array[float]] = field(default_factory=blocks_of_a_file)
    """Blocks that the courses of its connections may still use."""
    packets: int = 0
    cut_packets: int = 0
    """Packets of which the capture kept a part."""


def read(file: IO[bytes], tell_progress: Callable[[], None] = lambda: None) -> Capture:
    """Returns what a file holds. Errors: CaptureError."""
    capture = Capture()
    for packet in packets(file):
        capture.packets += 1
        now = packet.seconds
        capture.cut_packets += packet.wire_bytes > len(packet.data)
        if capture.packets % PROGRESS_PACKETS == 0:
            tell_progress()
        datagram = datagram_of(packet)
        if datagram is None:
            continue
        segment = segment_of(packet, datagram)
        if segment is None or not _take(capture, segment):
            key = datagram.source, datagram.target, int(packet.seconds)
            if key in capture.other_bytes or len(capture.other_bytes) < MOST_OTHERS:
                capture.other_bytes[key] += datagram.size
    for connection in capture.connections.values():
        connection.end(now)
    return capture


def _take(capture: Capture, segment: Segment) -> bool:
    """Gives a segment to its SMB connection, which it may begin; returns whether it has one."""
    lane = capture.lanes.get((segment.source, segment.target))
    if lane is None:
        if len(capture.connections) >= MOST_CONNECTIONS or not _is_smb(segment):
            return False
        from_client, ends = _is_from_client(segment), (segment.source, segment.target)
        connection = Connection(capture.blocks)
        connection.has_syn = bool(segment.flags & SYN)
        capture.connections[ends if from_client else ends[::-1]] = connection
        capture.lanes[ends] = lane = connection, from_client
        capture.lanes[ends[::-1]] = connection, not from_client
    connection, from_client = lane
    connection.add(segment, from_client)
    return True


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
