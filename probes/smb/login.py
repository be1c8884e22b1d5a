"""One login on a share, in the dialect and by the library that fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from probes.core.records import DIALECTS, SMB_PORT, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.smb.session import SECURITIES, UNENCRYPTED, DialectMissing, Session


@contextmanager
def open_session(
    peer: Endpoint, dialect: str = "", security: str = "", preferred: tuple[str, ...] = ()
) -> Iterator[Session]:
    """Logs in once to peer.share in that dialect, "" being the best that the server speaks.

    security: one of SECURITIES, UNENCRYPTED, or "" for what the server requires and no more.
    preferred: names of ciphers and signing algorithms (aes-256-gcm, aes-cmac ...) that alone are
    offered in 3.1.1.
    Raises Refused for what the user has to mend, Unavailable where the server lacks the dialect or
    the security.
    """
    if dialect and dialect not in DIALECTS:
        raise Unavailable(f"SMB dialect {dialect}: must be one of {' '.join(DIALECTS)}")
    if security not in ("", UNENCRYPTED, *SECURITIES):
        raise ValueError(f"security {security}: unknown")
    session = _opened(peer, dialect, security, preferred)
    try:
        yield session
    finally:
        session.disconnect()


def _opened(peer: Endpoint, dialect: str, security: str, preferred: tuple[str, ...]) -> Session:
    from probes.smb.smbprotocol_session import Smb2Session

    if dialect == "smb1":
        return _smb1(peer, security)
    try:
        return Smb2Session(peer, security).start(dialect or None, preferred)
    except DialectMissing as error:
        if dialect:
            raise
        try:
            # no password was sent yet: this is still the first attempt to log in
            return _smb1(peer, security)
        except DialectMissing as older:
            text = (
                f"{peer.host} port {peer.port or SMB_PORT}: negotiate: {error}, and {older}; "
                "check the port"
            )
            raise Refused("unreachable", text) from error


def _smb1(peer: Endpoint, security: str) -> Session:
    try:
        from probes.smb.impacket_session import Smb1Session
    except ImportError as error:
        raise DialectMissing("SMB1 needs impacket here: install the extra 'smb1'") from error
    return Smb1Session(peer, security).start(None, ())
