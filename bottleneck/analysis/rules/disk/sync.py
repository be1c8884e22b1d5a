"""disk/sync: each write is forced to the disk before the next one is made.

Sources: smb.conf(5), sync always; mount(8), sync. What it costs is measured by the disk's pattern
`synced`, which does the same: one write, then fdatasync(2), then the next. Without an agent a
server that does so has nothing left to FLUSH: each WRITE waits instead, and READs do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk.alone import CAUSES, NO_SYNC, Alone, forced
from bottleneck.analysis.steps import Found
from bottleneck.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    *("disk", "sync", "synchronous writes"),
    stays=True,
    remedy=f"{NO_SYNC}, if `sync always` is set there",
)
BELOW_RATIO = 0.7
"""Of the rate of flushing once, at the end: forced writes that cost less explain nothing."""
LOW_RATIO, HIGH_RATIO = 0.75, 1.2
"""How far a copy may be below its turns of link and disk, and above the forced writes alone."""


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate of forced writes, where the receiver is known to force them and the copy fits."""
    if alone.verb != "write" or alone.given.copy.made is None:
        return
    setting = forced(alone.given, alone.side)
    synced = steps.fastest(disk_steps(alone.report, alone.side, "write", "synced"))
    if setting is None or synced is None or synced.rate.median > BELOW_RATIO * alone.rate:
        return
    rate, level = alone.given.rate.median, synced.rate.median
    # Link and forced writes one after the other, as smbd does them on one connection.
    link = alone.given.path_rate
    turns = model.in_turn((link, level)) if link else level
    if not LOW_RATIO * turns <= rate <= HIGH_RATIO * level:
        return
    yield claim(
        CAUSE,
        alone.side,
        synced,
        f"{alone.disk} takes at most {rate_text(level)} of synchronous writes ({setting.text})",
        level=max(level, min(rate, HIGH_RATIO * level)),
        high=max(synced.rate.high, rate),
        reached=True,
        evidence=(_evidence(alone, synced),),
        remedy=setting.remedy,
        detail=setting.detail,
    )
    words = f"{alone.disk} writes at most {rate_text(alone.rate)}"
    yield claim(CAUSES["write"], alone.side, alone.best, words)


def _evidence(alone: Alone, synced: Found) -> str:
    size, seconds = synced.disk.request_bytes, synced.disk.sync_seconds.median
    each = "" if size is None else f" of {size_text(size)}"
    waits = "" if seconds is None else f", {seconds_text(seconds)} each"
    return (
        f"By itself, {alone.disk} wrote {rate_text(synced.rate.median)} in synchronous writes"
        f"{each}{waits}, and {rate_text(alone.rate)} with one final flush."
    )
