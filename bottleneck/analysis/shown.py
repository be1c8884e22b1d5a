"""Bytes that a run moved over the path in a direction.

A figure that no link carries shows nothing: a whole step's by the hosts' hardware, and a short
cell's by what the stage and TCP by itself carried for longer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.evidence.copies import foreign_rate, smb_steps, transfers
from bottleneck.analysis.evidence.details import Cell, Details
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core.records import SIDES

REFUTED_RATIO = 1.1
"""Bytes that moved this far above a ceiling show that it was none."""
REPEATED_RATIO = 1.5
"""A stage's best cell is measured once more: one so far above that was a burst."""


@dataclass(frozen=True)
class Moved:
    """The bytes of a step, or of one of its cells, on their way."""

    bytes_per_second: float
    found: Found
    window_bytes: float
    """The most that it might have in flight; 0: unknown."""
    what: str
    """As the subject of a sentence: "pull.cached", "smb-matrix pull"."""


def credible(report: Report, found: Found) -> tuple[Cell, ...]:
    """The cells of a step whose rates can be true."""
    most = _most(report, found)
    return tuple(each for each in found.details.cells if (each.bytes_per_second or 0.0) <= most)


def incredible(report: Report, found: Found) -> Iterator[str]:
    """What is said of its other cells, if there are any."""
    most, rates = _most(report, found), [e.bytes_per_second or 0.0 for e in found.details.cells]
    beyond = [rate for rate in rates if rate > most]
    if beyond:
        count = "1 result" if len(beyond) == 1 else f"{len(beyond)} results"
        yield (
            f"Not credible: {count} of up to {rate_text(max(beyond))}, because longer tests show "
            f"that the path carries at most {rate_text(most)}. They are ignored."
        )


def _most(report: Report, found: Found) -> float:
    """More than a cell of a step can have moved, bytes per second."""
    bounds = [REPEATED_RATIO * found.rate.high]
    physical = hardware_limits.physical_rate(report)
    if physical is not None:
        bounds.append(physical.bytes_per_second * (1 + hardware_limits.TOLERANCE_RATIO))
    shaped = hardware_limits.shaped(report, found.sender)
    if shaped is not None:
        bounds.append(REFUTED_RATIO * shaped.bytes_per_second)
    best = steps.fastest(hardware_limits.believed(report, found.sender))
    if best is not None:
        carried = best.rate.median + (foreign_rate(report, best, found.sender) or 0.0)
        if model.looks_like(carried, steps.mtu_bytes(report)) is not None:
            bounds.append(max(REFUTED_RATIO * carried, found.rate.median))
    return min(bounds)


def moved(report: Report, sender: str) -> Iterator[Moved]:
    """All that was moved from a side over the path, by TCP alone and over SMB."""
    over_smb = (each for side in SIDES for each in smb_steps(report, sender, side))
    for found in (*transfers(report, sender), *over_smb):
        setting, stage = found.setting, found.step.stage
        ends = " without a disk" if setting.end == "memory" else ""
        what = f"{setting.copy}{ends}" if setting.copy else f"{stage} {setting.verb}"
        # A stage of short cells: its best one may be a burst.
        short = bool(found.details.cells) and found.rate.median > _most(report, found)
        if hardware_limits.impossible(report, found) is None and not short:
            yield Moved(found.rate.median, found, _window(found.details), what)
        for cell in credible(report, found):
            yield Moved(cell.bytes_per_second or 0.0, found, _window(cell), what)


def through_disk(report: Report, copy: Copy, side: str) -> float:
    """The most that a copy moved through a side's disk on the same way, bytes per second."""
    same = (e.found for e in moved(report, copy.sender) if _same_disk(copy, e.found, side))
    return max((each.rate.median for each in same), default=0.0)


def as_secure(copy: Copy, each: Moved) -> bool:
    """Whether a copy's own programs moved it, in its dialect and with its security."""
    found, made = each.found, copy.step
    taxed = found.step.stage == "smb-tax"
    secured = not taxed or (made is not None and steps.security(found) == steps.security(made))
    return secured and _same_ends(copy, found) and found.setting.dialect == copy.dialect


def with_as_few(copy: Copy, each: Moved) -> bool:
    """Whether a copy's own programs moved it in its dialect, with no more in flight."""
    most = 0.0 if copy.step is None else _window(copy.step.details)
    return as_secure(copy, each) and 0 < each.window_bytes <= most


def _window(told: Details | Cell) -> float:
    return (told.request_bytes or 0.0) * (told.depth or 0.0)


def _same_ends(copy: Copy, found: Found) -> bool:
    engine = found.setting.engine or steps.OWN
    same = (found.step.initiator, engine) == (copy.initiator, copy.engine)
    return same and found.step.stage != "tcp"


def _same_disk(copy: Copy, found: Found, side: str) -> bool:
    """Whether it was read there past the cache as the copy is, or flushed there."""
    name, told = found.setting.copy, found.details
    if found.step.stage != "smb-copy" or found.setting.end != "folder":
        return False
    if name.startswith(steps.OF_FILE) != copy.of_file:
        return False
    if side == copy.sender:
        return "uncached" in name and told.cache.proven is True
    return told.flushed is not False
