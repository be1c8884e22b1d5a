"""disk/seek: the source lies in so many fragments that seeks slow the disk down."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import Place, disk_steps, pattern, place_of, zones_of
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import DiskTest
from bottleneck.text.units import count_text, percent_text, rate_text, seconds_text

CAUSE = Cause("disk", "seek", "seek time", limits_without_fault=True)
SHARE_RATIO = 0.25
"""Least share of the reading time that seeks take."""
AGREES_LOW, AGREES_HIGH = 0.4, 1.3
"""Measured cost of the seeks over that of random accesses: near ones cost less, none much more."""
FEW_FRAGMENTS = 8
_DEFRAGMENT = {
    "ext4": "e4defrag",
    "xfs": "xfs_fsr",
    "btrfs": "btrfs filesystem defragment",
    "ntfs": "defrag",
}


def _seek_seconds(test: DiskTest) -> float | None:
    place = test.place
    for each in map(zones_of, disk_steps(test.report, test.side, "read", "zones")):
        if place is not None and place.spans_on(each.device) and each.seek_seconds is not None:
            return each.seek_seconds
    return None


def _in_one_piece(test: DiskTest, place: Place) -> tuple[float, int] | None:
    """Returns the rate at the file's place, by zones or the run's own file, and its step."""
    zones = test.zones
    if zones is not None:
        rate = zones.rate_of(place.spans_on(zones.device))
        return None if rate is None else (rate, zones.step.index)
    if pattern(test.best) != "file":
        return None
    for each in disk_steps(test.report, test.side, test.verb, "sequential"):
        other = place_of(each)
        few = other is not None and (other.details.fragments or 0) <= FEW_FRAGMENTS
        if other is not None and few and other.device == place.device:
            return each.rate.median, each.index
    return None


def claims(test: DiskTest) -> Iterator[Claim]:
    """Yields the rate of a file in fragments, if its seeks explain it."""
    place, seek = test.place, _seek_seconds(test)
    if test.verb != "read" or place is None or (place.details.fragments or 0) < 2 or seek is None:
        return
    one_piece = _in_one_piece(test, place)
    if one_piece is None:
        return
    rate, step = one_piece
    seeks_seconds = place.seeks_seconds(seek, rate)
    seconds = place.size_bytes / rate + seeks_seconds
    lost_ratio = 1 - test.rate / rate
    if seeks_seconds < SHARE_RATIO * seconds or lost_ratio < SHARE_RATIO * 0.8:
        return
    lost_seconds = place.size_bytes / test.rate - place.size_bytes / rate
    if not AGREES_LOW <= lost_seconds / seeks_seconds <= AGREES_HIGH:
        return
    count = count_text(place.details.fragments or 0)
    yield claim(
        CAUSE,
        test.side,
        test.best,
        f"the file is in {count} fragments on {test.disk}, which reads {rate_text(test.rate)} "
        f"and seeks {percent_text(lost_ratio)} of the time",
        evidence=(
            f"The disk read the file at {rate_text(test.rate)}. By calculation, {count} fragments "
            f"at a seek time of {seconds_text(seek)} take {seconds_text(seeks_seconds)} of "
            f"{seconds_text(seconds)}.",
        ),
        remedy=_remedy(test, rate),
        detail=f"file in {count} fragments",
    )
    yield test.without("from the same file in one piece", rate, step)


def _remedy(test: DiskTest, rate: float) -> str:
    """Returns how to defragment a file; rate: of the file in one piece, bytes per second."""
    host = test.evidence.host(test.side)
    kind = host.folder.filesystem if host is not None and host.folder is not None else None
    program = _DEFRAGMENT.get(kind or "")
    how = f" or run `{program}` on it" if program else ""
    return (
        f"Copy the file anew into free space{how} (in one piece, the disk reads {rate_text(rate)})"
    )
