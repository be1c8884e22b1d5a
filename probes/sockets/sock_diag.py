"""TCP connections of any process of this network namespace, as the kernel reports them.

One search finds the connections; later requests are for single ones, so that a host with many
sockets is not listed over and over. Needs no privileges. Source: sock_diag(7).
"""

from __future__ import annotations

import errno
import ipaddress
import os
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import Iterator, List, NamedTuple, Optional, Tuple, Union

from probes.core.stage import Unavailable
from probes.sockets.tcp_info import RECEIVING, wait_at_most
from probes.system.rtnetlink import ATTRIBUTE, HEADER, attributes, messages

SOCK_DIAG_BY_FAMILY = 20
ERROR, DONE = 2, 3
"""Types of netlink messages: one socket, an error, the end."""
ANY = bytes(40) + b"\xff" * 8
"""A socket's identity without addresses, ports, interface and cookie."""

_REQUEST = struct.Struct("=BBBBI")
"""inet_diag_req_v2 before its socket id: family, protocol, extensions, padding, states."""
_MESSAGE = struct.Struct("=BBBB48sIIIII")
"""inet_diag_msg: family, state, timer, retransmits, socket id, expires, rqueue, wqueue, uid,
inode."""
_ONE, _ALL = 1, 0x301
"""NLM_F_REQUEST, and with it NLM_F_DUMP."""
_BYTECODE = 1
_INFO, _CONGESTION, _MEMORY = 2, 4, 7
_EXTENSIONS = sum(1 << (each - 1) for each in (_INFO, _CONGESTION, _MEMORY))
_OPEN_STATES = sum(1 << each for each in (1, 4, 5, 8))
"""States in which payload may still move: ESTABLISHED, FIN_WAIT1, FIN_WAIT2 and CLOSE_WAIT."""
_OP = struct.Struct("=BBH")
_JUMP, _LOCAL, _REMOTE = 1, 7, 8
"""inet_diag_bc_op codes INET_DIAG_BC_JMP, S_COND, D_COND: as old as the interface itself."""

Address = Union[ipaddress.IPv4Address, ipaddress.IPv6Address]


class Memory(NamedTuple):
    """Limits of a socket's buffers (SK_MEMINFO_RCVBUF, SK_MEMINFO_SNDBUF) and their use, bytes."""

    receive_buffer_bytes: int
    send_buffer_bytes: int
    queued_bytes: Optional[int] = None
    """Used part of the send buffer (SK_MEMINFO_WMEM_QUEUED)."""


@dataclass(frozen=True)
class Socket:
    """State of one connection at one look; None where the kernel does not report it."""

    family: int
    identity: bytes
    """Addresses, ports, interface and the kernel's cookie: it is never given to another socket."""
    inode: int
    """Inode as in /proc/PID/fd of its owner; 0: no process has it open any more."""
    unread_bytes: int
    """Bytes received, acknowledged and not yet read by the application."""
    unacknowledged_bytes: int
    """Bytes written by the application and not yet acknowledged by the peer, sent or not."""
    info: bytes
    """tcp_info, for tcp_info.decode; empty where the kernel adds none."""
    congestion_control: Optional[str]
    memory: Optional[Memory]
    raw: bytes = field(repr=False)
    """The kernel's message, the argument of parse()."""

    @property
    def local(self) -> Tuple[str, int]:
        """Address and port at this host; an IPv4 address in an IPv6 socket is given as IPv4."""
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
    """Returns an IP address without zone, IPv4 where it is mapped into IPv6; None: it is none."""
    try:
        address = ipaddress.ip_address(text.partition("%")[0])
    except ValueError:
        return None
    return getattr(address, "ipv4_mapped", None) or address


def ask_for(sequence: int, family: int, identity: bytes = ANY, program: bytes = b"") -> bytes:
    """Returns a request to the kernel: for the connection of an identity, or for a selection.

    program: program of selection(). The answer repeats the sequence number.
    """
    body = _REQUEST.pack(family, socket.IPPROTO_TCP, _EXTENSIONS, 0, _OPEN_STATES) + identity
    if program:
        body += ATTRIBUTE.pack(ATTRIBUTE.size + len(program), _BYTECODE) + program
    size = HEADER.size + len(body)
    flags = _ALL if program else _ONE
    return HEADER.pack(size, SOCK_DIAG_BY_FAMILY, flags, sequence, 0) + body


def sequence_of(question: bytes) -> int:
    """Returns the sequence number of a request."""
    return int(HEADER.unpack_from(question)[3])


def selection(ports: Tuple[int, ...], address: Optional[Address], serving: bool) -> bytes:
    """Returns the kernel's filter program: the address at the other end, and one of the ports.

    Source: net/ipv4/inet_diag.c, inet_diag_bc_run: after an op follows the one at its offset `yes`
    or `no`; a socket that arrives exactly at the end is selected, one that jumps beyond is not.
    """
    end = _LOCAL if serving else _REMOTE
    alternatives = [_condition(end, None, port) for port in ports]
    program = b""
    for alternative in reversed(alternatives):
        # A failed condition goes on behind the jump, or beyond the end; a true one to the end.
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
    """Packs inet_diag_hostcond: family (0: either), length of the prefix, port (-1: any)."""
    if address is None:
        return struct.pack("=BBxxi", socket.AF_UNSPEC, 0, port)
    family = socket.AF_INET if address.version == 4 else socket.AF_INET6
    return struct.pack("=BBxxi", family, address.max_prefixlen, port) + address.packed


