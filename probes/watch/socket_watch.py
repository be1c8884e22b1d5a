"""Observes a copy from a child process: its TCP connections, programs' threads, counters.

The programs of a copy of ours are the file server's, which it searches; those of a copy by others
are in the setting.

It looks 20 to 50 times a second, needs no privileges, and gets the copy's time span afterwards.
After each look it pauses for REST_RATIO times the CPU time that the look took.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from probes.core import field_types
from probes.core.copy_trace import Bin, CountLook, ProgramLook, ThreadLook
from probes.core.field_types import Address, Port, Seconds, Text
from probes.files.open_files import Tally, owners, servers_of_peer
from probes.sockets.sock_diag import Sockets
from probes.system import proc
from probes.system.platform import os
from probes.system.proc import ProcessIo
from probes.system.waiting import select
from probes.watch.connection_track import MOST_LOOKS, Connection, Track
from probes.watch.program_time import bins
from probes.watch.thread_calls import Calls
from probes.watch.thread_states import Threads
from probes.watch.trace_rows import (
    CounterSnapshot,
    ThreadSnapshot,
    count_rows,
    thinned_rows,
    thread_rows,
)


@dataclass(frozen=True)
class Observations:
    """Observations of a copy on one host."""

    connections: Tuple[Connection, ...]
    threads: Tuple[ThreadLook, ...] = ()
    """Looks at the threads of the file server, or of `pids`; none: this host serves nothing, or
    they are not visible."""
    counts: Tuple[CountLook, ...] = ()
    cpu_ratio: float = 0.0
    """Share of a core that the watch itself took."""
    bins: Tuple[Bin, ...] = ()
    """Time bins of `pids` (program_time.bins)."""
    io_looks: Tuple[ProgramLook, ...] = ()
    """Looks at the I/O of `pids`."""


LOOK_SECONDS, FIRST_LOOK_SECONDS = 0.05, 0.02
"""Interval of the looks, and of the first ones: the copy may be a short one."""
FIRST_LOOKS = 50
LEAST_LOOKS, LEAST_LOOK_SECONDS = 24, 0.15
"""Number of looks with at most this interval, whatever they cost: slow hosts need looks too."""
REST_RATIO, LONGEST_REST_SECONDS = 115, 2.0
"""Least rest after a look over the CPU time that it took. The search for the file server's
processes costs more, and is made OWNER_SEARCHES times at most."""
OWNER_SEARCHES = 3
COUNT_SECONDS = 0.25
MOST_THREAD_LOOKS = 512
"""Limit of looks, at which every second one is dropped."""
SEARCH_SECONDS = 0.06
BUSY_SEARCH_SECONDS = 0.5
"""Interval of searches with a known copy: they are the costliest part here."""
SEARCH_SHARE = 0.005
"""Largest share of a core for searches: with a large table in the kernel they are made less often.
"""
SLOWEST_SEARCH_SECONDS = 2.0
MOST_WATCHED = 16
MOST_TOLD = 4
TOLD_SHARE = 0.1
"""Least traffic of a copy's connection over the busiest one's."""


@dataclass(frozen=True)
class Setting:
    """Connections, programs and disk to watch."""

    ports: Tuple[Port, ...]
    """Ports of the file server: any of them."""
    serving: bool
    """Whether that port is at this end: this host serves the copy."""
    peer_address: Address = ""
    """Address of the other host. Where this one serves and none has it, as behind an address
    translation, any counts."""
    seconds: Seconds = 60.0
    """Time after which the watch ends by itself."""
    device: Optional[Text] = None
    """Kernel name of the block device under the folder that the copy reads or writes here."""
    ends: Tuple[Port, ...] = ()
    """Ports of the one connection, here and at the other host; empty: any."""
    pids: Tuple[field_types.Count, ...] = ()
    """Programs that make the copy; empty: the file server's are searched."""
    disk_verb: Text = ""
    """See thread_calls.Calls.program_wait()."""


