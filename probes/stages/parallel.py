"""Copies files of one size, 1, 4 and 16 at once, and names the command that copies them soonest.

Each of them has a connection of its own, as those of rclone have. From and to memory, and without
FLUSH: the question is what the path and the server allow. Client only (Python 3.11).
"""

from __future__ import annotations

import math
import statistics
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from probes.core.field_types import Seconds, Size, Text
from probes.core.records import Details, Endpoint, Moved, Sample
from probes.core.stage import (
    LONG_BUDGET_SECONDS,
    Last,
    Refused,
    RunFacts,
    Running,
    Stage,
    Turn,
    Unavailable,
    no_agent,
)
from probes.files import payload
from probes.smb import status
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.many_files import refuse_recycle_bin
from probes.smb.pipe import round_trips
from probes.smb.run_folder import join_path
from probes.smb.session import Session
from probes.stages.small_files import VERBS, SmallFiles
from probes.system.platform import USUAL_COPIER

STAGE = Stage(
    "parallel",
    measures="whether more files at once are faster",
    usual_seconds=6.0,
    needs=("share",),
    writes=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
    varying=("size_bytes",),
)
FILES_AT_ONCE = (1, 4, 16)
FILE_BYTES = (64 * 1024, 1024 * 1024)
MOST_BYTES = 1024**3
"""Most payload that one push of several files may leave on the share at a time."""
WINDOW_SHARE, ECHO_SHARE = 0.15, 0.03
"""Shares of the time: of each count of files, and of ECHOs."""
LONGEST_SECONDS = 4.0
"""Most time of as many files, at the rate of the most so far, at which they are copied at once."""
LOGINS_SECONDS = 15.0
"""Most time of the further logins for a number of files at once."""
WAIT_SECONDS = 40.0
"""Additional time for logins, the requests in flight when the time is over, and removal."""
MANY = 1000
"""Count of files that a command's seconds are for."""
GAIN_RATIO = 1.15
"""Least ratio of times from which on more files at once are advised."""


@dataclass(frozen=True)
class Setting:
    """Direction and size of the files."""

    verb: Text
    """push: new files on the share; pull: files that lie there, cached by the server."""
    file_bytes: Size
    dialect: Text
    size_bytes: Size
    """Most payload on the share at a time."""
    seconds: Seconds
    """Time for making and measuring; removing comes after it."""
    seed: Text = ""
    """Seed of the payload, hex."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""


class Program(NamedTuple):
    """A program that copies folders, and what it asks the server for with each file."""

    several: str
    """Command for {n} files at once."""
    single: str
    """Command where more at once gain nothing."""
    requests: dict[tuple[str, int], int]
    """Count of READs or WRITEs, one at a time, by direction and size; missing: many at once."""
    lookups: dict[str, int]
    """Further pairs of CREATE and CLOSE, by direction."""
    others: dict[str, int]
    """Further round trips, by direction."""
    is_like_it: bool
    """Whether these are its own requests: it needs about the measured time, not at least that."""


RCLONE = Program(
    "rclone copy --transfers {n} SRC DST",
    "rclone copy --transfers 1 SRC DST",
    {("pull", 65536): 2, ("push", 65536): 1, ("pull", 1 << 20): 9, ("push", 1 << 20): 9},
    {"pull": 1, "push": 6},
    {"pull": 1, "push": 2},
    is_like_it=True,
)
"""Captured from rclone 1.60 with Samba 4.17; each file has a connection of its own, signed."""
SIGNED_BY = "aes-cmac"
ROBOCOPY = Program(
    "robocopy SRC DST /E /MT:{n}", "robocopy SRC DST /E", {}, {}, {}, is_like_it=False
)
PROGRAMS = {"rclone": RCLONE, "robocopy": ROBOCOPY}


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a pull of each size; pushes too where this stage alone runs. Not for SMB1."""
    verbs = ("pull", "push") if facts.is_only else ("pull",)
    each = [(verb, size) for verb in verbs for size in FILE_BYTES]
    for verb, size in each if facts.dialect != "smb1" else ():
        yield Turn(
            f"parallel {verb} {size // 1024} KiB",
            Setting(verb, size, facts.dialect, 0, 0.0, facts.seed),
            STAGE.usual_seconds / len(FILE_BYTES),
            parts=len(each),
            peer="share",
            grace_seconds=WAIT_SECONDS,
        )


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Sets size_bytes by the free space. Raises Unavailable where it is too small."""
    size = min(MOST_BYTES, facts.room_bytes // 2)
    if size < FILES_AT_ONCE[-1] * setting.file_bytes:
        raise Unavailable("not enough free space on the share for several files at once")
    return replace(setting, size_bytes=size)


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Copies files over more and more connections; the samples are of the fastest count.

    peer: host, port, share, access and folder, the run's.

    Returns:
        cells: {files_at_once, bytes_per_second} of each count that the server allowed; command: the
        text for this host's system, its seconds for so many files, those of one_at_a_time_seconds,
        and whether it needs these at_least; core_ratio: the most that this tool used of a core;
        rtt_seconds, login_seconds; hash_ok: None for pushes, which are not read back.

    Raises Refused, Unavailable, SmbError, ValueError.
    """
    if setting.verb not in VERBS or setting.seconds <= 0 or setting.size_bytes < 1:
        raise ValueError(f"no such copies: {setting.verb} of {setting.file_bytes} bytes each")
    refuse_recycle_bin(peer)
    with (
        status.error_context(lambda: f"{STAGE.name} {setting.verb} failed", peer),
        ExitStack() as stack,
    ):
        program = PROGRAMS[USUAL_COPIER]
        group = _Group(setting, peer, program)
        stack.push(lambda kind, error, _: group.keep(0, error))
        trip = group.rtt_seconds()
        cells = {1: group.copy(1).bytes_per_second}
        for count in FILES_AT_ONCE[1:]:
            if (rate := group.try_copy(count, max(cells.values()))) is None:
                break
            cells[count] = rate
        best = max(cells, key=lambda count: cells[count])
        group.keep(best)
        yield Sample(0.0, 0)
        total = group.copy(best)
        yield Last(total.seconds, total.moved_bytes)
        # The lower of two: a gain that does not last is none.
        cells[best] = min(cells[best], total.bytes_per_second)
        group.run(best, SmallFiles.remove)
        login = statistics.median(group.logins)
        group.keep(0)
    return {
        "cells": [{"files_at_once": n, "bytes_per_second": rate} for n, rate in cells.items()],
        "command": best_command(program, setting.file_bytes, cells, login),
        "core_ratio": group.core_ratio,
        "rtt_seconds": trip,
        "login_seconds": login,
        "hash_ok": group.intact if setting.verb == "pull" else None,
        **group.details,
    }


