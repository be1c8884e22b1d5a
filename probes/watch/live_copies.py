"""Watches all copies of this host at once, and reports each second what the last ones showed.

Each connection that moves is a copy, with the programs that hold it. To find these costs most of
all, so it is done once for each. Needs no privileges; moves no byte itself.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Tuple

from probes.core.stage import Refused
from probes.sockets.sock_diag import Sockets, SocketState, parse
from probes.system.waiting import select
from probes.watch import running_copies
from probes.watch.connection_track import Track
from probes.watch.running_copies import LEAST_BYTES, Running, Wanted, counted
from probes.watch.socket_watch import Observed, Watch

REPORT_SECONDS, SHOWN_SECONDS = 1.0, 5.0
"""Between two reports, and the time before each that it covers, at least."""
SEARCH_SECONDS, FIND_SECONDS = 3.0, 0.2
"""Between two searches for connections, and what it takes to find the programs of a new one: for
that all others wait, so it is done for one at a time."""
QUIET_SECONDS = 4.0
"""What moves nothing for so long is shown no more."""
LOOK_SECONDS, REST_RATIO = 0.12, 250
"""Between two looks, and the least rest over the CPU time that one took."""
MOST_COPIES, MOST_REPORTED = 16, 1
"""Of the copies, those whose observations one report holds: all have their turn."""
KEPT_LOOKS = 256
"""Of a copy: it may last for days."""


@dataclass(frozen=True)
class LiveCopy:
    """A copy in the last seconds."""

    identity: bytes
    """Of its connection: no other one ever has it."""
    running: Running
    bytes_per_second: float
    """In the last second, both directions together."""
    observed: Optional[Observed]
    """None: as in the report before."""


@dataclass
class _Copy:
    running: Running
    watch: Watch
    track: Track
    counts: Tuple[int, int]
    """Bytes that its connection had sent and received at `counted_at`."""
    counted_at: float
    began: float
    moved_at: float
    rate: float
    reported_at: float = 0.0

    def count(self, now: float) -> None:
        """Takes what the newest look says that it moved."""
        look = self.track.looks[-1]
        seen = parse(look.raw)
        lasted = look.clock_seconds - self.counted_at
        if self.track.gone:
            self.rate, self.moved_at = 0.0, now - QUIET_SECONDS - 1
        if seen is None or lasted <= 0:
            return
        counts = counted(seen)
        grown = tuple(max(0, after - was) for after, was in zip(counts, self.counts))
        self.rate = sum(grown) / lasted
        self.counts, self.counted_at = counts, look.clock_seconds
        # As much as makes a copy of a connection that is searched.
        if sum(grown) * SEARCH_SECONDS >= LEAST_BYTES * lasted:
            self.moved_at, self.running = now, _moving(self.running, grown)

    def snapshot(self, now: float, whole: bool) -> LiveCopy:
        found = LiveCopy(self.track.seen.identity, self.running, self.rate, None)
        if not whole:
            return found
        began = max(self.began, min(now - SHOWN_SECONDS, self.reported_at))
        self.reported_at = now
        found = replace(found, observed=self.watch.told(began, now))
        for looks in (self.track.looks, self.watch.thread_looks):
            del looks[:-KEPT_LOOKS]
        self.track.every = 1
        return found


Emit = Callable[[Tuple[LiveCopy, ...], int, float], None]


def watch(emit: Emit, control_fd: int, pid: int, address: str) -> None:
    """Watches until control_fd can be read, or the process ends.

    emit: takes the copies, how many more there are, and the CPU seconds that this took. pid,
    address: which copies, as running_copies.Wanted has them.

    Raises:
        Refused: no such process, or another user's.
        Unavailable: this system does not tell what other processes do.
    """
    family = running_copies.family_of(pid)
    with Sockets() as sockets, contextlib.ExitStack() as stack:
        live = _Live(sockets, Wanted(pid, address))
        stack.callback(live.close)
        began, due = time.process_time(), time.monotonic()
        while True:
            if time.monotonic() >= max(due, live.search_at):
                try:
                    family = running_copies.family_of(pid) if pid else family
                    live.search(
                        time.monotonic(), running_copies.candidates(sockets, live.wanted, *family)
                    )
                except Refused:
                    return  # the process has ended
            if time.monotonic() >= due:
                if live.searches > 1:
                    emit(
                        live.snapshots(time.monotonic()),
                        live.unwatched,
                        time.process_time() - began,
                    )
                due = max(due + REPORT_SECONDS, time.monotonic())
            used = time.process_time()
            for each in live.copies.values():
                each.watch.once()
            rest = REST_RATIO * (time.process_time() - used)
            pause = max(random.uniform(0.6, 1.4) * LOOK_SECONDS, rest)
            left = max(0.0, due - time.monotonic())
            if select.select([control_fd], [], [], min(pause, left))[0]:
                return


@dataclass
class _Live:
    """The connections of this host and those of them that carry copies."""

    sockets: Sockets
    wanted: Wanted
    copies: Dict[bytes, _Copy] = field(default_factory=dict)
    counts: Dict[bytes, Tuple[int, int]] = field(default_factory=dict)
    """Bytes that each connection had sent and received at the last search."""
    searched_at: float = 0.0
    search_at: float = 0.0
    searches: int = 0
    unwatched: int = 0
    """Connections that move and are not watched, or not yet."""

    def search(self, now: float, seen: List[SocketState]) -> None:
        """Takes the connections as they are now, of which one that moves may be a new copy."""
        asked = {(each.local, each.peer) for each in seen}
        # Of both ends of a connection on this host the one that asks is told.
        twice = {
            e.identity for e in seen if (e.peer, e.local) in asked and running_copies.serves(e)
        }
        known = {each.identity: each for each in seen if each.identity not in twice}
        counts = {identity: counted(each) for identity, each in known.items()}
        grown = {
            each: tuple(now - was for now, was in zip(counts[each], self.counts[each]))
            for each in counts.keys() & self.counts.keys()
        }
        self.counts, self.searches = counts, self.searches + 1
        lasted, self.searched_at = now - self.searched_at, now
        for gone in self.copies.keys() - known.keys():
            self._drop(gone)
        fresh = [e for e in grown if sum(grown[e]) >= LEAST_BYTES and e not in self.copies]
        room = len(self.copies) < MOST_COPIES
        if fresh and room:
            most = max(fresh, key=lambda each: sum(grown[each]))
            begun = self._begun(known[most], grown[most], sum(grown[most]) / lasted)
            if begun is not None:
                self.copies[most] = begun
        self.unwatched = sum(each not in self.copies for each in fresh)
        again = self.searches == 1 or (self.unwatched and room)
        self.search_at = now + (REPORT_SECONDS / 2 if again else SEARCH_SECONDS)

    def close(self) -> None:
        """Forgets all copies."""
        for identity in list(self.copies):
            self._drop(identity)

    def _drop(self, identity: bytes) -> None:
        self.copies.pop(identity).watch.threads.close()

    def snapshots(self, now: float) -> Tuple[LiveCopy, ...]:
        """The copies as they are now."""
        for identity, each in list(self.copies.items()):
            each.count(now)
            if now - each.moved_at > QUIET_SECONDS:
                self._drop(identity)
        turn = sorted(self.copies.values(), key=lambda each: each.reported_at)[:MOST_REPORTED]
        return tuple(each.snapshot(now, each in turn) for each in self.copies.values())

    def _begun(self, seen: SocketState, grown: Tuple[int, ...], rate: float) -> Optional[_Copy]:
        """None: the connection has ended meanwhile."""
        pid, (own, peer) = self.wanted.pid, (seen.local, seen.peer)
        running = running_copies.find(pid, "", *own, *peer, look_seconds=FIND_SECONDS)
        link = running.link
        ends = link and (link.own_address, link.own_port, link.peer_address, link.peer_port)
        if ends != (*own, *peer):
            return None
        running = _moving(running, grown)
        found = Watch(running_copies.setting(running, 0.0), self.sockets)
        track = found.tracks[seen.identity] = Track(seen, self.sockets.question(seen))
        found.search_at = found.count_at = float("inf")
        found.once()
        newest = parse(track.looks[-1].raw) if track.looks else None
        if newest is None:
            found.threads.close()
            return None
        now = time.monotonic()
        return _Copy(running, found, track, counted(newest), now, now, now, rate)


def _moving(running: Running, grown: Tuple[int, ...]) -> Running:
    """With what its connection moved in a second: in less a slow one may move nothing."""
    sent, received = grown
    return replace(running, moved={"sent_bytes": sent, "received_bytes": received})
