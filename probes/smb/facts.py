"""What a server tells about itself while a session is opened: bits and times into plain words.

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
"""Of the dialects on the wire."""

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
    """What was agreed with the server, and what its replies say of it."""

    dialect: str
    """One of probes.core.records.DIALECTS."""
    signing: str | None
    """aes-gmac, aes-cmac, hmac-sha256, md5; None: messages are not signed, or encrypted."""
    signing_required_by: str | None
    """server, client; None: nobody required it."""
    encryption: str | None
    """aes-128-gcm, aes-128-ccm, aes-256-gcm, aes-256-ccm."""
    encryption_required_by: str | None
    """server (for every share), share, client; None: nothing is encrypted."""
    security_mode: str
    """What the server says of signing: "signing required", "signing enabled", "signing off"."""
    max_read_bytes: int
    max_write_bytes: int
    credits: int
    """Requests of 64 KiB that may be in flight right after the login; SMB1: MaxMpxCount."""
    server_guid: str
    server_time: str | None
    """The server's clock when the dialect was agreed: ISO 8601, UTC; None: it told none."""
    capabilities: tuple[str, ...]
    """Names of CAPABILITIES, for SMB1 of CAPABILITIES_1."""
    connect_seconds: float
    """TCP connect: about one round trip."""

    @property
    def used(self) -> Details:
        """What a measurement by this session was made with."""
        return {"dialect": self.dialect, "signing": self.signing, "encryption": self.encryption}

    def details(self) -> Details:
        """As plain values."""
        return {**vars(self), "capabilities": list(self.capabilities)}


def negotiated(body: bytes) -> str | None:
    """The server's clock, of the body of an SMB2 NEGOTIATE reply.

    Raises struct.error where it is cut short.
    """
    return moment(_NEGOTIATED.unpack_from(body)[9])


def security_mode(enabled: bool, required: bool) -> str:
    """What a server says of signing."""
    if required:
        return "signing required"
    return "signing enabled" if enabled else "signing off"


def names(bits: int, known: Mapping[int, str]) -> tuple[str, ...]:
    """Names of the bits that are set; bits without a name are left out."""
    return tuple(name for bit, name in known.items() if bits & bit)


def moment(filetime: int) -> str | None:
    """A FILETIME (100 ns since 1601) as ISO 8601 in UTC; None: none was told, or beyond 9999."""
    if not filetime:
        return None
    try:
        told = FILETIME_EPOCH + timedelta(microseconds=filetime // 10)
    except OverflowError:
        return None
    return told.isoformat(timespec="milliseconds")


QUERY_NETWORK_INTERFACE_INFO = 0x001401FC
"""The FSCTL that asks for them."""
ANSWER_BYTES = 64 * 1024
MOST_INTERFACES = 64
DFS_GET_REFERRALS = 0x00060194
"""The FSCTL that asks where a DFS link leads."""
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
    """What the server claims, and not what was measured: Samba claims 1 Gbit/s for what it cannot
    look up."""
    rss: bool
    """Spreads connections over cores."""
    rdma: bool
    address: str
    """IPv4 or IPv6; "" of another family."""


def interfaces(answer: bytes) -> tuple[Interface, ...]:
    """The server's, as it tells them for multi-channel.

    The chain of entries ends early where an offset leads back, out or nowhere sensible.
    """
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


def referral(answer: bytes, asked: str) -> tuple[str, str]:
    r"""The part of an asked path that is a DFS link, and its target, each as //host/share[/folder].

    asked: as in the request, \host\share[\folder]. Empty where the answer names no valid target.
    """
    if len(answer) < _REFERRAL.size:
        return "", ""
    consumed, entries, _, version, _, _, flags, _, _, _, address = _REFERRAL.unpack_from(answer)
    found = _TARGET.match(answer[_REFERRAL_HEADER_BYTES + address :].decode("utf-16-le", "replace"))
    link = asked[: consumed // 2].rstrip("\\")
    whole_names = link.count("\\") > 1 and f"{asked}\\".startswith(f"{link}\\")
    usable = entries and version in (3, 4) and not flags & _NAME_LIST
    if not (usable and whole_names and found and consumed <= 2 * len(asked)):
        return "", ""
    return "/" + link.replace("\\", "/"), "//" + found[1].replace("\\", "/")
