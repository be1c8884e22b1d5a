"""Many small files, one after the other: what one of them costs, in seconds and round trips.

As Explorer, cp and smbclient do it: CREATE, WRITE or READ, CLOSE, each waiting for the one before.
The frames are our own, on the pipe: a library's own round trip would be measured with it. Runs on
the client alone (Python 3.11).
"""

from __future__ import annotations

import secrets
import statistics
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from probes.host import payload
from probes.meaning import Count, Seconds, Size, Text
from probes.records import Endpoint, Sample
from probes.smb import echo
from probes.smb.blame import blamed
from probes.smb.run_folder import joined
from probes.smb.session import open_session
from probes.smb.small import SmallFiles, Timed
from probes.stage import Known, Last, Running, Stage, Turn, Unavailable

STAGE = Stage(
    "small-files",
    measures="what a small file costs",
    usual_seconds=1.8,
    needs=("share",),
    calls="called",
    unpaced=True,
    writes=True,
    explains=True,
)
USUAL_SECONDS = 1.5
FILES, FILE_BYTES = 500, 16 * 1024

VERBS = ("push", "pull")
SAMPLE_SECONDS = 0.1
ECHO_SHARE = 0.1
MAKING_SHARE = 0.4
"""Of a pull's time: for making the files, which is not measured."""
LEAST_FILES = 3
GRACE_SECONDS = 5.0
CLEANING_SECONDS = 20.0


@dataclass(frozen=True)
class Setting:
    """Which way, how many, how large."""

    verb: Text
    """push: new files on the share; pull: files that lie there."""
    files: Count
    """At most; fewer where the time is over."""
    file_bytes: Size
    dialect: Text
    seconds: Seconds
    """For making and measuring; comparing and removing come after it."""
    seed: Text = ""
    """Of the payload, hex."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""


def turns(known: Known) -> Iterator[Turn]:
    """Pushed, then pulled."""
    for verb in VERBS:
        yield Turn(
            f"small files {verb}",
            Setting(verb, FILES, FILE_BYTES, known.dialect, 0.0, known.seed),
            USUAL_SECONDS,
            parts=2 * len(VERBS),
            peer="share",
            grace_seconds=2 * CLEANING_SECONDS,
        )


def fitted(setting: Setting, known: Known) -> Setting:
    """As it is, where there is room for it."""
    if known.room_bytes < setting.files * setting.file_bytes:
        raise Unavailable(f"no room on the share for {setting.files} files of 16 KiB")
    return setting


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Nothing: the file server is the responder."""
    yield Endpoint()


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Copies one file after the other and yields samples of what arrived.

    peer: host, port, share, access and folder, the run's. Elapsed is the sum of the files' own
    times: what keeps a file from being left behind is not in it. Returns the details: files,
    seconds_per_file (median) with its quartiles, round_trips_per_file, rtt_seconds (median of SMB
    ECHOs on the idle session), hash_ok. Raises Refused, Unavailable, Broken, and ValueError for a
    setting that makes no sense.
    """
    if setting.verb not in VERBS or setting.files < 1 or setting.seconds <= 0:
        raise ValueError(f"no such files: {setting.verb} of {setting.files}")
    if not 1 <= setting.file_bytes <= payload.LONGEST_BLOCK_BYTES:
        raise ValueError(f"a small file has no {setting.file_bytes} bytes")
    ring = payload.ring(bytes.fromhex(setting.seed))
    path = joined(peer.folder, f"small-{secrets.token_hex(8)}")
    with open_session(peer, setting.dialect, setting.security) as session:
        # opened first: the last to leave removes folder and files
        folder = session.open_folder(peer.folder)
        facts = session.facts
        with blamed(f"{STAGE.name} {setting.verb}", peer), session.pipe(folder) as pipe:
            until = time.monotonic() + setting.seconds
            pipe.limit(until + GRACE_SECONDS)
            rtts = echo.round_trips(pipe, ECHO_SHARE * setting.seconds)
            files = SmallFiles(pipe, path, setting.file_bytes, ring)
            if setting.verb == "pull":
                # more cannot be pulled in the time, however fast the server is
                most = 1 + int(setting.seconds / (3 * min(rtts)))
                making = time.monotonic() + MAKING_SHARE * setting.seconds
                files.make(min(setting.files, most), making)
            timed = yield from _window(setting, files, until)
            pipe.limit(time.monotonic() + CLEANING_SECONDS)
            rtts += echo.round_trips(pipe, ECHO_SHARE * setting.seconds)
            if setting.verb == "push":
                files.read_back()
            files.remove()
    each = sorted(one.seconds for one in timed)
    # twice the same list has the same quartiles, and a single file has some too
    low, median, high = statistics.quantiles(each * 2, n=4, method="inclusive")
    return {
        "files": len(timed),
        "seconds_per_file": median,
        "seconds_per_file_low": low,
        "seconds_per_file_high": high,
        "round_trips_per_file": statistics.median(one.round_trips for one in timed),
        "rtt_seconds": statistics.median(rtts),
        "hash_ok": files.intact,
        "dialect": facts.dialect,
        "signing": facts.signing,
        "encryption": facts.encryption,
    }


def _window(
    setting: Setting, files: SmallFiles, until: float
) -> Generator[Sample, None, list[Timed]]:
    """Copies until all are copied or the time is over; LEAST_FILES get a little more time."""
    timed: list[Timed] = []
    elapsed = told = 0.0
    yield Sample(0.0, 0)
    for number in files.numbers if setting.verb == "pull" else range(setting.files):
        one = files.pull(number) if setting.verb == "pull" else files.push(number)
        if one is None:
            break
        timed.append(one)
        elapsed += one.seconds
        grace = GRACE_SECONDS / 2 if len(timed) < LEAST_FILES else 0.0
        if time.monotonic() > until + grace:
            break
        if elapsed - told >= SAMPLE_SECONDS:
            told = elapsed
            yield Sample(elapsed, len(timed) * setting.file_bytes)
    if not timed:
        raise Unavailable("the server opens no more files for this session")
    yield Last(elapsed, len(timed) * setting.file_bytes)
    return timed
