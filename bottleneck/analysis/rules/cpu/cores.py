"""cpu/one-core, all-cores, quota, contention: limits of each host's CPU by the copy's load.

If an end of the copy is this tool's own process (usually the client's), a core that it fills is the
instrument's ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from bottleneck.analysis import steps
from bottleneck.analysis.claim import GAP, SURE, Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import OWN_RATIO, SATURATED_RATIO, SHORTEST_SECONDS, Load, load
from bottleneck.analysis.rules import instrument
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text
from probes.core.records import SIDES

ONE_CORE = Cause("cpu", "one-core", "one core")
ALL_CORES = Cause("cpu", "all-cores", "all cores")
IDLE_RATIO = 0.02
"""Load too small to be scaled up to a full CPU."""
PARTLY_THROTTLED_RATIO, PARTLY_USED_RATIO = 0.1, 0.4
"""Least share of stopped periods, and of the quota, that may have limited a part of the copy."""
TAKEN_DOUBT = 0.3
"""Error of a whole CPU's limit, as a ratio: one that is stopped repeatedly has cold caches."""
ROUND_BYTES_PER_SECOND, LEAST_CORES = 1e8, 0.01
"""Rate that a reader can scale, and the least number of cores for it that is stated."""
QUEUED_RATIO = 0.5
"""CPU time of the busiest thread and its time in the run queue, over the copy's: it waits."""
FULL_RATIO = 0.92
"""Least use of full cores: the ceiling is within a tenth of the copy's own rate."""
PARTLY_BUSY_RATIO = 0.8
"""Use of a core that is full except for the last part of the copy, which waits for the disk."""


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields for both hosts the copy's rate scaled up to a full core, full cores, a full quota.

    These are estimates; a limit is reached if the load itself is 90 % or more.
    """
    for side in SIDES:
        cpu = load_of(evidence.report, evidence.step, side)
        if cpu is not None:
            yield from _quota(evidence.step, side, cpu)
            if cpu.is_deprived:
                yield from _claims_beside_others(evidence, side, cpu)
                continue
            if _others_fill_cores(cpu):
                yield (
                    f"Other processes filled the {side}'s CPU, but the copy did not wait for them."
                )
            yield from _cores(evidence, side, cpu)


def load_of(report: Report, step: MeasuredStep, side: str) -> Load | None:
    """Returns a side's load during a step; on one host the other side's work is the copy's, too."""
    cpu, other = load(step.usage(side)), step.usage(steps.other(side))
    if cpu is None or other is None or not steps.on_one_host(report):
        return cpu
    share = other.copy_cpu_seconds / (max(SHORTEST_SECONDS, other.wall_seconds) * cpu.cores)
    return replace(
        cpu, others_ratio=max(0.0, cpu.others_ratio - share), copy_ratio=cpu.copy_ratio + share
    )


def _quota(step: MeasuredStep, side: str, cpu: Load) -> Iterator[Claim]:
    claim_of = partial(_claim, step, side)
    if cpu.is_starved:
        waited = percent_text(min(1.0, cpu.waiting_ratio or 0.0))
        yield claim_of(
            quota.CAUSE,
            1.0,
            f"the {side}'s copy processes wait for CPU time although its cores are idle (hidden "
            "quota)",
            f"The copy's processes on the {side} waited for CPU time {waited} of the time, while "
            f"{percent_text(1 - cpu.all_cores_ratio)} of its cores were idle.",
            remedy=f"Raise the CPU quota of the {side}'s container or virtual machine",
            detail="hidden CPU quota",
        )
    elif cpu.is_throttled or (cpu.quota_used_ratio or 0.0) > IDLE_RATIO:
        cores = "" if cpu.quota_cores is None else f"{cpu.quota_cores:.2g} cores"
        limit = f" ({cores})" if cores else ""
        stopped, used = cpu.throttled_ratio or 0.0, cpu.quota_used_ratio or 0.0
        stops = percent_text(stopped)
        yield claim_of(
            quota.CAUSE,
            1.0 if cpu.is_throttled else used,
            f"the {side}'s CPU quota{limit} throttles the copy in {stops} of the "
            "scheduling periods",
            f"The copy used up the {side}'s CPU quota{limit} in {stops} of the periods.",
            partly=stopped >= PARTLY_THROTTLED_RATIO and used >= PARTLY_USED_RATIO,
            remedy=_lift(step, side, cpu, cores),
            detail=f"limited to {cores}" if cores else "",
        )


def _lift(step: MeasuredStep, side: str, cpu: Load, cores: str) -> str:
    """Returns how to raise the quota, and how many cores a round rate needs by this copy's load."""
    where = f"`{cpu.quota_file}`" if cpu.quota_file else "`cpu.max` of its cgroup"
    remedy = f"Raise the CPU quota on the {side} ({where}{cores and f', now {cores}'})"
    used = cpu.copy_ratio * cpu.cores
    used = min(used, cpu.quota_cores or used)
    needed = used * ROUND_BYTES_PER_SECOND / step.rate.median
    is_useful, rate = LEAST_CORES <= needed <= cpu.cores, rate_text(ROUND_BYTES_PER_SECOND)
    return f"{remedy}; {rate} need about {needed:.2g} cores" if is_useful else remedy


