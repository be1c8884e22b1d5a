"""Rule disk/sync: each write is forced to the disk before the next one is made.

Sources: smb.conf(5), sync always; mount(8), sync. What it costs is measured by the disk's pattern
`synced`, which does the same: one write, then fdatasync(2), then the next.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import model, steps
from bottleneck.analysis.disk_alone import Alone
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, seconds_text, size_text

BELOW_RATIO = 0.7
"""Of the rate of flushing once, at the end: forced writes that cost less explain nothing."""
LOW_RATIO, HIGH_RATIO = 0.75, 1.2
"""How far a copy may be below its turns of link and disk, and above the forced writes alone."""
TRUST = 0.9


def claims(alone: Alone) -> Iterator[Claim]:
    """The rate of forced writes, where the receiver is known to force them and the copy fits."""
    if alone.verb != "write" or alone.copy.made is None:
        return
    why = forced(alone.report, alone.side)
    synced = max(
        disk_steps(alone.report, alone.side, "write", "synced"),
        key=lambda each: each.rate.median,
        default=None,
    )
    if why is None or synced is None or synced.rate.median > BELOW_RATIO * alone.rate:
        return
    rate, level = alone.copy.made.rate.median, synced.rate.median
    turns = _in_turn(alone, level)
    if not LOW_RATIO * turns <= rate <= HIGH_RATIO * level:
        return
    ceiling = replace(
        alone.ceiling("sync"),
        bytes_per_second=max(level, min(rate, HIGH_RATIO * level)),
        low_bytes_per_second=synced.rate.low,
        high_bytes_per_second=max(synced.rate.high, rate),
        steps=(synced.index,),
    )
    yield Claim(
        ceiling,
        words=(
            f"each write is forced to {alone.disk} before the next ({why}), which takes no more "
            f"than {rate_text(level)} that way"
        ),
        reached=True,
        trust=TRUST,
        evidence=tuple(_evidence(alone, synced)),
        remedy=_remedy(alone, why),
    )
    yield Claim(
        alone.ceiling("write"),
        words=f"{alone.disk} writes no faster than {rate_text(alone.rate)}",
    )


def forced(report: Report, side: str) -> str | None:
    """What makes a side's disk force each write, as it is set; None: nothing that is known."""
    host = report.client if side == "client" else report.server
    if side == "server":
        for each in steps.items(report.target, "smb_conf"):
            if steps.word(each, "option") == "sync always":
                return "sync always = yes in smb.conf"
    options = host.folder.mount_options if host is not None and host.folder is not None else None
    if "sync" in (options or "").split(","):
        return "its file system is mounted with sync"
    return None


def _in_turn(alone: Alone, level: float) -> float:
    """Link and forced writes one after the other, as smbd does them on one connection."""
    link = [
        found.rate.median
        for found in steps.measured(alone.report, "tcp")
        if steps.sender(steps.word(found.step.setting, "verb") or "", found.step.initiator)
        == alone.copy.sender
    ]
    return model.in_turn((max(link), level)) if link else level


def _evidence(alone: Alone, synced: Found) -> Iterator[str]:
    told = synced.outcome.details
    size, seconds = (
        steps.positive(told, "request_bytes"),
        steps.positive(told, "sync_seconds", "median"),
    )
    each = "" if size is None else f" of {size_text(size)}"
    waits = "" if seconds is None else f", {seconds_text(seconds)} of waiting each"
    yield (
        f"Alone, {alone.disk} writes {rate_text(synced.rate.median)} in forced writes{each}{waits},"
        f" and {rate_text(alone.rate)} flushed once at the end."
    )


def _remedy(alone: Alone, why: str) -> str:
    if "smb.conf" in why:
        return (
            "sync always = no in the server's smb.conf (clients still flush when they ask for it; "
            "a power cut may take what was not flushed)"
        )
    return f"The {alone.side}'s file system mounted without sync (programs still flush what has to)"
