"""What became of numbered datagrams: lost, late, doubled, and how unevenly they came; pure."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Optional

from probes.records import Details

HEADER = struct.Struct("!16sQQ")
"""Token of the meeting, number from 0, nanoseconds of the sender's own monotonic clock."""
MOST_DATAGRAMS = 1 << 24
"""Of one run: the receiver keeps a byte for each."""
JITTER_GAIN = 1 / 16
"""RFC 3550 section 6.4.1."""


@dataclass
class Tally:
    """The receiver's account of one run."""

    most: int
    """Numbers from 0 to most - 1 belong to it."""
    seen: bytearray = field(init=False)
    unique: int = 0
    doubled: int = 0
    late: int = 0
    """Of the unique ones those that came after one with a higher number (RFC 4737)."""
    stray: int = 0
    expected: int = 0
    """The lowest number above all that came."""
    jitter_seconds: float = 0.0
    uneven_seconds: float = 0.0
    """Sum of all differences of transit time between neighbours."""
    transit_ns: Optional[int] = None
    """Of the latest: by two clocks, so that only differences mean anything."""

    def __post_init__(self) -> None:
        if not 0 < self.most <= MOST_DATAGRAMS:
            raise ValueError(f"no such number of datagrams: {self.most}")
        self.seen = bytearray(self.most)

    def take(self, number: int, sent_ns: int, arrived_ns: int) -> bool:
        """One datagram; whether it is a new one of this run."""
        if number >= self.most:
            self.stray += 1
            return False
        if self.seen[number]:
            self.doubled += 1
            return False
        self.seen[number] = 1
        self.unique += 1
        if number >= self.expected:
            self.expected = number + 1
        else:
            self.late += 1
        transit_ns = arrived_ns - sent_ns
        if self.transit_ns is not None:
            difference = abs(transit_ns - self.transit_ns) / 1e9
            self.uneven_seconds += difference
            self.jitter_seconds += (difference - self.jitter_seconds) * JITTER_GAIN
        self.transit_ns = transit_ns
        return True

    def longest_gap(self, sent: int) -> int:
        """Length of the longest run of numbers in a row that never came, of so many sent."""
        return max(map(len, bytes(self.seen[:sent]).split(b"\1")), default=0)


def account(tally: Tally, sent: int, dropped: Optional[int]) -> Details:
    """What became of so many datagrams that were sent.

    dropped: by the receiver's own socket, which was read too slowly: they had passed the path, and
    are not its loss. None: the system does not tell, and lost_datagrams may hold some of them.

    Returns sent_datagrams, received_datagrams, lost_datagrams, loss_ratio (of those sent),
    reordered_datagrams, reordered_ratio (of those received), duplicate_datagrams, stray_datagrams,
    jitter_seconds (RFC 3550, at the end), jitter_mean_seconds (mean difference of transit time),
    receiver_dropped_datagrams where known, longest_gap_datagrams where no drop is mixed with it.
    """
    missing = max(0, sent - tally.unique)
    lost = missing - min(missing, dropped or 0)
    told: Details = {
        "sent_datagrams": sent,
        "received_datagrams": tally.unique,
        "lost_datagrams": lost,
        "loss_ratio": lost / sent if sent else 0.0,
        "reordered_datagrams": tally.late,
        "reordered_ratio": tally.late / tally.unique if tally.unique else 0.0,
        "duplicate_datagrams": tally.doubled,
        "stray_datagrams": tally.stray,
        "jitter_seconds": tally.jitter_seconds,
    }
    if tally.unique > 1:
        told["jitter_mean_seconds"] = tally.uneven_seconds / (tally.unique - 1)
    if dropped is not None:
        told["receiver_dropped_datagrams"] = dropped
    if not dropped:
        told["longest_gap_datagrams"] = tally.longest_gap(sent)
    return told
