"""Rule instrument/ceiling: this tool's own limit on each host, from its loopback stage."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.load import Load, load
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text
from probes.records import SIDES

NEAR_RATIO = 2 / 3
"""A result above this share of the tool's ceiling says more of the tool than of the path."""

WORKING_RATIO = 0.5
"""CPU time of the tool's busiest process over the time: below it the tool may have had to wait."""
DELAYED_SECONDS = 5e-3
"""A round trip within one host that only a delayed acknowledgement explains."""


def tool_ceiling(report: Report, side: str) -> Found | None:
    """The best loopback step of a host; None: none, or it was held back.

    A quota, a tiny buffer and others' work on its cores are no limits of the tool.
    """
    found = [each for each in steps.measured(report, "loopback") if each.step.initiator == side]
    best = max(found, key=lambda each: each.rate.median, default=None)
    seen = None if best is None else load(best.usage(side))
    held = seen is not None and (seen.throttled or seen.crowded or _waited(best, seen))
    return None if held else best


def _waited(best: Found | None, seen: Load) -> bool:
    """Whether the tool itself waited: for acknowledgements that a tiny buffer has come late."""
    rtt = (
        steps.amount(None if best is None else best.outcome.details, "limits", "rtt_seconds_median")
        or 0.0
    )
    return seen.process_ratio < WORKING_RATIO and rtt >= DELAYED_SECONDS


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The tool's ceiling on both hosts; reached where the copy comes near it: nobody is blamed.

    A copy that others carry from end to end (a mount, smbclient) is not bound by it.
    """
    if copy.made is None or not any(copy.by_this_tool(side) for side in SIDES):
        return
    for side in SIDES:
        best = tool_ceiling(report, side)
        if best is None:
            continue
        rate = best.rate
        yield Claim(
            Ceiling(
                component="instrument",
                side=side,
                cause="ceiling",
                bytes_per_second=rate.median,
                low_bytes_per_second=rate.low,
                high_bytes_per_second=rate.high,
                steps=(best.index,),
                standing="measured",
            ),
            words=(
                f"this tool itself moves no more than {rate_text(rate.median)} on the {side}, "
                "too near to blame anything else"
            ),
            reached=copy.made.rate.median > NEAR_RATIO * rate.median,
            trust=0.9,
            evidence=(f"TCP to itself on the {side} moved {rate_text(rate.median)}.",),
        )
