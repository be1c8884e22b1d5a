"""Packets of a pcap or pcapng file, plain or gzipped: streamed, each length checked first.

Formats: pcap-savefile(5); draft-ietf-opsawg-pcapng.
"""

from __future__ import annotations

import gzip
import struct
import zlib
from collections.abc import Iterator
from typing import IO, NamedTuple

MOST_PACKET_BYTES = 262_144
"""Largest packet that is accepted: tcpdump's largest snapshot length."""
MOST_BLOCK_BYTES = MOST_PACKET_BYTES + 4096
MOST_UNPACKED_BYTES = 8 << 30
MOST_INTERFACES = 1024
MOST_SECONDS = 2.0**33
_GZIP = b"\x1f\x8b"
_SECTION, _INTERFACE, _OLD_PACKET, _PACKET = 0x0A0D0D0A, 1, 2, 6
_TICKS = {
    b"\xd4\xc3\xb2\xa1": ("<", 1e-6),
    b"\xa1\xb2\xc3\xd4": (">", 1e-6),
    b"\x4d\x3c\xb2\xa1": ("<", 1e-9),
    b"\xa1\xb2\x3c\x4d": (">", 1e-9),
}
"""Byte order and seconds of a tick by the magic number of a pcap file."""
File = IO[bytes] | gzip.GzipFile
MAGICS = (*_TICKS, b"\x0a\x0d\x0d\x0a")


class CaptureError(ValueError):
    """The file is no capture, or breaks its format; one line."""


class Packet(NamedTuple):
    """One packet, as far as the capture kept it."""

    seconds: float
    link_type: int
    """LINKTYPE_ value of the interface (tcpdump.org/linktypes)."""
    wire_bytes: int
    data: bytes


def is_capture(head: bytes) -> bool:
    """Whether the first bytes are those of a capture, or of gzip data, which may hold one."""
    return head[:4] in MAGICS or head[:2] == _GZIP


def packets(file: File) -> Iterator[Packet]:
    """Yields the packets of a file; one that is cut off ends it. Errors: CaptureError."""
    head = file.read(4)
    if head[:2] == _GZIP:
        if not file.seekable():
            raise CaptureError("gzip data from a pipe: unpack it first")
        file.seek(0)
        try:
            yield from _unpacked(file)
        except (OSError, EOFError, zlib.error) as error:
            raise CaptureError(f"gzip data that cannot be unpacked: {error}") from None
    elif head == MAGICS[-1]:
        yield from _pcapng(file)
    elif head in _TICKS:
        yield from _pcap(file, *_TICKS[head])
    else:
        raise CaptureError("neither pcap nor pcapng")


def _unpacked(file: File) -> Iterator[Packet]:
    with gzip.open(file) as content:
        head = content.read(2)
        if head == _GZIP:
            raise CaptureError("gzip data within gzip data")
        content.seek(0)
        for packet in packets(content):
            yield packet
            if content.tell() > MOST_UNPACKED_BYTES:
                raise CaptureError(f"more than {MOST_UNPACKED_BYTES >> 30} GiB when unpacked")


def _pcap(file: File, order: str, tick_seconds: float) -> Iterator[Packet]:
    header = file.read(20)
    if len(header) < 20:
        raise CaptureError("its header is cut off")
    link_type = struct.unpack(order + "I", header[16:])[0] & 0xFFFF
    unpack, read = struct.Struct(order + "IIII").unpack, file.read
    while len(record := read(16)) == 16:
        seconds, ticks, kept_bytes, wire_bytes = unpack(record)
        if kept_bytes > MOST_PACKET_BYTES:
            raise CaptureError(f"a packet claims {kept_bytes} bytes")
        data = read(kept_bytes)
        if len(data) < kept_bytes:
            return
        yield Packet(seconds + ticks * tick_seconds, link_type, wire_bytes, data)


def _pcapng(file: File) -> Iterator[Packet]:
    interfaces: list[tuple[int, float]] = []
    for kind, order, body in _blocks(file):
        if kind == _SECTION:
            interfaces = []
        elif kind == _INTERFACE and len(body) >= 12:
            if len(interfaces) >= MOST_INTERFACES:
                raise CaptureError(f"more than {MOST_INTERFACES} interfaces")
            link_type = struct.unpack(order + "H", body[:2])[0]
            interfaces.append((link_type, _tick_seconds(body[8:-4], order)))
        elif kind in (_OLD_PACKET, _PACKET) and len(body) >= 24:
            number, high, low, kept_bytes, wire_bytes = struct.unpack(order + "IIIII", body[:20])
            if kind == _OLD_PACKET:
                number = struct.unpack(order + "H", body[:2])[0]
            if number < len(interfaces) and kept_bytes <= len(body) - 24:
                link_type, tick = interfaces[number]
                seconds = (high << 32 | low) * tick
                if seconds >= MOST_SECONDS:
                    raise CaptureError("the times of its packets are no dates")
                yield Packet(seconds, link_type, wire_bytes, body[20 : 20 + kept_bytes])


def _blocks(file: File) -> Iterator[tuple[int, str, bytes]]:
    """Yields type, byte order and the bytes behind the length of each block; a section is first."""
    kind, order = _SECTION, "<"
    while True:
        header_bytes = 8 if kind == _SECTION else 4
        header = file.read(header_bytes)
        if len(header) < header_bytes:
            return
        if kind == _SECTION:
            # Each section has a byte order and interfaces of its own.
            order = "<" if header[4:] == b"\x4d\x3c\x2b\x1a" else ">"
        size = struct.unpack(order + "I", header[:4])[0]
        if not 12 <= size <= MOST_BLOCK_BYTES or size % 4:
            raise CaptureError(f"a block claims {size} bytes")
        body = file.read(size - 4 - header_bytes)
        if len(body) < size - 4 - header_bytes:
            return
        yield kind, order, body
        next_type = file.read(4)
        if len(next_type) < 4:
            return
        kind = struct.unpack(order + "I", next_type)[0]


def _tick_seconds(options: bytes, order: str) -> float:
    """Returns the resolution of an interface's clock (option if_tsresol), in seconds."""
    start = 0
    while start + 4 <= len(options):
        code, size = struct.unpack(order + "HH", options[start : start + 4])
        if code == 0:
            break
        if code == 9 and size == 1 and start + 4 < len(options):
            power = options[start + 4]
            return float(2.0 ** -(power & 127) if power & 128 else 10.0**-power)
        start += 4 + (size + 3) // 4 * 4
    return 1e-6
