"""Figures of a connection as an expert lists them, from its directions, requests and turns."""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

from bottleneck.captures.connection import Connection
from bottleneck.captures.direction import BINS_A_SECOND, Direction, Sample
from bottleneck.captures.requests import Requests
from bottleneck.captures.turns import NEAR_SECONDS

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
BEST_RATIO = 0.98
"""Quantile of the rates by bin that counts as the best: cards join segments into outliers."""
SUM_BINS, LEAST_SUMS = 5, 3
EPISODE_TRIPS, EPISODE_RATIOS = 30, (0.2, 0.5)
"""Length of an episode of losses: round trips, and the least and highest share of the copy."""
MOST_COMMANDS = 12


@dataclass(frozen=True)
class Ways:
    """A connection in the direction of its copy."""

    connection: Connection
    pull: bool

    @property
    def carrying(self) -> Direction:
        return self.connection.requests.downward if self.pull else self.connection.requests.upward

    @property
    def began(self) -> float:
        return self.connection.first_data

    @property
    def ended(self) -> float:
        """End of the copy: its last data, or the last packet if a message never ended."""
        connection = self.connection
        is_stuck = self.carrying.framer.message is not None or bool(connection.requests.open)
        is_stuck = is_stuck and connection.last - connection.last_data > 1
        return connection.last if is_stuck else connection.last_data


def way_of(connection: Connection) -> Ways | None:
    """Returns a connection's copy; None: it moves no file."""
    requests = connection.requests
    ways = Ways(connection, requests.downward.bytes > requests.upward.bytes)
    carrying = ways.carrying
    if not connection.first_data or carrying.bytes < LEAST_BYTES and not _is_stuck(carrying):
        return None
    return ways


def _is_stuck(way: Direction) -> bool:
    return way.most_repeats >= STUCK_REPEATS and way.repeated_bytes > STUCK_BYTES


def times(ways: Ways) -> dict[tuple[str, str], float]:
    """Returns the shares of the copy's time by state and host; they sum to 1."""
    seconds: defaultdict[tuple[str, str], float] = defaultdict(float)
    first, last = (int(moment * BINS_A_SECOND) for moment in (ways.began, ways.ended))
    for number, row in ways.connection.course.items():
        if first <= number <= last:
            for key, lasted in row.items():
                seconds[key] += lasted
    total = sum(seconds.values()) or 1.0
    return {key: lasted / total for key, lasted in seconds.items()}


def figures_of(ways: Ways, other_bytes: int | None) -> dict[str, Any]:
    """Returns the details of a copy: shares of its time, and the figures beside them.

    other_bytes: of others on the same way meanwhile; None: none were captured at any time.
    """
    connection, way = ways.connection, ways.carrying
    lost = way.sent_again + way.late_fills
    shares = times(ways)
    groups = {f"{name}_ratio": round(share, 4) for name, share in _groups(shares, ways.pull)}
    return {
        "point": _point(connection),
        **groups,
        "has_syn": connection.has_syn,
        "rtt_seconds": connection.trips.between or None,
        "queue_seconds": _queue_seconds(ways),
        "lost_ratio": lost / max(1, way.segments),
        "lost_segments": lost,
        "lost_before": way.late_fills,
        "loss_episode_ratio": _episode_ratio(ways),
        "is_stuck": _is_stuck(way),
        "largest_window_bytes": way.largest_window or None,
        "full_window_bytes": way.full_windows.quantile(0.5),
        "in_flight_bytes": way.in_flight.quantile(0.95),
        "is_flight_even": _is_even(way),
        "zero_windows": way.zero_windows,
        "request_bytes": connection.requests.sizes.quantile(0.5),
        "depth": connection.requests.depth.quantile(0.95),
        "asked_bytes": _asked_bytes(connection.requests),
        "others_ratio": None
        if other_bytes is None
        else other_bytes / max(1, other_bytes + connection.moved_bytes),
        "best_bytes_per_second": _best(way),
        "spread_ratio": _spread(way, ways),
        "slow_commands_ratio": _slow_commands(ways, shares) if connection.has_syn else None,
        "unseen_bytes": way.unseen_bytes,
        "signed": connection.requests.signed,
        "encrypted": connection.requests.protocols["encrypted"],
        "has_stamps": way.clock.is_usable,
        "commands": list(_commands(connection)),
    }


