"""Edits of pcap files by tcpdump: without their beginning, without TCP time stamps."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

HEADER_BYTES = 24
IP_OFFSETS = {1: 14, 101: 0}
"""Offset of the IP header by link type: Ethernet, raw IP."""
TIME_STAMPS, NOTHING = 8, b"\x01"


def _records(content: bytes) -> Iterator[tuple[float, bytes, bytes]]:
    """Yields time, record header and data of each packet."""
    start = HEADER_BYTES
    while start + 16 <= len(content):
        seconds, micros, kept_bytes, _ = struct.unpack_from("<IIII", content, start)
        end = start + 16 + kept_bytes
        yield seconds + micros / 1e6, content[start : start + 16], content[start + 16 : end]
        start = end


def without_beginning(source: Path, target: Path, seconds: float) -> None:
    """Writes a capture that begins so many seconds after its first packet."""
    content = source.read_bytes()
    records = list(_records(content))
    first = records[0][0] if records else 0.0
    later = (header + data for moment, header, data in records if moment - first >= seconds)
    target.write_bytes(content[:HEADER_BYTES] + b"".join(later))


def without_stamps(source: Path, target: Path) -> None:
    """Writes a capture whose TCP time stamps are replaced by options that say nothing."""
    content = source.read_bytes()
    (link_type,) = struct.unpack_from("<I", content, HEADER_BYTES - 4)
    start = IP_OFFSETS[link_type]
    edited = (header + _without_stamp(data, start) for _, header, data in _records(content))
    target.write_bytes(content[:HEADER_BYTES] + b"".join(edited))


def _without_stamp(data: bytes, ip: int) -> bytes:
    """ip: offset of the IP header."""
    if len(data) < ip + 40 or data[ip] >> 4 != 4 or data[ip + 9] != 6:
        return data
    tcp = ip + (data[ip] & 15) * 4
    if len(data) < tcp + 20:
        return data
    start, end = tcp + 20, min(len(data), tcp + (data[tcp + 12] >> 4) * 4)
    packet = bytearray(data)
    while start < end and packet[start]:
        size = 1 if packet[start] == 1 else packet[start + 1] if start + 1 < end else 0
        if size < 1:
            break
        if packet[start] == TIME_STAMPS:
            packet[start : start + size] = NOTHING * size
        start += size
    return bytes(packet)
