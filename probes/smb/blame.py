"""One line that says what broke where, for the person who has to mend it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from probes.records import Endpoint
from probes.smb import status
from probes.smb.frames import Broken
from probes.stage import Refused


@contextmanager
def blamed(what: str, peer: Endpoint) -> Iterator[None]:
    """Names host, share and what was under way in a Broken of the body.

    Raises Refused instead where the share has no room: that is the user's to mend.
    """
    try:
        yield
    except Broken as error:
        text = f"//{peer.host}/{peer.share}: {what} broke: {error}"
        if not isinstance(error, status.ServerSaid):
            raise type(error)(text) from error
        if error.status in status.NO_ROOM:
            raise Refused("space", f"{text}; make room there, or name a smaller size") from error
        raise status.ServerSaid(text, error.status) from error