def _claims_beside_others(evidence: Evidence, side: str, cpu: Load) -> Iterator[Claim]:
    """Yields the rate that others leave of the cores, and the estimated rate of all cores.

    The copy never had all of the cores: the estimate follows from its CPU time per byte.
    """
    claim_of = partial(_claim, evidence.step, side)
    if cpu.is_crowded and not cpu.is_throttled:
        taken = percent_text(cpu.others_ratio)
        waits = cpu.waiting_ratio
        yield claim_of(
            quota.CONTENTION,
            1.0,
            f"other processes use {taken} of the {side}'s CPU, which is full",
            f"Other processes used {taken} of the {side}'s CPU during the copy.",
            reached=waits is None or cpu.process_ratio + waits >= QUEUED_RATIO,
            # The other host's cores may be taken too.
            trust=GAP if evidence.sees_client_only else SURE,
            remedy=quota.FIND_OTHERS.format(side),
        )
    used = min(1.0, cpu.copy_ratio)
    free = replace(cpu, others_ratio=0.0, all_cores_ratio=used, waiting_ratio=None)
    for each in _cores(evidence, side, free):
        ceiling = each.ceiling
        low, high = (ceiling.bytes_per_second * (1 + way * TAKEN_DOUBT) for way in (-1, 1))
        wide = replace(ceiling, low_bytes_per_second=low, high_bytes_per_second=high)
        yield replace(each, ceiling=wide, reached=False, partly=False)


def _others_fill_cores(cpu: Load) -> bool:
    return cpu.others_ratio > 0.5 and cpu.all_cores_ratio > SATURATED_RATIO


def _cores(evidence: Evidence, side: str, cpu: Load) -> Iterator[Claim]:
    step, claim_of = evidence.step, partial(_claim, evidence.step, side)
    busy = (
        f"The {side}'s CPU was {percent_text(cpu.all_cores_ratio)} busy during the copy; the "
        f"copy's busiest thread used {percent_text(cpu.one_core_ratio)} of a core."
    )
    # The busiest thread is this tool's own, and no core is busier with interrupts.
    own_thread = evidence.copy.is_by_this_tool(side) and cpu.process_ratio >= cpu.one_core_ratio
    if own_thread:
        yield from _tool_claims(step, side, cpu, busy)
    # The copy cannot grow into others' share.
    used = (cpu.all_cores_ratio - cpu.others_ratio) / max(IDLE_RATIO, 1 - cpu.others_ratio)
    is_filled = cpu.cores == 1 and own_thread and cpu.process_ratio >= SATURATED_RATIO
    # Full cores that are not quite busy have no room: a faster copy at another time proves none.
    used = max(used, SATURATED_RATIO) if cpu.is_full else used
    if used > IDLE_RATIO and not _others_fill_cores(cpu) and not is_filled:
        count = "1 core" if cpu.cores == 1 else f"{cpu.cores} cores"
        yield claim_of(
            ALL_CORES,
            used,
            f"the {side}'s CPU is {percent_text(min(1.0, cpu.all_cores_ratio))} busy ({count})",
            busy,
            reached=cpu.is_full,
            # If uncounted work fills the cores, the copy's wait is certain, but not its cause.
            trust=SURE if cpu.copy_ratio >= OWN_RATIO else GAP,
            partly=_may_limit_partly(cpu, used),
        )
    if cpu.cores > 1 and cpu.one_core_ratio > IDLE_RATIO and not own_thread:
        yield claim_of(
            ONE_CORE,
            cpu.one_core_ratio,
            f"the copy keeps one of the {side}'s {cpu.cores} cores "
            f"{percent_text(min(1.0, cpu.one_core_ratio))} busy",
            busy,
            partly=_may_limit_partly(cpu, cpu.one_core_ratio),
        )


def _tool_claims(step: MeasuredStep, side: str, cpu: Load, busy: str) -> Iterator[Claim]:
    """Yields the limit of this tool's own busiest thread; on a single core only if it is full."""
    threshold = IDLE_RATIO if cpu.cores > 1 else SATURATED_RATIO
    if cpu.process_ratio < threshold:
        return
    share = percent_text(min(1.0, cpu.process_ratio))
    used = "all of one core" if cpu.process_ratio >= SATURATED_RATIO else f"{share} of one core"
    yield _claim(
        step,
        side,
        instrument.CAUSE,
        cpu.process_ratio,
        f"this tool itself uses {used} on the {side}, so no other component can be named",
        busy,
        partly=_may_limit_partly(cpu, cpu.process_ratio),
    )


def _may_limit_partly(cpu: Load, used_ratio: float) -> bool:
    return cpu.copy_ratio * cpu.cores >= OWN_RATIO and used_ratio >= PARTLY_BUSY_RATIO


def _claim(
    step: MeasuredStep,
    side: str,
    cause: Cause,
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
        step,
        words,
        level=step.rate.median * scale,
        low=step.rate.low * scale,
        high=step.rate.high * scale,
        standing="estimated",
        reached=used_ratio >= SATURATED_RATIO if reached is None else reached,
        trust=trust,
        partly=partly,
        evidence=(evidence,),
        remedy=remedy,
        detail=detail,
    )
