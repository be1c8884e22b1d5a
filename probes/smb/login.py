"""Logs in to a share once, by the library for the dialect."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from probes.core.records import DIALECTS, SMB_PORT, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.smb.frames import ConnectionClosed
from probes.smb.session import SECURITIES, UNENCRYPTED, DialectMissing, Session


@contextmanager
def open_session(
    peer: Endpoint, dialect: str = "", security: str = "", preferred: tuple[str, ...] = ()
) -> Iterator[Session]:
    """Logs in once to peer.share in that dialect; "": the best that the server supports.

    security: one of SECURITIES, UNENCRYPTED, or "" for what the server requires and no more.
    preferred: names of the only ciphers and signing algorithms (aes-256-gcm, aes-cmac ...) to
    offer in 3.1.1.
    Raises Refused for what the user has to mend, Unavailable where the server lacks the dialect or
    the security.
    """
    if dialect and dialect not in DIALECTS:
        raise Unavailable(f"SMB dialect {dialect}: must be one of {' '.join(DIALECTS)}")
    if security not in ("", UNENCRYPTED, *SECURITIES):
        raise ValueError(f"security {security}: unknown")
    session = _start(peer, dialect, security, preferred)
    try:
        yield session
    finally:
        session.disconnect()


def _start(peer: Endpoint, dialect: str, security: str, preferred: tuple[str, ...]) -> Session:
    from probes.smb.smbprotocol_session import Smb2Session

    errors: list[DialectMissing] = []
    # No password is sent before a dialect is agreed: the next attempt is still the first login.
    for kind in {"smb1": (_smb1,), "": (Smb2Session, _smb1)}.get(dialect, (Smb2Session,)):
        try:
            return kind(peer, security).start(dialect or None, preferred)
        except DialectMissing as error:
            errors.append(error)
    if dialect:
        raise errors[0]
    why = f"{errors[0]}, and {errors[1]}; check the port"
    if isinstance(errors[0].__cause__, ConnectionClosed):
        why = "the server closed the connection at once; look for a limit of its processes or "
        why += "connections, and for a block list, or check the port"
    text = f"{peer.host} port {peer.port or SMB_PORT}: negotiate: {why}"
    raise Refused("unreachable", text) from errors[0]


def _smb1(peer: Endpoint, security: str) -> Session:
    try:
        from probes.smb.impacket_session import Smb1Session
    except ImportError as error:
        raise DialectMissing("SMB1 needs impacket here: install the extra 'smb1'") from error
    return Smb1Session(peer, security)
