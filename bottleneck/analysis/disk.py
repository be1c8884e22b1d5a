"""Rules of the disk: what caps it, by its cause, one at a time.

The sender's disk for uncached copies, the receiver's for all. In this order of proof: the host's
own swap, others' I/O (contention), fragments (seek), the place on the disc (zone), forced writes
(sync), the link that the disk hangs on; else the disk itself (read, write).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bottleneck.analysis import (
    cache_size,
    disk_contention,
    disk_link,
    disk_seek,
    disk_sync,
    disk_zone,
    steps,
    swap,
)
from bottleneck.analysis.disk_alone import DOES, Alone
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text

BUSY_RATIO = 0.5
AT_LIMIT_RATIO = 0.1

CAUSES: tuple[Callable[[Alone], Iterator[Claim]], ...] = (
    swap.claims,
    disk_contention.claims,
    disk_seek.claims,
    disk_zone.claims,
    disk_sync.claims,
    disk_link.claims,
)
"""The first that says something is believed, and the others are not asked."""


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What each disk on the copy's way reads or writes in sequence, and what keeps it there.

    A cached copy's source comes from RAM, if not seen to come from the disk; every copy is flushed
    to the receiver's disk.
    """
    if copy.cache == "uncached" or cache_size.from_disk(copy):
        yield from _disk(report, copy, copy.sender, "read")
    yield from _disk(report, copy, copy.receiver, "write")


def _disk(report: Report, copy: Copy, side: str, verb: str) -> Iterator[Claim | str]:
    wanted = "file" if verb == "read" and copy.of_file else "sequential"
    found = [
        each
        for each in disk_steps(report, side, verb, wanted)
        # A write is flushed whatever its cache is called; a read counts only past the cache.
        if verb == "write" or steps.word(each.step.setting, "cache") == "uncached"
    ]
    if found and side == "client" and copy.made and _elsewhere(copy.made):
        yield (
            "The client's disk is not used: the share of --client-share is not known to lie on the "
            "disk that was measured."
        )
        return
    if verb == "read":
        proven = [each for each in found if steps.flag(each.outcome.details, "cache", "proven")]
        if found and not proven:
            yield (
                f"The {side}'s disk read is not used: that it came from the disk and not from RAM "
                "could not be proven."
            )
        found = proven
    best = max(found, key=lambda each: each.rate.median, default=None)
    if best is None:
        return
    alone = Alone(report, copy, side, verb, best)
    limited = hindrance(load(best.usage(side)), side)
    if limited:
        yield (
            f"The {side}'s disk {DOES[verb]} {rate_text(alone.rate)}, measured while {limited}: "
            "the disk may do more."
        )
    else:
        for cause in CAUSES:
            named = list(cause(alone))
            if named:
                yield from named
                return
    ceiling = alone.ceiling(verb, "at-least" if limited else "measured")
    group = _group(alone)
    yield Claim(
        ceiling,
        words=f"the {side}'s disk {DOES[verb]} {_what(copy, verb)}{rate_text(alone.rate)}",
        evidence=tuple(_evidence(alone)),
        remedy=f"A higher limit of the control group {group} for the disk" if group else "",
    )


def _group(alone: Alone) -> str | None:
    """The control group whose limit on the device is the rate that was measured; None: none is."""
    told = alone.best.outcome.details.get("limits")
    limit = steps.positive(told, f"{alone.verb}_bytes_per_second")
    if limit is None or abs(alone.rate / limit - 1) > AT_LIMIT_RATIO:
        return None
    return steps.word(told, "group") or "that it runs in"


def _what(copy: Copy, verb: str) -> str:
    return "this file no faster than " if verb == "read" and copy.of_file else "no faster than "


def _elsewhere(made: Found) -> bool:
    """Whether the client's end of a copy may be on another disk than its folder."""
    return steps.flag(made.outcome.details, "on_folder_disk") is False


def _evidence(alone: Alone) -> Iterator[str]:
    copy, side, verb = alone.copy, alone.side, alone.verb
    how = "past the page cache (proven)" if verb == "read" else "flushed at the end"
    what = "this file at " if verb == "read" and copy.of_file else ""
    yield (
        f"Alone, the {side}'s disk {DOES[verb]} {what}{rate_text(alone.rate)} in sequence, {how}."
    )
    group = _group(alone)
    if group is not None:
        yield (
            f"That is what the control group {group} may {verb}: its limit, and not the disk's own."
        )
    why = disk_sync.forced(alone.report, side) if verb == "write" else None
    if why is not None:
        yield f"Each write is forced to the {side}'s disk: {why}."
    usage = copy.made and copy.made.usage(side)
    # A device that is throttled in front of its queue seems idle: that would say nothing.
    if usage and usage.device_busy_ratio is not None and usage.device_busy_ratio > BUSY_RATIO:
        busy = percent_text(min(1.0, usage.device_busy_ratio))
        yield f"The {side}'s disk had I/O in flight {busy} of the copy."
