"""Watches all copies of this host at once, and reports the last seconds each second.

Each connection that moves is a copy, with the programs that have it open. The search for those is
the costliest part, and is made once for each. Needs no privileges; moves no byte itself.
"""

from __future__ import annotations

import contextlib
import random
import time
from dataclasses import dataclass, field, replace
from typing import Callable, Dict, List, Optional, Tuple

from probes.core.stage import Refused
from probes.sockets.sock_diag import Socket, Sockets, parse
from probes.system.waiting import select
from probes.watch import running_copies
from probes.watch.connection_track import Track
from probes.watch.running_copies import LEAST_BYTES, CopyFilter, Running, payload_of
from probes.watch.socket_watch import Observations, Watch

REPORT_SECONDS, SHOWN_SECONDS = 1.0, 5.0
"""Interval of the reports, and the least time before each that it covers."""
SEARCH_SECONDS, FIND_SECONDS = 3.0, 0.2
"""Interval of the searches for connections, and the time to find a new one's programs: all others
wait for that, so it is done for one at a time."""
QUIET_SECONDS = 4.0
"""Time without traffic after which a copy is dropped."""
LOOK_SECONDS, REST_RATIO = 0.12, 250
"""Interval of the looks, and the least rest over the CPU time that one took."""
MOST_COPIES, MOST_REPORTED = 16, 1
"""Limit of the copies, and of those with observations in one report, which take turns."""
KEPT_LOOKS = 256
"""Looks stored of a copy, which may last for days."""


@dataclass(frozen=True)
class LiveCopy:
    """A copy in the last seconds."""

    identity: bytes
    """Identity of its connection, which no other one ever has."""
    running: Running
    bytes_per_second: float
    """Rate in the last second, both directions together."""
    observed: Optional[Observations]
    """Observations; None: those of the previous report still hold."""


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
        """Takes the traffic in the newest look."""
        look = self.track.looks[-1]
        state = parse(look.raw)
        lasted = look.clock_seconds - self.counted_at
        if self.track.has_ended:
            self.rate, self.moved_at = 0.0, now - QUIET_SECONDS - 1
        if state is None or lasted <= 0:
            return
        counts = payload_of(state)
        grown = tuple(max(0, new - old) for new, old in zip(counts, self.counts))
        self.rate = sum(grown) / lasted
        self.counts, self.counted_at = counts, look.clock_seconds
        # The least rate at which a search takes a connection for a copy.
        if sum(grown) * SEARCH_SECONDS >= LEAST_BYTES * lasted:
            self.moved_at, self.running = now, _add_traffic(self.running, grown)

    def snapshot(self, now: float, observe: bool) -> LiveCopy:
        copy = LiveCopy(self.track.state.identity, self.running, self.rate, None)
        if not observe:
            return copy
        began = max(self.began, min(now - SHOWN_SECONDS, self.reported_at))
        self.reported_at = now
        copy = replace(copy, observed=self.watch.observations(began, now))
        for looks in (self.track.looks, self.watch.thread_looks):
            del looks[:-KEPT_LOOKS]
        self.track.every = 1
        return copy


Emit = Callable[[Tuple[LiveCopy, ...], int, float], None]