def observe(
    setting: Setting, control_fd: int, window: Callable[[], Optional[Sequence[float]]]
) -> Observations:
    """Watches until control_fd can be read; then window() returns the copy's time span.

    window: two readings of this host's monotonic clock; None: no result is needed, and an empty
    one is returned. At most MOST_TOLD connections, the busiest first. Raises Unavailable where the
    kernel does not report sockets.
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
        return Observations(())
    return replace(watch.observations(float(copied[0]), float(copied[1])), cpu_ratio=share)


@dataclass
class Watch:
    """All connections that match a setting, from now on."""

    setting: Setting
    sockets: Optional[Sockets]
    """Requests about sockets; None: connections are not watched."""
    threads: Threads = field(default_factory=Threads)
    calls: Calls = field(default_factory=Calls)
    tracks: Dict[bytes, Track] = field(default_factory=dict)
    serving: Set[int] = field(default_factory=set)
    """Processes that carry the copy: the setting's, or the file server's."""
    tally: Tally = field(init=False)
    thread_looks: List[ThreadSnapshot] = field(default_factory=list)
    counts: List[CounterSnapshot] = field(default_factory=list)
    io_looks: List[Tuple[float, ProcessIo]] = field(default_factory=list)
    began_ticks: int = field(default_factory=proc.ticks_now)
    """Start of the watch, by the clock of processes' starts."""
    owner_searches: int = 0
    owners_seconds: float = 0.0
    """CPU time of the last search for owners, after which there is no rest."""
    busy_looks: int = 0
    """Number of looks with a busy connection, without searches."""
    inodes_searched: Set[int] = field(default_factory=lambda: {0})
    """Inodes whose owners were searched; sockets that are not accepted yet have 0."""
    searched: bool = False
    """Whether a search was made before: connections in a later one are new."""
    all_known: bool = True
    """Whether all connections in searches are watched: else one may be old and look new."""
    count_at: float = 0.0
    search_at: float = 0.0
    search_all: bool = True
    """Whether a search for connections with other addresses than the peer's is worth it."""

    def __post_init__(self) -> None:
        self.serving = set(self.setting.pids)
        self.tally = Tally(tuple(self.setting.pids))

    def run(self, control_fd: int) -> None:
        """Looks until the descriptor can be read, or the time is over."""
        due = time.monotonic()
        until, looks = due + self.setting.seconds, 0
        while due < until:
            used, self.owners_seconds = time.thread_time(), 0.0
            self.once()
            took = time.thread_time() - used - self.owners_seconds
            looks += 1
            longest = LEAST_LOOK_SECONDS if looks < LEAST_LOOKS else LONGEST_REST_SECONDS
            rest = min(longest, REST_RATIO * took)
            # A late look is not made up for: the next ones would come too close. At fixed intervals
            # a peer that works in steps would always be seen in the same phase.
            pause = FIRST_LOOK_SECONDS if self.busy_looks < FIRST_LOOKS else LOOK_SECONDS
            due = max(due + random.uniform(0.6, 1.4) * pause, time.monotonic() + rest)
            if select.select([control_fd], [], [], max(0.0, due - time.monotonic()))[0]:
                break
        self.search_at = 0.0
        self.look()
        self._look_at_threads()
        self._count()

    def once(self) -> None:
        """Looks once at the connections and the programs, and at the counters when due."""
        self.look()
        self._look_at_threads()
        if time.monotonic() >= self.count_at:
            self._count()
            self.count_at = time.monotonic() + COUNT_SECONDS

    def _look_at_threads(self) -> None:
        if self.serving:
            states, waits_for = self.threads.look(self.serving), None
            if self.setting.pids and states:
                waits_for = self.calls.program_wait(states, self.setting.disk_verb)
            self.thread_looks.append(ThreadSnapshot(time.monotonic(), states, waits_for))
            if len(self.thread_looks) > MOST_THREAD_LOOKS:
                del self.thread_looks[1::2]

    def _count(self) -> None:
        device = self.setting.device
        counts = proc.written_and_flushed(device) if device else None
        self.counts.append(CounterSnapshot(time.monotonic(), counts, proc.waiting_cores()))
        del self.counts[:-MOST_LOOKS]
        bytes_moved = self.tally.total_io()
        if bytes_moved is not None:
            self.io_looks.append((time.monotonic(), bytes_moved))
            del self.io_looks[:-MOST_LOOKS]

    def look(self) -> None:
        """Looks at each connection that moves, or at all of them where a search is due."""
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
            is_tracked = bool(self.setting.ends and self.tracks)
            self.search_at = now + (
                SLOWEST_SEARCH_SECONDS if is_tracked else min(SLOWEST_SEARCH_SECONDS, pause_seconds)
            )
            if self.setting.serving and not self.setting.pids:
                self._name_owners(now)
            return
        self.busy_looks += any(track.busy(now) for track in self.tracks.values())
        for track in self.tracks.values():
            if track.has_ended or track.idle:
                continue
            raw = self.sockets.look_raw(track.question)
            if raw is None:
                track.has_ended = True
            else:
                track.take(time.monotonic(), raw)

    def _search(self, now: float) -> None:
        setting, sockets = self.setting, self.sockets
        assert sockets is not None
        states = sockets.find(setting.ports, setting.peer_address, setting.serving)
        translated = not states and setting.serving and self.search_all
        if translated:
            states = sockets.find(setting.ports, "", setting.serving)
            # A busy server's other clients cannot be distinguished from ours.
            self.search_all = len(states) < MOST_WATCHED
            states = states if self.search_all else []
        for state in states:
            if setting.ends and (state.local[1], state.peer[1]) != tuple(setting.ends):
                continue
            if state.identity not in self.tracks:
                self._make_room()
                if len(self.tracks) >= MOST_WATCHED:
                    self.all_known = False
                    continue
                fresh = self.all_known and self.searched and not translated
                self.tracks[state.identity] = Track(state, sockets.question(state), fresh=fresh)
            self.tracks[state.identity].find(now, state)
        self.searched = True

    def _make_room(self) -> None:
        """Drops an idle connection where there are too many."""
        if len(self.tracks) < MOST_WATCHED:
            return
        identity, track = min(self.tracks.items(), key=lambda each: each[1].moved_at)
        if track.idle:
            del self.tracks[identity]
            self.all_known = False

    def _name_owners(self, now: float) -> None:
        """Finds the process of each connection that is new or busy, while both exist."""
        began = time.thread_time()
        inodes = {
            track.state.inode for track in self.tracks.values() if track.fresh or track.busy(now)
        } - self.inodes_searched
        if inodes:
            names = owners(inodes)
            self.owner_searches += 1
            self.serving = self._find_server(proc.processes()) or self.serving
            # Between accept(2) and smbd's fork(2) a connection is still the listening process's.
            if self.serving or self.owner_searches >= OWNER_SEARCHES:
                self.inodes_searched |= inodes
            for track in self.tracks.values():
                track.process = track.process or names.get(track.state.inode)

        self.owners_seconds = time.thread_time() - began

    def _find_server(self, stats: Dict[int, proc.ProcessStat]) -> Set[int]:
        """Returns the process that serves the copy: smbd starts one for each connection.

        Empty where it cannot be distinguished from those of others, or is the kernel's.
        """
        pids = servers_of_peer(stats, os.getppid(), self.setting.peer_address)
        pids = {pid for pid in pids if not stats[pid].kernel}
        if len(pids) > 1:
            pids = {pid for pid in pids if stats[pid].started_ticks >= self.began_ticks}
        return pids if len(pids) == 1 else set()

    def observations(self, began: float, ended: float) -> Observations:
        """Returns the observations between two moments of this host's clock."""
        return Observations(
            tuple(self.connections(began, ended)),
            tuple(thinned_rows(thread_rows(self.thread_looks, began, ended))),
            tuple(thinned_rows(count_rows(self.counts, began, ended))),
            bins=tuple(bins(self.thread_looks, began, ended)),
            io_looks=tuple(thinned_rows(_program_looks(self.io_looks, began, ended))),
        )

    def connections(self, began: float, ended: float) -> List[Connection]:
        """Returns the connections' figures between two moments, the busiest first."""
        sizes = {
            identity: sum(track.moved_bytes(began, ended))
            for identity, track in self.tracks.items()
        }
        largest = max(sizes.values(), default=0)
        figures = []
        for identity in sorted(sizes, key=lambda each: -sizes[each])[:MOST_TOLD]:
            if sizes[identity] > TOLD_SHARE * largest:
                figures.append(self.tracks[identity].connection_between(began, ended))
        return figures


def _program_looks(
    looks: Sequence[Tuple[float, ProcessIo]], began: float, ended: float
) -> List[ProgramLook]:
    inside = [(clock, each) for clock, each in looks if began <= clock <= ended]
    names = ProgramLook._fields[1:]
    return [
        ProgramLook(
            round(clock - began, 6),
            *(getattr(each, name) - getattr(inside[0][1], name) for name in names),
        )
        for clock, each in inside
    ]
