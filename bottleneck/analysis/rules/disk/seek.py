"""disk/seek: the source lies in so many fragments that the disk seeks more than it reads."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import Place, disk_steps, pattern, place_of, zones_of
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import Alone
from bottleneck.text.units import count_text, percent_text, rate_text, seconds_text

CAUSE = Cause("disk", "seek", "seek time", stays=True)
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
        few = own is not None and (own.told.fragments or 0) <= FEW_FRAGMENTS
        if own is not None and few and own.device == place.device:
            return each.rate.median, each.index
    return None


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate that a file in fragments is read at, where its seeks explain it."""
    place, seek = alone.place, _seek_seconds(alone)
    if alone.verb != "read" or place is None or (place.told.fragments or 0) < 2 or seek is None:
        return
    whole = _in_one_piece(alone, place)
    if whole is None:
        return
    rate, step = whole
    seeks_seconds = place.seeks_seconds(seek, rate)
    seconds = place.size_bytes / rate + seeks_seconds
    lost_ratio = 1 - alone.rate / rate
    if seeks_seconds < SHARE_RATIO * seconds or lost_ratio < SHARE_RATIO * 0.8:
        return
    lost_seconds = place.size_bytes / alone.rate - place.size_bytes / rate
    if not AGREES_LOW <= lost_seconds / seeks_seconds <= AGREES_HIGH:
        return
    count = count_text(place.told.fragments or 0)
    yield claim(
        CAUSE,
        alone.side,
        alone.best,
        f"the file is in {count} fragments on {alone.disk}, which reads {rate_text(alone.rate)} "
        f"and seeks {percent_text(lost_ratio)} of the time",
        evidence=(
            f"The disk read the file at {rate_text(alone.rate)}. By calculation, {count} fragments "
            f"at a seek time of {seconds_text(seek)} take {seconds_text(seeks_seconds)} of "
            f"{seconds_text(seconds)}.",
        ),
        remedy=_remedy(alone, rate),
        detail=f"file in {count} fragments",
    )
    yield alone.without("from the same file in one piece", rate, step)


def _remedy(alone: Alone, whole: float) -> str:
    """What puts a file together again; whole: the rate it is read at then, bytes per second."""
    host = alone.given.host(alone.side)
    kind = host.folder.filesystem if host is not None and host.folder is not None else None
    program = _DEFRAGMENT.get(kind or "")
    how = f" or run `{program}` on it" if program else ""
    return (
        f"Copy the file anew into free space{how} (in one piece, the disk reads {rate_text(whole)})"
    )
