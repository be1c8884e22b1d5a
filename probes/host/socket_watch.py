"""Watches the TCP connections of a copy from beside it, whoever's they are: smbd's, the kernel's.

A child of its own looks at them 50 times a second and is told afterwards which time was the
copy's. While a copy runs it costs about a hundredth of a core.
"""

from __future__ import annotations

import random
import struct
import time
from dataclasses import dataclass, field
from typing import Callable, Dict, List, NamedTuple, Optional, Sequence, Set, Tuple

from probes.host import limits, tcp_info
from probes.host.open_files import owners
from probes.host.sock_diag import Seen, Sockets, parse
from probes.host.waiting import select
from probes.meaning import Address, Port, Seconds
from probes.records import Details

MOST_LOOKS = 2000  # even: see Track.take
"""Of one connection: some hundred bytes each."""
LEAST_LOOKS = 5
"""Fewer in the copy's time tell nothing of who limited it."""
IDLE_SECONDS = 1.0
"""What moves nothing for so long is looked at by the searches alone."""
BUSY_BYTES = 64 << 10
"""Between two searches: more than a login or a question moves."""
_TWO_COUNTERS = struct.Struct("=QQ")
_COUNTERS = slice(120, 136)
"""Of tcp_info: the bytes acknowledged and received, which stand still where nothing moves."""


@dataclass(frozen=True)
class Connection:
    """What was seen of one connection in the copy's time; None where the kernel does not tell."""

    own: str
    """Address and port at this host: "10.0.0.1 445"."""
    peer: str
    sent_bytes: int
    """Payload that the peer acknowledged in that time."""
    received_bytes: int
    looks: int
    sender: Optional[Details]
    """limits.of_sender; None: too few looks."""
    receiver: Optional[Details]
    """limits.of_receiver; None: too few looks."""
    congestion_control: Optional[str]
    send_buffer_bytes: Optional[int]
    """The most that it was in that time."""
    receive_buffer_bytes: Optional[int]
    process: Optional[str]
    """The program that serves it; None: not ours to see, the kernel itself, or not looked for."""


class Look(NamedTuple):
    """One look, as the kernel told it: it is read when it is asked for."""

    clock_seconds: float
    """time.monotonic() of this host."""
    raw: bytes


@dataclass
class Track:
    """One connection while it is watched, in bounded memory."""

    seen: Seen
    """When it was last found by a search."""
    question: bytes = b""
    """What asks the kernel for it."""
    looks: List[Look] = field(default_factory=list)
    fresh: bool = False
    """Whether it began while its port was watched: its counters began at 0."""
    every: int = 1
    """Each so-manieth look is kept."""
    skipped: int = 0
    moved_at: float = 0.0
    busy_at: float = -1e9
    idle: bool = False
    """Whether it had moved nothing for a while when it was last found."""
    process: Optional[str] = None
    """Who holds the socket, once that was looked for."""
    gone: bool = False

    def find(self, now: float, seen: Seen) -> None:
        """Takes what a search found of it: a look, and whether it moves anything."""
        before, counted = self.seen.info[_COUNTERS], seen.info[_COUNTERS]
        if not self.looks or before != counted or seen.unread_bytes or seen.unacknowledged_bytes:
            self.moved_at = now
        if len(before) == len(counted) == _TWO_COUNTERS.size:
            grown = sum(_TWO_COUNTERS.unpack(counted)) - sum(_TWO_COUNTERS.unpack(before))
            self.busy_at = now if grown >= BUSY_BYTES else self.busy_at
        self.idle = now - self.moved_at > IDLE_SECONDS
        self.seen = seen
        self.take(now, seen.raw)

    def take(self, now: float, raw: bytes) -> None:
        """Keeps a look; where there are too many, every second one goes."""
        self.skipped += 1
        if self.skipped < self.every:
            return
        self.skipped = 0
        self.looks.append(Look(now, raw))
        if len(self.looks) > MOST_LOOKS:
            # Of an odd number the first and the last stay: what follows comes at even distances.
            self.looks = self.looks[::2]
            self.every *= 2

    def busy(self, now: float) -> bool:
        """Whether it carries a copy."""
        return now - self.busy_at <= IDLE_SECONDS

    def moved_bytes(self, began: float, ended: float) -> Tuple[int, int]:
        """Payload sent (and acknowledged) and received between two moments of this host's clock.

        From the last look before to the first one after, so that none of a copy's is missed.
        """
        before = [each for each in self.looks if each.clock_seconds <= began][-1:]
        after = [each for each in self.looks if each.clock_seconds >= ended][:1]
        last = _figures((after or self.looks)[-1])
        first: tcp_info.Figures = {}
        if before or not self.fresh:
            first = _figures((before or self.looks)[0])
        sent, received = (
            max(0, int(last.get(name, 0)) - int(first.get(name, 0)))
            for name in ("acknowledged_bytes", "received_bytes")
        )
        return sent, received

    def between(self, began: float, ended: float) -> Connection:
        """What it did between two moments of this host's clock."""
        inside = [each for each in self.looks if began <= each.clock_seconds <= ended]
        sent, received = self.moved_bytes(began, ended)
        seen = [(each.clock_seconds, parse(each.raw)) for each in inside]
        read = [(clock, each) for clock, each in seen if each is not None]
        glimpses = [_glimpse(*each) for each in read] if len(read) >= LEAST_LOOKS else []
        memories = [each.memory for _, each in read if each.memory is not None]
        return Connection(
            own="{} {}".format(*self.seen.own),
            peer="{} {}".format(*self.seen.peer),
            sent_bytes=sent,
            received_bytes=received,
            looks=len(read),
            sender=limits.of_sender(glimpses) if glimpses else None,
            receiver=limits.of_receiver(glimpses) if glimpses else None,
            congestion_control=self.seen.congestion_control,
            process=self.process,
            send_buffer_bytes=max((each.send_buffer_bytes for each in memories), default=None),
            receive_buffer_bytes=max(
                (each.receive_buffer_bytes for each in memories), default=None
            ),
        )


def _figures(look: Look) -> tcp_info.Figures:
    seen = parse(look.raw)
    return tcp_info.decode(seen.info) if seen is not None else {}


def _glimpse(clock_seconds: float, seen: Seen) -> limits.Glimpse:
    figures = tcp_info.decode(seen.info)
    if seen.memory is not None:
        figures.update(seen.memory._asdict())
    unsent = figures.get("unsent_bytes")
    return limits.Glimpse(
        elapsed_seconds=clock_seconds,
        figures=figures,
        unread_bytes=seen.unread_bytes,
        unsent_bytes=None if unsent is None else int(unsent),
    )


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

    ports: Tuple[Port, ...]
    """The file server's: any of them."""
    serving: bool
    """Whether that port is at this end: this host serves the copy."""
    peer_address: Address = ""
    """The other host's. Where this one serves and none has it, as behind an address translation,
    any counts."""
    seconds: Seconds = 60.0
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
            pause_seconds = max(
                BUSY_SEARCH_SECONDS if busy else SEARCH_SECONDS,
                (time.thread_time() - used) / SEARCH_SHARE,
            )
            self.search_at = now + min(SLOWEST_SEARCH_SECONDS, pause_seconds)
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
