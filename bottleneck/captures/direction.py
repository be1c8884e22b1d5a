"""One direction of a TCP connection at a capture point: bytes, windows, losses, round trips."""

from __future__ import annotations

import math
import random
from array import array
from collections import deque
from collections.abc import Callable

from bottleneck.captures.framing import Framer

MASK = 0xFFFFFFFF
MOST_VALUES, MOST_EDGES, MOST_HOLES, MOST_STAMPS = 2000, 512, 256, 512
"""Bounds of what a connection keeps, whatever the length of the capture."""
RECENT_SEGMENTS = 8
DRIFT_RATIO = 2e-4
"""Greatest drift between a sender's clock and the capture's."""


class Sample:
    """Values, of which at most MOST_VALUES are kept, evenly drawn; their least exactly."""

    def __init__(self) -> None:
        self.values = array("d")
        self.count = 0
        self.sum = 0.0
        self.least: float | None = None
        self._random = random.Random(1).random

    def add(self, value: float) -> None:
        self.count += 1
        self.sum += value
        if self.least is None or value < self.least:
            self.least = value
        if len(self.values) < MOST_VALUES:
            self.values.append(value)
        elif (index := int(self._random() * self.count)) < MOST_VALUES:
            self.values[index] = value

    def quantile(self, ratio: float) -> float | None:
        """Returns the value below which a share of the values lies; None: there are none."""
        if not self.values:
            return None
        return sorted(self.values)[min(len(self.values) - 1, int(ratio * len(self.values)))]

    def median(self) -> float:
        """Returns the median; 0: there are no values."""
        return self.quantile(0.5) or 0.0


class Hole:
    """Bytes of the stream that came later than bytes behind them, or not at all."""

    def __init__(self, start: int, end: int, seconds: float) -> None:
        self.start, self.end, self.seconds = start, end, seconds


class SenderClock:
    """Time that segments wait between their sender's TCP and the capture point.

    TCP stamps each segment with its own clock (RFC 7323), of 1 kHz on Linux and most NAS: (capture
    time - stamp) above its least is the time in queues before the capture point.
    """

    def __init__(self) -> None:
        self.is_usable = False
        """Whether there are stamps of 1 kHz."""
        self._first: tuple[float, int] | None = None
        self._least_late = self._late_at = 0.0

    def queue_seconds(self, now: float, stamp: int) -> float:
        """Returns the time of a segment in queues before this point; 0: unknown."""
        if self._first is None:
            self._first, self._late_at, self.is_usable = (now, stamp), now, True
        seconds = now - self._first[0]
        ticks = ((stamp - self._first[1] + 0x80000000) & MASK) - 0x80000000
        if seconds > 0.5 and self.is_usable:
            self.is_usable = 0.8 < ticks / 1000 / seconds < 1.2
        late = seconds - ticks / 1000
        drift = DRIFT_RATIO * max(0.0, now - self._late_at)
        self._least_late, self._late_at = min(late, self._least_late + drift), now
        return max(0.0, late - self._least_late - 0.001) if self.is_usable else 0.0


