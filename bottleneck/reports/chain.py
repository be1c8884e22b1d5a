"""The components that a copy passes, drawn as one pipe: how wide each is, and where it is narrow.

The pipe's width is logarithmic over the copy's own rate: ceilings lie a hundredfold apart.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis
from bottleneck.reports.copies import is_cap
from bottleneck.units import rate_text
from bottleneck.words import DOUBT_SIGNS, cap_text

NARROWEST, WIDEST = 22.0, 94.0
"""Widths of the pipe around the copy's stream, in hundredths of the drawing."""


@dataclass(frozen=True)
class Part:
    """A place on the way of the bytes, and the components that are found there."""

    name: str
    under: str
    holds: frozenset[tuple[str, str | None]]


def _of(side: str, *components: str) -> frozenset[tuple[str, str | None]]:
    return frozenset((component, side) for component in components)


_PATH = frozenset(
    (name, side) for name in ("network", "tcp") for side in ("client", "path", "server")
)
_INSIDE = ("cpu", "memory", "bus", "instrument")
PARTS = (
    Part("Disk", "client", _of("client", "disk")),
    Part("CPU, memory, bus", "client", _of("client", *_INSIDE)),
    Part("SMB", "client", _of("client", "smb") | _of("path", "smb")),
    Part("Network, TCP", "between them", _PATH),
    Part("SMB", "server", _of("server", "smb") | _of("path", "smb")),
    Part("CPU, memory, bus", "server", _of("server", *_INSIDE)),
    Part("Disk", "server", _of("server", "disk")),
)
"""From the client's disk to the server's; what belongs to the path of SMB is at both of its ends.
"""


@dataclass(frozen=True)
class Segment:
    """A part as one copy finds it, with its ceiling in words, the cap marked."""

    part: Part
    ceiling: Ceiling | None
    """The cap, or the lowest that is known; None: nothing is known of it."""
    capped: bool
    width: float
    """Of the pipe, in hundredths."""
    begin: float = 0.0
    end: float = 0.0
    """The same where the parts before and behind it meet it."""

    @property
    def unseen(self) -> bool:
        """Whether nothing is known of it: its walls are dashed, and as wide as they are."""
        return self.ceiling is None and not self.capped

    @property
    def told(self) -> str:
        """Its ceiling, or why there is none."""
        if self.ceiling is None:
            return "bottleneck" if self.capped else "not measured"
        return DOUBT_SIGNS[self.ceiling.standing] + rate_text(self.ceiling.bytes_per_second)

    @property
    def beside(self) -> tuple[str, ...]:
        """What the ceiling is."""
        named = () if self.ceiling is None else (cap_text(self.ceiling),)
        return (*named, "bottleneck") if named and self.capped else named


@dataclass(frozen=True)
class Chain:
    """The drawing as a list of its parts, and what it shows."""

    parts: tuple[Segment, ...]
    sentence: str
    flows: bool
    """Whether there is a stream: a copy that was made."""
    forth: bool
    """Whether the bytes go from the client to the server."""


def segments(copy: CopyDiagnosis) -> tuple[Segment, ...]:
    """Each part with the ceiling that counts there.

    What this tool alone showed, apart from the copy, is no part of the copy's path.
    """
    found = [(part, _ceiling(copy, part)) for part in PARTS]
    known = [each.bytes_per_second for _, each in found if each is not None]
    rate = copy.bytes_per_second or min(known, default=1.0)
    most = max(known, default=rate)
    verdict = (copy.verdict.component, copy.verdict.side)
    return tuple(
        Segment(part, each, verdict in part.holds, _width(each, rate, most)) for part, each in found
    )


def _ceiling(copy: CopyDiagnosis, part: Part) -> Ceiling | None:
    here = [each for each in copy.ceilings if each.part in part.holds]
    caps = [each for each in here if is_cap(copy.verdict, each)]
    others = [each for each in here if not each.tool]
    return min(caps or others, key=lambda each: each.bytes_per_second, default=None)


def _width(ceiling: Ceiling | None, rate: float, most: float) -> float:
    if ceiling is None:
        return WIDEST
    if most <= rate or ceiling.bytes_per_second <= rate:
        return NARROWEST
    share = math.log(ceiling.bytes_per_second / rate) / math.log(most / rate)
    return NARROWEST + (WIDEST - NARROWEST) * share


def chain(copy: CopyDiagnosis) -> Chain:
    """What a copy passes, from the client's disk to the server's."""
    verb = copy.copy.split(".")[-2] if "." in copy.copy else "pull"
    sender = steps.sender(verb, copy.initiator)
    rate = copy.bytes_per_second
    runs = "" if rate is None else f" at {rate_text(rate)} (the filled stream)"
    sentence = (
        f"The data goes from the {sender} to the {steps.other(sender)}{runs}. The pipe around it "
        "shows the lowest limit of each part on a logarithmic scale. A dashed part was not "
        "measured."
    )
    found = segments(copy)
    before, behind = (found[0], *found[:-1]), (*found[1:], found[-1])
    parts = (
        replace(own, begin=_joint(own, one), end=_joint(own, other))
        for own, one, other in zip(found, before, behind, strict=True)
    )
    return Chain(tuple(parts), sentence, rate is not None, sender == "client")


def _joint(own: Segment, beside: Segment) -> float:
    """Width where two parts meet; a part that nothing is known of keeps its own."""
    return own.width if own.unseen or beside.unseen else (own.width + beside.width) / 2
