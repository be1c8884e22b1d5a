"""Observes a copy from a child process: its TCP connections, programs' threads, counters.

Of a copy of ours the programs are the file server's, which it looks for; of one that others make
those that it is told of.

It looks 20 to 50 times a second, needs no privileges, and learns afterwards which time span was the
copy's. After each look it pauses for REST_RATIO times the CPU time that the look took.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from probes.core import meaning
from probes.core.copy_trace import Bin, CountLook, ProgramLook, ThreadLook
from probes.core.meaning import Address, Port, Seconds, Text
from probes.files.open_files import Tally, owners, serving
from probes.sockets.sock_diag import Sockets
from probes.system import proc
from probes.system.platform import os
from probes.system.proc import ProcessIo
from probes.system.waiting import select
from probes.watch.connection_track import MOST_LOOKS, Connection, Track
from probes.watch.look_rows import CounterSnapshot, ThreadSnapshot, count_rows, thinned, thread_rows
from probes.watch.program_time import bins
from probes.watch.thread_calls import Calls
from probes.watch.thread_states import Threads


@dataclass(frozen=True)
class Observed:
    """Observations of a copy on one host."""

    connections: Tuple[Connection, ...]
    threads: Tuple[ThreadLook, ...] = ()
    """At the file server's, or those of `pids`; none: this host serves nothing, or its threads are
    not to be seen."""
    counts: Tuple[CountLook, ...] = ()
    cpu_ratio: float = 0.0
    """Of a core, that the watch itself took."""
    bins: Tuple[Bin, ...] = ()
    """Where the time of `pids` went (program_time.bins)."""
    moved: Tuple[ProgramLook, ...] = ()
    """At what `pids` read and wrote."""


LOOK_SECONDS, FIRST_LOOK_SECONDS = 0.05, 0.02
"""Between two looks; and while a copy is young: it may be a short one."""
FIRST_LOOKS = 50
LEAST_LOOKS, LEAST_LOOK_SECONDS = 24, 0.15
"""So many looks are made at this distance at the most, whatever they cost: a slow host has to be
seen too."""
REST_RATIO, LONGEST_REST_SECONDS = 115, 2.0
"""The least that a look is rested after, over the CPU time that it took. To look for the file
server's processes costs more, and is done OWNER_SEARCHES times at most."""
OWNER_SEARCHES = 3
COUNT_SECONDS = 0.25
MOST_THREAD_LOOKS = 512
"""Of a longer copy every second one goes."""
SEARCH_SECONDS = 0.06
BUSY_SEARCH_SECONDS = 0.5
"""While a copy is seen already: a search costs most of all that is done here."""
SEARCH_SHARE = 0.005
"""The most of a core, for searches: where the kernel's table is large they are made less often."""
SLOWEST_SEARCH_SECONDS = 2.0
MOST_WATCHED = 16
MOST_TOLD = 4
TOLD_SHARE = 0.1
"""Of what the busiest connection moved: those with less carried no copy."""


@dataclass(frozen=True)
class Setting:
    """Which connections."""

    ports: Tuple[Port, ...]
    """The file server's: any of them."""
    serving: bool
    """Whether that port is at this end: this host serves the copy."""
    peer_address: Address = ""
    """The other host's. Where this one serves and none has it, as behind an address translation,
    any counts."""
    seconds: Seconds = 60.0
    """The watch ends by itself after this."""
    device: Optional[Text] = None
    """Kernel name of the one under the folder that the copy reads or writes here."""
    ends: Tuple[Port, ...] = ()
    """Ports of the one connection, here and at the other host; empty: any."""
    pids: Tuple[meaning.Count, ...] = ()
    """Programs that make the copy; empty: the file server's are looked for."""
    disk_verb: Text = ""
    """As thread_calls.Calls.of_program takes it."""


def observe(
    setting: Setting, control_fd: int, window: Callable[[], Optional[Sequence[float]]]
) -> Observed:
    """Watches until control_fd can be read; then window() tells which time was the copy's.

    window: two readings of this host's monotonic clock; None: nobody wants to know, and nothing
    is returned. At most MOST_TOLD connections, those first that moved most. Raises Unavailable
    where the kernel does not tell of sockets.
    """
    began, used = time.monotonic(), time.process_time()
    with contextlib.ExitStack() as stack:
        threads = stack.enter_context(contextlib.closing(Threads()))
        # A copy between folders of this host has no connection.
        sockets = stack.enter_context(Sockets()) if setting.ports else None
        watch = Watch(setting, sockets, threads)
        watch.run(control_fd)
    share = (time.process_time() - used) / max(1e-6, time.monotonic() - began)
    copied = window()
    if copied is None:
        return Observed(())
    return replace(watch.told(float(copied[0]), float(copied[1])), cpu_ratio=share)


