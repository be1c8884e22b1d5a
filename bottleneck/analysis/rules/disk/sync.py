"""disk/sync: each write is forced to the disk before the next one is made.

Sources: smb.conf(5), sync always; mount(8), sync. The disk's pattern `synced` measures its cost:
one write, then fdatasync(2), then the next. Without an agent it shows in pushes: such a server has
nothing left to FLUSH, because each WRITE waits instead, and READs do not.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import model, steps
from bottleneck.analysis.claim import GAP, Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, best_smb_step, is_client_bound, smb_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.rules.disk.alone import CAUSES, NO_SYNC, DiskTest, forcing_setting
from bottleneck.analysis.rules.disk.write import flush_times
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.text.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    "disk",
    "sync",
    "synchronous writes",
    limits_without_fault=True,
    remedy=f"{NO_SYNC}, if `sync always` is set there",
)
BELOW_RATIO = 0.7
"""Most rate of forced writes / rate with one final flush at which forced writes are the limit."""
LOW_RATIO, HIGH_RATIO = 0.75, 1.2
"""Copy's rate: least, over link and forced writes in turn; most, over forced writes."""
SELDOM_RATIO = 0.1
"""Most share of a push's time in FLUSHes that had nothing to write."""
LIKE_RATIO, LIKE_OTHER_RATIO = 1.2, 1.5
"""Most push without a flush / copy at which its writes may be forced; in another dialect."""
FASTER_RATIO = 3.0
STEADY_RATIO = 0.3
LEAST_WAIT_SECONDS, LEAST_TRIPS = 0.01, 10.0
LITTLE_BYTES = 64 << 10


def claims(test: DiskTest) -> Iterator[Claim]:
    """Yields the rate of forced writes, if the receiver's settings force them and the copy fits."""
    if test.verb != "write" or test.evidence.copy.step is None:
        return
    setting = forcing_setting(test.evidence, test.side)
    synced = steps.fastest(disk_steps(test.report, test.side, "write", "synced"))
    if setting is None or synced is None or synced.rate.median > BELOW_RATIO * test.rate:
        return
    rate, level = test.evidence.rate.median, synced.rate.median
    # Link and forced writes one after the other, as smbd does them on one connection.
    link = test.evidence.path_rate
    turns = model.in_turn((link, level)) if link else level
    if not LOW_RATIO * turns <= rate <= HIGH_RATIO * level:
        return
    yield claim(
        CAUSE,
        test.side,
        synced,
        f"{test.disk} takes at most {rate_text(level)} of synchronous writes ({setting.text})",
        level=max(level, min(rate, HIGH_RATIO * level)),
        high=max(synced.rate.high, rate),
        reached=True,
        evidence=(_evidence(test, synced),),
        remedy=setting.remedy,
        detail=setting.detail,
    )
    words = f"{test.disk} writes at most {rate_text(test.rate)}"
    yield claim(CAUSES["write"], test.side, test.best, words)


def _evidence(test: DiskTest, synced: MeasuredStep) -> str:
    size, seconds = synced.disk.request_bytes, synced.disk.sync_seconds.median
    each = "" if size is None else f" of {size_text(size)}"
    waits = "" if seconds is None else f", {seconds_text(seconds)} each"
    return (
        f"By itself, {test.disk} wrote {rate_text(synced.rate.median)} in synchronous writes"
        f"{each}{waits}, and {rate_text(test.rate)} with one final flush."
    )


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the server's forced writes, if WRITEs of a push wait for it and READs do not."""
    step, back = evidence.step, best_smb_step(evidence.report, "server")
    if not evidence.sees_client_only or back is None or not _waits(evidence, back):
        return
    # Forced writes cost more in a dialect whose requests are shorter.
    threshold = evidence.rate.median / LIKE_RATIO
    others = (each for each in evidence.other_dialects if each.rate.median >= threshold)
    proven = [e for e in (evidence, *others) if _waits(e, back) and _writes_wait_unflushed(e)]
    if not proven:
        return
    proof = max(proven, key=lambda each: each.rate.median)
    waits = seconds_text(step.details.request_seconds_median or 0.0)
    over = "" if proof is evidence else f"Over {steps.dialect_name(proof.copy.dialect)}, "
    yield claim(
        CAUSE,
        "server",
        step,
        f"each write waits {waits} at the server, while reads run at "
        f"{rate_text(back.rate.median)}: the server seems to write synchronously",
        level=max(evidence.rate.median, proof.rate.median),
        steps=tuple(dict.fromkeys((step.index, proof.step.index, back.index))),
        standing="inferred",
        reached=None if proof is evidence else True,
        trust=GAP,
        evidence=(
            f"{over}{'w' if over else 'W'}rites without a flush were as slow, and the final flush "
            "had nothing left to write.",
            "Software on the server that inspects each write can have the same effect. An agent "
            "there (--agent) reads its settings and measures synchronous writes separately.",
        ),
        remedy=CAUSE.remedy,
    )


def _waits(evidence: Evidence, back: MeasuredStep) -> bool:
    """Whether each WRITE waits at the server, while a pull is far faster and FLUSHes take no time.

    The server's kernel has received everything: the client has nothing more to send.
    """
    details, flush = evidence.details, flush_times(evidence)
    unsent = details.sockets.unsent_bytes_median
    idle = details.sockets.by == "sender" and unsent is not None and unsent <= LITTLE_BYTES
    threshold = max(LEAST_WAIT_SECONDS, LEAST_TRIPS * (details.rtt_seconds or 0.0))
    wait = details.request_seconds_median or 0.0
    if not idle or is_client_bound(evidence.step) or wait < threshold:
        return False
    memory, rate = evidence.copy.memory, evidence.rate.median
    if memory is not None and memory.rate.median > LIKE_RATIO * rate:
        return False
    slower = back.rate.median >= FASTER_RATIO * rate
    return slower and flush is not None and flush.ratio <= SELDOM_RATIO


def _writes_wait_unflushed(evidence: Evidence) -> bool:
    """Whether a push's WRITEs wait from the first one on, with or without a FLUSH."""
    rate = evidence.rate
    if quota.shows_quota(evidence.report) or rate.high - rate.low > STEADY_RATIO * rate.median:
        return False
    # Rates of pushes without a flush, divided by the factor that they may be faster.
    faster = {True: LIKE_RATIO, False: LIKE_OTHER_RATIO}
    unflushed = [
        each.rate.median / faster[each.setting.dialect == evidence.copy.dialect]
        for each in smb_steps(evidence.report, "client")
        if each.plan.stage in ("smb-tax", "smb-matrix")
    ]
    return bool(unflushed) and max(unflushed) <= rate.median
