"""TCP connections of any process of this network namespace, as the kernel tells of them.

One search finds the connections; each is then asked for by itself, so that a host with many
sockets is not listed over and over. Needs no privileges. Source: sock_diag(7).
"""

from __future__ import annotations

import errno
import os
import socket
import struct
import sys
from typing import Iterator, List, Optional, Tuple

from probes.host import inet_diag
from probes.host.inet_diag import (
    ANY,
    DONE,
    ERROR,
    SOCK_DIAG_BY_FAMILY,
    Seen,
    is_open,
    messages,
    parse,
    plain_address,
    selection,
    sequence_of,
)
from probes.host.socket_timeouts import RECEIVING, wait_at_most
from probes.stage import Unavailable

NETLINK_SOCK_DIAG = 4
ANSWER_SECONDS = 2.0
LONGEST_ANSWER_BYTES = 1 << 16
MOST_FOUND = 64
"""Connections of one search; a host with more needs a narrower one."""


class Sockets:
    """A netlink socket that asks about TCP sockets.

    Raises Unavailable where the system or its rules do not tell of sockets.
    """

    def __init__(self) -> None:
        if not sys.platform.startswith("linux"):
            raise Unavailable("this system's kernel does not tell of other programs' sockets")
        try:
            self._netlink = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, NETLINK_SOCK_DIAG)
            self._netlink.bind((0, 0))
        except OSError as error:
            raise Unavailable(f"the kernel tells of no sockets ({error.strerror})") from None
        wait_at_most(self._netlink, ANSWER_SECONDS, RECEIVING)
        self._sequence = 0

    def __enter__(self) -> Sockets:
        return self

    def __exit__(self, *_: object) -> None:
        self._netlink.close()

    def find(
        self, ports: Tuple[int, ...], peer_address: str, serving: bool, most: int = 0
    ) -> List[Seen]:
        """The connections with one of the ports at this end (serving) or at the other.

        peer_address: of the other end; empty, or no IP address: any. The kernel picks, so that
        the others cost nothing but its own pass over its table. A port of -1 is any. At most `most`
        of either IP version, MOST_FOUND without it; where there are more, which of them is left to
        the kernel.
        """
        address = plain_address(peer_address) if peer_address else None
        wanted = selection(ports, address, serving)
        found: List[Seen] = []
        for family in (socket.AF_INET, socket.AF_INET6):
            if family == socket.AF_INET and address is not None and address.version == 6:
                continue
            if family == socket.AF_INET6 and not serving and getattr(address, "version", 6) == 4:
                continue  # who connects to an IPv4 address takes an IPv4 socket
            raw: List[bytes] = []
            # The kernel is heard to its end: the rest would be taken for the next answer.
            for each in self._search(self._asked(family, ANY, wanted)):
                if len(raw) < (most or MOST_FOUND):
                    raw.append(each)
            found += [seen for seen in map(parse, raw) if seen is not None]
        return found

    def look(self, seen: Seen) -> Optional[Seen]:
        """The same connection now; None: it is gone."""
        raw = self.look_raw(self.question(seen))
        return None if raw is None else parse(raw)

    def question(self, seen: Seen) -> bytes:
        """What look_raw() asks of one connection."""
        return self._asked(seen.family, seen.identity)

    def _asked(self, family: int, identity: bytes, wanted: bytes = b"") -> bytes:
        self._sequence += 1
        return inet_diag.question(self._sequence, family, identity, wanted)

    def look_raw(self, question: bytes) -> Optional[bytes]:
        """What parse() takes, of one connection; None: it is gone.

        For whoever looks often: a question may be asked again and again. Costs some microseconds.
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
            raise Unavailable(f"the kernel tells of no sockets ({error.strerror})") from None
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
            raise Unavailable(f"the kernel tells of no sockets ({error.strerror})") from None


def _raise_error(payload: bytes, expected: Tuple[int, ...] = ()) -> None:
    """Raises what an NLMSG_ERROR tells (netlink(7)), unless it was to be expected."""
    number = -struct.unpack_from("=i", payload)[0] if len(payload) >= 4 else errno.EIO
    if number not in expected:
        raise OSError(number, os.strerror(number))