class Direction:
    """Bytes that one end sends, and what the other end acknowledges of them.

    Offsets in the stream count from 1 << 32, so that those before the capture are positive too.
    """

    def __init__(self, next_reply_bytes: Callable[[], int] | None = None) -> None:
        self.framer = Framer(next_reply_bytes)
        self.clock = SenderClock()
        self.next_offset = self.acked_offset = 0
        self.mss = 0
        self.scale: int | None = None
        """Scale of the receiver's window; None: its SYN is not in the capture."""
        self.largest_window = 0
        self.holes: deque[Hole] = deque(maxlen=MOST_HOLES)
        self.recent_segments: list[tuple[int, int, int, int] | None] = [None] * RECENT_SEGMENTS
        """Identification, sequence numbers and sizes, to tell duplicates of the capture."""
        self.sent_at = self.acked_at = 0.0
        self.bytes = self.segments = 0
        self.sent_again = 0
        """Segments that this point had seen already and that were not acknowledged."""
        self.late_fills = 0
        """Segments that filled a hole later than reordering explains: lost before this point."""
        self.unseen_bytes = 0
        """Bytes that were acknowledged and are not in the capture."""
        self.zero_windows = 0
        self.most_repeats = 0
        """Most times that one segment was sent again in a row."""
        self.repeated_bytes = 0
        """Size of that segment."""
        self.round_trips, self.loaded_trips = Sample(), Sample()
        """Round trips from this point to the receiver; to both ends, with data under way."""
        self.in_flight, self.paused_flight = Sample(), Sample()
        """Bytes not acknowledged; the same at the beginning of a pause in a message."""
        self.queue_seconds, self.full_windows = Sample(), Sample()
        self.first_stamped: dict[bytes, float] = {}
        """Time of the first segment with each time stamp."""
        self.timed: tuple[int, float] | None = None
        """End and time of the segment whose acknowledgement is a round trip."""
        self._last_seq: int | None = None
        self._echoed_stamp = b""
        self._edge: int | None = None
        self._edges: deque[tuple[float, int, int | None]] = deque()
        self._known: tuple[int, int | None] = (0, None)
        self._repeated_offset, self._repeats = -1, 0

    @property
    def unacked_bytes(self) -> int:
        return self.next_offset - self.acked_offset

    def offset(self, seq: int) -> int:
        """Returns the offset in the stream of a sequence number."""
        if self._last_seq is None:
            self.set_offset(seq, 1 << 32)
            self.acked_offset = 1 << 32
        assert self._last_seq is not None
        return self.next_offset + ((seq - self._last_seq + 0x80000000) & MASK) - 0x80000000

    def set_offset(self, seq: int, offset: int) -> None:
        """Sets the offset of the next byte, which has this sequence number."""
        self._last_seq, self.next_offset = seq & MASK, offset

    def start(self, seq: int, mss: int) -> None:
        """Begins the stream behind a SYN."""
        self.set_offset(seq + 1, 1 << 32)
        self.acked_offset = self.framer.boundary = 1 << 32
        self.mss = mss

    def known_to_sender(self, when: float) -> tuple[int, int | None]:
        """Returns the acknowledged offset and the window's edge that this point had seen by then.

        One round trip to the sender ago, they were on their way to it.
        """
        while self._edges and self._edges[0][0] <= when:
            _, acked, edge = self._edges.popleft()
            self._known = acked, edge
        return self._known

    def acknowledge(self, now: float, ack: int, header_window: int) -> float | None:
        """Takes an acknowledgement by its sequence number and window; returns a round trip, if any.

        The round trip is from this point to the receiver, in seconds.
        """
        offset = self.offset(ack)
        # A shut window is one whatever its scale.
        is_known = self.scale is not None or not header_window
        window = header_window << (self.scale or 0) if is_known else None
        if offset > self.next_offset + (1 << 24) or offset < self.acked_offset:
            return None
        if offset > self.next_offset:
            self.unseen_bytes += offset - self.next_offset
            self.set_offset(ack, offset)
            self.holes.clear()
        while self.holes and self.holes[0].end <= offset:
            hole = self.holes.popleft()
            self.unseen_bytes += hole.end - hole.start
        edge = None if window is None else offset + window
        if offset > self.acked_offset or edge != self._edge:
            self.acked_at = now if offset > self.acked_offset else self.acked_at
            self.acked_offset, self._edge = offset, edge
            self.largest_window = max(self.largest_window, window or 0)
            self._edges.append((now, offset, edge))
            if len(self._edges) > MOST_EDGES:
                self._thin_edges()
        if self.timed is None or offset < self.timed[0]:
            return None
        trip, self.timed = now - self.timed[1], None
        self.round_trips.add(trip)
        return trip

    def _thin_edges(self) -> None:
        """Drops edges that follow another one so closely that half of them are enough."""
        edges = self._edges
        step, last = 2 * (edges[-1][0] - edges[0][0]) / MOST_EDGES, -math.inf
        self._edges = deque()
        for each in edges:
            if each[0] >= last + step:
                self._edges.append(each)
                last = each[0]

    def send(self, now: float, start: int, end: int) -> int:
        """Takes a segment with bytes that are not old; returns the count of its new bytes."""
        if self.acked_offset <= start < self.next_offset - 1 and not self.holes:
            self.sent_again += 1
        if start > self.next_offset and self.segments > 1:
            self.holes.append(Hole(self.next_offset, start, now))
        new_bytes = end - max(start, self.next_offset)
        self.bytes += new_bytes
        self.sent_at = now
        return new_bytes

    def sent(self, now: float, seq: int, end: int, sender_trip: float) -> None:
        """Moves the end of the stream behind a segment, and counts the bytes in flight."""
        self.set_offset(seq, end)
        if self.timed is None and not self.holes:
            self.timed = end, now
        acked, _ = self.known_to_sender(now - sender_trip * 1.05 - 0.0003)
        self.in_flight.add(end - acked if acked else 0)

    def loaded_trip(
        self, now: float, stamps: bytes, first_stamped: dict[bytes, float]
    ) -> float | None:
        """Returns the time since the echoed time stamp passed this point; None: it is not new.

        first_stamped: the other direction's.
        """
        echoed = stamps[4:]
        if echoed == self._echoed_stamp:
            return None
        self._echoed_stamp = echoed
        stamped_at = first_stamped.get(echoed)
        return None if not stamped_at else now - stamped_at

    def note_stamp(self, now: float, stamp: bytes) -> None:
        if stamp not in self.first_stamped:
            self.first_stamped[stamp] = now
            if len(self.first_stamped) > MOST_STAMPS:
                del self.first_stamped[next(iter(self.first_stamped))]

    def repeat(self, now: float, start: int, size: int, trip: float) -> bool:
        """Takes old bytes, which fill a hole or were seen before; returns whether they were lost.

        trip: round trip between both ends, seconds.
        """
        end = start + size
        for hole in self.holes:
            if start < hole.end and end > hole.start:
                is_lost = now - hole.seconds > max(0.003, 0.5 * trip)
                self.late_fills += is_lost
                if start <= hole.start:
                    hole.start = end
                elif end >= hole.end:
                    hole.end = start
                if hole.start >= hole.end:
                    self.holes.remove(hole)
                return is_lost
        if size <= 1 and end <= self.acked_offset + 1:
            return False  # a keep-alive, or the probe of a closed window
        is_lost = start >= self.acked_offset
        self.sent_again += is_lost
        self.timed = None
        self._repeats = self._repeats + 1 if start == self._repeated_offset else 1
        if self._repeats > self.most_repeats:
            self.most_repeats, self.repeated_bytes = self._repeats, size
        self._repeated_offset = start
        return is_lost


class Trips:
    """Least round trips from the capture point to both ends, seconds; None: unknown."""

    def __init__(self) -> None:
        self.to_server: float | None = None
        self.to_client: float | None = None
        self.between = 0.0
        """Round trip between both ends."""

    def note(self, seconds: float, *, to_server: bool) -> None:
        shortest = self.to_server if to_server else self.to_client
        if shortest and shortest <= seconds:
            return
        if to_server:
            self.to_server = seconds
        else:
            self.to_client = seconds
        self.between = max(0.0, (self.to_server or 0.0) + (self.to_client or 0.0))
