"""What the analysis finds: ceilings, verdicts, the diagnosis; frozen and in CONTRACT's words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bottleneck.analysis.model import Band

ABOUTS = (
    "dialect",
    "initiator",
    "security",
    "requests",
    "channels",
    "small-files",
    "native",
    "durability",
    "direction",
    "cache",
    "zones",
    "place",
    "random",
    "sustained",
    "buffers",
    "messages",
    "windows",
    "datagrams",
)
"""What comparisons are about."""

Standing = Literal["measured", "inferred", "estimated", "at-least"]
"""How far a ceiling can be trusted to be the component's own.

measured: a stage of its own reached it; inferred: read off a copy that looks like it, or from what
a slot or a bus can; estimated: the load of the copy scaled up to a full one; at-least: something
else limited the stage.
"""

Named = tuple[str, str | None, str]
"""A component, its side and its cause."""
Part = tuple[str, str | None]
"""A component and its side: what a person would exchange."""


class WordError(ValueError):
    """A word outside CONTRACT's closed sets."""


@dataclass(frozen=True)
class Words:
    """What a ceiling is of, in CONTRACT's words."""

    component: str
    side: str | None
    cause: str

    @property
    def key(self) -> Named:
        """Component, side and cause."""
        return self.component, self.side, self.cause

    @property
    def words(self) -> str:
        """The same as --expect-cap takes them: `disk/server/read`, `unknown/inconclusive`."""
        return "/".join(filter(None, self.key))

    @property
    def part(self) -> Part:
        """The component and its side: what a person would exchange."""
        return self.component, self.side

    @property
    def is_link(self) -> bool:
        """Whether it is of the link's rate."""
        return (self.component, self.cause) == ("network", "link-rate")


@dataclass(frozen=True)
class Ceiling(Words):
    """The most that one component allows a copy, bytes per second."""

    bytes_per_second: float
    low_bytes_per_second: float
    high_bytes_per_second: float
    steps: tuple[int, ...]
    """Indices of the report's steps that it was taken from."""
    standing: Standing

    @property
    def tool(self) -> bool:
        """Whether this tool alone, apart from the copy, showed it: nothing of the copy's path."""
        return self.component == "instrument" and self.standing == "measured"


@dataclass(frozen=True)
class Claim:
    """A ceiling with the reasons for it: what a rule yields."""

    ceiling: Ceiling
    words: str
    """Why, as what follows "because": "the server's disk reads at most 25.7 MB/s"."""
    reached: bool | None = None
    """Whether the copy's own load shows that it was reached; None: its rate has to tell."""
    trust: float = 0.7
    """The most that a verdict built on it may be sure of."""
    partly: bool = False
    """Whether it may have held the copy for a part of the time, where no ceiling is reached."""
    evidence: tuple[str, ...] = ()
    remedy: str = ""
    """What to do, in imperative sentences without the last full stop; empty: its component's."""
    detail: str = ""
    """What is behind it, for the first line of an answer: "limited by a cgroup"."""


@dataclass(frozen=True)
class Ladder:
    """What is known of one copy's ceilings."""

    claims: tuple[Claim, ...]
    """Lowest first."""
    remarks: tuple[str, ...]

    @property
    def valid(self) -> tuple[Claim, ...]:
        """Those that are the component's own and not mere lower bounds."""
        return tuple(each for each in self.claims if each.ceiling.standing != "at-least")


@dataclass(frozen=True)
class Suspect(Words):
    """What may limit one copy."""

    confidence: float
    """How likely it does, 0 to 1."""


@dataclass(frozen=True)
class Verdict(Words):
    """What caps one copy."""

    confidence: float
    """0 to 1; 0 where nothing is named."""
    ceiling_bytes_per_second: float | None
    sentence: str
    detail: str = ""
    """As that of its claim."""
    rival: Suspect | None = None
    """The next likeliest; None: nothing else is likely, or nothing is named."""


@dataclass(frozen=True)
class Next(Words):
    """The ceiling of another component that comes after the cap."""

    ceiling_bytes_per_second: float


@dataclass(frozen=True)
class Rung(Words):
    """A ceiling of a copy, and the copy's rate once all below it are lifted."""

    ceiling_bytes_per_second: float
    predicted_bytes_per_second: Band | None
    """Of the first rung, the cap, the rate that was measured; None: a stage is not known."""
    assumed_link_bytes_per_second: float | None = None
    """Payload of the standard link that a lifted one is exchanged for; None: none was lifted."""


@dataclass(frozen=True)
class Need(Words):
    """A ceiling that is below what a wanted rate takes."""

    from_bytes_per_second: float
    to_bytes_per_second: float
    sentence: str


@dataclass(frozen=True)
class Target:
    """What it takes to bring a copy to a wanted rate."""

    bytes_per_second: float
    reached: bool
    needs: tuple[Need, ...] = ()
    """Lowest ceiling first."""
    unknown: tuple[str, ...] = ()
    """What cannot be told, as sentences."""


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
    """Where its time went, the largest first; they sum to 1. Empty: nothing watched it."""
    view: str = ""
    """By what that was seen: attribution.VIEWS."""
    suspects: tuple[Suspect, ...] = ()
    """What may limit it, the likeliest first; empty: nothing is known of it."""


@dataclass(frozen=True)
class Comparison:
    """Measurements side by side, and whether they differ by more than their noise."""

    about: str
    """One of ABOUTS."""
    sentence: str
    rows: tuple[dict[str, Any], ...] = ()
    """The figures as plain values: bytes, seconds and ratios, the unit being each name's end."""
    ratio: float | None = None
    """The greater of the two that the sentence compares over the lesser; None: it compares none."""
    significant: bool = False
    """Whether that difference is beyond the noise of both."""
    steps: tuple[int, ...] = ()
    """Indices of the report's steps that it was taken from."""

    def __post_init__(self) -> None:
        if self.about not in ABOUTS:
            raise WordError(f"no comparison is about {self.about}")


@dataclass(frozen=True)
class Diagnosis:
    """What a report means."""

    headline: str | None
    """The copy that the summary speaks of: the first of `copies` by that name."""
    copies: tuple[CopyDiagnosis, ...]
    summary: str
    """One or two sentences for a person in a hurry."""
    comparisons: tuple[Comparison, ...] = ()
    """Dialects, initiators, security, requests ...: each where the report has both sides of it."""
    healthy: str = ""
    """That nothing is wrong, after "No fault found:"; empty: something is, or it is unknown."""
    altered: tuple[str, ...] = ()
    """Stages whose bytes did not arrive as they were sent."""

    @property
    def chosen(self) -> CopyDiagnosis | None:
        """The headline's copy."""
        return next((copy for copy in self.copies if copy.copy == self.headline), None)
