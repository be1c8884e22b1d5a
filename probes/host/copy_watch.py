"""Watches a copy that runs already: its connection, its processes, the disks; changes nothing.

The connection and the processes' states are looked at 20 times a second, what is counted 4 times.
Costs about a hundredth of a core; of many threads that are looked at not more than a fiftieth.
"""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Tuple

from probes import meaning
from probes.host.connection_track import Connection, Track
from probes.host.memory import read_dirty_limit, read_memory
from probes.host.proc import DeviceCounts, Moved
from probes.host.reader import reader
from probes.host.running_copies import ANY_PORT, MOST_LOOKED_AT, counted
from probes.host.sock_diag import Seen, Sockets
from probes.host.thread_states import WAITS_FOR_DISK, Threads
from probes.host.waiting import select
from probes.meaning import Address, Port, Seconds
from probes.records import Details
from probes.stage import Unavailable

LOOK_SECONDS = 0.05
REST_RATIO = 50
"""The least that a look is rested after, over the CPU time that it took."""
COUNT_SECONDS = 0.25
MOST_COUNTS = 2000  # even: see Watch._count
MOST_TOLD = 400
MOST_DISKS = 8


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


@dataclass(frozen=True)
class Count:
    """What is counted, at one moment of this host's monotonic clock; None: not to be seen."""

    clock_seconds: float
    connection: Optional[Tuple[int, int]]
    """Payload sent and received."""
    processes: Optional[Moved]
    disks: Dict[str, DeviceCounts]
    dirty_bytes: Optional[int]


def observe(
    setting: Setting, control_fd: int, window: Callable[[], Optional[Sequence[float]]]
) -> Details:
    """Watches until control_fd can be read; window() then tells the part that counts, or None.

    `connection` (a socket_track.Connection, or None), `counts` (rows of clock_seconds, and of bytes
    sent, received, read and written since the first; None where not known), `processes`, `disks`,
    `dirty`.
    """
    try:
        with Sockets() as sockets:
            watch = Watch(setting, sockets)
            watch.run(control_fd)
    except Unavailable:
        if setting.own_port:
            raise
        watch = Watch(setting, None)
        watch.run(control_fd)
    wanted = window()
    return {} if wanted is None else watch.told(float(wanted[0]), float(wanted[1]))


@dataclass
class Watch:
    """One copy, from now on."""

    setting: Setting
    sockets: Optional[Sockets]
    threads: Threads = field(default_factory=Threads)
    track: Optional[Track] = None
    counts: List[Count] = field(default_factory=list)
    every: int = 1
    """Keep every Nth count."""
    states: List[Tuple[float, bool]] = field(default_factory=list)
    """When, and whether a process waited for a disk."""
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
            self.states.append((now, any(each.state == WAITS_FOR_DISK for each in threads)))
            # A watch of hours keeps the last of them.
            del self.states[: -10 * MOST_COUNTS]
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
        memory = read_memory()
        self.counts.append(
            Count(
                now,
                connection,
                self.tally.moved(),
                _used_devices(),
                memory.dirty_bytes if memory else None,
            )
        )
        if len(self.counts) > MOST_COUNTS:
            self.counts = self.counts[::2]
            self.every *= 2

    def _last_seen(self) -> Optional[Seen]:
        if self.track is None or self.sockets is None or self.track.gone:
            return None
        return self.sockets.look(self.track.seen)

    def told(self, began: float, ended: float) -> Details:
        """What happened between two moments of this host's clock."""
        inside = [each for each in self.counts if began <= each.clock_seconds <= ended]
        states = [waits for at, waits in self.states if began <= at <= ended]
        found: Details = {"connection": self._connection(began, ended), "counts": _rows(inside)}
        if states:
            share = sum(states) / len(states)
            found["processes"] = {"looks": len(states), "disk_wait_ratio": share}
        if len(inside) > 1:
            first, last = inside[0], inside[-1]
            if first.processes is not None and last.processes is not None:
                grown = Moved(*(b - a for a, b in zip(first.processes, last.processes)))
                found.setdefault("processes", {}).update(
                    {name: max(0, value) for name, value in grown._asdict().items()}
                )
            seconds = last.clock_seconds - first.clock_seconds
            found["disks"] = disks(first.disks, last.disks, seconds)
            found["dirty"] = _dirty(inside)
        return found

    def _connection(self, began: float, ended: float) -> Optional[Connection]:
        if self.track is None or not self.track.looks:
            return None
        return self.track.between(began, ended)


def _used_devices() -> Dict[str, DeviceCounts]:
    """The block devices that were ever used."""
    told = reader().devices()
    return {name: each for name, each in told.items() if each.read_bytes + each.written_bytes > 0}


def disks(
    first: Dict[str, DeviceCounts], last: Dict[str, DeviceCounts], seconds: float
) -> List[Details]:
    """What each device moved in between, those first that moved most: name, read_bytes,
    written_bytes, busy_ratio (share of the time with I/O in flight)."""
    found = []
    for name, now in last.items():
        was = first.get(name, now)
        read = max(0, now.read_bytes - was.read_bytes)
        written = max(0, now.written_bytes - was.written_bytes)
        busy = max(0.0, now.busy_seconds - was.busy_seconds)
        if read + written > 0 and seconds > 0:
            ratio = min(1.0, busy / seconds)
            row = {"name": name, "read_bytes": read, "written_bytes": written, "busy_ratio": ratio}
            found.append((read + written, row))
    found.sort(key=lambda each: -each[0])
    return [row for _, row in found[:MOST_DISKS]]


def _rows(counts: List[Count]) -> List[List[Optional[float]]]:
    """Clock and what was moved since the first count."""
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
        rows.append([each.clock_seconds, sent, received, read, written])
    return rows


def _dirty(counts: List[Count]) -> Details:
    """Bytes that wait in memory to be written, and from where on the kernel slows writers down."""
    seen = [each.dirty_bytes for each in counts if each.dirty_bytes is not None]
    found: Details = {}
    if seen:
        found.update(first_bytes=seen[0], last_bytes=seen[-1], high_bytes=max(seen))
    limit = read_dirty_limit()
    if limit is not None:
        # mm/page-writeback.c, dirty_freerun_ceiling()
        found["free_run_bytes"] = (limit.background_bytes + limit.limit_bytes) // 2
    return found


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
