"""What caps a disk that was measured alone, by its cause, one at a time.

The sender's disk for uncached copies, the receiver's for all. In this order of proof: the host's
own swap, others' I/O (contention), fragments (seek), the place on the disc (zone), forced writes
(sync), the link that the disk hangs on; else the disk itself (read, write).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.claim import claim
from bottleneck.analysis.disk_alone import CAUSES, DOES, Alone
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.rules.bus import links
from bottleneck.analysis.rules.disk import contention, seek, sync, zone
from bottleneck.analysis.rules.memory import cache_size, swap
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text

BUSY_RATIO = 0.5
AT_LIMIT_RATIO = 0.1

BEHIND: tuple[Callable[[Alone], Iterator[Claim]], ...] = (
    swap.claims,
    contention.claims,
    seek.claims,
    zone.claims,
    sync.claims,
    links.claims,
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
        if verb == "write" or each.setting.cache == "uncached"
    ]
    made = copy.made
    if found and side == "client" and made and made.details.on_folder_disk is False:
        yield (
            "The client's disk is not used: the share of --client-share is not known to lie on the "
            "disk that was measured."
        )
        return
    if verb == "read":
        proven = [each for each in found if each.disk.cache.proven]
        if found and not proven:
            yield (
                f"The {side}'s disk read is not used: that it came from the disk and not from RAM "
                "could not be proven."
            )
        found = proven
    best = steps.fastest(found)
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
        for behind in BEHIND:
            named = list(behind(alone))
            if named:
                yield from named
                return
    group = _group(alone)
    what = "this file " if verb == "read" and copy.of_file else ""
    yield claim(
        CAUSES[verb],
        side,
        best,
        f"the {side}'s disk {DOES[verb]} {what}no faster than {rate_text(alone.rate)}",
        standing="at-least" if limited else "measured",
        evidence=tuple(_evidence(alone, group)),
        remedy=f"A higher limit of the control group {group} for the disk" if group else "",
    )


def _group(alone: Alone) -> str | None:
    """The control group whose limit on the device is the rate that was measured; None: none is."""
    told = alone.best.disk.limits
    reads = alone.verb == "read"
    limit = told.read_bytes_per_second if reads else told.write_bytes_per_second
    if limit is None or abs(alone.rate / limit - 1) > AT_LIMIT_RATIO:
        return None
    return told.group or "that it runs in"


def _evidence(alone: Alone, group: str | None) -> Iterator[str]:
    copy, side, verb = alone.copy, alone.side, alone.verb
    how = "past the page cache (proven)" if verb == "read" else "flushed at the end"
    what = "this file at " if verb == "read" and copy.of_file else ""
    yield (
        f"Alone, the {side}'s disk {DOES[verb]} {what}{rate_text(alone.rate)} in sequence, {how}."
    )
    if group is not None:
        yield (
            f"That is what the control group {group} may {verb}: its limit, and not the disk's own."
        )
    why = sync.forced(alone.report, side) if verb == "write" else None
    if why is not None:
        yield f"Each write is forced to the {side}'s disk: {why}."
    usage = copy.made and copy.made.usage(side)
    # A device that is throttled in front of its queue seems idle: that would say nothing.
    if usage and usage.device_busy_ratio is not None and usage.device_busy_ratio > BUSY_RATIO:
        busy = percent_text(min(1.0, usage.device_busy_ratio))
        yield f"The {side}'s disk had I/O in flight {busy} of the copy."
