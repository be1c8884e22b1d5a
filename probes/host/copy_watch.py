"""Watches a copy that runs already: its connection, its programs' threads; changes nothing.

The connection and the processes' states are looked at 20 times a second, what is counted 4 times.
Costs about a hundredth of a core; of many threads that are looked at not more than a fiftieth.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from probes import meaning
from probes.host import proc
from probes.host.connection_track import Track
from probes.host.look_rows import CountLook, ThreadLook, count_rows, thinned, thread_rows
from probes.host.proc import Moved
from probes.host.program_time import ProgramLook, bins
from probes.host.reader import reader
from probes.host.running_copies import ANY_PORT, MOST_LOOKED_AT, counted
from probes.host.sock_diag import Seen, Sockets
from probes.host.socket_watch import Observed
from probes.host.thread_calls import Calls
from probes.host.thread_states import Threads
from probes.host.waiting import select
from probes.meaning import Address, Port, Seconds, Text
from probes.records import Details
from probes.stage import Unavailable

LOOK_SECONDS = 0.05
REST_RATIO = 50
"""The least that a look is rested after, over the CPU time that it took."""
COUNT_SECONDS = 0.25
MOST_COUNTS = 2000  # even: see Watch._count
MOST_LOOKS = 1024
"""At the program's threads; of a longer watch every second one goes."""
MOST_TOLD = 400


@dataclass(frozen=True)
class Setting:
    """Which copy: its connection at this host, its processes; what is empty is not watched."""

    own_address: Address = ""
    own_port: Port = 0
    peer_address: Address = ""
    peer_port: Port = 0
    pids: Tuple[meaning.Count, ...] = ()
    seconds: Seconds = 60.0
    """The watch ends by itself after this."""
    device: Optional[Text] = None
    """Kernel name of the one under the copy's file here."""
    disk_verb: Text = ""
    """thread_calls.READ or WRITE: what a wait for a disk is taken for where the call is not known;
    OTHER: it may be one for the other host; empty: it is told by the kernel's function."""


@dataclass(frozen=True)
class Count:
    """What is counted, at one moment of this host's monotonic clock; None: not to be seen."""

    clock_seconds: float
    connection: Optional[Tuple[int, int]]
    """Payload sent and received."""
    processes: Optional[Moved]


def observe(
    setting: Setting, control_fd: int, window: Callable[[], Optional[Sequence[float]]]
) -> Details:
    """Watches until control_fd can be read; window() then tells the part that counts, or None.

    `counts` (rows of the seconds since the part began, and of bytes sent, received, read and
    written since the first; None where not known), `processes` (the same, in all), and for where
    its time went `bins` (program_time.bins) and `observed` (a socket_watch.Observed).
    """
    began, used = time.monotonic(), time.process_time()
    with contextlib.ExitStack() as stack:
        sockets = None
        try:
            sockets = stack.enter_context(Sockets())
        except Unavailable:
            if setting.own_port:
                raise
        watch = Watch(setting, sockets)
        watch.run(control_fd)
    share = (time.process_time() - used) / max(1e-6, time.monotonic() - began)
    wanted = window()
    if wanted is None:
        return {}
    return watch.told(float(wanted[0]), float(wanted[1]), share)


