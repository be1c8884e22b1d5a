"""Watches the TCP connections of a copy from beside it, whoever's they are: smbd's, the kernel's.

A child of its own looks at them 50 times a second and is told afterwards which time was the
copy's. While a copy runs it costs about a hundredth of a core.
"""

from __future__ import annotations

import random
import select
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, Optional, Sequence, Set, Tuple

from probes.host.sock_diag import Sockets
from probes.host.socket_owner import owners
from probes.host.socket_track import Connection, Track

LOOK_SECONDS = 0.02
SEARCH_SECONDS = 0.06
BUSY_SEARCH_SECONDS = 0.5
"""While a copy is seen already: a search costs most of all that is done here."""
SEARCH_SHARE = 0.02
"""The most of a core, for searches: where the kernel's table is large they are made less often."""
SLOWEST_SEARCH_SECONDS = 2.0
MOST_WATCHED = 16
MOST_TOLD = 4
TOLD_SHARE = 0.1
"""Of what the busiest connection moved: those with less carried no copy."""


@dataclass(frozen=True)
class Setting:
    """Which connections."""

    ports: Tuple[int, ...]
    """The file server's: any of them."""
    serving: bool
    """Whether that port is at this end: this host serves the copy."""
    peer_address: str = ""
    """The other host's. Where this one serves and none has it, as behind an address translation,
    any counts."""
    seconds: float = 60.0
    """The watch ends by itself after this."""


def observe(
    setting: Setting, control_fd: int, window: Callable[[], Optional[Sequence[float]]]
) -> List[Connection]:
    """Watches until control_fd can be read; then window() tells which time was the copy's.

    window: two readings of this host's monotonic clock; None: nobody wants to know, and nothing
    is returned. At most MOST_TOLD connections, those first that moved most. Raises Unavailable
    where the kernel does not tell of sockets.
    """
    with Sockets() as sockets:
        watch = Watch(setting, sockets)
        watch.run(control_fd)
    copied = window()
    return [] if copied is None else watch.connections(float(copied[0]), float(copied[1]))


@dataclass
class Watch:
    """All connections that fit a setting, from now on."""

    setting: Setting
    sockets: Sockets
    tracks: Dict[bytes, Track] = field(default_factory=dict)
    asked: Set[int] = field(default_factory=lambda: {0})
    """Inodes whose owners were looked for; 0 is of those that nobody has accepted yet."""
    searched: bool = False
    """Whether a search was made before: what a later one finds is new."""
    all_known: bool = True
    """Whether all that searches found are watched: else what is found may be an old one."""
    search_at: float = 0.0
    search_all: bool = True
    """Whether it is worth looking for connections with other addresses than the peer's."""

    def run(self, control_fd: int) -> None:
        """Looks until the descriptor has something to say, or the time is over."""
        due = time.monotonic()
        until = due + self.setting.seconds
        while due < until:
            self.look()
            # A look that came late is not made up for: the next ones would come too close.
            # At fixed times a peer that works in steps of a few of them would be seen at one phase.
            due = max(due + random.uniform(0.5, 1.5) * LOOK_SECONDS, time.monotonic())
            if select.select([control_fd], [], [], max(0.0, due - time.monotonic()))[0]:
                break
        self.search_at = 0.0
        self.look()

    def look(self) -> None:
        """One look at each connection that moves; at all of them where a search is due."""
        now = time.monotonic()
        if now >= self.search_at:
            used = time.thread_time()
            self._search(now)
            busy = any(track.busy(now) for track in self.tracks.values())
            patience = max(
                BUSY_SEARCH_SECONDS if busy else SEARCH_SECONDS,
                (time.thread_time() - used) / SEARCH_SHARE,
            )
            self.search_at = now + min(SLOWEST_SEARCH_SECONDS, patience)
            if self.setting.serving:
                self._name_owners(now)
            return
        for track in self.tracks.values():
            if track.gone or track.idle:
                continue
            raw = self.sockets.look_raw(track.question)
            if raw is None:
                track.gone = True
            else:
                track.take(time.monotonic(), raw)

    def _search(self, now: float) -> None:
        setting = self.setting
        found = self.sockets.find(setting.ports, setting.peer_address, setting.serving)
        translated = not found and setting.serving and self.search_all
        if translated:
            found = self.sockets.find(setting.ports, "", setting.serving)
            # A busy server's other clients: none of them could be told from ours.
            self.search_all = len(found) < MOST_WATCHED
            found = found if self.search_all else []
        for seen in found:
            if seen.identity not in self.tracks:
                self._make_room()
                if len(self.tracks) >= MOST_WATCHED:
                    self.all_known = False
                    continue
                fresh = self.all_known and self.searched and not translated
                question = self.sockets.question(seen)
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
        """Once for each connection that is new or carries a copy: after it, it would be gone."""
        inodes = {
            track.seen.inode for track in self.tracks.values() if track.fresh or track.busy(now)
        } - self.asked
        if inodes:
            names = owners(inodes)
            self.asked |= inodes
            for track in self.tracks.values():
                track.process = track.process or names.get(track.seen.inode)

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
