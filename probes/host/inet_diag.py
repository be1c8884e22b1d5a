"""inet_diag: how the kernel is asked for TCP connections, and what it answers; pure.

Source: sock_diag(7); include/uapi/linux/inet_diag.h, sock_diag.h and netlink.h.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from dataclasses import dataclass, field
from typing import Dict, Iterator, NamedTuple, Optional, Tuple, Union

SOCK_DIAG_BY_FAMILY = 20
ERROR, DONE = 2, 3
"""Types of netlink messages: what is told of one socket, an error, the end."""
ANY = bytes(40) + b"\xff" * 8
"""A socket's identity without addresses, ports, interface and cookie."""

_HEADER = struct.Struct("=IHHII")
"""nlmsghdr: length, type, flags, sequence, port."""
_REQUEST = struct.Struct("=BBBBI")
"""inet_diag_req_v2 before its socket id: family, protocol, extensions, padding, states."""
_MESSAGE = struct.Struct("=BBBB48sIIIII")
"""inet_diag_msg: family, state, timer, retransmits, socket id, expires, rqueue, wqueue, uid,
inode."""
_ATTRIBUTE = struct.Struct("=HH")
_ONE, _ALL = 1, 0x301
"""NLM_F_REQUEST, and with it NLM_F_DUMP."""
_BYTECODE = 1
_INFO, _CONGESTION, _MEMORY = 2, 4, 7
_EXTENSIONS = sum(1 << (each - 1) for each in (_INFO, _CONGESTION, _MEMORY))
_OPEN_STATES = sum(1 << each for each in (1, 4, 5, 8))
"""Those in which payload may still move: ESTABLISHED, FIN_WAIT1, FIN_WAIT2 and CLOSE_WAIT."""
_OP = struct.Struct("=BBH")
_JUMP, _LOCAL, _REMOTE = 1, 7, 8
"""inet_diag_bc_op codes INET_DIAG_BC_JMP, S_COND, D_COND: as old as the interface itself."""

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class Memory(NamedTuple):
    """What a socket may hold at most (SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF), bytes."""

    receive_buffer_bytes: int
    send_buffer_bytes: int


@dataclass(frozen=True)
class Seen:
    """One look at one connection; None where the kernel does not tell."""

    family: int
    identity: bytes
    """Addresses, ports, interface and the kernel's cookie: it is never given to another socket."""
    inode: int
    """What /proc/PID/fd of its owner names; 0: none holds it any more."""
    unread_bytes: int
    """Received, acknowledged and not yet read by the application."""
    unacknowledged_bytes: int
    """Written by the application and not yet acknowledged by the peer, sent or not."""
    info: bytes
    """tcp_info, for tcp_info.decode; empty where the kernel adds none."""
    congestion_control: Optional[str]
    memory: Optional[Memory]
    raw: bytes = field(repr=False)
    """All of it as the kernel told it: what parse() takes."""

    @property
    def own(self) -> Tuple[str, int]:
        """Address and port at this host; an IPv4 address in an IPv6 socket is told as IPv4."""
        return self._end(0, 4)

    @property
    def peer(self) -> Tuple[str, int]:
        """Address and port at the other end."""
        return self._end(2, 20)

    def _end(self, port_at: int, address_at: int) -> Tuple[str, int]:
        (port,) = struct.unpack_from("!H", self.identity, port_at)
        if self.family == socket.AF_INET:
            return str(ipaddress.IPv4Address(self.identity[address_at : address_at + 4])), port
        address = ipaddress.IPv6Address(self.identity[address_at : address_at + 16])
        return str(address.ipv4_mapped or address), port


