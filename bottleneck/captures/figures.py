"""Figures of a connection as an expert lists them, from its directions, requests and turns."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bottleneck.captures.connection import Connection
from bottleneck.captures.direction import Direction, Sample
from bottleneck.captures.framing import READ, WRITE
from bottleneck.captures.requests import Requests
from bottleneck.captures.turns import BINS_A_SECOND, NEAR_SECONDS, TURNS

DISKLESS = ("TREE_CONNECT", "SESSION_SETUP", "QUERY_INFO", "IOCTL", "NEGOTIATE")
"""Commands that a server answers from its memory."""
SLOW_SECONDS = 0.008
"""Wait for such a command, from which on the host's CPU is slow."""
CLOSE_RATIO = 0.25
"""Share of the round trip to a host, below which the capture was made there."""
LEAST_BYTES = 50_000
"""Fewest bytes of a copy: below, a connection only opened, listed or waited."""
STUCK_REPEATS, STUCK_BYTES = 3, 1000
"""Repeats of one large segment in a row that show that it never arrives."""
BEST_RATIO, BEST_TRIPS = 0.98, 6
"""Quantile of the rates that counts as the best, as cards join segments into outliers; round trips
that a rate is taken over."""
SUM_BINS, LEAST_SUMS = 5, 3
EPISODE_TRIPS, EPISODE_RATIOS = 30, (0.2, 0.5)
"""Length of an episode of losses: round trips, and the least and highest share of the copy."""
MOST_COMMANDS, COURSE_PERIODS, MOST_BINS = 12, 60, 144_000


@dataclass(frozen=True)
class CapturedCopy:
    """A connection in the direction of its copy."""

    connection: Connection
    pull: bool

    @property
    def carrying(self) -> Direction:
        return self.connection.requests.downward if self.pull else self.connection.requests.upward

    @property
    def way(self) -> str:
        """Its direction's name in a course."""
        return "down" if self.pull else "up"

    def bytes_by_bin(self) -> list[float]:
        return self.connection.course.values(self.way, bins_of(self))

    @property
    def began(self) -> float:
        return self.connection.first_data

    @property
    def ended(self) -> float:
        """End of the copy: its last data, or the last payload if a request never ended."""
        commands = {each.command for each in self.connection.requests.open.values()}
        waits = self.carrying.framer.message is not None or bool(commands & {READ, WRITE})
        return max(self.began, self.connection.last_payload if waits else self.connection.last_data)


def copy_of(connection: Connection) -> CapturedCopy | None:
    """Returns a connection's copy; None: it moves no file."""
    requests = connection.requests
    is_pull = connection.is_unanswered or requests.downward.bytes > requests.upward.bytes
    copy = CapturedCopy(connection, is_pull)
    is_large = copy.carrying.bytes >= LEAST_BYTES or is_stuck(copy)
    return copy if connection.first_data and is_large else None


def is_stuck(copy: CapturedCopy) -> bool:
    """Whether a large segment was sent in vain again and again, or a READ got no reply."""
    way = copy.carrying
    is_repeated = way.most_repeats >= STUCK_REPEATS and way.repeated_bytes > STUCK_BYTES
    return is_repeated or copy.connection.is_unanswered


def bins_of(copy: CapturedCopy) -> range:
    """Returns the numbers of the bins of a copy's time, of four hours at most."""
    first, last = (int(moment * BINS_A_SECOND) for moment in (copy.began, copy.ended))
    return range(first, last + 1)[:MOST_BINS]


def turn_ratios(copy: CapturedCopy, bins: range) -> dict[str, float]:
    """Returns the shares of the time in some bins by turn; they sum to 1, or are 0."""
    seconds = {turn: sum(copy.connection.course.values(turn, bins)) for turn in TURNS}
    total = sum(seconds.values()) or 1.0
    return {f"{turn}_ratio": round(each / total, 4) for turn, each in seconds.items()}


