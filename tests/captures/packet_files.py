"""Builds captures: packets of one connection, as pcap and pcapng files."""

from __future__ import annotations

import struct
from collections.abc import Iterable

CLIENT, SERVER = (b"\x0a\0\0\x01", 50000), (b"\x0a\0\0\x02", 445)


def frame(
    source=CLIENT, target=SERVER, data=b"", seq=1, ack=1, flags=16, window=500, options=b"", id=0
) -> bytes:
    """Returns an Ethernet frame with a TCP segment over IPv4."""
    options += b"\1" * (-len(options) % 4)
    tcp = struct.pack(
        ">HHIIBBHHH", source[1], target[1], seq, ack, (20 + len(options)) << 2, flags, window, 0, 0
    )
    size = 20 + len(tcp) + len(options) + len(data)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, id, 0, 64, 6, 0) + source[0] + target[0]
    return bytes(12) + b"\x08\0" + ip + tcp + options + data


def pcap(
    records: Iterable[tuple[float, bytes]], order="<", magic=0xA1B2C3D4, ticks=10**6, link=1
) -> bytes:
    """Returns a pcap file of packets that were kept whole."""
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)]
    for seconds, data in records:
        record = (int(seconds), round(seconds % 1 * ticks), len(data), len(data))
        parts += [struct.pack(order + "IIII", *record), data]
    return b"".join(parts)


def block(kind: int, body: bytes, order="<", size: int | None = None) -> bytes:
    """Returns a pcapng block; size: the claimed one."""
    length = struct.pack(order + "I", 12 + len(body) if size is None else size)
    return struct.pack(order + "I", kind) + length + body + length


def section(order="<") -> bytes:
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link=1, options=b"", order="<") -> bytes:
    return block(1, struct.pack(order + "HHI", link, 0, 0) + options, order)


def packet_block(ticks: int, data: bytes, number=0, order="<") -> bytes:
    sizes = (number, ticks >> 32, ticks & 0xFFFFFFFF, len(data), len(data))
    return block(6, struct.pack(order + "IIIII", *sizes) + data + bytes(-len(data) % 4), order)
