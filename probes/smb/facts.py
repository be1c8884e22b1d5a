"""A server's facts from opening a session: turns bits and times into plain words.

Sources: MS-SMB2 2.2.4 (NEGOTIATE), 2.2.6 (SESSION_SETUP); MS-CIFS 2.2.4.52 and MS-SMB 2.2.4.5.2 for
SMB1; MS-DTYP 2.3.3 (FILETIME); MS-SMB2 2.2.32.5 (NETWORK_INTERFACE_INFO), 2.2.32.5.1.
"""

from __future__ import annotations

import ipaddress
import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from probes.core.records import Details

CAPABILITIES = {
    0x01: "dfs",
    0x02: "leasing",
    0x04: "large-mtu",
    0x08: "multi-channel",
    0x10: "persistent-handles",
    0x20: "directory-leasing",
    0x40: "encryption",
    0x80: "notifications",
}
SESSION_ENCRYPT_DATA = 0x0004
NUMBERS = {"2.0.2": 0x0202, "2.1": 0x0210, "3.0": 0x0300, "3.0.2": 0x0302, "3.1.1": 0x0311}
"""Numbers of the dialects in messages."""

CAPABILITIES_1 = {
    0x00000004: "unicode",
    0x00000008: "large-files",
    0x00001000: "dfs",
    0x00004000: "large-read",
    0x00008000: "large-write",
    0x00800000: "unix",
    0x80000000: "extended-security",
}
_NEGOTIATED = struct.Struct("<HHHH16sIIIIQ")
FILETIME_EPOCH = datetime(1601, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class SessionFacts:
    """The parameters negotiated with the server, and its replies' facts about itself."""

    dialect: str
    """One of probes.core.records.DIALECTS."""
    signing: str | None
    """aes-gmac, aes-cmac, hmac-sha256, md5; None: messages are not signed, or encrypted."""
    signing_required_by: str | None
    """server, client; None: neither requires it."""
    encryption: str | None
    """aes-128-gcm, aes-128-ccm, aes-256-gcm, aes-256-ccm."""
    encryption_required_by: str | None
    """server (for every share), share, client; None: nothing is encrypted."""
    security_mode: str
    """The server's mode: "signing required", "signing enabled", "signing off"."""
    max_read_bytes: int
    max_write_bytes: int
    credits: int
    """Requests of 64 KiB that may be in flight right after the login; SMB1: MaxMpxCount."""
    server_guid: str
    server_time: str | None
    """The server's clock during the negotiation: ISO 8601, UTC; None: not reported."""
    capabilities: tuple[str, ...]
    """Names of CAPABILITIES, for SMB1 of CAPABILITIES_1."""
    connect_seconds: float
    """TCP connect: about one round trip."""

    @property
    def protocol_details(self) -> Details:
        """Dialect, signing and encryption of a measurement by this session."""
        return {"dialect": self.dialect, "signing": self.signing, "encryption": self.encryption}

    def details(self) -> Details:
        """Returns them as plain values."""
        return {**vars(self), "capabilities": list(self.capabilities)}


def read_clock(body: bytes) -> str | None:
    """Reads the server's clock from the body of an SMB2 NEGOTIATE reply.

    Raises struct.error where it is truncated.
    """
    return to_iso(_NEGOTIATED.unpack_from(body)[9])


def security_mode(enabled: bool, required: bool) -> str:
    """Returns a server's mode of signing in words."""
    if required:
        return "signing required"
    return "signing enabled" if enabled else "signing off"


def names(bits: int, table: Mapping[int, str]) -> tuple[str, ...]:
    """Returns the names of the bits that are set; bits without a name are left out."""
    return tuple(name for bit, name in table.items() if bits & bit)


def to_iso(filetime: int) -> str | None:
    """Formats a FILETIME (100 ns since 1601) as ISO 8601 in UTC; None: 0, or beyond 9999."""
    if not filetime:
        return None
    try:
        clock = FILETIME_EPOCH + timedelta(microseconds=filetime // 10)
    except OverflowError:
        return None
    return clock.isoformat(timespec="milliseconds")


QUERY_NETWORK_INTERFACE_INFO = 0x001401FC
"""FSCTL that asks for the server's interfaces."""
ANSWER_BYTES = 64 * 1024
MOST_INTERFACES = 64
DFS_GET_REFERRALS = 0x00060194
"""FSCTL that asks for the target of a DFS link."""
_REFERRAL = struct.Struct("<HHIHHHHIHHH")
"""PathConsumed, NumberOfReferrals, flags; of the first entry (MS-DFSC 2.2.5.3): version, size,
type, flags, TimeToLive, the offsets of DFSPath, DFSAlternatePath and NetworkAddress."""
_REFERRAL_HEADER_BYTES, _NAME_LIST = 8, 0x2
_TARGET = re.compile(r"\\{1,2}([A-Za-z0-9][A-Za-z0-9._-]{0,252}(\\[\w$][\w .$-]{0,79}){1,16})\\?\0")
"""NetworkAddress: a host, a share and folders on it, of plain characters."""

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
    """Rate that the server claims, unmeasured: Samba claims 1 Gbit/s where it knows none."""
    rss: bool
    """Whether it spreads connections over cores."""
    rdma: bool
    address: str
    """IPv4 or IPv6; "" of another family."""


def interfaces(answer: bytes) -> tuple[Interface, ...]:
    """Parses the server's interfaces, which it reports for multi-channel.

    The chain of entries ends early where an offset is invalid.
    """
    rows: list[Interface] = []
    offset = 0
    while len(rows) < MOST_INTERFACES and offset + _ENTRY_BYTES <= len(answer):
        following, index, capability, _, bits_per_second = _HEAD.unpack_from(answer, offset)
        rows.append(
            Interface(
                index=index,
                rate_bytes_per_second=bits_per_second // 8,
                rss=bool(capability & _RSS),
                rdma=bool(capability & _RDMA),
                address=_address(answer[offset : offset + _ENTRY_BYTES]),
            )
        )
        if following < _ENTRY_BYTES:
            break
        offset += following
    return tuple(rows)


def _address(entry: bytes) -> str:
    (family,) = struct.unpack_from("<H", entry, _FAMILY_AT)
    if family == _IPV4:
        return str(ipaddress.IPv4Address(entry[_IPV4_AT : _IPV4_AT + 4]))
    if family == _IPV6:
        return str(ipaddress.IPv6Address(entry[_IPV6_AT : _IPV6_AT + 16]))
    return ""


def referral(answer: bytes, path: str) -> tuple[str, str]:
    r"""Returns the part of a path that is a DFS link, and its target, as //host/share[/folder].

    path: as in the request, \host\share[\folder]. Empty where the answer has no valid target.
    """
    if len(answer) < _REFERRAL.size:
        return "", ""
    consumed, entries, _, version, _, _, flags, _, _, _, address = _REFERRAL.unpack_from(answer)
    match = _TARGET.match(answer[_REFERRAL_HEADER_BYTES + address :].decode("utf-16-le", "replace"))
    link = path[: consumed // 2].rstrip("\\")
    whole_names = link.count("\\") > 1 and f"{path}\\".startswith(f"{link}\\")
    usable = entries and version in (3, 4) and not flags & _NAME_LIST
    if not (usable and whole_names and match and consumed <= 2 * len(path)):
        return "", ""
    return "/" + link.replace("\\", "/"), "//" + match[1].replace("\\", "/")
