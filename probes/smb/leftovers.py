"""Folders of killed runs on a share, found and removed over SMB 2 or 3.

Ours alone: the name of a run's folder, in it a run's files and nothing else, no link among them.
Each is opened with nothing shared first (MS-SMB2 2.2.13, ShareAccess 0), which a server refuses
while anybody, the run itself for one, has it open; only a handle that was given so is deleted by.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from datetime import datetime

from probes.drivers import smbprotocol_leftovers as driver
from probes.drivers.smbprotocol_session import open_session
from probes.host.leftovers import MOST_FOUND, RUN, RUN_FILE, Leftover
from probes.records import Endpoint
from probes.smb.run_folder import joined
from probes.stage import Refused

LOOK_SECONDS = 40.0
"""From then on nothing more is begun: what was found and removed by then is told in time."""


@dataclass(frozen=True)
class Setting:
    """What to look for, and what to remove of it."""

    older_seconds: float
    remove: tuple[str, ...] = ()
    """Names that an earlier look gave: nothing else is looked at then."""


@contextmanager
def hold(setting: Setting, peer: Endpoint) -> Iterator[Endpoint]:
    """Looks into peer.folder of peer.share; removes what is named, where it is still ours.

    Yields the peer with facts: found (at most MOST_FOUND Leftovers as plain values, why_left also
    what went wrong) and removed (names). The session is over by then. Raises Refused, Unavailable.
    """
    until = time.monotonic() + LOOK_SECONDS
    session = open_session(peer, None, "", ())
    found: list[Leftover] = []
    removed: list[str] = []
    try:
        now = session.facts.server_time
        wanted = frozenset(setting.remove)
        for entry in driver.entries(session, peer.folder, "bottleneck-*"):
            if not driver.matches(RUN, entry.name) or (wanted and entry.name not in wanted):
                continue
            if len(found) >= MOST_FOUND - 1 or time.monotonic() > until:
                why = "more than could be looked at in one go: run it once more"
                found.append(Leftover(entry.name, "run", why, 0, 0, 0.0))
                if wanted:
                    continue  # each of them is told of, so that none is taken for gone
                break
            seen = _seen(session, peer.folder, entry, now, setting.older_seconds)
            if entry.name in wanted and not seen.why_left:
                path = joined(peer.folder, entry.name)
                seen = replace(seen, why_left=driver.remove(session, path, RUN_FILE, until))
                if not seen.why_left:
                    removed.append(entry.name)
                    continue
            found.append(seen)
    finally:
        session.disconnect()
    facts = {"found": [asdict(each) for each in found], "removed": removed}
    yield replace(peer, access=None, facts=facts)


def _seen(
    session: driver.Smb2Session,
    folder: str,
    entry: driver.Entry,
    now: str | None,
    older_seconds: float,
) -> Leftover:
    """One candidate by its name, looked into; nothing is changed."""
    path = joined(folder, entry.name)
    changed, files, size = entry.changed, 0, 0
    why = "" if entry.is_plain_folder else "it is no plain folder"
    try:
        for each in driver.entries(session, path, "*") if not why else ():
            changed = max(changed, each.changed)
            files, size = files + 1, size + each.size_bytes
            if not driver.matches(RUN_FILE, each.name) or not each.is_plain_file:
                why = f"it holds {each.name!r}, which no run puts there"
                break
    except Refused as refused:
        why = refused.text
    why = why or driver.withheld(session, path)
    age = None if now is None else (datetime.fromisoformat(now) - changed).total_seconds()
    if not why and age is None:
        why = "the server does not tell its clock, so that its age is unknown"
    if not why and age is not None and age < older_seconds:
        why = (
            f"changed {max(0.0, age):.0f} s ago, less than {older_seconds:.0f} s: a run may use it"
        )
    return Leftover(entry.name, "run", why, files, size, max(0.0, age or 0.0))
