"""network/wrong-path: the copy uses another path than the fastest that reaches the server.

It uses a slower card than both hosts have, or a tunnel over a faster network. It is named only
where the paths stage moved payload over both paths, one right after the other.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis.claim import Cause, behind, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.rules.network import link_rate
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text
from probes.core import lenient
from probes.core.lenient import Positive
from probes.core.records import Details, Measured

CAUSE = Cause("network", "wrong-path", "slower path", limits_without_fault=True)
FASTER_RATIO = 1.3
"""Least ratio of the other path's rate to that in use: above the noise of short transfers."""
SAME_RATIO = 1.25
"""Most ceiling / rate of the path in use at which the ceiling is that path's own."""


@dataclass(frozen=True)
class Way:
    """One path to the server, by an address of its own."""

    address: str = ""
    interface: str = ""
    server_interface: str = ""
    server_kind: str = ""
    in_use: bool = False
    push_bytes_per_second: Positive | None = None
    pull_bytes_per_second: Positive | None = None

    def rate_from(self, sender: str) -> float:
        """Returns the path's rate for a side's bytes, bytes per second; 0: not known."""
        rate = self.push_bytes_per_second if sender == "client" else self.pull_bytes_per_second
        return rate or 0.0

    @property
    def words(self) -> str:
        """Address, interfaces and tunnel, for a sentence."""
        by = f"{self.interface} to {self.server_interface}" if self.interface else "another card"
        tunnel = f", a {self.server_kind} tunnel" if self.server_kind == "tun" else ""
        return f"{self.address} ({by}{tunnel})"


@dataclass(frozen=True)
class Ways:
    """Details of the paths stage."""

    ways: tuple[Way, ...] = ()


@dataclass(frozen=True)
class Faster:
    """A path that carries more than the one in use."""

    step: int
    used: Way
    better: Way


def faster(report: Report, sender: str) -> Faster | None:
    """Returns the fastest other path for a side's bytes; None: none carries clearly more."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage != "paths" or not isinstance(outcome, Measured):
            continue
        pair = faster_way(outcome.details, sender)
        if pair is not None:
            return Faster(index, *pair)
    return None


def faster_way(details: Details, sender: str) -> tuple[Way, Way] | None:
    """Returns a paths step's path in use and its fastest other; None: none is clearly faster."""
    ways = lenient.record(Ways, details).ways
    used = next((each for each in ways if each.in_use), None)
    better = max(ways, key=lambda each: each.rate_from(sender), default=None)
    threshold = 0.0 if used is None else FASTER_RATIO * used.rate_from(sender)
    if used is not None and better is not None and better.rate_from(sender) >= threshold > 0:
        return used, better
    return None


def refine(evidence: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yields the claims, with limits of the path in use replaced by the choice of that path."""
    sender = evidence.sender
    paths = faster(evidence.report, sender)
    is_replaced = False
    for each in claims:
        if paths is not None and _is_of_used_path(each.ceiling, paths, sender):
            is_replaced = True
            yield _path_claim(each, paths, sender)
        else:
            yield each
    if paths is not None and is_replaced:
        rate = paths.better.rate_from(sender)
        yield claim(
            link_rate.CAUSE,
            "path",
            None,
            f"the path by {paths.better.words} carries at most {rate_text(rate)}",
            level=rate,
            steps=(paths.step,),
        )


def _is_of_used_path(ceiling: Ceiling, paths: Faster, sender: str) -> bool:
    highest = SAME_RATIO * paths.used.rate_from(sender)
    return ceiling.component == "network" and ceiling.bytes_per_second <= highest


def _path_claim(each: Claim, paths: Faster, sender: str) -> Claim:
    used, better = (rate_text(way.rate_from(sender)) for way in (paths.used, paths.better))
    return replace(
        each,
        ceiling=behind(each.ceiling, CAUSE, "path", paths.step),
        words=(
            f"the copy uses {paths.used.words}, which carries {used}; {paths.better.words} carries "
            f"{better}"
        ),
        evidence=(*each.evidence, f"On the path in use, {each.words}."),
        remedy=(
            f"Connect to {paths.better.address}, or make the server's name or the route lead to "
            "that address"
        ),
        detail=f"faster path by {paths.better.address}" if paths.better.address else "",
    )