def figures_of(copy: CapturedCopy, others_ratio: float | None) -> dict[str, Any]:
    """Returns the details of a copy: shares of its time, and the figures beside them.

    others_ratio: share of others' bytes on its way; None: none were captured at any time.
    """
    connection, way = copy.connection, copy.carrying
    lost = way.sent_again + way.late_fills
    bins = bins_of(copy)
    shares, period = turn_ratios(copy, bins), -(-len(bins) // COURSE_PERIODS)
    return {
        "point": _point(connection),
        **shares,
        "course": [turn_ratios(copy, bins[i : i + period]) for i in range(0, len(bins), period)],
        "has_syn": connection.has_syn,
        "rtt_seconds": connection.trips.between or None,
        "queue_seconds": _queue_seconds(copy),
        "lost_ratio": lost / max(1, way.segments),
        "lost_segments": lost,
        "lost_before": way.late_fills,
        "loss_episode_ratio": _episode_ratio(copy),
        "is_stuck": is_stuck(copy),
        "is_unanswered": connection.is_unanswered,
        "is_cut": connection.course.cut_at in bins,
        "largest_window_bytes": way.largest_window or None,
        "full_window_bytes": way.full_windows.quantile(0.5),
        "is_flight_even": _is_even(way),
        "zero_windows": way.zero_windows,
        "request_bytes": connection.requests.sizes.quantile(0.5),
        "depth": connection.requests.depth.quantile(0.95),
        "asked_bytes": _asked_bytes(connection.requests),
        "others_ratio": others_ratio,
        "best_bytes_per_second": _best(copy),
        "spread_ratio": _spread(copy),
        "slow_commands_ratio": _slow_commands(copy, shares) if connection.has_syn else None,
        "unseen_bytes": way.unseen_bytes,
        "signed": connection.requests.signed,
        "encrypted": connection.requests.protocols["encrypted"],
        "has_stamps": way.clock.is_usable,
        "commands": list(_commands(connection)),
    }


def _point(connection: Connection) -> str:
    """Returns where the capture was made: client, server, between; empty: unknown."""
    if connection.trips.between < NEAR_SECONDS:
        return ""
    if (connection.trips.to_client or 0.0) < CLOSE_RATIO * connection.trips.between:
        return "client"
    is_server = (connection.trips.to_server or 0.0) < CLOSE_RATIO * connection.trips.between
    return "server" if is_server else "between"


def _queue_seconds(copy: CapturedCopy) -> float | None:
    """Returns the median time in queues under load; None: no point of view shows it.

    Queues before the capture show in time stamps, those behind it in the round trip.
    """
    connection, way = copy.connection, copy.carrying
    trips = connection.trips.to_client or 0.0, connection.trips.to_server or 0.0
    receiver_trip, sender_trip = trips if copy.pull else trips[::-1]
    base, queue = connection.trips.between, None
    if way.clock.is_usable and way.queue_seconds.values:
        queue = way.queue_seconds.median()
    shows_receiver = receiver_trip > CLOSE_RATIO * base or base < NEAR_SECONDS
    knows_sender = queue is not None or sender_trip < CLOSE_RATIO * base
    if shows_receiver and way.round_trips.values and knows_sender:
        idle = receiver_trip or way.round_trips.least or 0.0
        queue = (queue or 0.0) + max(0.0, way.round_trips.median() - idle)
    if queue is None and way.loaded_trips.values:
        queue = max(0.0, way.loaded_trips.median() - sender_trip - 0.001)
    return queue


def _asked_bytes(requests: Requests) -> float:
    """Returns the bytes that are asked for at once: by the requests, else by their number."""
    counted = (requests.depth.quantile(0.95) or 0.0) * requests.sizes.median()
    is_readable = not requests.protocols["encrypted"]
    return is_readable and requests.asked_bytes.quantile(0.9) or counted


def _is_even(way: Direction) -> bool:
    """Whether the bytes in flight at pauses hardly vary, as those of a full send buffer."""
    high = way.paused_flight.quantile(0.9) or way.in_flight.quantile(0.95) or 0.0
    return high < 2.2 * (way.paused_flight.median() or way.in_flight.median() or 1.0)


def _best(copy: CapturedCopy) -> float | None:
    """Returns the rate of the best bins in a row, bytes per second; None: the copy is too short.

    So many bins that a flight more or less in them is no matter.
    """
    moved_bytes = copy.bytes_by_bin()
    if len(moved_bytes) < BINS_A_SECOND:
        return None
    sums = [0.0, *accumulate(moved_bytes)]
    trips_seconds = BEST_TRIPS * copy.connection.trips.between
    count = min(len(moved_bytes) // 2, 1 + int(trips_seconds * BINS_A_SECOND))
    rates = sorted(last - first for first, last in zip(sums, sums[count:], strict=False))
    return rates[int(BEST_RATIO * (len(rates) - 1))] * BINS_A_SECOND / count or None


def _spread(copy: CapturedCopy) -> float | None:
    """Returns the standard deviation of the rate over half seconds, as a ratio of its mean."""
    bins = copy.bytes_by_bin()[1:-1]
    sums = [sum(bins[i : i + SUM_BINS]) for i in range(0, len(bins) - SUM_BINS + 1, SUM_BINS)]
    mean = sum(sums) / len(sums) if len(sums) >= LEAST_SUMS else 0.0
    if not mean:
        return None
    return float((sum((each - mean) ** 2 for each in sums) / len(sums)) ** 0.5 / mean)


def _episode_ratio(copy: CapturedCopy) -> float:
    """Returns the share of the losses in the part of the copy's time that has the most of them."""
    lasted = copy.ended - copy.began
    trips_seconds = EPISODE_TRIPS * copy.connection.trips.between
    seconds = min(EPISODE_RATIOS[1] * lasted, max(EPISODE_RATIOS[0] * lasted, trips_seconds))
    column = f"{copy.way} lost"
    by_bin = enumerate(copy.connection.course.values(column, bins_of(copy)))
    lost = [(number, count) for number, count in by_bin if count]
    numbers, sums = [number for number, _ in lost], [0.0, *accumulate(count for _, count in lost)]
    ends = (bisect_left(numbers, number + BINS_A_SECOND * seconds) for number in numbers)
    highest = max((sums[end] - sums[index] for index, end in enumerate(ends)), default=0)
    return highest / max(1, sums[-1])


def _slow_commands(copy: CapturedCopy, shares: Mapping[str, float]) -> float | None:
    """Returns the share of a host's steps that need no disk, and were slow; None: there are none.

    The host is the one that had to act for longer.
    """
    requests, trips = copy.connection.requests, copy.connection.trips
    if shares["server_ratio"] >= shares["client_ratio"]:
        samples = (requests.service.get(name, Sample()) for name in DISKLESS)
        waits = [wait - (trips.to_server or 0.0) for sample in samples for wait in sample.values]
    else:
        waits = [wait - (trips.to_client or 0.0) for wait in requests.early_pauses.values]
    return sum(wait > SLOW_SECONDS for wait in waits) / len(waits) if waits else None


def _commands(connection: Connection) -> Iterator[dict[str, Any]]:
    for name, count in connection.requests.commands.most_common(MOST_COMMANDS):
        service = connection.requests.service.get(name, Sample())
        yield {
            "command": name,
            "requests": count,
            "seconds_median": service.quantile(0.5),
            "seconds_high": service.quantile(0.9),
            "seconds": service.sum,
        }
