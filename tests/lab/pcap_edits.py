"""Edits of pcap files by tcpdump: without their beginning, without TCP time stamps."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

from bottleneck.captures.segments import STAMPS, options_of

HEADER_BYTES = 24
IP_OFFSETS = {1: 14, 101: 0}
"""Offset of the IP header by link type: Ethernet, raw IP."""
NOTHING = b"\x01"


def _records(content: bytes) -> Iterator[tuple[float, bytes]]:
    """Yields the time of each packet, and its record with the header."""
    start = HEADER_BYTES
    while start + 16 <= len(content):
        seconds, micros, kept_bytes, _ = struct.unpack_from("<IIII", content, start)
        end = start + 16 + kept_bytes
        yield seconds + micros / 1e6, content[start:end]
        start = end


def without_beginning(source: Path, target: Path, seconds: float) -> None:
    """Writes a capture that begins so many seconds after its first packet."""
    content = source.read_bytes()
    records = list(_records(content))
    later = (record for moment, record in records if moment - records[0][0] >= seconds)
    target.write_bytes(content[:HEADER_BYTES] + b"".join(later))


def without_stamps(source: Path, target: Path) -> None:
    """Writes a capture whose TCP time stamps are replaced by options that say nothing."""
    content = source.read_bytes()
    (link_type,) = struct.unpack_from("<I", content, HEADER_BYTES - 4)
    edited = (_without_stamp(each, 16 + IP_OFFSETS[link_type]) for _, each in _records(content))
    target.write_bytes(content[:HEADER_BYTES] + b"".join(edited))


def _without_stamp(data: bytes, ip: int) -> bytes:
    """ip: offset of the IP header."""
    if len(data) < ip + 40 or data[ip] >> 4 != 4 or data[ip + 9] != 6:
        return data
    start = ip + (data[ip] & 15) * 4 + 20
    if len(data) < start:
        return data
    end = start - 20 + (data[start - 8] >> 4) * 4
    stamps = options_of(data[start:end]).get(STAMPS)
    option = b"" if stamps is None else bytes((STAMPS, 2 + len(stamps))) + stamps
    options = data[start:end].replace(option, NOTHING * len(option)) if option else data[start:end]
    return data[:start] + options + data[end:]