def best_command(
    program: Program, file_bytes: int, cells: dict[int, float], login: float
) -> Details:
    """Returns the command for the fewest files at once that take hardly longer than any number.

    cells: bytes per second by files at once; login: its seconds.
    """
    times = {files: MANY * file_bytes / rate for files, rate in cells.items()}
    if program.is_like_it:
        # It logs in once, then for each connection, one after the other, while others copy.
        times = {files: each + (1 + (files - 1) / 2) * login for files, each in times.items()}
    best = min(n for n, seconds in times.items() if seconds <= GAIN_RATIO * min(times.values()))
    return {
        "text": program.single if best == 1 else program.several.format(n=best),
        "files": MANY,
        "files_at_once": best,
        "seconds": times[best],
        "one_at_a_time_seconds": times[1],
        "at_least": not program.is_like_it,
    }


@dataclass
class _Group:
    """Sessions of this run, each with a thread and files of its own while they copy."""

    setting: Setting
    peer: Endpoint
    program: Program
    sessions: list[ExitStack] = field(default_factory=list)
    """Each closes one, which removes its files."""
    files: list[SmallFiles] = field(default_factory=list)
    """Files of each session."""
    logins: list[float] = field(default_factory=list)
    """Seconds of each."""
    making_rate: float = math.inf
    """Bytes per second at which the last session's file was made."""
    intact: bool = True
    """Whether all content that closed sessions compared was right."""
    core_ratio: float = 0.0
    """Most use of a core by this tool in copies."""
    details: Details = field(default_factory=dict)
    """Protocol of the first session."""

    def __post_init__(self) -> None:
        self.is_over = threading.Event()
        self.is_signed = self.program.is_like_it and not self.setting.security
        self.ring = payload.make_ring(bytes.fromhex(self.setting.seed))
        self.deadline = time.monotonic() + self.setting.seconds + WAIT_SECONDS
        self._open()

    def try_copy(self, count: int, rate: float) -> float | None:
        """Copies over so many sessions; returns bytes per second, None where that is not possible.

        rate: the highest so far. What the server refuses, or breaks off, is given back at once.
        """
        bytes_per_second, allowed = min(rate, self.making_rate), len(self.files)
        logins = (count - allowed) * statistics.median(self.logins)
        is_slow = count * self.setting.file_bytes > LONGEST_SECONDS * bytes_per_second
        if is_slow or logins > LOGINS_SECONDS:
            return None
        try:
            while len(self.files) < count:
                self._open()
            return self.copy(count).bytes_per_second
        except Refused as refused:
            # Also a login that the first session was granted ends the run.
            if refused.ends_run:
                raise
            self.keep(allowed)
        except (SmbError, Unavailable) as error:
            self.keep(allowed, error)
        return None

    def keep(self, count: int, error: BaseException | None = None) -> None:
        """Closes the sessions beyond a count, which others may need; error: what broke them."""
        while len(self.files) > count:
            self.intact = self.files.pop().intact and self.intact
            self.sessions.pop().__exit__(None if error is None else type(error), error, None)

    def _open(self) -> None:
        setting, began = self.setting, time.monotonic()
        with ExitStack() as stack:
            session = self._log_in(stack)
            self.logins.append(time.monotonic() - began)
            pipe = stack.enter_context(session.pipe(session.open_folder(self.peer.folder)))
            pipe.limit(self.deadline)
            self.details = self.details or session.facts.protocol_details
            path = join_path(self.peer.folder, "small")
            requests = self.program.requests.get((setting.verb, setting.file_bytes), 0)
            files = SmallFiles(pipe, path, setting.file_bytes, self.ring, requests)
            began = time.monotonic()
            files.make(1, self.deadline)
            self.making_rate = setting.file_bytes / max(1e-9, time.monotonic() - began)
            self.files.append(files)
            self.sessions.append(stack.pop_all())

    def _log_in(self, stack: ExitStack) -> Session:
        dialect, security = self.setting.dialect, self.setting.security
        if self.is_signed:
            try:
                signed = open_session(self.peer, dialect, "signed", (SIGNED_BY,))
                return stack.enter_context(signed)
            except Unavailable:
                if self.sessions:
                    raise
                # It insists on encryption, or lacks the algorithm: no login was refused.
                self.is_signed = False
        return stack.enter_context(open_session(self.peer, dialect, security))

    def rtt_seconds(self) -> float:
        """Returns the median of ECHOs on the first session."""
        pipe = self.files[0].pipe
        return statistics.median(round_trips(pipe, ECHO_SHARE * self.setting.seconds))

    def copy(self, count: int) -> Moved:
        """Copies files over so many sessions at once, each until the time is over."""
        setting, results = self.setting, list[Moved]()
        most_files = setting.size_bytes // (count * setting.file_bytes)
        until = time.monotonic() + WINDOW_SHARE * setting.seconds

        def work(files: SmallFiles) -> None:
            began, done = time.monotonic(), 0
            while done < most_files and not self.is_over.is_set():
                if done and time.monotonic() > until:
                    break
                if setting.verb == "pull":
                    files.pull(0)
                elif files.push(1 + done) is None:
                    break
                for _ in range(self.program.lookups.get(setting.verb, 0)):
                    files.look_up(0)
                for _ in range(self.program.others.get(setting.verb, 0)):
                    files.pipe.echo()
                    files.pipe.wait()
                done += 1
            results.append(Moved(done * setting.file_bytes, time.monotonic() - began))

        used, began = time.process_time(), time.monotonic()
        self.run(count, work)
        ratio = (time.process_time() - used) / max(1e-9, time.monotonic() - began)
        self.core_ratio = max(self.core_ratio, ratio)
        if setting.verb == "push":
            self.run(count, partial(SmallFiles.remove, first=1))
        if not any(each.moved_bytes for each in results):
            raise Unavailable("the server opens no more files for this session")
        # Until the last ends: whoever ended before left the rest to it.
        return Moved(sum(e.moved_bytes for e in results), max(e.seconds for e in results))

    def run(self, count: int, work: Callable[[SmallFiles], None]) -> None:
        """Does work with the files of so many sessions at once, each in a thread."""
        errors: list[BaseException] = []

        def guarded(files: SmallFiles) -> None:
            try:
                work(files)
            except BaseException as error:
                errors.append(error)

        threads = [
            threading.Thread(target=guarded, args=(each,), daemon=True)
            for each in self.files[:count]
        ]
        try:
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        finally:
            # After Ctrl-C too: nothing else may use their sessions meanwhile.
            self.is_over.set()
            for thread in filter(threading.Thread.is_alive, threads):
                thread.join()
            self.is_over.clear()
        if errors:
            raise errors[0]
