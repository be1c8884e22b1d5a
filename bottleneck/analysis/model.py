"""The arithmetic: what a link carries as payload, how stages compose, what a lift gains."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

ETHERNET_MTU_BYTES = 1500
_HEADER_BYTES = 14
_FRAMING_BYTES = 24
"""Frame check, preamble and the gap between frames: on the wire, in no counter of the host."""

LINK_BITS_PER_SECOND = tuple(
    int(gigabits * 1e9) for gigabits in (0.01, 0.1, 1, 2.5, 5, 10, 25, 40, 50, 100, 200, 400)
)
"""Ethernet's standard rates."""

LOOK_TOLERANCE_RATIO = 0.03
OVERLAP_DOUBT = 0.15
"""How far the overlap factor may move when the cap is another one."""
SPREAD_FLOOR_RATIO = 0.03
"""No rate is better known than this, however few runs say so."""


def payload_bytes(mtu_bytes: int, *, ipv6: bool = False, timestamps: bool = True) -> int:
    """TCP payload of one full packet, bytes."""
    return mtu_bytes - (40 if ipv6 else 20) - 20 - (12 if timestamps else 0)


def payload_efficiency(
    mtu_bytes: int = ETHERNET_MTU_BYTES,
    *,
    ipv6: bool = False,
    timestamps: bool = True,
    vlan_tags: int = 0,
) -> float:
    """Share of an Ethernet link's rate that is TCP payload in full frames.

    Source: RFC 6349 section 4.1.1 (1538 bytes on the wire for an MTU of 1500).
    """
    wire = mtu_bytes + _HEADER_BYTES + _FRAMING_BYTES + 4 * vlan_tags
    return payload_bytes(mtu_bytes, ipv6=ipv6, timestamps=timestamps) / wire


def counted_efficiency(mtu_bytes: int = ETHERNET_MTU_BYTES) -> float:
    """Share of an interface's byte counter that is TCP payload: it counts the Ethernet header."""
    return payload_bytes(mtu_bytes) / (mtu_bytes + _HEADER_BYTES)


@dataclass(frozen=True)
class LinkMatch:
    """A standard link whose payload a rate looks like."""

    bits_per_second: int
    mtu_bytes: int
    payload_bytes_per_second: float
    """What such a link carries with IPv4 and timestamps."""


def looks_like(bytes_per_second: float, mtu_bytes: int | None = None) -> LinkMatch | None:
    """The standard link whose payload is within 3 % of a rate; None: none is.

    The tolerance holds IPv6, timestamps off and a VLAN tag too. An MTU that no Ethernet has
    (loopback's 65536) belongs to no link.
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
    """The slowest standard link that carries this payload at the usual MTU, bits per second."""
    needed = bytes_per_second * 8 / payload_efficiency()
    return next((bits for bits in LINK_BITS_PER_SECOND if bits >= needed), LINK_BITS_PER_SECOND[-1])


def overlapped(rates: Sequence[float]) -> float:
    """Stages that all work at once: the slowest sets the rate."""
    return min(rates)


def in_turn(rates: Sequence[float]) -> float:
    """Stages of which one alone works at a time: their times add up."""
    return 1 / sum(1 / rate for rate in rates)


def overlap_factor(copy_rate: float, rates: Sequence[float]) -> float:
    """Where a copy lies between its stages in turn (0) and overlapped (1); clamped."""
    longest = 1 / in_turn(rates)
    shortest = 1 / overlapped(rates)
    if longest <= shortest:
        return 1.0
    return min(1.0, max(0.0, (longest - 1 / copy_rate) / (longest - shortest)))


def composed(rates: Sequence[float], overlap: float) -> float:
    """Rate of a copy through stages that overlap by a factor."""
    shortest = 1 / overlapped(rates)
    return 1 / (shortest + (1 - overlap) * (1 / in_turn(rates) - shortest))


@dataclass(frozen=True)
class Band:
    """A rate with its doubt, bytes per second."""

    low: float
    median: float
    high: float


def widened(band: Band) -> Band:
    """The band, at least as wide as a rate can be known."""
    return Band(
        min(band.low, band.median * (1 - SPREAD_FLOOR_RATIO)),
        band.median,
        max(band.high, band.median * (1 + SPREAD_FLOOR_RATIO)),
    )


def predicted(stages: Sequence[Band], limits: Sequence[Band], overlap: float) -> Band:
    """Rate through the stages that are left when the cap is gone.

    Args:
        stages: at least one; the bytes pass through each of them.
        limits: ceilings that are no stages (a core's): never exceeded, taking no turns.
        overlap: as fitted from the copy that was measured.
    """
    wide = [widened(stage) for stage in stages]
    bounds = [widened(limit) for limit in limits]
    low = composed([each.low for each in wide], max(0.0, overlap - OVERLAP_DOUBT))
    median = composed([each.median for each in wide], overlap)
    high = composed([each.high for each in wide], min(1.0, overlap + OVERLAP_DOUBT))
    return Band(
        min([low, *(each.low for each in bounds)]),
        min([median, *(each.median for each in bounds)]),
        min([high, *(each.high for each in bounds)]),
    )
