"""Measurements of a copy without one cause: the rate once that cause is removed."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.facts.record import Level, RateWithout
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report

LESSER = {"signing": ("plain",), "encryption": ("signed", "plain")}
"""Sessions without signing and without encryption, the most secure first."""


def without(report: Report, copy: Copy) -> Iterator[RateWithout]:
    """Yields rates without a disk, by this tool, in a newer dialect, less secure, well placed."""
    if copy.twin is not None:
        yield RateWithout("disk", copy.sender, _level(copy.twin))
    if copy.memory is not None:
        yield RateWithout("disk", copy.initiator, _level(copy.memory))
    if copy.beside is not None:
        # A mount's requests are small: this tool's own copy has as many as it needs.
        yield RateWithout("round-trips", copy.initiator, _level(copy.beside))
    likes = [each for each in steps.copies(report) if _is_alike(copy, each)]
    newer = (each.step for each in likes if steps.age(each.dialect) > steps.age(copy.dialect))
    rates = [each for each in newer if each is not None and each.is_intact]
    if rates:
        yield RateWithout("dialect", None, _level(max(rates, key=lambda each: each.rate.median)))
    taxes = [e for e in steps.measured_steps(report, "smb-tax") if _is_same_session(copy, e)]
    for cause, kinds in LESSER.items():
        lesser = (each for kind in kinds for each in taxes if each.setting.security == kind)
        if (tax := next(lesser, None)) is not None:
            yield RateWithout(cause, None, _level(tax), is_diskless=True)
    if copy.is_of_file:
        plain = copy.name.removeprefix(steps.OF_FILE)
        for each in steps.copies(report):
            if each.name == plain and each.dialect == copy.dialect and each.step is not None:
                if each.step.is_intact:
                    yield from (RateWithout(e, None, _level(each.step)) for e in ("seek", "zone"))
                return


def _level(step: MeasuredStep) -> Level:
    return Level(step.rate.low, step.rate.median, step.rate.high)


def _is_alike(copy: Copy, other: Copy) -> bool:
    keys = ((each.name, each.initiator, each.engine) for each in (copy, other))
    return len(set(keys)) == 1 and not other.is_native


def _is_same_session(copy: Copy, tax: MeasuredStep) -> bool:
    return tax.sender == copy.sender and tax.is_intact and tax.setting.dialect == copy.dialect
