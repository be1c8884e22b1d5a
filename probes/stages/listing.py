"""Lists a folder of many files: one query after the other for all, and one query for each file.

A program that shows or copies a tree asks the server once for many entries (QUERY_DIRECTORY,
MS-SMB2 2.2.33), or, for what that reply lacks, once more for each (CREATE, CLOSE). Runs on the
client only (Python 3.11).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

from probes.core.field_types import Count, Seconds, Text
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import (
    LONG_BUDGET_SECONDS,
    Last,
    RunFacts,
    Running,
    Stage,
    Turn,
    Unavailable,
    no_agent,
)
from probes.smb import status
from probes.smb.login import open_session
from probes.smb.many_files import ManyFiles, refuse_recycle_bin
from probes.smb.pipe import round_trips
from probes.smb.run_folder import join_path

if TYPE_CHECKING:
    from probes.smb.listing import Listed
    from probes.smb.smbprotocol_session import Smb2Session

STAGE = Stage(
    "listing",
    measures="the time to list a folder",
    usual_seconds=2.0,
    needs=("share",),
    writes=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
)
FILES = 1000
MAKING_SHARE, LISTING_SHARE, ECHO_SHARE = 0.4, 0.3, 0.05
"""Shares of the time: for making the files, for listing them all, and for ECHOs."""
LEAST_LISTINGS, LEAST_FILES = 3, 20
TRIPS_OF_EACH = 2
"""CREATE and CLOSE."""
CLEANING_SECONDS, GRACE_SECONDS = 20.0, 5.0


@dataclass(frozen=True)
class Setting:
    """Count of the files, which are empty."""

    entries: Count
    """Most files; fewer where the time is over."""
    dialect: Text
    seconds: Seconds
    """Time for making and listing; removing comes after it."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields one step; SMB1 has other requests for it."""
    if facts.dialect != "smb1":
        yield Turn(
            f"listing {facts.dialect}",
            Setting(FILES, facts.dialect, 0.0),
            STAGE.usual_seconds,
            parts=2.0,
            peer="share",
            grace_seconds=2 * CLEANING_SECONDS,
        )


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Makes files, lists their folder again and again, then asks for one file after the other.

    peer: host, port, share, access and folder, the run's. The payload is the entries as listed.
    Returns the details: seconds_per_thousand and round_trips_per_thousand entries, each with
    `query`, of the folder at once, and `each`, of file by file (medians); entries, rtt_seconds.
    Raises Refused, Unavailable, SmbError, ValueError.
    """
    if setting.entries < LEAST_FILES or setting.seconds <= 0:
        raise ValueError(f"no such listing: of {setting.entries} files")
    refuse_recycle_bin(peer)
    path = join_path(peer.folder, "small")
    with (
        open_session(peer, setting.dialect, setting.security) as session,
        status.error_context(lambda: "listing failed", peer),
    ):
        folder = session.open_folder(peer.folder)
        facts = session.facts
        began = time.monotonic()
        with session.pipe(folder) as pipe:
            pipe.limit(began + setting.seconds + GRACE_SECONDS)
            rtts = round_trips(pipe, ECHO_SHARE * setting.seconds)
            files = ManyFiles(pipe, path, {})
            count = _make(files, setting.entries, began + MAKING_SHARE * setting.seconds)
        yield Sample(0.0, 0)
        at_once, listed = _list(cast("Smb2Session", session), peer.folder, count, setting.seconds)
        with session.pipe(folder) as pipe:
            pipe.limit(time.monotonic() + setting.seconds + CLEANING_SECONDS)
            files.move_to(pipe)
            each = _ask_for_each(files, began + setting.seconds)
            yield Last(sum(at_once), len(at_once) * listed.moved_bytes)
            pipe.limit(time.monotonic() + CLEANING_SECONDS)
            files.remove()
    figures = _details(count, at_once, each, listed, statistics.median(rtts))
    return {**figures, **facts.protocol_details}


def _details(
    count: int, at_once: list[float], each: list[float], listed: Listed, trip: float
) -> Details:
    """Returns the figures of 1,000 entries: as many replies as they fill, and the server's work."""
    further_trips = math.ceil(listed.replies_needed(1000 / count)) - listed.replies
    trips = listed.round_trips + max(0, further_trips)
    work = max(0.0, statistics.median(at_once) - listed.round_trips * trip)
    return {
        "entries": count,
        "seconds_per_thousand": {
            "query": work * 1000 / count + trips * trip,
            "each": 1000 * statistics.median(each),
        },
        "round_trips_per_thousand": {"query": trips, "each": 1000 * TRIPS_OF_EACH},
        "rtt_seconds": trip,
    }


def _make(files: ManyFiles, count: int, until: float) -> int:
    """Makes empty files until a moment, a batch at a time; returns their number."""
    while len(files.handles) < count and not files.full:
        done = len(files.handles)
        if done >= LEAST_FILES and time.monotonic() > until:
            break
        files.make(range(done, min(count, done + LEAST_FILES)), lambda number: None)
    if files.full or len(files.handles) < LEAST_FILES:
        raise Unavailable(f"the server opens only {len(files.handles)} files in a session")
    return len(files.handles)


def _list(
    session: Smb2Session, folder: str, count: int, seconds: float
) -> tuple[list[float], Listed]:
    """Returns the seconds of each listing, and the last of them."""
    # With the SMB library, which only a child loads.
    from probes.smb import listing

    times: list[float] = []
    until = time.monotonic() + LISTING_SHARE * seconds
    while True:
        began = time.perf_counter()
        listed = listing.count_entries(session, folder, "small-")
        times.append(time.perf_counter() - began)
        if listed.entries < count:
            raise Unavailable(f"the server listed {listed.entries} of {count} files")
        if len(times) >= LEAST_LISTINGS and time.monotonic() > until:
            return times, listed


def _ask_for_each(files: ManyFiles, until: float) -> list[float]:
    """Returns the seconds that opening and closing each file by its name takes."""
    times: list[float] = []
    for number in files.handles:
        if len(times) >= LEAST_FILES and time.monotonic() > until:
            break
        times.append(files.look_up(number))
    return times
