"""Restricts the ports that an agent's process opens to the session's peer, where it is known."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import Any, Iterable, Iterator, List

from probes.core.field_types import Port, Seconds, Text
from probes.system.rtnetlink import in_own_zone

_MAPPED = "::ffff:"
_peer: List[str] = []
"""Addresses that may connect; empty: whoever knows the session's nonce."""


def expect(address: str) -> None:
    """Restricts every port that this process opens from now on to one peer, and this host itself.

    The coordinator names the peer's address; it counts only where ssh saw the same one. Otherwise,
    as behind an address translation, the nonce alone decides.
    """
    ssh_client = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    _peer[:] = [plain(address)] if address and address == ssh_client else []


def expect_also(addresses: Iterable[str]) -> None:
    """Adds further addresses from which the session's peer may connect."""
    if _peer:
        _peer.extend(plain(each) for each in addresses)


def accept_peers(listener: socket.socket) -> Iterator[socket.socket]:
    """Yields each connection until the listener closes; a stranger's is closed."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            if is_stranger(connection):
                connection.close()
            else:
                yield connection


def is_stranger(connection: socket.socket) -> bool:
    """Whether a connection comes from a host other than the expected one."""
    try:
        other, local = connection.getpeername()[0], connection.getsockname()[0]
    except OSError:
        return True  # it is closed already
    return bool(_peer) and other != local and plain(other) not in _peer


def plain(address: str) -> str:
    """Returns an IP address without its zone; an IPv4-mapped one as IPv4 (RFC 4291, 2.5.5.2)."""
    address = address.partition("%")[0]
    return address[len(_MAPPED) :] if address.lower().startswith(_MAPPED) else address


def zoned_address(address: Any) -> str:
    """Returns a socket address as text, a link-local one with its zone: `fe80::1%eth0`."""
    zone = address[3] if len(address) > 3 else 0
    names = dict(socket.if_nameindex()) if zone else {}
    return f"{address[0]}%{names.get(zone, zone)}" if zone else str(address[0])


def for_socket(address: str, port: int) -> Any:
    """Returns the socket address, its zone included, that connect() and sendto() take."""
    return socket.getaddrinfo(address.encode(), port, flags=socket.AI_NUMERICHOST)[0][4]


def peer_address(connection: socket.socket) -> str:
    """Returns the plain IP address of a connection's other end, with its zone."""
    address = connection.getpeername()
    return zoned_address((plain(address[0]), *address[1:]))


_REASONS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route to it, or a firewall rejects it",
    errno.ENETUNREACH: "no route to it",
}


def reach(host: Text, port: Port, wait_seconds: Seconds) -> str:
    """Connects to a port; returns an empty text, or why it failed, in a few words.

    The connection is closed at once and nothing is sent.
    """
    try:
        socket.create_connection((in_own_zone(host), port), timeout=wait_seconds).close()
    except socket.timeout:  # noqa: UP041 - only since Python 3.10 it is TimeoutError
        return f"no answer within {wait_seconds:.0f} s"
    except socket.gaierror:
        return "the name does not resolve"
    except OSError as error:
        return _REASONS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ""
