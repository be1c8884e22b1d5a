"""One login on a share, and what was agreed; nothing is written there."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from probes.meaning import Text
from probes.records import Endpoint
from probes.smb.session import open_session


@dataclass(frozen=True)
class Setting:
    """By which dialect; "": the best that the server offers."""

    dialect: Text = ""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Logs in to peer.share, once, and looks into peer.folder; yields the peer with the facts.

    The session is over by then. Raises Refused, Unavailable.
    """
    with open_session(peer, setting.dialect) as session:
        if peer.folder:
            session.names(peer.folder)
        facts = session.facts.details()
    yield replace(peer, access=None, facts=facts)
