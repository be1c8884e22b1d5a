"""Rates of a run's transfers over the path in a direction.

Impossible figures do not count. A step is judged by the hosts' hardware, a short cell also by
longer tests of the same path.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.copies import foreign_rate, smb_steps, transfers
from bottleneck.analysis.evidence.details import Cell, Details
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core.records import SIDES

REFUTED_RATIO = 1.1
"""Least transfer's rate / ceiling at which the transfer refutes the ceiling."""
REPEATED_RATIO = 1.5
"""Least rate of a burst, over that of the stage's repeated best cell."""


@dataclass(frozen=True)
class Transfer:
    """Transfer of a step, or of one of its cells."""

    bytes_per_second: float
    step: MeasuredStep
    window_bytes: float
    """Most bytes in flight by its settings; 0: unknown."""
    what: str
    """Subject of a sentence: "pull.cached", "smb-matrix pull"."""


def credible_cells(report: Report, step: MeasuredStep) -> tuple[Cell, ...]:
    """Returns the cells of a step whose rates are possible."""
    highest = _highest_possible(report, step)
    return tuple(each for each in step.details.cells if (each.bytes_per_second or 0.0) <= highest)


def remark_on_incredible_cells(report: Report, step: MeasuredStep) -> Iterator[str]:
    """Yields the remark about the cells of a step whose rates are impossible, if there are any."""
    highest = _highest_possible(report, step)
    rates = [each.bytes_per_second or 0.0 for each in step.details.cells]
    beyond = [rate for rate in rates if rate > highest]
    if beyond:
        count = "1 result" if len(beyond) == 1 else f"{len(beyond)} results"
        yield (
            f"Not credible: {count} of up to {rate_text(max(beyond))}, because longer tests show "
            f"that the path carries at most {rate_text(highest)}. They are ignored."
        )


def _highest_possible(report: Report, step: MeasuredStep) -> float:
    bounds = [REPEATED_RATIO * step.rate.high]
    physical = hardware_limits.physical_rate(report)
    if physical is not None:
        bounds.append(physical.bytes_per_second * (1 + hardware_limits.TOLERANCE_RATIO))
    shaped = hardware_limits.shaped_rate(report, step.sender)
    if shaped is not None:
        bounds.append(REFUTED_RATIO * shaped.bytes_per_second)
    best = steps.fastest(hardware_limits.believed_steps(report, step.sender))
    if best is not None:
        carried = best.rate.median + (foreign_rate(report, best, step.sender) or 0.0)
        if model.looks_like(carried, steps.mtu_bytes(report)) is not None:
            bounds.append(max(REFUTED_RATIO * carried, step.rate.median))
    return min(bounds)


def transfers_from(report: Report, sender: str) -> Iterator[Transfer]:
    """Yields all transfers from a side over the path, by TCP alone and over SMB."""
    over_smb = (each for side in SIDES for each in smb_steps(report, sender, side))
    for step in (*transfers(report, sender), *over_smb):
        setting, stage = step.setting, step.plan.stage
        ends = " without a disk" if setting.end == "memory" else ""
        what = f"{setting.copy}{ends}" if setting.copy else f"{stage} {setting.verb}"
        # The best of a stage's short cells may be a burst.
        is_burst = bool(step.details.cells) and step.rate.median > _highest_possible(report, step)
        if hardware_limits.impossible(report, step) is None and not is_burst:
            yield Transfer(step.rate.median, step, _window(step.details), what)
        for cell in credible_cells(report, step):
            yield Transfer(cell.bytes_per_second or 0.0, step, _window(cell), what)


def through_disk(report: Report, copy: Copy, side: str) -> float:
    """Returns the highest rate of a copy through a side's disk, bytes per second; 0: none."""
    same = (
        e.step for e in transfers_from(report, copy.sender) if _uses_same_disk(copy, e.step, side)
    )
    return max((each.rate.median for each in same), default=0.0)


def is_like_copy(copy: Copy, transfer: Transfer) -> bool:
    """Whether a transfer has the programs, the dialect and the security of a copy."""
    step, other = transfer.step, copy.step
    taxed = step.plan.stage == "smb-tax"
    secured = not taxed or (other is not None and steps.security(step) == steps.security(other))
    return secured and _has_same_ends(copy, step) and step.setting.dialect == copy.dialect


def has_no_larger_window(copy: Copy, transfer: Transfer) -> bool:
    """Whether a transfer is like a copy, with no more in flight."""
    window = 0.0 if copy.step is None else _window(copy.step.details)
    return is_like_copy(copy, transfer) and 0 < transfer.window_bytes <= window


def _window(details: Details | Cell) -> float:
    return (details.request_bytes or 0.0) * (details.depth or 0.0)


def _has_same_ends(copy: Copy, step: MeasuredStep) -> bool:
    engine = step.setting.engine or steps.OWN
    same = (step.plan.initiator, engine) == (copy.initiator, copy.engine)
    return same and step.plan.stage != "tcp"


def _uses_same_disk(copy: Copy, step: MeasuredStep, side: str) -> bool:
    """Whether a step used a side's disk like a copy: read past the cache, or flushed there."""
    name, details = step.setting.copy, step.details
    if step.plan.stage != "smb-copy" or step.setting.end != "folder":
        return False
    if name.startswith(steps.OF_FILE) != copy.is_of_file:
        return False
    if side == copy.sender:
        return "uncached" in name and details.cache.proven is True
    return details.flushed is not False
