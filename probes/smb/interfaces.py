"""The network interfaces that an SMB3 server has, as it tells them for multi-channel.

Source: MS-SMB2 2.2.32.5 (NETWORK_INTERFACE_INFO response), 2.2.32.5.1 (SOCKADDR_STORAGE).
"""

from __future__ import annotations

import ipaddress
import struct
from dataclasses import dataclass

QUERY_NETWORK_INTERFACE_INFO = 0x001401FC
"""The FSCTL that asks for them."""
ANSWER_BYTES = 64 * 1024
MOST_INTERFACES = 64

_ENTRY_BYTES = 152
_HEAD = struct.Struct("<IIIIQ")
_RSS, _RDMA = 1, 2
_IPV4, _IPV6 = 0x0002, 0x0017
_FAMILY_AT, _IPV4_AT, _IPV6_AT = 24, 28, 32


@dataclass(frozen=True)
class Interface:
    """One address of one interface of the server."""

    index: int
    """The server's number of the interface; several addresses may share one."""
    rate_bytes_per_second: int
    """What the server claims, and not what was measured: Samba claims 1 Gbit/s for what it cannot
    look up."""
    rss: bool
    """Spreads connections over cores."""
    rdma: bool
    address: str
    """IPv4 or IPv6; "" of another family."""


def parse(answer: bytes) -> tuple[Interface, ...]:
    """The chain of entries; it ends early where an offset leads back, out or nowhere sensible."""
    found: list[Interface] = []
    at = 0
    while len(found) < MOST_INTERFACES and at + _ENTRY_BYTES <= len(answer):
        following, index, capability, _, bits_per_second = _HEAD.unpack_from(answer, at)
        found.append(
            Interface(
                index=index,
                rate_bytes_per_second=bits_per_second // 8,
                rss=bool(capability & _RSS),
                rdma=bool(capability & _RDMA),
                address=_address(answer[at : at + _ENTRY_BYTES]),
            )
        )
        if following < _ENTRY_BYTES:
            break
        at += following
    return tuple(found)


def _address(entry: bytes) -> str:
    (family,) = struct.unpack_from("<H", entry, _FAMILY_AT)
    if family == _IPV4:
        return str(ipaddress.IPv4Address(entry[_IPV4_AT : _IPV4_AT + 4]))
    if family == _IPV6:
        return str(ipaddress.IPv6Address(entry[_IPV6_AT : _IPV6_AT + 16]))
    return ""
