"""Zones that a disk step read or wrote, with their curve, and a file's place on it."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from bottleneck.analysis import disc, steps
from bottleneck.analysis.disc import Curve, Zone
from bottleneck.analysis.evidence.details import PlaceDetails
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report

MOST_ZONES = 512
MOST_SPANS = 64
LEAST_REACH_RATIO = 0.2
"""Least share of a disk between its outermost and its innermost zone that makes a curve."""
WIDE_RATIO, MOST_DOUBT_RATIO = 0.6, 0.12
"""Least share that shows all of the curve, and greatest error of one that shows less."""


@dataclass(frozen=True)
class Span:
    """A part of a file, in one piece or nearly so, at its place on a device."""

    from_ratio: float
    to_ratio: float
    weight: float
    """Its share of the file."""

    @property
    def centre_ratio(self) -> float:
        return (self.from_ratio + self.to_ratio) / 2


@dataclass(frozen=True)
class Place:
    """Place of a file on its device, as the step that read it reports."""

    details: PlaceDetails
    device: str
    size_bytes: float
    """Written bytes of the file."""
    spans: tuple[Span, ...]
    """Its pieces on the device of its file system."""

    def seeks_seconds(self, seek_seconds: float, bytes_per_second: float) -> float:
        """Returns the time of the jumps between its pieces; seek_seconds: of one jump.

        A short gap passes under the head: the disc waits for it if that is sooner than a seek.
        """
        jumps = max(0.0, (self.details.fragments or 0.0) - 1)
        near = min(self.details.short_gaps, jumps)
        passing = min(near * seek_seconds, self.details.short_gaps_bytes / bytes_per_second)
        return (jumps - near) * seek_seconds + passing

    def spans_on(self, device: str) -> tuple[Span, ...]:
        """Returns a file's spans as ratios of a device: its own, or the whole disk; else empty."""
        if not device or device == self.device:
            return self.spans if device else ()
        part, disk = self.details, self.details.whole
        if device != name_of(disk.device) or disk.from_ratio is None or part.from_ratio is None:
            return ()
        if not (part.device_bytes and disk.device_bytes) or part.device_bytes > disk.device_bytes:
            return ()
        scale = part.device_bytes / disk.device_bytes
        offset = disk.from_ratio - scale * part.from_ratio
        return tuple(
            Span(
                _ratio(offset + scale * each.from_ratio),
                _ratio(offset + scale * each.to_ratio),
                each.weight,
            )
            for each in self.spans
        )


@dataclass(frozen=True)
class Zones:
    """A measured step of the disk by zone."""

    step: MeasuredStep
    zones: tuple[Zone, ...]
    """Zones in address order."""
    rows: tuple[Any, ...]
    """Their rows as the step reports them."""

    @property
    def device(self) -> str:
        """Kernel's name of the device; empty: not known."""
        return name_of(self.step.disk.device)

    @property
    def seek_seconds(self) -> float | None:
        """Time of a random access without its bytes; None: not measured."""
        return self.step.disk.seek_seconds

    @property
    def reach_ratio(self) -> float:
        """Share of the disk between the centres of its outermost and its innermost zone."""
        return self.zones[-1].centre_ratio - self.zones[0].centre_ratio

    @cached_property
    def curve(self) -> Curve | None:
        """Disc model through them; None: too few, too near each other, or they fit none."""
        if not self.zones or self.reach_ratio < LEAST_REACH_RATIO:
            return None
        line = disc.fit_curve(self.zones)
        if line is None or self.reach_ratio >= WIDE_RATIO:
            return line
        line = replace(line, partial=True)
        tells = line.is_flat or line.share + 2 * line.doubt < 1
        return line if tells and line.doubt <= MOST_DOUBT_RATIO else None

    def rate_at(self, zone: Zone) -> float | None:
        """Returns the rate at another step's zone, bytes per second; None: not measured there."""
        if not self.zones[0].from_ratio <= zone.centre_ratio <= self.zones[-1].to_ratio:
            return None
        return self._rate_of(Span(zone.from_ratio, zone.to_ratio, 1.0))

    def weak_at(self, ratio: float) -> Zone | None:
        """Returns the weak zone that holds a position; None: that position is in none."""
        weak = (self.zones[index] for index in (self.curve.weak if self.curve else ()))
        return next((zone for zone in weak if zone.from_ratio <= ratio <= zone.to_ratio), None)

    def rate_of(self, spans: tuple[Span, ...]) -> float | None:
        """Returns the rate of reading spans in order without seeks, bytes per second."""
        total = sum(span.weight / self._rate_of(span) for span in spans) if self.zones else 0.0
        return 1 / total if total > 0 else None

    def healthy_rate_of(self, spans: tuple[Span, ...]) -> float | None:
        """Returns the file's rate by the curve alone, as if no zone were weak; None: no curve."""
        if self.curve is None:
            return None
        total = sum(e.weight / self.curve.rate_over(e.from_ratio, e.to_ratio) for e in spans)
        return 1 / total if total > 0 else None

    def _rate_of(self, span: Span) -> float:
        weak = self.weak_at(span.centre_ratio)
        if weak is not None:
            return weak.bytes_per_second
        if self.curve is not None:
            return self.curve.rate_over(span.from_ratio, span.to_ratio)
        near = min(self.zones, key=lambda each: abs(each.centre_ratio - span.centre_ratio))
        return near.bytes_per_second


