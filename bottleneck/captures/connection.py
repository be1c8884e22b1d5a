"""An SMB connection as one capture point sees it: its segments, round trips and turns."""

from __future__ import annotations

from collections import defaultdict

from bottleneck.captures import turns
from bottleneck.captures.direction import BINS_A_SECOND, MOST_BINS, Direction, Trips
from bottleneck.captures.requests import Requests
from bottleneck.captures.segments import ACK, FIN, MSS, RST, SCALE, STAMPS, SYN, Segment, options_of

LONGEST_TURN_SECONDS = 60.0
DATA_SEGMENT_BYTES = 1000
"""Least size of a segment that belongs to a file's data."""
Ways = tuple[Direction, Direction]
"""Direction of a segment, and the one whose bytes it acknowledges."""


class Connection:
    """One connection between a client and a file server."""

    def __init__(self) -> None:
        self.requests, self.trips = Requests(), Trips()
        self.has_syn = False
        self.course: defaultdict[int, defaultdict[tuple[turns.State, str], float]]
        self.course = defaultdict(lambda: defaultdict(float))
        """Seconds by state and host, by bin of the capture's time."""
        self.first_data = self.last_data = self.last_payload = self.last = 0.0
        """Times of the first and last large segment, the last payload, the last packet; 0: none."""
        self._syn_at: float | None = None
        self._syn_ack_at: float | None = None

    def add(self, segment: Segment, from_client: bool) -> None:
        """Takes the next segment."""
        ways = self.requests.upward, self.requests.downward
        ways = ways if from_client else ways[::-1]
        sending, acknowledged = ways
        if segment.identification:
            # A mirror of both directions, or a bridge's ports: retransmissions have a new one.
            key = segment.identification, segment.seq, segment.ack, segment.size
            if key in sending.recent_segments:
                return
            sending.recent_segments.append(key)
        options = options_of(segment.options) if segment.options else {}
        now, stamps = segment.seconds, options.get(STAMPS, b"")
        queued = 0.0
        if segment.size and len(stamps) == 8:
            queued = sending.clock.queue_seconds(now, int.from_bytes(stamps[:4], "big"))
        if self.last and now > self.last:
            interval = turns.Interval(
                self.last, min(now, self.last + LONGEST_TURN_SECONDS), segment, sending, queued
            )
            self._share_out(interval)
        self.last = max(self.last, now)
        if segment.size > DATA_SEGMENT_BYTES:
            sending.queue_seconds.add(queued)
        if segment.flags & SYN:
            self._open(segment, ways, options, from_client)
            return
        if segment.flags & ACK:
            self._acknowledge(segment, acknowledged, from_client)
        if segment.size:
            self._take_data(segment, ways, stamps, from_client)
        sending.note_stamp(now, options)

    def _share_out(self, interval: turns.Interval) -> None:
        for state, begin, last, host in turns.turns(self.requests, self.trips, interval):
            moment = begin
            while moment < last:
                number = int(moment * BINS_A_SECOND)
                if len(self.course) >= MOST_BINS and number not in self.course:
                    break
                end = min(last, max((number + 1) / BINS_A_SECOND, moment + 1e-3))
                self.course[number][state, host] += end - moment
                moment = end

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
            self.trips.to_server = segment.seconds - self._syn_at

    def _acknowledge(self, segment: Segment, acknowledged: Direction, from_client: bool) -> None:
        if self._syn_ack_at is not None and from_client:
            self.trips.to_client, self._syn_ack_at = segment.seconds - self._syn_ack_at, None
        if segment.window == 0 and not segment.flags & (RST | FIN):
            acknowledged.zero_windows += 1
        trip = acknowledged.acknowledge(segment.seconds, segment.ack, segment.window)
        if trip is not None:
            self.trips.note(trip, to_server=not from_client)

    def _take_data(self, segment: Segment, ways: Ways, stamps: bytes, from_client: bool) -> None:
        sending, acknowledged = ways
        now = segment.seconds
        start = sending.offset(segment.seq)
        end = start + segment.size
        sending.segments += 1
        self.last_payload = now if segment.size > 1 else self.last_payload
        if end <= sending.next_offset:
            sending.repeat(now, start, segment.size, self.trips.between)
            return
        new_bytes = sending.send(now, start, end)
        is_busy = sending.framer.message is not None or sending.framer.boundary is None
        if is_busy and len(stamps) == 8:
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