def watch(emit: Emit, control_fd: int, pid: int, address: str) -> None:
    """Watches until control_fd can be read, or the process ends.

    emit: takes the copies, the number of further ones, and the CPU seconds that this took. pid,
    address: see running_copies.CopyFilter.

    Raises:
        Refused: no such process, or another user's.
        Unavailable: this system does not show what other processes do.
    """
    family = running_copies.family_of(pid)
    with Sockets() as sockets, contextlib.ExitStack() as stack:
        live = _Live(sockets, CopyFilter(pid, address))
        stack.callback(live.close)
        began, due = time.process_time(), time.monotonic()
        while True:
            if time.monotonic() >= max(due, live.search_at):
                try:
                    family = running_copies.family_of(pid) if pid else family
                    live.search(
                        time.monotonic(), running_copies.candidates(sockets, live.target, *family)
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
            rest_of_second = max(0.0, due - time.monotonic())
            if select.select([control_fd], [], [], min(pause, rest_of_second))[0]:
                return


@dataclass
class _Live:
    """The connections of this host and those of them that carry copies."""

    sockets: Sockets
    target: CopyFilter
    copies: Dict[bytes, _Copy] = field(default_factory=dict)
    counts: Dict[bytes, Tuple[int, int]] = field(default_factory=dict)
    """Bytes that each connection had sent and received at the last search."""
    searched_at: float = 0.0
    search_at: float = 0.0
    searches: int = 0
    unwatched: int = 0
    """Connections that move and are not watched, or not yet."""

    def search(self, now: float, states: List[Socket]) -> None:
        """Takes the connections as they are now; one that moves may be a new copy."""
        ends = {(each.local, each.peer) for each in states}
        # Of a connection with both ends on this host only the client's end counts.
        twice = {
            e.identity for e in states if (e.peer, e.local) in ends and running_copies.serves(e)
        }
        by_identity = {each.identity: each for each in states if each.identity not in twice}
        counts = {identity: payload_of(each) for identity, each in by_identity.items()}
        grown = {
            each: tuple(now - old for now, old in zip(counts[each], self.counts[each]))
            for each in counts.keys() & self.counts.keys()
        }
        self.counts, self.searches = counts, self.searches + 1
        lasted, self.searched_at = now - self.searched_at, now
        for ended in self.copies.keys() - by_identity.keys():
            self._drop(ended)
        fresh = [e for e in grown if sum(grown[e]) >= LEAST_BYTES and e not in self.copies]
        room = len(self.copies) < MOST_COPIES
        if fresh and room:
            busiest = max(fresh, key=lambda each: sum(grown[each]))
            begun = self._begun(by_identity[busiest], grown[busiest], sum(grown[busiest]) / lasted)
            if begun is not None:
                self.copies[busiest] = begun
        self.unwatched = sum(each not in self.copies for each in fresh)
        again = self.searches == 1 or (self.unwatched and room)
        self.search_at = now + (REPORT_SECONDS / 2 if again else SEARCH_SECONDS)

    def close(self) -> None:
        """Drops all copies."""
        for identity in list(self.copies):
            self._drop(identity)

    def _drop(self, identity: bytes) -> None:
        self.copies.pop(identity).watch.threads.close()

    def snapshots(self, now: float) -> Tuple[LiveCopy, ...]:
        """Returns the copies as they are now."""
        for identity, each in list(self.copies.items()):
            each.count(now)
            if now - each.moved_at > QUIET_SECONDS:
                self._drop(identity)
        turn = sorted(self.copies.values(), key=lambda each: each.reported_at)[:MOST_REPORTED]
        return tuple(each.snapshot(now, each in turn) for each in self.copies.values())

    def _begun(self, state: Socket, grown: Tuple[int, ...], rate: float) -> Optional[_Copy]:
        """Begins to watch a copy; None: the connection has ended meanwhile."""
        pid, (local, peer) = self.target.pid, (state.local, state.peer)
        running = running_copies.find(pid, "", *local, *peer, look_seconds=FIND_SECONDS)
        link = running.link
        ends = link and (link.own_address, link.own_port, link.peer_address, link.peer_port)
        if ends != (*local, *peer):
            return None
        running = _add_traffic(running, grown)
        watch = Watch(running_copies.watch_setting(running, 0.0), self.sockets)
        track = watch.tracks[state.identity] = Track(state, self.sockets.question(state))
        watch.search_at = watch.count_at = float("inf")
        watch.once()
        newest = parse(track.looks[-1].raw) if track.looks else None
        if newest is None:
            watch.threads.close()
            return None
        now = time.monotonic()
        return _Copy(running, watch, track, payload_of(newest), now, now, now, rate)


def _add_traffic(running: Running, grown: Tuple[int, ...]) -> Running:
    """Returns the copy with its traffic of a second: in less a slow one may move nothing."""
    sent, received = grown
    return replace(running, moved_bytes={"sent_bytes": sent, "received_bytes": received})
