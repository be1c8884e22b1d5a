"""Arithmetic of payload rates of links, the composition of stages, and scaled loads."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

ETHERNET_MTU_BYTES = 1500
_HEADER_BYTES = 14
_FRAMING_BYTES = 24
"""Frame check, preamble and the gap between frames: on the wire, in no counter of the host."""

LINK_BITS_PER_SECOND = tuple(
    int(gigabits * 1e9) for gigabits in (0.01, 0.1, 1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400)
)
"""Ethernet's standard rates."""

LOOK_TOLERANCE_RATIO = 0.03
LEAST_TIME_RATIO = 0.05
"""Least share of a copy's time that a disk takes, so that a needed rate is finite."""
SPREAD_FLOOR_RATIO = 0.03
"""Least error of a rate, as a ratio."""


def payload_bytes(mtu_bytes: int, *, ipv6: bool = False, timestamps: bool = True) -> int:
    """Returns the TCP payload of one full packet, bytes."""
    return mtu_bytes - (40 if ipv6 else 20) - 20 - (12 if timestamps else 0)


def payload_efficiency(
    mtu_bytes: int = ETHERNET_MTU_BYTES,
    *,
    ipv6: bool = False,
    timestamps: bool = True,
    vlan_tags: int = 0,
) -> float:
    """Returns the share of an Ethernet link's rate that is TCP payload in full frames.

    Source: RFC 6349 section 4.1.1 (1538 bytes on the wire for an MTU of 1500).
    """
    wire = mtu_bytes + _HEADER_BYTES + _FRAMING_BYTES + 4 * vlan_tags
    return payload_bytes(mtu_bytes, ipv6=ipv6, timestamps=timestamps) / wire


def link_payload(bits_per_second: float) -> float:
    """Returns the payload that an Ethernet link carries at the usual MTU, bytes per second."""
    return bits_per_second / 8 * payload_efficiency()


def counted_efficiency(mtu_bytes: int = ETHERNET_MTU_BYTES) -> float:
    """Returns the share of an interface's byte counter, with Ethernet headers, that is payload."""
    return payload_bytes(mtu_bytes) / (mtu_bytes + _HEADER_BYTES)


@dataclass(frozen=True)
class LinkMatch:
    """A standard link whose payload matches a rate."""

    bits_per_second: int
    mtu_bytes: int
    payload_bytes_per_second: float
    """Payload with IPv4 and timestamps."""


def looks_like(bytes_per_second: float, mtu_bytes: int | None = None) -> LinkMatch | None:
    """Returns the standard link whose payload is within 3 % of a rate; None: there is none.

    The tolerance covers IPv6, no timestamps and a VLAN tag. An MTU that no Ethernet has (loopback's
    65536) belongs to no link.
    """
    mtu = ETHERNET_MTU_BYTES if mtu_bytes is None else mtu_bytes
    if not 576 <= mtu <= 16_000:
        return None
    for bits in LINK_BITS_PER_SECOND:
        payload = bits / 8 * payload_efficiency(mtu)
        if abs(bytes_per_second / payload - 1) <= LOOK_TOLERANCE_RATIO:
            return LinkMatch(bits, mtu, payload)
    return None


def faster_link(bytes_per_second: float) -> int:
    """Returns the slowest standard link for a payload at the usual MTU, bits per second."""
    needed = bytes_per_second * 8 / payload_efficiency()
    return next((bits for bits in LINK_BITS_PER_SECOND if bits >= needed), LINK_BITS_PER_SECOND[-1])


def in_turn(rates: Sequence[float]) -> float:
    """Returns the rate of stages that work one at a time: their times add up."""
    return 1 / sum(1 / rate for rate in rates)


@dataclass(frozen=True)
class Band:
    """A rate with its error, bytes per second: of a stage, or of a copy without its cap."""

    low: float
    median: float
    high: float

    @classmethod
    def from_rate(cls, rate: Any, times: float = 1.0) -> Band:
        """Makes a band of an object with a low, a median and a high rate, times a factor."""
        return cls(times * rate.low, times * rate.median, times * rate.high)

    @classmethod
    def combine(cls, choose: Callable[[Iterable[float]], float], *bands: Band) -> Band:
        """Combines several bands end by end with min or max."""
        levels = ((each.low, each.median, each.high) for each in bands)
        return cls(*map(choose, zip(*levels, strict=True)))

    def widened_band(self, ratio: float = SPREAD_FLOOR_RATIO) -> Band:
        """Returns the band, at least as wide as the least error of a rate."""
        low, high = self.median * (1 - ratio), self.median * (1 + ratio)
        return Band(min(self.low, low), self.median, max(self.high, high))


def rate_with_disk(transfer: float, disk: float, late: float) -> float:
    """Returns the rate of a transfer and a disk that work in parallel, the disk from a time on.

    A write-back begins when much data has arrived, and a read-ahead gives its first bytes late: a
    disk that is slower than the transfer ends after it, a faster one catches up.

    Args:
        transfer: rate without the disk, bytes per second.
        disk: rate of the disk alone, bytes per second.
        late: share of the transfer's own time that passes before the disk works.

    Infinite if both rates are.
    """
    seconds_a_byte = max(1 / transfer, late / transfer + 1 / disk)
    return 1 / seconds_a_byte if seconds_a_byte else math.inf


def needed_behind(rate: float, transfer: float, late: float) -> float:
    """Returns the disk rate that a rate of transfer and disk needs; see rate_with_disk()."""
    return 1 / max(1 / rate - late / transfer, (1 - late) / transfer, LEAST_TIME_RATIO / rate)


def scaled_by_load(rate: float, ratio: float, batching: float) -> float:
    """Returns the rate of a full core, from the share of it that a rate took.

    batching: 1 if each byte costs the same at any rate; above 1 the cost falls as the rate rises,
    because more packets are handled at each wake-up.
    """
    return float(rate * ratio**-batching)
