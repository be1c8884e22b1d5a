"""Whose turn it is between two packets of a connection: a host's, the path's, a window's.

Each interval gets one state, by what is in mid-message, acknowledged, asked for and possible to
send, as the ends know it: one round trip from the capture point to them ago. Holds at the client,
at the server and between them, since all formulas have the round trips to both.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from typing import Final, NamedTuple

from bottleneck.captures.direction import Direction, Trips
from bottleneck.captures.requests import BULK_BYTES, Requests
from bottleneck.captures.segments import Segment
from probes.core.records import SIDES

Turn = tuple[str, float, float]
"""Whose it is, begin, end. client, server: the host has to act, or reads too slowly; moving: bytes
are on their way; pause: so they are, and no packet comes; loss: lost bytes are awaited; window: the
receiver's window is full; trip: a message is on its way over the path."""

TRIP_SLACK, SLACK_SECONDS = 1.05, 0.0003
"""Factor and time that a round trip may take beyond its least."""
TIMEOUT_SECONDS = 0.19
"""Least time-out of TCP: 0.2 s on Linux (RTO_MIN)."""
LEAST_WAIT_SECONDS, SILENT_SECONDS = 0.005, 0.008
"""Shortest time between packets that a loss explains; and time without any acknowledgement, from
which on a host beside the capture does not read."""
NEAR_SECONDS = 0.0003
"""Round trip below which a host is beside the capture."""
TWO_SEGMENTS = 2920
"""Bytes up to which an acknowledgement may be delayed (RFC 9293 3.8.6.3)."""
FULL_RATIO, SHUT_RATIO = 0.2, 0.5
"""Room in a window over its size, below which it is full; its size over the largest, below which
the receiver shut it."""


class Interval(NamedTuple):
    """Time between two packets."""

    start: float
    end: float
    segment: Segment
    """The second packet."""
    sending: Direction
    """Its direction."""
    queued: float
    """Seconds that it waited in queues before this point."""

    @property
    def born(self) -> float:
        """When its sender's TCP let the segment go."""
        return max(self.start, self.end - self.queued)

    def within(self, moment: float) -> float:
        return min(max(moment, self.start), self.end)


def turns(requests: Requests, trips: Trips, gap: Interval) -> Iterator[Turn]:
    """Yields the turns in an interval."""
    to_server, to_client = trips.to_server or 0.0, trips.to_client or 0.0
    for way, sender, receiver, sender_trip, receiver_trip in (
        (requests.downward, "server", "client", to_server, to_client),
        (requests.upward, "client", "server", to_client, to_server),
    ):
        pending, unacked = _is_in_message(way, gap.start), way.unacked_bytes
        if not pending and (unacked <= TWO_SEGMENTS or (sender == "server" and requests.open)):
            continue
        at_sender = way.known_to_sender(gap.start - sender_trip * TRIP_SLACK - SLACK_SECONDS)
        waits = _blocked(way, receiver, trips.between, receiver_trip, at_sender, gap)
        if waits is not None:
            yield waits, gap.start, gap.end
        elif pending and unacked <= 0:
            # In mid-message and all has arrived: its sender has to supply more.
            begin = gap.within(way.acked_at + sender_trip * TRIP_SLACK)
            yield "moving", gap.start, begin
            yield from _acts(sender, begin, way, gap)
        elif not pending:
            # The last bytes are on their way, and nothing more is asked for.
            begin = gap.within(way.sent_at + receiver_trip * TRIP_SLACK + SLACK_SECONDS)
            yield "trip", gap.start, begin
            yield "moving", begin, gap.end
        elif gap.end - gap.start > max(0.0015, 0.1 * trips.between):
            way.paused_flight.add(way.next_offset - at_sender[0])
            yield "pause", gap.start, gap.end
        else:
            yield "moving", gap.start, gap.end
        return
    yield from _between_messages(requests, to_server, to_client, gap)


def _acts(host: str, begin: float, way: Direction, gap: Interval) -> Iterator[Turn]:
    """Yields a host's turn from `begin` until its segment is born, and that segment's way."""
    done = max(begin, gap.born) if way is gap.sending else gap.end
    yield host, begin, done
    yield "moving", done, gap.end


def _is_in_message(way: Direction, start: float) -> bool:
    """Whether a message has begun in a direction and not ended."""
    boundary = way.framer.boundary
    if boundary is None:
        return way.bytes > BULK_BYTES and start - way.sent_at < 1
    return way.framer.message is not None and way.next_offset < boundary


