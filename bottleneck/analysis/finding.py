"""Results of the analysis: ceilings, verdicts, the diagnosis; frozen and in CONTRACT's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bottleneck.analysis.model import Band

ABOUTS = (
    "dialect initiator security requests channels small-files listing parallel native durability "
    "direction cache zones place random sustained buffers messages windows datagrams"
).split()
"""Subjects of comparisons."""

Standing = Literal["measured", "inferred", "estimated", "at-least"]
"""Origin of a ceiling, and so the trust in it.

measured: a stage of its own reached it; inferred: from a copy that matches it, or from a slot's or
a bus' rate; estimated: the load of the copy scaled up to a full one; at-least: something else
limited the stage.
"""

Named = tuple[str, str | None, str]
"""A component, its side and its cause."""
Part = tuple[str, str | None]
"""A component and its side: the part that a person would exchange."""


class WordError(ValueError):
    """A word outside CONTRACT's closed sets."""


@dataclass(frozen=True)
class Words:
    """Component, side and cause, in CONTRACT's words."""

    component: str
    side: str | None
    cause: str

    @property
    def key(self) -> Named:
        return self.component, self.side, self.cause

    @property
    def words(self) -> str:
        """Text in the form of --expect-cap: `disk/server/read`, `unknown/inconclusive`."""
        return "/".join(filter(None, self.key))

    @property
    def part(self) -> Part:
        return self.component, self.side

    @property
    def is_link(self) -> bool:
        return (self.component, self.cause) == ("network", "link-rate")


@dataclass(frozen=True)
class Ceiling(Words):
    """Highest rate that one component allows a copy, bytes per second."""

    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    steps: tuple[int, ...]
    """Indices of the report's steps that it was taken from."""
    standing: Standing

    @property
    def tool(self) -> bool:
        """Whether this is the tool's own limit, measured apart from the copy and its path."""
        return self.component == "instrument" and self.standing == "measured"


@dataclass(frozen=True)
class Claim:
    """A ceiling with the reasons for it, as a rule yields it."""

    ceiling: Ceiling
    words: str
    """Reason, as it follows "because": "the server's disk reads at most 25.7 MB/s"."""
    reached: bool | None = None
    """Whether the copy's own load shows that it was reached; None: the copy's rate decides."""
    trust: float = 0.7
    """Highest confidence of a verdict built on it."""
    partly: bool = False
    """Whether it may have limited the copy for a part of the time, if no ceiling is reached."""
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    """Imperative sentences without the last full stop; empty: its component's remedy."""
    detail: str = ""
    """Setting or place behind it, for an answer's first line: "limited by a cgroup"."""


@dataclass(frozen=True)
class Ladder:
    """Claims and remarks about one copy's ceilings."""

    claims: tuple[Claim, ...]
    """Lowest first."""
    remarks: tuple[str, ...]

    @property
    def valid(self) -> tuple[Claim, ...]:
        """Claims that are not mere lower bounds."""
        return tuple(each for each in self.claims if each.ceiling.standing != "at-least")


@dataclass(frozen=True)
class Suspect(Words):
    """A possible limit of one copy."""

    confidence: float
    """Its likelihood, 0 to 1."""


@dataclass(frozen=True)
class Verdict(Words):
    """Cap of one copy."""

    confidence: float
    """0 to 1; 0: nothing is named."""
    ceiling_bytes_per_second: float | None
    sentence: str
    detail: str = ""
    """Its claim's detail."""
    rival: Suspect | None = None
    """Next likeliest limit; None: nothing else is likely, or nothing is named."""


@dataclass(frozen=True)
class Next(Words):
    """The ceiling of another component that comes after the cap."""

    ceiling_bytes_per_second: float


@dataclass(frozen=True)
class Rung(Words):
    """A ceiling of a copy, and the copy's rate once all below it are lifted."""

    ceiling_bytes_per_second: float
    predicted_bytes_per_second: Band | None
    """For the first rung, the cap, the measured rate; None: a stage is not known."""
    assumed_link_bytes_per_second: float | None = None
    """Payload of the standard link that a lifted one is exchanged for; None: none was lifted."""


@dataclass(frozen=True)
class Need(Words):
    """A ceiling that is too low for a target rate."""

    from_bytes_per_second: float
    to_bytes_per_second: float
    sentence: str


@dataclass(frozen=True)
class Target:
    """Changes that a copy needs to reach a target rate."""

    bytes_per_second: float
    reached: bool
    needs: tuple[Need, ...] = ()
    """Lowest ceiling first."""
    unknown: tuple[str, ...] = ()
    """Unknown conditions, as sentences."""


@dataclass(frozen=True)
class TimeShare:
    """A part of a copy's time, by the component that had work."""

    component: str
    side: str | None
    ratio: float


@dataclass(frozen=True)
class CopyDiagnosis:
    """One copy: its rate, its cap and every ceiling around it."""

    copy: str
    initiator: str
    dialect: str
    bytes_per_second: float | None
    """Median of its runs; None: it could not be made."""
    verdict: Verdict
    ceilings: tuple[Ceiling, ...] = ()
    """Lowest first."""
    next: Next | None = None
    predicted_bytes_per_second: Band | None = None
    evidence: tuple[str, ...] = ()
    advice: tuple[str, ...] = ()
    ladder: tuple[Rung, ...] = ()
    """The cap, what comes after it, and so on; empty: no cap was named."""
    target: Target | None = None
    """None: no rate was asked for, or the copy was not made."""
    time: tuple[TimeShare, ...] = ()
    """Shares of its time, largest first; they sum to 1. Empty: not observed."""
    view: str = ""
    """Hosts that observed its time: BOTH, THREADS_UNSEEN or ALONE of attribution/shares.py."""
    suspects: tuple[Suspect, ...] = ()
    """Possible limits, likeliest first; empty: nothing is known of it."""


@dataclass(frozen=True)
class Comparison:
    """Measurements side by side, and whether they differ by more than their noise."""

    about: str
    """One of ABOUTS."""
    sentence: str
    rows: tuple[dict[str, Any], ...] = ()
    """Figures as plain values: bytes, seconds and ratios; each name ends with the unit."""
    ratio: float | None = None
    """Greater over lesser of the two figures that the sentence compares; None: it compares none."""
    significant: bool = False
    """Whether that difference is beyond the noise of both."""
    steps: tuple[int, ...] = ()
    """Indices of the report's steps that it was taken from."""

    def __post_init__(self) -> None:
        if self.about not in ABOUTS:
            raise WordError(f"no comparison is about {self.about}")


@dataclass(frozen=True)
class Diagnosis:
    headline: str | None
    """Name of the copy in the summary: the first of `copies` by that name."""
    copies: tuple[CopyDiagnosis, ...]
    summary: str
    """One or two sentences for a person in a hurry."""
    comparisons: tuple[Comparison, ...] = ()
    """Dialects, initiators, security, requests ...: each where the report has both sides of it."""
    healthy: str = ""
    """Text after "No fault found:"; empty: there is a fault, or it is unknown."""
    altered: tuple[str, ...] = ()
    """Stages whose bytes did not arrive as they were sent."""

    @property
    def main_copy(self) -> CopyDiagnosis | None:
        return next((copy for copy in self.copies if copy.copy == self.headline), None)
