"""A login on a share as the stages see it, whichever library made it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from typing import Protocol

from probes.records import DIALECTS, Access, Endpoint
from probes.smb import kerberos
from probes.smb.facts import SessionFacts
from probes.smb.frames import prepare
from probes.smb.interfaces import Interface
from probes.smb.pipe import Pipe
from probes.stage import Refused, Unavailable

SMB_PORT = 445
CONNECT_SECONDS = 5.0
HEAD_START_SECONDS = 0.5
"""Of an address before the next one of the same host is tried; all are tried longer after that."""
STEP_SECONDS = 10.0
"""Absolute limit of each single step before and after a copy: negotiate, login, open, close."""
SECURITIES = ("plain", "signed", "encrypted")
"""plain: neither signed nor encrypted; signed, encrypted: every message, because we say so."""


class DialectMissing(Unavailable):
    """The server does not speak it; no login was tried yet."""


@dataclass(frozen=True)
class Handle:
    """An open file or folder on the share."""

    path: str
    id: bytes
    size_bytes: int
    """When it was opened."""


@dataclass(frozen=True)
class Space:
    """Room on the share's file system."""

    free_bytes: int
    """Free to this user."""
    total_bytes: int


class Session(Protocol):
    """A tree connection. Every method raises Refused; pipe() raises what its body raises."""

    @property
    def facts(self) -> SessionFacts:
        """What was agreed."""

    def create_folder(self, path: str) -> Handle:
        """A new folder that goes when its last handle is closed."""

    def open_folder(self, path: str) -> Handle:
        """An existing folder of this run; it goes when its last handle is closed."""

    def create_file(self, path: str) -> Handle:
        """A new file to read and write, shared; it goes when its last handle is closed."""

    def open_file(self, path: str, write: bool) -> Handle:
        """An existing file; write: one that this run created."""

    def close(self, handle: Handle) -> None:
        """Closes it, and so deletes what was created."""

    def space(self, handle: Handle) -> Space:
        """Room on the file system that the handle lies on."""

    def interfaces(self) -> tuple[Interface, ...]:
        """The server's network interfaces; none where it does not tell them."""

    def names(self, folder: str) -> tuple[str, ...]:
        """What lies in a folder."""

    def remove_file(self, path: str) -> None:
        """Deletes a file that this run created."""

    def pipe(self, handle: Handle) -> AbstractContextManager[Pipe]:
        """The data path on this session; the library rests until it is closed.

        Where the body fails the connection is cut: the server then closes and deletes everything.
        """

    def disconnect(self) -> None:
        """Closes what is open, logs off and disconnects; never raises."""


@contextmanager
def open_session(
    peer: Endpoint, dialect: str = "", security: str = "", preferred: tuple[str, ...] = ()
) -> Iterator[Session]:
    """Logs in once to peer.share in that dialect, "" being the best that the server speaks.

    security: one of SECURITIES, or "" for what the server requires and no more. preferred: names of
    ciphers and signing algorithms (aes-256-gcm, aes-cmac ...) that alone are offered in 3.1.1.
    Raises Refused for what the user has to mend, Unavailable where the server lacks the dialect or
    the security.
    """
    if dialect and dialect not in DIALECTS:
        raise Unavailable(f"there is no SMB dialect {dialect}; known are {' '.join(DIALECTS)}")
    if security and security not in SECURITIES:
        raise ValueError(f"no such security: {security}")
    session = _opened(peer, dialect, security, preferred)
    try:
        yield session
    finally:
        session.disconnect()


def _opened(peer: Endpoint, dialect: str, security: str, preferred: tuple[str, ...]) -> Session:
    from probes.smb import smbprotocol_session

    if dialect == "smb1":
        return _smb1(peer, security)
    try:
        return smbprotocol_session.open_session(peer, dialect or None, security, preferred)
    except DialectMissing as error:
        if dialect:
            raise
        try:
            # no password was sent yet: this is still the first attempt to log in
            return _smb1(peer, security)
        except DialectMissing as older:
            text = (
                f"{peer.host} port {peer.port or SMB_PORT}: negotiate: {error}, and {older}; "
                "is it a file server?"
            )
            raise Refused("unreachable", text) from error


def _smb1(peer: Endpoint, security: str) -> Session:
    try:
        from probes.smb import impacket_session
    except ImportError as error:
        raise DialectMissing("SMB1 needs impacket here: install copy-bottleneck[smb1]") from error
    return impacket_session.open_session(peer, security)


def login(peer: Endpoint) -> Access:
    """Who logs in: the user; guest, only where that was allowed; or, without a name and a
    password, whoever a Kerberos ticket of this host speaks for. Raises Refused."""
    access = peer.access or Access()
    if access.username:
        return access
    if access.allow_guest:
        return Access(username="guest", allow_guest=True)
    if kerberos.principal():
        return Access()
    text = f"{peer.host}: login: no user was given; name one, or allow guest{kerberos.hint()}"
    raise Refused("login", text)


def refuse_guest(peer: Endpoint, access: Access, guest: bool) -> None:
    """Raises Refused where the server made a guest of a user who wanted to be himself."""
    if guest and not access.allow_guest:
        raise Refused(
            "login",
            f"{peer.host}: login: the server took this user for a guest; "
            "check user and password, or allow guest",
        )


def first_to_answer(host: str, port: int) -> socket.socket:
    """A connection with that address of a host's which answers; a dead one costs little.

    Errors: those of socket.create_connection.
    """
    addresses = [each[4][0] for each in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)]
    for address in addresses if len(addresses) > 1 else ():
        with suppress(OSError):  # tried again, and longer
            connection = socket.create_connection((str(address), port), HEAD_START_SECONDS)
            connection.settimeout(CONNECT_SECONDS)
            return connection
    return socket.create_connection((host, port), CONNECT_SECONDS)


def connect(peer: Endpoint) -> socket.socket:
    """A prepared TCP connection within CONNECT_SECONDS per address. Raises Refused."""
    host, port = peer.host, peer.port or SMB_PORT
    where = f"{host} port {port}"
    try:
        sock = first_to_answer(host, port)
    except socket.gaierror:
        text = f"{host}: connect: the name does not resolve; check it, or give an address"
    except TimeoutError:
        text = (
            f"{where}: connect: no answer within {CONNECT_SECONDS:.0f} s; "
            "is the host up, does a firewall drop the port?"
        )
    except ConnectionRefusedError:
        text = f"{where}: connect: refused; does the file server run there, on this port?"
    except OSError as error:
        text = f"{where}: connect: {(error.strerror or str(error)).lower()}; check the network"
    except UnicodeError:
        text = f"{host}: connect: this is no host name; check it, or give an address"
    else:
        prepare(sock)
        return sock
    raise Refused("unreachable", text)
