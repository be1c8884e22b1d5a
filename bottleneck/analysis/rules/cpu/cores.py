"""cpu/one-core, all-cores, quota, contention: what the load of the copy says of each host.

Where an end of the copy is this tool's own process (the client's, as a rule), a core that it fills
is the instrument's ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.claim import GAP, SURE, Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import OWN_RATIO, SATURATED_RATIO, SHORTEST_SECONDS, Load, load
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.rules.instrument import ceiling as instrument
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text
from probes.core.records import SIDES

ONE_CORE = Cause("cpu", "one-core", "one core")
ALL_CORES = Cause("cpu", "all-cores", "all cores")
IDLE_RATIO = 0.02
"""Below it a load says nothing of where it would end."""
PARTLY_THROTTLED_RATIO, PARTLY_USED_RATIO = 0.1, 0.4
"""Of its periods and of the quota, from which on it may have held the copy for a part of the time.
"""
TAKEN_DOUBT = 0.3
"""How far off a whole CPU may be: one that is stopped again and again finds its caches cold."""
ROUND_BYTES_PER_SECOND, LEAST_CORES = 1e8, 0.01
"""A rate that a reader can scale, and the least of its cost that is worth a figure."""
QUEUED_RATIO = 0.5
"""CPU time of the busiest thread and time in the run queue, over the copy's: it waits for cores."""
FULL_RATIO = 0.92
"""Least of full cores that counts as used: the ceiling is within a tenth of the copy's own rate."""
PARTLY_BUSY_RATIO = 0.8
"""Less than full on average over a window whose last part waits for the disk."""


def rule(given: Evidence) -> Iterator[Claim | str]:
    """For both hosts: the copy's rate scaled up to a full core, full cores, a full quota.

    They always stand, as estimates; reached is what the load itself shows, at 90 % and more.
    """
    for side in SIDES:
        seen = load_of(given.report, given.step, side)
        if seen is not None:
            yield from _quota(given.step, side, seen)
            if seen.taken:
                yield from _taken(given, side, seen)
                continue
            if _filled(seen):
                yield (
                    f"Other processes filled the {side}'s CPU, but the copy did not wait for them."
                )
            yield from _cores(given, side, seen)


def load_of(report: Report, made: Found, side: str) -> Load | None:
    """A side's load during a step; on one host the other side's work is the copy's as well."""
    seen, its = load(made.usage(side)), made.usage(steps.other(side))
    if seen is None or its is None or not steps.on_one_host(report):
        return seen
    share = its.copy_cpu_seconds / (max(SHORTEST_SECONDS, its.wall_seconds) * seen.cores)
    return replace(
        seen, others_ratio=max(0.0, seen.others_ratio - share), copy_ratio=seen.copy_ratio + share
    )


def _quota(made: Found, side: str, seen: Load) -> Iterator[Claim]:
    if seen.starved:
        waited = percent_text(min(1.0, seen.waiting_ratio or 0.0))
        yield _claim(
            *(quota.CAUSE, made, side, 1.0),
            f"the {side}'s copy processes wait for CPU time although its cores are idle (hidden "
            "quota)",
            f"The copy's processes on the {side} waited for CPU time {waited} of the time, while "
            f"{percent_text(1 - seen.all_cores_ratio)} of its cores were idle.",
            remedy=f"Raise the CPU quota of the {side}'s container or virtual machine",
            detail="hidden CPU quota",
        )
    elif seen.throttled or (seen.quota_used_ratio or 0.0) > IDLE_RATIO:
        cores = "" if seen.quota_cores is None else f"{seen.quota_cores:.2g} cores"
        limit = f" ({cores})" if cores else ""
        stopped, used = seen.throttled_ratio or 0.0, seen.quota_used_ratio or 0.0
        stops = percent_text(stopped)
        partly = stopped >= PARTLY_THROTTLED_RATIO and used >= PARTLY_USED_RATIO
        yield _claim(
            *(quota.CAUSE, made, side, 1.0 if seen.throttled else used),
            f"the {side}'s CPU quota{limit} throttles the copy in {stops} of the "
            "scheduling periods",
            f"The copy used up the {side}'s CPU quota{limit} in {stops} of the periods.",
            partly=partly,
            remedy=_lift(made, side, seen, cores),
            detail=f"limited to {cores}" if cores else "",
        )


def _lift(made: Found, side: str, seen: Load, cores: str) -> str:
    """Where the quota is set and what it is; and what a round rate costs, by this copy's load."""
    where = f"`{seen.quota_file}`" if seen.quota_file else "`cpu.max` of its cgroup"
    remedy = f"Raise the CPU quota on the {side} ({where}{cores and f', now {cores}'})"
    used = seen.copy_ratio * seen.cores
    used = min(used, seen.quota_cores or used)
    needed = used * ROUND_BYTES_PER_SECOND / made.rate.median
    told, rate = LEAST_CORES <= needed <= seen.cores, rate_text(ROUND_BYTES_PER_SECOND)
    return f"{remedy}; {rate} need about {needed:.2g} cores" if told else remedy