@dataclass
class Watch:
    """One copy, from now on."""

    setting: Setting
    sockets: Optional[Sockets]
    threads: Threads = field(default_factory=Threads)
    calls: Calls = field(default_factory=Calls)
    track: Optional[Track] = None
    counts: List[Count] = field(default_factory=list)
    every: int = 1
    """Keep every Nth count."""
    looks: List[ProgramLook] = field(default_factory=list)
    host_counts: List[CountLook] = field(default_factory=list)
    tally: Tally = field(init=False)

    def __post_init__(self) -> None:
        self.tally = Tally(tuple(self.setting.pids))

    def run(self, control_fd: int) -> None:
        """Looks until the descriptor has something to say, or the time is over."""
        self._find()
        due = count_at = time.monotonic()
        until = due + self.setting.seconds
        while due < until:
            now, used = time.monotonic(), time.process_time()
            self._look(now)
            rest = REST_RATIO * (time.process_time() - used)
            if now >= count_at:
                self._count(now)
                count_at = now + COUNT_SECONDS * self.every
            # At fixed times a copy that works in steps would be seen at one phase of them.
            due = max(due + random.uniform(0.5, 1.5) * LOOK_SECONDS, time.monotonic() + rest)
            if select.select([control_fd], [], [], max(0.0, due - time.monotonic()))[0]:
                break
        self._count(time.monotonic())
        self.threads.close()

    def _find(self) -> None:
        own = self.setting.own_address, self.setting.own_port
        peer = self.setting.peer_address, self.setting.peer_port
        if self.sockets is None or not own[1]:
            return
        for each in self.sockets.find(ANY_PORT, "", False, MOST_LOOKED_AT):
            if (each.own, each.peer) == (own, peer):
                self.track = Track(each, self.sockets.question(each))

    def _look(self, now: float) -> None:
        threads = self.threads.look(self.setting.pids)
        if threads:
            waits_for = self.calls.of_program(threads, self.setting.disk_verb)
            self.looks.append(ProgramLook(now, threads, waits_for))
            if len(self.looks) > MOST_LOOKS:
                del self.looks[1::2]
        if self.track is None or self.track.gone or self.sockets is None:
            return
        raw = self.sockets.look_raw(self.track.question)
        if raw is None:
            self.track.gone = True
        else:
            self.track.take(time.monotonic(), raw)

    def _count(self, now: float) -> None:
        connection = self.counts[-1].connection if self.counts else None
        seen = self._last_seen()
        if seen is not None:
            connection = counted(seen)
        self.counts.append(Count(now, connection, self.tally.moved()))
        device = self.setting.device
        moved = proc.written_and_flushed(device) if device else None
        self.host_counts.append(CountLook(now, moved, proc.waiting_cores()))
        if len(self.counts) > MOST_COUNTS:
            self.counts = self.counts[::2]
            self.host_counts = self.host_counts[::2]
            self.every *= 2

    def _last_seen(self) -> Optional[Seen]:
        if self.track is None or self.sockets is None or self.track.gone:
            return None
        return self.sockets.look(self.track.seen)

    def told(self, began: float, ended: float, cpu_ratio: float) -> Details:
        """What happened between two moments of this host's clock."""
        inside = [each for each in self.counts if began <= each.clock_seconds <= ended]
        looks = [ThreadLook(each.clock_seconds, each.threads) for each in self.looks]
        own = self.track.between(began, ended) if self.track and self.track.looks else None
        seen = Observed(
            () if own is None else (own,),
            tuple(thread_rows(looks, began, ended)),
            tuple(thinned(count_rows(self.host_counts, began, ended))),
            round(cpu_ratio, 6),
        )
        found: Details = {
            "counts": _rows(inside, began),
            "bins": bins(self.looks, began, ended),
            "observed": seen,
        }
        if len(inside) > 1:
            first, last = inside[0].processes, inside[-1].processes
            if first is not None and last is not None:
                grown = Moved(*(b - a for a, b in zip(first, last)))
                found["processes"] = {name: max(0, each) for name, each in grown._asdict().items()}
        return found


def _rows(counts: List[Count], began: float) -> List[List[Optional[float]]]:
    """Seconds since then, and what was moved since the first count."""
    step = max(1, -(-len(counts) // MOST_TOLD))
    # Of those that are left out the last is none.
    kept = counts[::-1][::step][::-1]
    rows: List[List[Optional[float]]] = []
    for each in kept:
        sent = received = read = written = None
        first = kept[0]
        if each.connection is not None and first.connection is not None:
            sent, received = (b - a for a, b in zip(first.connection, each.connection))
        if each.processes is not None and first.processes is not None:
            read = each.processes.read_bytes - first.processes.read_bytes
            written = each.processes.written_bytes - first.processes.written_bytes
        rows.append([each.clock_seconds - began, sent, received, read, written])
    return rows


@dataclass
class Tally:
    """What processes moved, those of them that end meanwhile included: it never falls."""

    pids: Tuple[int, ...]
    last: Dict[int, Moved] = field(default_factory=dict)
    parents: Dict[int, int] = field(default_factory=dict)
    most: Optional[Moved] = None

    def __post_init__(self) -> None:
        seen = reader().processes() if self.pids else {}
        self.parents = {pid: seen[pid].parent for pid in self.pids if pid in seen}

    def moved(self) -> Optional[Moved]:
        """The sum by now; None: none of them ever let us ask."""
        gone = set()
        for pid in self.pids:
            try:
                told = reader().moved(pid)
            except ProcessLookupError:
                gone.add(pid)
                continue
            except OSError:
                continue
            if told is not None:
                self.last[pid] = told
        for pid in gone:
            # A parent that waits for a child takes its account over (kernel/exit.c,
            # wait_task_zombie).
            if self.parents.get(pid) in set(self.pids) - gone:
                self.last.pop(pid, None)
        if self.last:
            total = Moved(*map(sum, zip(*self.last.values())))
            self.most = total if self.most is None else Moved(*map(max, zip(self.most, total)))
        return self.most
