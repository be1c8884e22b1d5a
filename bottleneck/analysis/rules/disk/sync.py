"""disk/sync: each write is forced to the disk before the next one is made.

Sources: smb.conf(5), sync always; mount(8), sync. What it costs is measured by the disk's pattern
`synced`, which does the same: one write, then fdatasync(2), then the next. Without an agent a
server that does so has nothing left to FLUSH: each WRITE waits instead, and READs do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import model, steps
from bottleneck.analysis.claim import GAP, Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, best_smb_step, client_bound, smb_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.rules.disk.alone import CAUSES, NO_SYNC, Alone, forced
from bottleneck.analysis.rules.disk.write import flushed
from bottleneck.analysis.steps import Found
from bottleneck.text.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    *("disk", "sync", "synchronous writes"),
    stays=True,
    remedy=f"{NO_SYNC}, if `sync always` is set there",
)
BELOW_RATIO = 0.7
"""Of the rate of flushing once, at the end: forced writes that cost less explain nothing."""
LOW_RATIO, HIGH_RATIO = 0.75, 1.2
"""How far a copy may be below its turns of link and disk, and above the forced writes alone."""
SELDOM_RATIO = 0.1
"""Share of a push's time that FLUSHes take, up to which they found nothing to do."""
LIKE_RATIO, LIKE_OTHER_RATIO = 1.2, 1.5
"""No push that is not flushed may be so much faster where each write is forced; and in another
dialect, whose requests are longer."""
FASTER_RATIO = 3.0
STEADY_RATIO = 0.3
LEAST_WAIT_SECONDS, LEAST_TRIPS = 0.01, 10.0
LITTLE_BYTES = 64 << 10


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate of forced writes, where the receiver is known to force them and the copy fits."""
    if alone.verb != "write" or alone.given.copy.step is None:
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


def rule(given: Evidence) -> Iterator[Claim]:
    """The server as a push shows it that waits for each WRITE, and that reads do not wait for."""
    made, back = given.step, best_smb_step(given.report, "server")
    if not given.lone or back is None or not _waits(given, back):
        return
    # Forced writes cost more in a dialect whose requests are shorter.
    least = given.rate.median / LIKE_RATIO
    others = (each for each in given.other_dialects if each.rate.median >= least)
    proven = [each for each in (given, *others) if _waits(each, back) and _unflushed_too(each)]
    if not proven:
        return
    shown = max(proven, key=lambda each: each.rate.median)
    waits = seconds_text(made.details.request_seconds_median or 0.0)
    over = "" if shown is given else f"Over {steps.dialect_name(shown.copy.dialect)}, "
    yield claim(
        CAUSE,
        "server",
        made,
        f"each write waits {waits} at the server, while reads run at "
        f"{rate_text(back.rate.median)}: the server seems to write synchronously",
        level=max(given.rate.median, shown.rate.median),
        steps=tuple(dict.fromkeys((made.index, shown.step.index, back.index))),
        standing="inferred",
        reached=None if shown is given else True,
        trust=GAP,
        evidence=(
            f"{over}{'w' if over else 'W'}rites without a flush were as slow, and the final flush "
            "had nothing left to write.",
            "Software on the server that inspects each write can have the same effect. An agent "
            "there (--agent) reads its settings and measures synchronous writes separately.",
        ),
        remedy=CAUSE.remedy,
    )


def _waits(given: Evidence, back: Found) -> bool:
    """Whether each WRITE waits at the server, where a pull is far faster and FLUSHes take no time.

    The server's kernel has everything: the client has nothing left to send.
    """
    told, seen = given.details, flushed(given)
    left = told.sockets.unsent_bytes_median
    idle = told.sockets.by == "sender" and left is not None and left <= LITTLE_BYTES
    least = max(LEAST_WAIT_SECONDS, LEAST_TRIPS * (told.rtt_seconds or 0.0))
    if not idle or client_bound(given.step) or (told.request_seconds_median or 0.0) < least:
        return False
    memory, rate = given.copy.memory, given.rate.median
    if memory is not None and memory.rate.median > LIKE_RATIO * rate:
        return False
    slower = back.rate.median >= FASTER_RATIO * rate
    return slower and seen is not None and seen.ratio <= SELDOM_RATIO


def _unflushed_too(given: Evidence) -> bool:
    """Whether its WRITEs wait from the first one on, flushed or not."""
    rate = given.rate
    if quota.seen_in(given.report) or rate.high - rate.low > STEADY_RATIO * rate.median:
        return False
    # What a push that nobody flushes reached, as much less as it may be faster.
    faster = {True: LIKE_RATIO, False: LIKE_OTHER_RATIO}
    unflushed = [
        each.rate.median / faster[each.setting.dialect == given.copy.dialect]
        for each in smb_steps(given.report, "client")
        if each.step.stage in ("smb-tax", "smb-matrix")
    ]
    return bool(unflushed) and max(unflushed) <= rate.median