def pattern(step: MeasuredStep) -> str:
    """Returns a disk step's pattern: sequential (also of early releases), zones, file ..."""
    return step.setting.pattern or "sequential"


def name_of(device: str | None) -> str:
    """Returns a block device's name without its folder: /dev/sda and sda are the same."""
    return (device or "").rpartition("/")[2]


def disk_steps(report: Report, side: str, verb: str, name: str) -> tuple[MeasuredStep, ...]:
    """Returns the measured disk steps of a side, a verb and a pattern."""
    return tuple(
        each
        for each in steps.measured_steps(report, "disk")
        if pattern(each) == name and each.setting.side == side and each.setting.verb == verb
    )


def zones_of(step: MeasuredStep) -> Zones:
    """Returns the zones of a step, without those that make no sense."""
    rows = steps.items(step.outcome.details, "zones")
    pairs = []
    for each, row in list(zip(step.disk.zones, rows, strict=True))[:MOST_ZONES]:
        begin, end, rate = each.from_ratio, each.to_ratio, each.bytes_per_second
        if begin is None or end is None or rate is None or not begin <= end <= 1:
            continue
        low, high = each.low_bytes_per_second or rate, each.high_bytes_per_second or rate
        pairs.append((Zone(begin, end, rate, min(low, rate), max(high, rate)), row))
    pairs.sort(key=lambda pair: pair[0].centre_ratio)
    return Zones(step, tuple(zone for zone, _ in pairs), tuple(row for _, row in pairs))


def zones_under(report: Report, side: str, verb: str, place: Place | None) -> Zones | None:
    """Returns a side's zones on the device of a file's place; None: there are none."""
    candidates = [
        each
        for each in map(zones_of, disk_steps(report, side, verb, "zones"))
        if each.zones and place is not None and place.spans_on(each.device)
    ]
    return max(candidates, key=lambda each: len(each.zones), default=None)


def place_of(step: MeasuredStep) -> Place | None:
    """Returns the place of a step's file; None: not reported, or no real positions."""
    details = step.disk.place
    device = name_of(details.device)
    if not details.located or not device or details.bytes is None:
        return None
    spans = tuple(_spans(details, details.bytes))
    return Place(details, device, details.bytes, spans) if spans else None


def _spans(details: PlaceDetails, size_bytes: float) -> Iterator[Span]:
    """Yields the longest pieces as reported, and the rest of the file at its mean place."""
    remaining = size_bytes
    moment = None if details.centre_ratio is None else details.centre_ratio * size_bytes
    for each in details.spans[:MOST_SPANS]:
        begin, end = each.from_ratio, each.to_ratio
        if begin is None or end is None or each.bytes is None or not begin <= end <= 1:
            continue
        size = min(each.bytes, remaining)
        remaining -= size
        moment = None if moment is None else moment - size * (begin + end) / 2
        if size > 0:
            yield Span(begin, end, size / size_bytes)
    if remaining > 0 and moment is not None:
        yield Span(_ratio(moment / remaining), _ratio(moment / remaining), remaining / size_bytes)


def _ratio(value: float) -> float:
    return min(1.0, max(0.0, value))


def rates_by_place(step: MeasuredStep) -> Iterator[tuple[float, float]]:
    """Yields each zone's place, from 0 at the outer edge to 1, and its bytes per second."""
    for each in step.disk.zones:
        if each.at_ratio is not None and each.bytes_per_second is not None:
            yield each.at_ratio, each.bytes_per_second


def rate_at(zones: list[tuple[float, float]], place: float) -> float:
    """Returns the rate at a place of a disk, bytes per second; zones: in order of their place.

    Between two zones rate^2 falls with the address, see disc.py; beyond them it is constant.
    """
    below = [zone for zone in zones if zone[0] <= place]
    above = [zone for zone in zones if zone[0] >= place]
    if not below or not above:
        return (below or above)[-1 if below else 0][1]
    (begin, first), (end, last) = below[-1], above[0]
    share = 0.0 if end <= begin else (place - begin) / (end - begin)
    return math.sqrt(first**2 + share * (last**2 - first**2))
