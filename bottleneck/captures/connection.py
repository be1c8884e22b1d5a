"""An SMB connection as one capture point sees it: its segments, round trips and turns."""

from __future__ import annotations

from array import array
from collections.abc import Iterator

from bottleneck.captures import turns
from bottleneck.captures.direction import RECENT_SEGMENTS, Direction, Trips
from bottleneck.captures.framing import READ
from bottleneck.captures.requests import Requests
from bottleneck.captures.segments import (
    ACK,
    FIN,
    MSS,
    RST,
    SCALE,
    SYN,
    Segment,
    options_of,
    stamps_of,
)
from bottleneck.captures.turns import BINS_A_SECOND, Course

LEAST_TURN_SECONDS, LONGEST_TURN_SECONDS = 1e-5, 60.0
LEAST_UNANSWERED_SECONDS, PIPE_BYTES = 3.0, 16384
"""Time that a READ waits in vain; the most that one of a named pipe asks for, which may wait."""
DATA_SEGMENT_BYTES = 1000
"""Least size of a segment that belongs to a file's data."""
Ways = tuple[Direction, Direction]
"""Direction of a segment, and the one whose bytes it acknowledges."""


class Connection:
    """One connection between a client and a file server."""

    def __init__(self, blocks: Iterator[array[float]]) -> None:
        """blocks: those that the course may use."""
        self.requests, self.trips = Requests(), Trips()
        self.has_syn = self.is_closed = self.is_unanswered = False
        self.course = Course(blocks)
        """From the first data on."""
        self.first_data = self.last_data = self.last_payload = self.last = 0.0
        """Times of the first and last large segment, the last payload, the last turn; 0: none."""
        upward, downward = self.requests.upward, self.requests.downward
        self._ways: tuple[Ways, Ways] = (downward, upward), (upward, downward)
        """By whether the client sends."""
        self._syn_at: float | None = None
        self._syn_ack_at: float | None = None

    def add(self, segment: Segment, from_client: bool) -> None:
        """Takes the next segment."""
        now, _, _, seq, ack, flags, _, size, _, options, identification = segment
        ways = self._ways[from_client]
        sending, acknowledged = ways
        if identification:
            # A mirror of both directions, or a bridge's ports: retransmissions have a new one.
            key = identification, seq, ack, size
            place = identification % RECENT_SEGMENTS
            if sending.recent_segments[place] == key:
                return
            sending.recent_segments[place] = key
        stamps = stamps_of(options)
        queued = 0.0
        if size and stamps:
            queued = sending.clock.queue_seconds(now, int.from_bytes(stamps[:4], "big"))
        if now > self.last + LEAST_TURN_SECONDS:
            if self.first_data:
                end = min(now, self.last + LONGEST_TURN_SECONDS)
                interval = turns.Interval(self.last, end, segment, sending, queued)
                for turn, begin, until in turns.turns(self.requests, self.trips, interval):
                    if begin < until:
                        self.course.spend(turn, begin, until)
            self.last = now
        if size > DATA_SEGMENT_BYTES:
            sending.queue_seconds.add(queued)
        self.is_closed |= bool(flags & (FIN | RST))
        if flags & SYN:
            self._open(segment, ways, options_of(options), from_client)
            return
        if flags & ACK:
            self._acknowledge(segment, acknowledged, from_client)
        if size:
            self._take_data(segment, ways, stamps, from_client)
        if stamps:
            sending.note_stamp(now, stamps[:4])

    def end(self, now: float) -> None:
        """Takes the end of the capture: a READ that waits for its reply makes a copy that hangs."""
        requests = self.requests.open.values()
        waits = any(r.command == READ and r.charged_bytes > PIPE_BYTES for r in requests)
        waits = waits and all(r.complete for r in requests) and not self.is_closed
        waits = waits and not self.requests.upward.unacked_bytes
        if waits and not self.first_data and now - self.last > LEAST_UNANSWERED_SECONDS:
            self.is_unanswered = True
            self.first_data, self.last_data, self.last_payload = self.last, now, now
            # A reply that the server had sent would be in a capture that was made there.
            is_at_server = (self.trips.to_server or 0.0) < turns.NEAR_SECONDS
            self.course.spend("server" if is_at_server else "loss", self.last, now)

    def _open(
        self, segment: Segment, ways: Ways, options: dict[int, bytes], from_client: bool
    ) -> None:
        """Takes a SYN (RFC 9293 3.5): sizes, scales, and the first round trip."""
        sending, acknowledged = ways
        self.has_syn = True
        sending.start(segment.seq, int.from_bytes(options.get(MSS, b""), "big"))
        acknowledged.scale = min(options[SCALE][0], 14) if options.get(SCALE) else 0
        if from_client:
            # A SYN that was sent twice has no round trip.
            self._syn_at = segment.seconds if self._syn_at is None else None
            return
        self._syn_ack_at = segment.seconds
        if SCALE not in options:
            sending.scale = acknowledged.scale = 0
        if self._syn_at is not None:
            self.trips.note(segment.seconds - self._syn_at, to_server=True)

    def _acknowledge(self, segment: Segment, acknowledged: Direction, from_client: bool) -> None:
        if self._syn_ack_at is not None and from_client:
            self.trips.note(segment.seconds - self._syn_ack_at, to_server=False)
            self._syn_ack_at = None
        if segment.window == 0 and not segment.flags & (RST | FIN):
            acknowledged.zero_windows += 1
        trip = acknowledged.acknowledge(segment.seconds, segment.ack, segment.window)
        if trip is not None:
            self.trips.note(trip, to_server=not from_client)

    def _take_data(self, segment: Segment, ways: Ways, stamps: bytes, from_client: bool) -> None:
        sending, acknowledged = ways
        now, way = segment.seconds, "up" if from_client else "down"
        start = sending.offset(segment.seq)
        end = start + segment.size
        sending.segments += 1
        self.last_payload = now if segment.size > 1 else self.last_payload
        if end <= sending.next_offset:
            if sending.repeat(now, start, segment.size, self.trips.between):
                self.course.add(f"{way} lost", int(now * BINS_A_SECOND), 1)
            return
        new_bytes = sending.send(now, start, end)
        is_busy = sending.framer.message is not None or sending.framer.boundary is None
        if is_busy and stamps:
            loaded = sending.loaded_trip(now, stamps, acknowledged.first_stamped)
            if loaded is not None:
                sending.loaded_trips.add(loaded)
                if not self.has_syn:
                    # Never less than the round trip to the sender: a bound until one is measured.
                    self.trips.note(loaded, to_server=not from_client)
        sender_trip = (self.trips.to_client if from_client else self.trips.to_server) or 0.0
        sending.sent(now, segment.seq + segment.size, end, sender_trip)
        take = self.requests.take_request if from_client else self.requests.take_reply
        for moment, message in sending.framer.feed(start, segment.size, segment.data):
            take(now, moment, message)
        if new_bytes >= DATA_SEGMENT_BYTES:
            self.first_data = self.first_data or now
            self.last_data = now
        if self.first_data:
            self.course.add(way, int(now * BINS_A_SECOND), new_bytes)