def _groups(shares: Mapping[tuple[str, str], float], pull: bool) -> Iterator[tuple[str, float]]:
    receiver = "client" if pull else "server"
    for side in ("client", "server"):
        not_read = shares.get(("not-read", side), 0.0)
        yield side, shares.get(("host", side), 0.0) + not_read
    yield "not_read", shares.get(("not-read", receiver), 0.0)
    for state in ("moving", "pause", "loss", "window", "trip"):
        yield state, sum(share for (name, _), share in shares.items() if name == state)


def _point(connection: Connection) -> str:
    """Returns where the capture was made: client, server, between; empty: unknown."""
    if connection.trips.between < NEAR_SECONDS:
        return ""
    if (connection.trips.to_client or 0.0) < CLOSE_RATIO * connection.trips.between:
        return "client"
    is_server = (connection.trips.to_server or 0.0) < CLOSE_RATIO * connection.trips.between
    return "server" if is_server else "between"


def _queue_seconds(ways: Ways) -> float | None:
    """Returns the median time in queues under load; None: no point of view shows it.

    Queues before the capture show in time stamps, those behind it in the round trip.
    """
    connection, way = ways.connection, ways.carrying
    trips = connection.trips.to_client or 0.0, connection.trips.to_server or 0.0
    receiver_trip, sender_trip = trips if ways.pull else trips[::-1]
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
    return requests.asked_bytes.quantile(0.9) or counted


def _is_even(way: Direction) -> bool:
    """Whether the bytes in flight at pauses hardly vary, as those of a full send buffer."""
    high = way.paused_flight.quantile(0.9) or way.in_flight.quantile(0.95) or 0.0
    return high < 2.2 * (way.paused_flight.median() or way.in_flight.median() or 1.0)


def _best(way: Direction) -> float | None:
    """Returns the rate of the best bin, bytes per second; None: too few bins."""
    bins = sorted(way.bytes_by_bin.values())
    if len(bins) < BINS_A_SECOND:
        return None
    return float(bins[int(BEST_RATIO * (len(bins) - 1))] * BINS_A_SECOND)


def _spread(way: Direction, ways: Ways) -> float | None:
    """Returns the standard deviation of the rate over half seconds, as a ratio of its mean."""
    first, last = (int(moment * BINS_A_SECOND) for moment in (ways.began, ways.ended))
    bins = [n for number, n in sorted(way.bytes_by_bin.items()) if first < number < last]
    sums = [sum(bins[i : i + SUM_BINS]) for i in range(0, len(bins) - SUM_BINS + 1, SUM_BINS)]
    mean = sum(sums) / len(sums) if len(sums) >= LEAST_SUMS else 0.0
    if not mean:
        return None
    return float((sum((each - mean) ** 2 for each in sums) / len(sums)) ** 0.5 / mean)


def _episode_ratio(ways: Ways) -> float:
    """Returns the share of the losses in the part of the copy's time that has the most of them."""
    lasted = ways.ended - ways.began
    trips_seconds = EPISODE_TRIPS * ways.connection.trips.between
    seconds = min(EPISODE_RATIOS[1] * lasted, max(EPISODE_RATIOS[0] * lasted, trips_seconds))
    lost = sorted(ways.carrying.lost_by_bin.items())
    numbers, sums = [number for number, _ in lost], [0, *accumulate(count for _, count in lost)]
    ends = (bisect_left(numbers, number + BINS_A_SECOND * seconds) for number in numbers)
    highest = max((sums[end] - sums[index] for index, end in enumerate(ends)), default=0)
    return highest / max(1, sums[-1])


def _slow_commands(ways: Ways, shares: Mapping[tuple[str, str], float]) -> float | None:
    """Returns the share of a host's steps that need no disk, and were slow; None: there are none.

    The host is the one that had to act for longer.
    """
    connection = ways.connection
    if shares.get(("host", "server"), 0.0) >= shares.get(("host", "client"), 0.0):
        trip = connection.trips.to_server or 0.0
        samples = (connection.requests.service.get(name, Sample()) for name in DISKLESS)
        waits = [wait - trip for sample in samples for wait in sample.values]
    else:
        waits = [
            wait - (connection.trips.to_client or 0.0)
            for wait in connection.requests.early_pauses.values
        ]
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
