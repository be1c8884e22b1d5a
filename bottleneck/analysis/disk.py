"""Rule disk/read and disk/write: the sender's disk for uncached copies, the receiver's for all."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.load import hindrance, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, rate_text

BUSY_RATIO = 0.5
_DOES = {"read": "reads", "write": "writes"}


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What each disk on the copy's way reads or writes in sequence.

    A cached copy's source comes from RAM; every copy is flushed to the receiver's disk.
    """
    if copy.cache == "uncached":
        yield from _disk(report, copy, copy.sender, "read")
    yield from _disk(report, copy, copy.receiver, "write")


def _disk(report: Report, copy: Copy, side: str, verb: str) -> Iterator[Claim | str]:
    found = [each for each in steps.measured(report, "disk") if _is(each, side, verb)]
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
    limited = hindrance(load(best.usage(side)), side)
    rate = best.rate
    if limited:
        yield (
            f"The {side}'s disk {_DOES[verb]} {rate_text(rate.median)}, measured while {limited}: "
            "the disk may do more."
        )
    yield Claim(
        Ceiling(
            component="disk",
            side=side,
            cause=verb,
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(best.index,),
            standing="at-least" if limited else "measured",
        ),
        words=f"the {side}'s disk {_DOES[verb]} no faster than {rate_text(rate.median)}",
        evidence=tuple(_evidence(best, copy, side, verb)),
    )


def _elsewhere(made: Found) -> bool:
    """Whether the client's end of a copy may be on another disk than its folder."""
    return steps.flag(made.outcome.details, "on_folder_disk") is False


def _is(found: Found, side: str, verb: str) -> bool:
    setting = found.step.setting
    same = steps.word(setting, "side") == side and steps.word(setting, "verb") == verb
    # A write is flushed whatever its cache is called; a read counts only past the cache.
    return same and (verb == "write" or steps.word(setting, "cache") == "uncached")


def _evidence(best: Found, copy: Copy, side: str, verb: str) -> Iterator[str]:
    how = "past the page cache (proven)" if verb == "read" else "flushed at the end"
    rate = rate_text(best.rate.median)
    yield f"Alone, the {side}'s disk {_DOES[verb]} {rate} in sequence, {how}."
    usage = copy.made and copy.made.usage(side)
    # A device that is throttled in front of its queue seems idle: that would say nothing.
    if usage and usage.device_busy_ratio is not None and usage.device_busy_ratio > BUSY_RATIO:
        busy = percent_text(min(1.0, usage.device_busy_ratio))
        yield f"The {side}'s disk had I/O in flight {busy} of the copy."