def is_open(payload: bytes) -> bool:
    """Whether an inet_diag_msg is of a connection on which payload may still move."""
    return bool(_OPEN_STATES >> payload[1] & 1) if len(payload) >= _MESSAGE.size else False


def parse(payload: bytes) -> Optional[Socket]:
    """Parses an inet_diag_msg with its attributes; None: truncated, or no open TCP connection."""
    if not is_open(payload):
        return None
    family, _, _, _, identity, _, unread, unacknowledged, _, inode = _MESSAGE.unpack_from(payload)
    if family not in (socket.AF_INET, socket.AF_INET6):
        return None
    values = attributes(payload[_MESSAGE.size :])
    name = values.get(_CONGESTION)
    return Socket(
        family=family,
        identity=identity,
        inode=inode,
        unread_bytes=unread,
        unacknowledged_bytes=unacknowledged,
        info=values.get(_INFO, b""),
        congestion_control=name.split(b"\0")[0].decode("ascii", "replace") if name else None,
        memory=_memory(values.get(_MEMORY, b"")),
        raw=payload,
    )


def _memory(memory: bytes) -> Optional[Memory]:
    """Parses the words of sk_get_meminfo (include/uapi/linux/sock_diag.h), all that there are."""
    if len(memory) >= 24:
        return Memory(*struct.unpack_from("=4xI4xI4xI", memory))
    return Memory(*struct.unpack_from("=4xI4xI", memory)) if len(memory) >= 16 else None


NETLINK_SOCK_DIAG = 4
ANSWER_SECONDS = 2.0
LONGEST_ANSWER_BYTES = 1 << 16
MOST_FOUND = 64
"""Connections of one search; a host with more needs a narrower one."""


class Sockets:
    """A netlink socket for requests about TCP sockets.

    Raises Unavailable where the system does not report sockets or forbids it.
    """

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise Unavailable("this system's kernel does not report other programs' sockets")
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
            self._netlink.bind((0, 0))
        except OSError as error:
            raise Unavailable(f"the kernel reports no sockets ({error.strerror})") from None
        wait_at_most(self._netlink, ANSWER_SECONDS, RECEIVING)
        self._sequence = 0

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self._netlink.close()

    def find(
        self, ports: Tuple[int, ...], peer_address: str, serving: bool, limit: int = 0
    ) -> List[Socket]:
        """Returns the connections with one of the ports at this end (serving) or at the other.

        peer_address: address of the other end; empty, or no IP address: any. A port of -1 is any.
        The kernel selects, so that others cost only its pass over its table. At most `limit` of
        either IP version (MOST_FOUND where it is 0), in the kernel's order.
        """
        address = plain_address(peer_address) if peer_address else None
        program = selection(ports, address, serving)
        states: List[Socket] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            if family == socket.AF_INET and address is not None and address.version == 6:
                continue
            if family == socket.AF_INET6 and not serving and getattr(address, "version", 6) == 4:
                continue  # a client's socket to an IPv4 address is an IPv4 socket
            raw: List[bytes] = []
            # Read to the end of the answer: the rest would be taken for the next one.
            for each in self._search(self._request(family, ANY, program)):
                if len(raw) < (limit or MOST_FOUND):
                    raw.append(each)
            states += [state for state in map(parse, raw) if state is not None]
        return states

    def question(self, state: Socket) -> bytes:
        """Returns the request for one connection, for look_raw()."""
        return self._request(state.family, state.identity)

    def _request(self, family: int, identity: bytes, program: bytes = b"") -> bytes:
        self._sequence += 1
        return ask_for(self._sequence, family, identity, program)

    def look_raw(self, question: bytes) -> Optional[bytes]:
        """Returns the message for parse() of one connection; None: it no longer exists.

        A question may be used again and again. Costs some microseconds.
        """
        try:
            self._netlink.send(question)
            for kind, payload in messages(
                self._netlink.recv(LONGEST_ANSWER_BYTES), sequence_of(question)
            ):
                if kind == SOCK_DIAG_BY_FAMILY:
                    return payload if is_open(payload) else None
                _raise_error(payload, (errno.ENOENT, errno.ESTALE))
        except OSError as error:
            raise Unavailable(f"the kernel reports no sockets ({error.strerror})") from None
        return None

    def _search(self, question: bytes) -> Iterator[bytes]:
        try:
            self._netlink.send(question)
            while True:
                for kind, payload in messages(
                    self._netlink.recv(LONGEST_ANSWER_BYTES), sequence_of(question)
                ):
                    if kind == DONE:
                        return
                    if kind == ERROR:
                        _raise_error(payload)
                    yield payload
        except OSError as error:
            raise Unavailable(f"the kernel reports no sockets ({error.strerror})") from None


def _raise_error(payload: bytes, expected: Tuple[int, ...] = ()) -> None:
    """Raises the error of an NLMSG_ERROR (netlink(7)), unless it is an expected one."""
    number = -struct.unpack_from("=i", payload)[0] if len(payload) >= 4 else errno.EIO
    if number not in expected:
        raise OSError(number, os.strerror(number))
