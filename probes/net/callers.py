"""Who may call the ports that an agent's process opens: the session's peer, where it is known."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
from typing import Any, Iterable, Iterator, List

from probes.core.meaning import Port, Seconds, Text
from probes.system.rtnetlink import in_own_zone

_MAPPED = "::ffff:"
_peer: List[str] = []
"""Empty: whoever knows the session's nonce."""


def expect(told: str) -> None:
    """Has every port that this process opens from now on answer one peer, and this host itself.

    It is whom the coordinator names where ssh saw the same address; where nobody can be sure, as
    behind an address translation, the nonce alone decides.
    """
    seen = os.environ.get("SSH_CONNECTION", "").split(" ")[0]
    _peer[:] = [plain(told)] if told and told == seen else []


def also(addresses: Iterable[str]) -> None:
    """Lets the session's peer call from more addresses of its own, as it names them."""
    if _peer:
        _peer.extend(plain(each) for each in addresses)


def accepted(listener: socket.socket) -> Iterator[socket.socket]:
    """Each connection that comes until the listener closes; a stranger's is closed."""
    with contextlib.suppress(OSError):
        while True:
            connection, _ = listener.accept()
            if is_stranger(connection):
                connection.close()
            else:
                yield connection


def is_stranger(connection: socket.socket) -> bool:
    """Whether a connection comes from another host than the one that is let in."""
    try:
        other, own = connection.getpeername()[0], connection.getsockname()[0]
    except OSError:
        return True  # it has gone
    return bool(_peer) and other != own and plain(other) not in _peer


def plain(address: str) -> str:
    """An IP address without its zone, of IPv4 where it only looks like IPv6 (RFC 4291, 2.5.5.2)."""
    address = address.partition("%")[0]
    return address[len(_MAPPED) :] if address.lower().startswith(_MAPPED) else address


def with_zone(address: Any) -> str:
    """The IP address of a socket's address, one of a link with its zone: `fe80::1%eth0`."""
    zone = address[3] if len(address) > 3 else 0
    names = dict(socket.if_nameindex()) if zone else {}
    return f"{address[0]}%{names.get(zone, zone)}" if zone else str(address[0])


def for_socket(address: str, port: int) -> Any:
    """The other way round: what connect() and sendto() take, its zone included."""
    return socket.getaddrinfo(address.encode(), port, flags=socket.AI_NUMERICHOST)[0][4]


def of_peer(connection: socket.socket) -> str:
    """Returns the plain IP address of a connection's other end, with its zone."""
    address = connection.getpeername()
    return with_zone((plain(address[0]), *address[1:]))


_SAYINGS = {
    errno.ECONNREFUSED: "refused",
    errno.EHOSTUNREACH: "no route to it, or a firewall rejects it",
    errno.ENETUNREACH: "no route to it",
}


def reach(host: Text, port: Port, wait_seconds: Seconds) -> str:
    """Empty where a connection is taken within so many seconds, else why not, in a few words.

    The connection is closed at once and nothing is sent.
    """
    try:
        socket.create_connection((in_own_zone(host), port), timeout=wait_seconds).close()
    except socket.timeout:  # noqa: UP041 - only since Python 3.10 it is TimeoutError
        return f"no answer within {wait_seconds:.0f} s"
    except socket.gaierror:
        return "the name does not resolve"
    except OSError as error:
        return _SAYINGS.get(error.errno or 0) or (error.strerror or str(error)).lower()
    return ""
