"""IP packets and TCP segments in captured packets: without headers, lengths as on the wire.

Link types: tcpdump.org/linktypes. IPv4: RFC 791; IPv6: RFC 8200; TCP: RFC 9293.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from bottleneck.captures.packets import Packet

FIN, SYN, RST, ACK = 1, 2, 4, 16
MSS, SCALE, STAMPS = 2, 3, 8
"""Kinds of TCP options: largest segment, window scale, time stamps (RFC 7323)."""
_STAMPS_ALONE = b"\1\1\x08\x0a"
_ETHERNET, _VLAN_TYPES, _TCP = 1, (0x8100, 0x88A8, 0x9100), 6
_IP_OFFSETS = {_ETHERNET: 14, 113: 16, 276: 20, 0: 4, 108: 4} | dict.fromkeys(
    (101, 12, 14, 228, 229), 0
)
"""Offset of the IP header by link type: Ethernet, Linux cooked 1 and 2, loopback, raw IP."""
_tcp_header = struct.Struct(">HHIIBBH").unpack_from
_ip_header = struct.Struct(">BBHHHBB").unpack_from


class Segment(NamedTuple):
    """One TCP segment."""

    seconds: float
    source: tuple[bytes, int]
    """Address and port."""
    target: tuple[bytes, int]
    seq: int
    ack: int
    flags: int
    window: int
    """Window in the header, before its scale."""
    size: int
    """Payload bytes on the wire."""
    data: bytes
    """The first of them, as far as they were kept."""
    options: bytes
    identification: int
    """Number of the IPv4 packet; 0: unknown."""


class Datagram(NamedTuple):
    """An IP packet's ends and payload; also of what is no TCP."""

    source: bytes
    target: bytes
    protocol: int
    """0: a fragment behind the first."""
    start: int
    """Offset of the payload in the packet's data."""
    size: int
    """Payload bytes on the wire."""
    identification: int


def datagram_of(packet: Packet) -> Datagram | None:
    """Returns the IP packet in a packet; None: it is something else, or its header was cut."""
    _, link_type, wire_bytes, data = packet
    start = _IP_OFFSETS.get(link_type)
    if start is None or len(data) < start + 20:
        return None
    if link_type == _ETHERNET:
        ether_type = data[12] << 8 | data[13]
        while ether_type in _VLAN_TYPES and len(data) >= start + 24:
            ether_type, start = data[start + 2] << 8 | data[start + 3], start + 4
        if ether_type not in (0x0800, 0x86DD):
            return None
    version, identification = data[start] >> 4, 0
    if version == 4:
        _, _, ip_bytes, identification, fragment, _, protocol = _ip_header(data, start)
        protocol = 0 if fragment & 0x1FFF else protocol
        source, target = data[start + 12 : start + 16], data[start + 16 : start + 20]
        header_bytes = (data[start] & 15) * 4
    elif version == 6 and len(data) >= start + 40:
        ip_bytes, protocol = data[start + 4] << 8 | data[start + 5], data[start + 6]
        ip_bytes += 40 if ip_bytes else 0
        source, target = data[start + 8 : start + 24], data[start + 24 : start + 40]
        header_bytes = 40
    else:
        return None
    # A length of 0 is one that the card fills in, once it has cut the packet into segments.
    size = (ip_bytes or wire_bytes - start) - header_bytes
    payload = start + header_bytes
    return Datagram(source, target, protocol, payload, max(0, size), identification)


def segment_of(packet: Packet, datagram: Datagram) -> Segment | None:
    """Returns the TCP segment in a packet; None: it is something else, or its header was cut."""
    data = packet.data
    source, target, protocol, tcp, ip_payload_bytes, number = datagram
    if protocol != _TCP or len(data) < tcp + 20:
        return None
    source_port, target_port, seq, ack, offset, flags, window = _tcp_header(data, tcp)
    tcp_bytes = (offset >> 4) * 4
    size = ip_payload_bytes - tcp_bytes
    if tcp_bytes < 20 or size < 0:
        return None
    payload = tcp + tcp_bytes
    ends = (source, source_port), (target, target_port)
    content, options = data[payload : payload + size], data[tcp + 20 : payload]
    return Segment(packet.seconds, *ends, seq, ack, flags, window, size, content, options, number)


def stamps_of(options: bytes) -> bytes:
    """Returns both time stamps (RFC 7323 3.2); empty: there are none."""
    if len(options) == 12 and options.startswith(_STAMPS_ALONE):
        return options[4:]
    stamps = options_of(options).get(STAMPS, b"") if options else b""
    return stamps if len(stamps) == 8 else b""


def options_of(options: bytes) -> dict[int, bytes]:
    """Returns the values of TCP options by kind."""
    values: dict[int, bytes] = {}
    start = 0
    while start < len(options):
        kind = options[start]
        if kind == 0:
            break
        if kind == 1:
            start += 1
            continue
        if start + 1 >= len(options) or options[start + 1] < 2:
            break
        values[kind] = options[start + 2 : start + options[start + 1]]
        start += options[start + 1]
    return values