def _taken(given: Evidence, side: str, seen: Load) -> Iterator[Claim]:
    """What others leave of the cores; then what all of them would do, which a quota or others take.

    The copy never had them whole: its CPU time for each byte says what they would carry.
    """
    if seen.crowded and not seen.throttled:
        taken = percent_text(seen.others_ratio)
        waits = seen.waiting_ratio
        yield _claim(
            *(quota.CONTENTION, given.step, side, 1.0),
            f"other processes use {taken} of the {side}'s CPU, which is full",
            f"Other processes used {taken} of the {side}'s CPU during the copy.",
            reached=waits is None or seen.process_ratio + waits >= QUEUED_RATIO,
            # The other host's cores may be taken too.
            trust=GAP if given.lone else SURE,
            remedy=quota.FIND_OTHERS.format(side),
        )
    own = min(1.0, seen.copy_ratio)
    free = replace(seen, others_ratio=0.0, all_cores_ratio=own, waiting_ratio=None)
    for each in _cores(given, side, free):
        known = each.ceiling
        low, high = (known.bytes_per_second * (1 + way * TAKEN_DOUBT) for way in (-1, 1))
        wide = replace(known, low_bytes_per_second=low, high_bytes_per_second=high)
        yield replace(each, ceiling=wide, reached=False, partly=False)


def _filled(seen: Load) -> bool:
    """Whether it is others' work that fills the cores."""
    return seen.others_ratio > 0.5 and seen.all_cores_ratio > SATURATED_RATIO


def _cores(given: Evidence, side: str, seen: Load) -> Iterator[Claim]:
    made = given.step
    busy = (
        f"The {side}'s CPU was {percent_text(seen.all_cores_ratio)} busy during the copy; the "
        f"copy's busiest thread used {percent_text(seen.one_core_ratio)} of a core."
    )
    # The busiest thread is this tool's own, and no core is busier with interrupts.
    own_thread = given.copy.by_this_tool(side) and seen.process_ratio >= seen.one_core_ratio
    if own_thread:
        yield from _own(made, side, seen, busy)
    # What others use is not the copy's to grow into.
    used = (seen.all_cores_ratio - seen.others_ratio) / max(IDLE_RATIO, 1 - seen.others_ratio)
    own = seen.cores == 1 and own_thread and seen.process_ratio >= SATURATED_RATIO
    # What is missing to all of full cores is no room: another copy's faster moment refutes nothing.
    used = max(used, SATURATED_RATIO) if seen.full else used
    if used > IDLE_RATIO and not _filled(seen) and not own:
        count = "1 core" if seen.cores == 1 else f"{seen.cores} cores"
        yield _claim(
            *(ALL_CORES, made, side, used),
            f"the {side}'s CPU is {percent_text(min(1.0, seen.all_cores_ratio))} busy ({count})",
            busy,
            reached=seen.full,
            # Full by what nobody counted: that the copy waits is sure, for whose work is not.
            trust=SURE if seen.copy_ratio >= OWN_RATIO else GAP,
            partly=_partly(seen, used),
        )
    if seen.cores > 1 and seen.one_core_ratio > IDLE_RATIO and not own_thread:
        yield _claim(
            *(ONE_CORE, made, side, seen.one_core_ratio),
            f"the copy keeps one of the {side}'s {seen.cores} cores "
            f"{percent_text(min(1.0, seen.one_core_ratio))} busy",
            busy,
            partly=_partly(seen, seen.one_core_ratio),
        )


def _own(made: Found, side: str, seen: Load, busy: str) -> Iterator[Claim]:
    """This tool's own thread, where it is the busiest; of an only core where it fills that."""
    least = IDLE_RATIO if seen.cores > 1 else SATURATED_RATIO
    if seen.process_ratio < least:
        return
    share = percent_text(min(1.0, seen.process_ratio))
    full = seen.process_ratio >= SATURATED_RATIO
    used = "all of one core" if full else f"{share} of one core"
    yield _claim(
        *(instrument.CAUSE, made, side, seen.process_ratio),
        f"this tool itself uses {used} on the {side}, so no other component can be named",
        busy,
        partly=_partly(seen, seen.process_ratio),
    )


def _partly(seen: Load, used_ratio: float) -> bool:
    own = seen.copy_ratio * seen.cores >= OWN_RATIO
    return own and used_ratio >= PARTLY_BUSY_RATIO


def _claim(
    cause: Cause,
    made: Found,
    side: str,
    used_ratio: float,
    words: str,
    evidence: str,
    *,
    reached: bool | None = None,
    trust: float = SURE,
    partly: bool = False,
    remedy: str = "",
    detail: str = "",
) -> Claim:
    full = FULL_RATIO if used_ratio >= SATURATED_RATIO else 0.0
    scale = 1 / min(1.0, max(used_ratio, full))
    return claim(
        cause,
        side,
        made,
        words,
        level=made.rate.median * scale,
        low=made.rate.low * scale,
        high=made.rate.high * scale,
        standing="estimated",
        reached=used_ratio >= SATURATED_RATIO if reached is None else reached,
        trust=trust,
        partly=partly,
        evidence=(evidence,),
        remedy=remedy,
        detail=detail,
    )