def plain_address(text: str) -> Optional[Address]:
    """An IP address without zone, IPv4 where it is mapped into IPv6; None: it is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def question(sequence: int, family: int, identity: bytes = ANY, wanted: bytes = b"") -> bytes:
    """What the kernel is asked: for the one connection of an identity, or for all those wanted.

    wanted: a selection(). The answer repeats the sequence number.
    """
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, _EXTENSIONS, 0, _OPEN_STATES) + identity
    if wanted:
        body += _ATTRIBUTE.pack(_ATTRIBUTE.size + len(wanted), _BYTECODE) + wanted
    size = _HEADER.size + len(body)
    flags = _ALL if wanted else _ONE
    return _HEADER.pack(size, SOCK_DIAG_BY_FAMILY, flags, sequence, 0) + body


def sequence_of(asked: bytes) -> int:
    """The sequence number of a question."""
    return int(_HEADER.unpack_from(asked)[3])


def selection(ports: Tuple[int, ...], address: Optional[Address], serving: bool) -> bytes:
    """The kernel's filter program: the address at the other end, and one of the ports.

    Source: net/ipv4/inet_diag.c, inet_diag_bc_run: an op is followed by that at its offset `yes`
    or `no`; who arrives right at the end is taken, whoever jumps beyond it is not.
    """
    end = _LOCAL if serving else _REMOTE
    alternatives = [_condition(end, None, port) for port in ports]
    program = b""
    for alternative in reversed(alternatives):
        # What fails goes on behind the jump, or beyond the end; what holds jumps to the end.
        if not program:
            program = _op(end, alternative, len(alternative) + 8)
            continue
        jump = _OP.pack(_JUMP, _OP.size, _OP.size + len(program))
        program = _op(end, alternative, _OP.size + len(alternative) + _OP.size) + jump + program
    if address is not None:
        host = _condition(_REMOTE, address, -1)
        program = _op(_REMOTE, host, _OP.size + len(host) + len(program) + 4) + program
    return program


def _op(code: int, condition: bytes, otherwise: int) -> bytes:
    return _OP.pack(code, _OP.size + len(condition), otherwise) + condition


def _condition(code: int, address: Optional[Address], port: int) -> bytes:
    """struct inet_diag_hostcond: family (0: either), length of the prefix, port (-1: any)."""
    if address is None:
        return struct.pack("=BBxxi", socket.AF_UNSPEC, 0, port)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return struct.pack("=BBxxi", family, address.max_prefixlen, port) + address.packed


def messages(answer: bytes, sequence: int) -> Iterator[Tuple[int, bytes]]:
    """Type and payload of each whole netlink message of a sequence number in an answer."""
    at = 0
    while at + _HEADER.size <= len(answer):
        size, kind, _, number, _ = _HEADER.unpack_from(answer, at)
        if size < _HEADER.size or at + size > len(answer):
            return
        if number == sequence:
            yield kind, answer[at + _HEADER.size : at + size]
        at += (size + 3) & ~3


def is_open(payload: bytes) -> bool:
    """Whether an inet_diag_msg is of a connection on which payload may still move."""
    return bool(_OPEN_STATES >> payload[1] & 1) if len(payload) >= _MESSAGE.size else False


def parse(payload: bytes) -> Optional[Seen]:
    """One inet_diag_msg with its attributes; None: not whole, or no open TCP connection."""
    if not is_open(payload):
        return None
    family, _, _, _, identity, _, unread, unacknowledged, _, inode = _MESSAGE.unpack_from(payload)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    told = _attributes(payload)
    name = told.get(_CONGESTION)
    memory = told.get(_MEMORY, b"")
    return Seen(
        family=family,
        identity=identity,
        inode=inode,
        unread_bytes=unread,
        unacknowledged_bytes=unacknowledged,
        info=told.get(_INFO, b""),
        congestion_control=name.split(b"\0")[0].decode("ascii", "replace") if name else None,
        memory=Memory(*struct.unpack_from("=4xI4xI", memory)) if len(memory) >= 16 else None,
        raw=payload,
    )


def _attributes(payload: bytes) -> Dict[int, bytes]:
    """The values of an inet_diag_msg's attributes by type."""
    found: Dict[int, bytes] = {}
    at = _MESSAGE.size
    while at + _ATTRIBUTE.size <= len(payload):
        size, kind = _ATTRIBUTE.unpack_from(payload, at)
        if size < _ATTRIBUTE.size or at + size > len(payload):
            break
        found[kind] = payload[at + _ATTRIBUTE.size : at + size]
        at += (size + 3) & ~3
    return found