def _blocked(
    way: Direction,
    receiver: str,
    between_trip: float,
    receiver_trip: float,
    at_sender: tuple[int, int | None],
    gap: Interval,
) -> str | None:
    """Returns the turn that keeps the bytes of a direction back; None: none does.

    at_sender: acknowledged offset and edge of the window, as its sender knew them.
    """
    lasted, trip = gap.end - gap.start, TRIP_SLACK * between_trip + SLACK_SECONDS
    is_long, is_old = lasted > LEAST_WAIT_SECONDS, False
    if is_long:
        is_old = gap.segment.size > 0 and way is gap.sending
        is_old = is_old and way.acked_offset - 1 <= way.offset(gap.segment.seq) < way.next_offset
        is_timeout = is_old and lasted > max(TIMEOUT_SECONDS, 1.5 * trip)
        if lasted > 0.5 * between_trip and (way.holes or is_timeout):
            return "loss"
    acked, edge = at_sender
    window = 0 if edge is None else edge - acked
    room = None if edge is None or not _is_in_message(way, gap.start) else edge - way.next_offset
    if room is not None and room < max(1460, FULL_RATIO * window):
        way.full_windows.add(window)
        return "window" if window and window >= SHUT_RATIO * way.largest_window else receiver
    is_silent = is_long and lasted > max(SILENT_SECONDS, 3 * trip)
    is_silent = is_silent and way.unacked_bytes > TWO_SEGMENTS
    return receiver if is_silent and receiver_trip < NEAR_SECONDS and not is_old else None


def _between_messages(
    requests: Requests, to_server: float, to_client: float, gap: Interval
) -> Iterator[Turn]:
    """Yields the turns while no message is under way: the server's, or the client's."""
    upward, downward = requests.upward, requests.downward
    completed = (each.complete for each in requests.open.values())
    complete = next((each for each in completed if each is not None), None)
    is_data = gap.sending is downward and gap.segment.size >= 1000
    if complete is None and not requests.open and is_data:
        complete = 0.0  # it answers a request from before the capture
    if complete is None:
        begin = gap.within(requests.replied + to_client * TRIP_SLACK)
        yield "trip", gap.start, begin
        yield from _acts("client", begin, upward, gap)
        return
    is_acked = upward.next_offset == upward.acked_offset and not to_server
    begin = gap.within(
        max(complete + to_server * TRIP_SLACK, upward.acked_at if is_acked else gap.start)
    )
    yield "trip", gap.start, begin
    yield from _acts("server", begin, downward, gap)


BINS_A_SECOND: Final = 10
TURNS = (*SIDES, "moving", "pause", "loss", "window", "trip")
"""Names of the shares of a time: of the hosts, and of the states that are none's."""
_COLUMNS = {name: i for i, name in enumerate((*TURNS, "up", "down", "up lost", "down lost"))}
_WIDTH, _BLOCK_BINS = len(_COLUMNS), 100
MOST_BLOCKS = 6000
"""Blocks of a file, of ten seconds of a connection: 16 hours of one, 26 MB."""


def blocks_of_a_file() -> Iterator[array[float]]:
    """Yields the blocks that the connections of a file share."""
    for _ in range(MOST_BLOCKS):
        yield array("f", bytes(4 * _WIDTH * _BLOCK_BINS))


class Course:
    """Seconds of each turn, and bytes and lost segments of both directions, by bin of time."""

    def __init__(self, blocks: Iterator[array[float]]) -> None:
        self._spare = blocks
        self.cut_at: int | None = None
        """First bin for which the file had no block left."""
        self._blocks: dict[int, array[float]] = {}

    def spend(self, turn: str, begin: float, end: float) -> None:
        """Adds the seconds between two moments to a turn."""
        while begin < end:
            number = int(begin * BINS_A_SECOND)
            until = min(end, max((number + 1) / BINS_A_SECOND, begin + 1e-3))
            if not self.add(turn, number, until - begin):
                return
            begin = until

    def add(self, column: str, number: int, amount: float) -> bool:
        """Adds to a bin; returns whether the file has a block for it."""
        place, row = divmod(number, _BLOCK_BINS)
        block = self._blocks.get(place)
        if block is None:
            if (block := next(self._spare, None)) is None:
                self.cut_at = number if self.cut_at is None else self.cut_at
                return False
            self._blocks[place] = block
        block[row * _WIDTH + _COLUMNS[column]] += amount
        return True

    def values(self, column: str, bins: range) -> list[float]:
        """Returns a column's values in some bins."""
        index, empty = _COLUMNS[column], array("f", bytes(4 * _WIDTH * _BLOCK_BINS))
        values: list[float] = []
        for place in range(bins.start // _BLOCK_BINS, (bins.stop - 1) // _BLOCK_BINS + 1):
            values += self._blocks.get(place, empty)[index::_WIDTH]
        first = bins.start % _BLOCK_BINS
        return values[first : first + len(bins)]
