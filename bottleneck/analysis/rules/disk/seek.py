"""disk/seek: the source lies in so many fragments that the disk seeks more than it reads."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import Place, disk_steps, pattern, place_of, zones_of
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import Alone
from bottleneck.reports.units import count_text, percent_text, rate_text, seconds_text

CAUSE = Cause("disk", "seek", "the file in one piece", stays=True)
SHARE_RATIO = 0.25
"""Least share of the reading time that seeks take."""
AGREES_LOW, AGREES_HIGH = 0.4, 1.3
"""What the seeks really cost over random accesses: near ones cost less, none costs much more."""
FEW_FRAGMENTS = 8
_DEFRAGMENT = {
    "ext4": "e4defrag",
    "xfs": "xfs_fsr",
    "btrfs": "btrfs filesystem defragment",
    "ntfs": "defrag",
}


@dataclass(frozen=True)
class Scattered:
    """What the fragments of a file cost."""

    fragments: float
    whole_bytes_per_second: float
    """In one piece at the same place."""
    seek_seconds: float
    """A random access, as measured."""
    seeks_seconds: float
    read_seconds: float
    """Of the whole file, seeks included, by arithmetic."""
    step: int
    """That the rate in one piece is of."""

    @property
    def share(self) -> float:
        """Share of the time that the seeks take."""
        return self.seeks_seconds / self.read_seconds


def scattered(alone: Alone) -> Scattered | None:
    """The cost of the fragments of a step's file; None: not known, or it lies in one piece."""
    place = alone.place
    if place is None or place.fragments is None or place.fragments < 2:
        return None
    seek = _seek_seconds(alone)
    whole = _in_one_piece(alone, place)
    if seek is None or whole is None:
        return None
    rate, step = whole
    seeks = place.seeks_seconds(seek, rate)
    return Scattered(place.fragments, rate, seek, seeks, place.size_bytes / rate + seeks, step)


def _seek_seconds(alone: Alone) -> float | None:
    place = alone.place
    for each in map(zones_of, disk_steps(alone.report, alone.side, "read", "zones")):
        if place is not None and place.spans_on(each.device) and each.seek_seconds is not None:
            return each.seek_seconds
    return None


def _in_one_piece(alone: Alone, place: Place) -> tuple[float, int] | None:
    """The rate at the file's place, by zones or by the run's own file; with the step's index."""
    zones = alone.zones
    if zones is not None:
        rate = zones.rate_of(place.spans_on(zones.device))
        return None if rate is None else (rate, zones.found.index)
    if pattern(alone.best) != "file":
        return None
    for each in disk_steps(alone.report, alone.side, alone.verb, "sequential"):
        own = place_of(each)
        few = own is not None and (own.fragments or 0) <= FEW_FRAGMENTS
        if own is not None and few and own.device == place.device:
            return each.rate.median, each.index
    return None


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate that a file in fragments is read at, where its seeks explain it."""
    if alone.verb != "read":
        return
    found = scattered(alone)
    if found is None or found.share < SHARE_RATIO:
        return
    lost_ratio = 1 - alone.rate / found.whole_bytes_per_second
    place = alone.place
    if place is None or lost_ratio < SHARE_RATIO * 0.8:
        return
    size = place.size_bytes
    lost_seconds = size / alone.rate - size / found.whole_bytes_per_second
    if not AGREES_LOW <= lost_seconds / found.seeks_seconds <= AGREES_HIGH:
        return
    count = count_text(found.fragments)
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file lies in {count} fragments on {alone.disk}, which reads it at "
        f"{rate_text(alone.rate)}: {percent_text(lost_ratio)} of the time it seeks",
        source="measured",
        evidence=(
            f"{count} fragments at {seconds_text(found.seek_seconds)} a seek make "
            f"{seconds_text(found.seeks_seconds)} of the {seconds_text(found.read_seconds)} that "
            f"reading the file takes by arithmetic; it was read at {rate_text(alone.rate)}.",
        ),
        remedy=_remedy(alone, found),
    )
    where = "where the file lies, were it in one piece"
    yield alone.without(where, found.whole_bytes_per_second, found.step)


def _remedy(alone: Alone, found: Scattered) -> str:
    """What puts a file together again, and the rate it is read at then."""
    host = alone.given.host(alone.side)
    kind = host.folder.filesystem if host is not None and host.folder is not None else None
    program = _DEFRAGMENT.get(kind or "")
    how = f"defragmented ({program}) or copied anew" if program else "copied anew"
    rate = rate_text(found.whole_bytes_per_second)
    return f"The file in one piece, {how} (the disk reads {rate} there)"
