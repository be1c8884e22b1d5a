"""instrument/ceiling: this tool's own limit on each host, from its loopback stage."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import Load, load
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core.records import SIDES

CAUSE = Cause("instrument", "ceiling", "")
MEASURED_TRUST = 0.98
NEAR_RATIO = 2 / 3
"""Least copy's rate / the tool's ceiling at which the copy shows the tool, not the path."""
WORKING_RATIO = 0.5
"""Least CPU share of the tool's busiest process that surely did not wait."""
DELAYED_SECONDS = 5e-3
"""A round trip within one host that only a delayed acknowledgement explains."""


def tool_ceiling(report: Report, side: str) -> MeasuredStep | None:
    """Returns the best loopback step of a host; None: none, or something else limited it.

    A quota, a tiny buffer and others' work on its cores are no limits of the tool.
    """
    tests = steps.measured_steps(report, "loopback")
    best = steps.fastest(each for each in tests if each.plan.initiator == side)
    cpu = None if best is None else load(best.usage(side))
    if best is None or cpu is None:
        return best
    # A short transfer may end within one stop of a quota, before that is counted.
    usage = best.usage(side)
    allowed = None if usage is None else usage.quota_cores
    if allowed is not None and allowed < 1:
        return None
    idle = cpu.process_ratio < WORKING_RATIO
    held_back = cpu.is_throttled or cpu.is_crowded or cpu.filled_by_others and idle
    return None if held_back or _tool_waited(best, cpu) else best


def _tool_waited(best: MeasuredStep, cpu: Load) -> bool:
    """Whether the tool itself waited for acknowledgements that a tiny buffer delays."""
    limits = best.details.limits
    trip = (limits and limits.rtt_seconds_median) or 0.0
    return cpu.process_ratio < WORKING_RATIO and trip >= DELAYED_SECONDS


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the tool's ceiling on both hosts, as reached if the copy comes near it.

    It does not apply to a copy by other programs at both ends (a mount, smbclient).
    """
    by_this_tool = any(evidence.copy.is_by_this_tool(side) for side in SIDES)
    for side in SIDES if by_this_tool else ():
        best = tool_ceiling(evidence.report, side)
        if best is None:
            continue
        rate = rate_text(best.rate.median)
        yield claim(
            CAUSE,
            side,
            best,
            f"this tool itself moves at most {rate} on the {side}, too close to the copy to name "
            "another component",
            reached=evidence.rate.median > NEAR_RATIO * best.rate.median,
            trust=MEASURED_TRUST,
            evidence=(f"TCP to itself on the {side} moved {rate}.",),
        )
