"""SHOWN facts: rates of other transfers through the components that they share with a copy."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.evidence.copies import smb_steps
from bottleneck.analysis.facts.record import NETWORK, SHOWN, Fact, Level, Part, each_part
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report

OTHER_WAY_RATIO = 0.6
"""Share of a CPU's rate in one direction that it reaches at least in the other."""
AS_FEW_RATIO = 1.5
"""Most ratio of bytes in flight at which another transfer uses SMB like the copy."""
CPUS: tuple[Part, Part] = ("cpu", "client"), ("cpu", "server")


def transfer_facts(report: Report, copy: Copy) -> Iterator[Fact]:
    """Yields the rates of other copies and request tests through a copy's components."""
    copy_index = None if copy.step is None else copy.step.index
    for step in smb_steps(report, copy.sender, copy.initiator):
        if step.index == copy_index or hardware_limits.impossible(report, step) is not None:
            continue
        name = step.setting.copy or f"{step.plan.stage} {step.setting.verb}"
        ends = " without a disk" if step.setting.end == "memory" else ""
        by = (
            f" with {step.setting.engine}" if step.setting.engine not in (None, copy.engine) else ""
        )
        level = Level(step.rate.low, step.rate.median, step.rate.high)
        parts = _shared_parts(report, copy, step)
        words, is_twin = f"{name}{ends}{by}", _is_twin(report, copy, step)
        yield from each_part(parts, SHOWN, level, words, step.index, is_twin=is_twin)
    for step in smb_steps(report, copy.receiver, copy.initiator):
        if hardware_limits.impossible(report, step) is None and step.setting.end != "memory":
            name = step.setting.copy or f"{step.plan.stage} {step.setting.verb}"
            level = Level.with_spread(OTHER_WAY_RATIO * step.rate.median)
            words = f"{OTHER_WAY_RATIO:.0%} of {name} the other way"
            yield from each_part(_cpus(copy, step), SHOWN, level, words, step.index)


def _is_twin(report: Report, copy: Copy, step: MeasuredStep) -> bool:
    """Whether a transfer differs from a copy in nothing but the parts that it lacks."""
    if step.plan.stage != "smb-copy" or is_supplied(report):
        return step.plan.stage == "smb-copy"
    is_second = step.setting.end == "memory" and "uncached" in step.setting.copy
    if is_second and not step.details.cache.proven:
        return False  # the second copy of its file may come from the cache
    return _is_same_program(copy, step) and (
        copy.cache == "cached" or "uncached" in step.setting.copy or _is_cold(copy)
    )


def _is_cold(copy: Copy) -> bool:
    """Whether an uncached copy's source was proven, or is likely, to come from a disk."""
    cache = None if copy.step is None else copy.step.details.cache
    return cache is not None and bool(cache.proven or cache.cold_source)


def _is_same_program(copy: Copy, step: MeasuredStep) -> bool:
    same_engine = (step.setting.engine or steps.OWN) == copy.engine
    return same_engine and step.setting.dialect in (copy.dialect, None)


def _in_flight(step: MeasuredStep) -> float:
    """Returns the bytes in flight at a step's best, as far as it tells; 0: unknown."""
    cells = [each for each in step.details.cells if each.bytes_per_second]
    best = max(cells, key=lambda cell: cell.bytes_per_second or 0.0, default=None)
    if best is None:
        return step.details.in_flight_bytes or 0.0
    return (best.request_bytes or 0.0) * (best.depth or 0.0)


def _cpus(copy: Copy, step: MeasuredStep) -> Iterator[Part]:
    """Yields the CPUs that another transfer shows: a mount takes its own time for each byte."""
    is_apart = copy.is_native and step.plan.stage.startswith("smb-")
    yield from (each for each in CPUS if not is_apart or each[1] != copy.initiator)


def _shared_parts(report: Report, copy: Copy, step: MeasuredStep) -> Iterator[Part]:
    """Yields the components that another transfer passes as a copy does.

    Another program or dialect has its own way to use SMB, which is not shared.
    """
    supplied, is_copy = is_supplied(report), step.plan.stage == "smb-copy"
    by_this_tool = (step.setting.engine in (None, steps.OWN)) == (copy.engine == steps.OWN)
    yield NETWORK
    # Signing and encryption take more of a CPU.
    copy_step, taxed = copy.step, step.plan.stage == "smb-tax"
    if not taxed or copy_step is None or steps.security(step) == steps.security(copy_step):
        yield from _cpus(copy, step)
    if supplied or by_this_tool or _is_same_program(copy, step):
        yield from (("tcp", copy.sender), ("tcp", copy.receiver))
    limit = (
        math.inf
        if copy.step is None
        else AS_FEW_RATIO * (copy.step.details.in_flight_bytes or math.inf)
    )
    if _is_same_program(copy, step) and _in_flight(step) <= limit:
        yield "smb", steps.other(copy.initiator)
    if not is_copy or step.setting.copy.startswith(steps.OF_FILE) != copy.is_of_file:
        return
    diskless = copy.initiator if step.setting.end == "memory" else None
    if copy.receiver != diskless and step.details.flushed is not False:
        yield "disk", copy.receiver
    is_cold = step.details.cache.proven is not False or supplied
    if copy.sender != diskless and "uncached" in step.setting.copy and is_cold and not diskless:
        yield "disk", copy.sender
