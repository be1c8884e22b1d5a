"""network/wrong-path: the copy leaves by another way than the fastest that reaches the server.

A slower card than both hosts have, or a tunnel that lies on a faster network. It is named only
where the stage that asked both ways moved payload over each of them, one right after the other.
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

CAUSE = Cause("network", "wrong-path", "slower path", stays=True)
FASTER_RATIO = 1.3
"""The other way over the one in use, from which on it is no noise of short transfers."""
SAME_RATIO = 1.25
"""A ceiling so far above what the way in use carried speaks of something else."""


@dataclass(frozen=True)
class Way:
    """One way to the server, by an address of its own."""

    address: str = ""
    interface: str = ""
    server_interface: str = ""
    server_kind: str = ""
    in_use: bool = False
    push_bytes_per_second: Positive | None = None
    pull_bytes_per_second: Positive | None = None

    def carried(self, sender: str) -> float:
        """What it moved of what a side sends; 0: not known."""
        found = self.push_bytes_per_second if sender == "client" else self.pull_bytes_per_second
        return found or 0.0

    @property
    def words(self) -> str:
        """How a person finds it."""
        by = f"{self.interface} to {self.server_interface}" if self.interface else "another card"
        tunnel = f", a {self.server_kind} tunnel" if self.server_kind == "tun" else ""
        return f"{self.address} ({by}{tunnel})"


@dataclass(frozen=True)
class Ways:
    """What the paths stage told."""

    ways: tuple[Way, ...] = ()


@dataclass(frozen=True)
class Faster:
    """A way that carries more than the one in use."""

    step: int
    used: Way
    better: Way


def faster(report: Report, sender: str) -> Faster | None:
    """The fastest other way for what a side sends; None: none carries clearly more."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage != "paths" or not isinstance(outcome, Measured):
            continue
        found = faster_way(outcome.details, sender)
        if found is not None:
            return Faster(index, *found)
    return None


def faster_way(details: Details, sender: str) -> tuple[Way, Way] | None:
    """The way in use, and the fastest other of a paths step; None: none carries clearly more."""
    ways = lenient.record(Ways, details).ways
    used = next((each for each in ways if each.in_use), None)
    better = max(ways, key=lambda each: each.carried(sender), default=None)
    least = 0.0 if used is None else FASTER_RATIO * used.carried(sender)
    if used is not None and better is not None and better.carried(sender) >= least > 0:
        return used, better
    return None


def refine(evidence: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims; what the network in use does to the copy as the choice of that network."""
    sender = evidence.sender
    found = faster(evidence.report, sender)
    named = False
    for each in claims:
        if found is not None and _of_used(each.ceiling, found, sender):
            named = True
            yield _chosen(each, found, sender)
        else:
            yield each
    if found is not None and named:
        rate = found.better.carried(sender)
        yield claim(
            link_rate.CAUSE,
            "path",
            None,
            f"the path by {found.better.words} carries at most {rate_text(rate)}",
            level=rate,
            steps=(found.step,),
        )


def _of_used(ceiling: Ceiling, found: Faster, sender: str) -> bool:
    """Whether a ceiling is the used way's own."""
    most = SAME_RATIO * found.used.carried(sender)
    return ceiling.component == "network" and ceiling.bytes_per_second <= most


def _chosen(each: Claim, found: Faster, sender: str) -> Claim:
    used, better = (rate_text(way.carried(sender)) for way in (found.used, found.better))
    return replace(
        each,
        ceiling=behind(each.ceiling, CAUSE, "path", found.step),
        words=(
            f"the copy uses {found.used.words}, which carries {used}; {found.better.words} carries "
            f"{better}"
        ),
        evidence=(*each.evidence, f"On the path in use, {each.words}."),
        remedy=(
            f"Connect to {found.better.address}, or make the server's name or the route lead to "
            "that address"
        ),
        detail=f"faster path by {found.better.address}" if found.better.address else "",
    )