@dataclass
class Watch:
    """All connections that fit a setting, from now on."""

    setting: Setting
    sockets: Optional[Sockets]
    """None: no connection is looked at."""
    threads: Threads = field(default_factory=Threads)
    calls: Calls = field(default_factory=Calls)
    tracks: Dict[bytes, Track] = field(default_factory=dict)
    serving: Set[int] = field(default_factory=set)
    """Processes that carry the copy: those that were named, or the file server's."""
    tally: Tally = field(init=False)
    thread_looks: List[ThreadSnapshot] = field(default_factory=list)
    counts: List[CounterSnapshot] = field(default_factory=list)
    moved: List[Tuple[float, ProcessIo]] = field(default_factory=list)
    began_ticks: int = field(default_factory=proc.ticks_now)
    """When it began, as processes' beginnings are counted."""
    owner_searches: int = 0
    owners_seconds: float = 0.0
    """CPU time of the last one, which no rest makes up for."""
    busy_looks: int = 0
    """Those at a connection that carries a copy, searches aside."""
    asked: Set[int] = field(default_factory=lambda: {0})
    """Inodes whose owners were looked for; 0 is of those that nobody has accepted yet."""
    searched: bool = False
    """Whether a search was made before: what a later one finds is new."""
    all_known: bool = True
    """Whether all that searches found are watched: else what is found may be an old one."""
    count_at: float = 0.0
    search_at: float = 0.0
    search_all: bool = True
    """Whether it is worth looking for connections with other addresses than the peer's."""

    def __post_init__(self) -> None:
        self.serving = set(self.setting.pids)
        self.tally = Tally(tuple(self.setting.pids))

    def run(self, control_fd: int) -> None:
        """Looks until the descriptor has something to say, or the time is over."""
        due = time.monotonic()
        until, looks = due + self.setting.seconds, 0
        while due < until:
            used, self.owners_seconds = time.thread_time(), 0.0
            self.once()
            took = time.thread_time() - used - self.owners_seconds
            looks += 1
            longest = LEAST_LOOK_SECONDS if looks < LEAST_LOOKS else LONGEST_REST_SECONDS
            rest = min(longest, REST_RATIO * took)
            # A look that came late is not made up for: the next ones would come too close.
            # At fixed times a peer that works in steps of a few of them would be seen at one phase.
            pause = FIRST_LOOK_SECONDS if self.busy_looks < FIRST_LOOKS else LOOK_SECONDS
            due = max(due + random.uniform(0.6, 1.4) * pause, time.monotonic() + rest)
            if select.select([control_fd], [], [], max(0.0, due - time.monotonic()))[0]:
                break
        self.search_at = 0.0
        self.look()
        self._look_at_threads()
        self._count()

    def once(self) -> None:
        """One look at the connections and the programs, and at the counters where it is time."""
        self.look()
        self._look_at_threads()
        if time.monotonic() >= self.count_at:
            self._count()
            self.count_at = time.monotonic() + COUNT_SECONDS

    def _look_at_threads(self) -> None:
        if self.serving:
            states, waits_for = self.threads.look(self.serving), None
            if self.setting.pids and states:
                waits_for = self.calls.of_program(states, self.setting.disk_verb)
            self.thread_looks.append(ThreadSnapshot(time.monotonic(), states, waits_for))
            if len(self.thread_looks) > MOST_THREAD_LOOKS:
                del self.thread_looks[1::2]

    def _count(self) -> None:
        device = self.setting.device
        moved = proc.written_and_flushed(device) if device else None
        self.counts.append(CounterSnapshot(time.monotonic(), moved, proc.waiting_cores()))
        del self.counts[:-MOST_LOOKS]
        bytes_moved = self.tally.total_io()
        if bytes_moved is not None:
            self.moved.append((time.monotonic(), bytes_moved))
            del self.moved[:-MOST_LOOKS]

    def look(self) -> None:
        """One look at each connection that moves; at all of them where a search is due."""
        now = time.monotonic()
        if self.sockets is None:
            return
        if now >= self.search_at:
            used = time.thread_time()
            self._search(now)
            busy = any(track.busy(now) for track in self.tracks.values())
            pause_seconds = max(
                BUSY_SEARCH_SECONDS if busy else SEARCH_SECONDS,
                (time.thread_time() - used) / SEARCH_SHARE,
            )
            found = bool(self.setting.ends and self.tracks)
            self.search_at = now + (
                SLOWEST_SEARCH_SECONDS if found else min(SLOWEST_SEARCH_SECONDS, pause_seconds)
            )
            if self.setting.serving and not self.setting.pids:
                self._name_owners(now)
            return
        self.busy_looks += any(track.busy(now) for track in self.tracks.values())
        for track in self.tracks.values():
            if track.gone or track.idle:
                continue
            raw = self.sockets.look_raw(track.question)
            if raw is None:
                track.gone = True
            else:
                track.take(time.monotonic(), raw)

    def _search(self, now: float) -> None:
        setting, sockets = self.setting, self.sockets
        assert sockets is not None
        found = sockets.find(setting.ports, setting.peer_address, setting.serving)
        translated = not found and setting.serving and self.search_all
        if translated:
            found = sockets.find(setting.ports, "", setting.serving)
            # A busy server's other clients: none of them could be told from ours.
            self.search_all = len(found) < MOST_WATCHED
            found = found if self.search_all else []
        for seen in found:
            if setting.ends and (seen.local[1], seen.peer[1]) != tuple(setting.ends):
                continue
            if seen.identity not in self.tracks:
                self._make_room()
                if len(self.tracks) >= MOST_WATCHED:
                    self.all_known = False
                    continue
                fresh = self.all_known and self.searched and not translated
                question = sockets.question(seen)
                self.tracks[seen.identity] = Track(seen, question, fresh=fresh)
            self.tracks[seen.identity].find(now, seen)
        self.searched = True

    def _make_room(self) -> None:
        """Forgets one that moves nothing where there are too many."""
        if len(self.tracks) < MOST_WATCHED:
            return
        identity, track = min(self.tracks.items(), key=lambda each: each[1].moved_at)
        if track.idle:
            del self.tracks[identity]
            self.all_known = False

    def _name_owners(self, now: float) -> None:
        """Finds the process behind each connection that is new or busy, while both exist."""
        began = time.thread_time()
        inodes = {
            track.seen.inode for track in self.tracks.values() if track.fresh or track.busy(now)
        } - self.asked
        if inodes:
            names = owners(inodes)
            self.owner_searches += 1
            self.serving = self._own(proc.processes()) or self.serving
            # Between accept(2) and smbd's fork(2) a connection is still the listening process's.
            if self.serving or self.owner_searches >= OWNER_SEARCHES:
                self.asked |= inodes
            for track in self.tracks.values():
                track.process = track.process or names.get(track.seen.inode)

        self.owners_seconds = time.thread_time() - began

    def _own(self, seen: Dict[int, proc.ProcessStat]) -> Set[int]:
        """The process that serves the copy: smbd has one for each connection, which begins with it.

        Empty where it cannot be told from those of other connections, or is the kernel's.
        """
        found = serving(seen, os.getppid(), self.setting.peer_address)
        found = {pid for pid in found if not seen[pid].kernel}
        if len(found) > 1:
            found = {pid for pid in found if seen[pid].started_ticks >= self.began_ticks}
        return found if len(found) == 1 else set()

    def told(self, began: float, ended: float) -> Observed:
        """What was seen between two moments of this host's clock."""
        return Observed(
            tuple(self.connections(began, ended)),
            tuple(thinned(thread_rows(self.thread_looks, began, ended))),
            tuple(thinned(count_rows(self.counts, began, ended))),
            bins=tuple(bins(self.thread_looks, began, ended)),
            moved=tuple(thinned(_program_looks(self.moved, began, ended))),
        )

    def connections(self, began: float, ended: float) -> List[Connection]:
        """What the connections did between two moments, those first that moved most."""
        moved = {
            identity: sum(track.moved_bytes(began, ended))
            for identity, track in self.tracks.items()
        }
        most = max(moved.values(), default=0)
        told = []
        for identity in sorted(moved, key=lambda each: -moved[each])[:MOST_TOLD]:
            if moved[identity] > TOLD_SHARE * most:
                told.append(self.tracks[identity].between(began, ended))
        return told


def _program_looks(
    moved: Sequence[Tuple[float, ProcessIo]], began: float, ended: float
) -> List[ProgramLook]:
    inside = [(at, each) for at, each in moved if began <= at <= ended]
    names = ProgramLook._fields[1:]
    return [
        ProgramLook(
            round(at - began, 6),
            *(getattr(each, name) - getattr(inside[0][1], name) for name in names),
        )
        for at, each in inside
    ]
