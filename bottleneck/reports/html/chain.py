"""The components that a copy passes, drawn as one pipe: how wide each is, and where it is narrow.

The pipe's width is logarithmic over the copy's own rate: ceilings lie a hundredfold apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis
from bottleneck.reports.copies import is_cap
from bottleneck.reports.units import rate_text
from bottleneck.reports.words import DOUBT_SIGNS, cap_text

FLOW, NARROWEST, WIDEST = 14.0, 22.0, 94.0
"""Widths of the copy's stream and of the pipe around it, in hundredths of the drawing."""
_MIDDLE = 50.0
Shapes = tuple[tuple[str, str], ...]


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
    Part("CPU, RAM, bus", "client", _of("client", *_INSIDE)),
    Part("SMB", "client", _of("client", "smb") | _of("path", "smb")),
    Part("Network, TCP", "between them", _PATH),
    Part("SMB", "server", _of("server", "smb") | _of("path", "smb")),
    Part("CPU, RAM, bus", "server", _of("server", *_INSIDE)),
    Part("Disk", "server", _of("server", "disk")),
)
"""From the client's disk to the server's; what belongs to the path of SMB is at both of its ends.
"""


@dataclass(frozen=True)
class Segment:
    """A part as one copy finds it."""

    part: Part
    ceiling: Ceiling | None
    """The cap, or the lowest that is known; None: nothing is known of it."""
    capped: bool
    width: float
    """Of the pipe, in hundredths."""


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


@dataclass(frozen=True)
class Piece:
    """A part in words, and its drawing: class and path of each shape, level and upright."""

    name: str
    under: str
    told: str
    beside: tuple[str, ...]
    mark: str
    across: Shapes
    down: Shapes


@dataclass(frozen=True)
class Chain:
    """The drawing as a list of its parts, each with its ceiling in words, the cap marked."""

    parts: tuple[Piece, ...]
    sentence: str


def chain(copy: CopyDiagnosis) -> Chain:
    """What a copy passes, from the client's disk to the server's."""
    drawn = segments(copy)
    verb = copy.copy.split(".")[-2] if "." in copy.copy else "pull"
    sender = steps.sender(verb, copy.initiator)
    rate = copy.bytes_per_second
    runs = "" if rate is None else f" at {rate_text(rate)}, the filled stream"
    sentence = (
        f"The bytes go from the {sender} to the {steps.other(sender)}{runs}. The pipe around it is "
        "as wide as the lowest ceiling of each part, on a logarithmic scale; dashed where nothing "
        "was measured."
    )
    pieces = (_piece(drawn, at, sender == "client", rate is not None) for at in range(len(drawn)))
    return Chain(tuple(pieces), sentence)


def _piece(drawn: Sequence[Segment], at: int, forth: bool, flows: bool) -> Piece:
    own = drawn[at]
    ceiling, cap = own.ceiling, ("the cap",) if own.capped else ()
    if ceiling is None:
        told, beside = cap[0] if cap else "not measured", ()
    else:
        told = f"{DOUBT_SIGNS[ceiling.standing]}{rate_text(ceiling.bytes_per_second)}"
        beside = (cap_text(ceiling), *cap)
    return Piece(
        name=own.part.name,
        under=own.part.under,
        told=told,
        beside=beside,
        mark="is-cap" if own.capped else "unseen" if _unseen(own) else "",
        across=_pipe(drawn, at, forth, flows, across=True),
        down=_pipe(drawn, at, forth, flows, across=False),
    )


def _unseen(segment: Segment) -> bool:
    return segment.ceiling is None and not segment.capped


def _pipe(drawn: Sequence[Segment], at: int, forth: bool, flows: bool, across: bool) -> Shapes:
    own = drawn[at]
    begin, end = (_joint(drawn, at, beside) for beside in (at - 1, at + 1))
    walls = [_wall(begin, own.width, end, side, across) for side in (-1, 1)]
    pipe = [("pipe", wall) for wall in walls]
    if not _unseen(own):
        outline = f"{walls[0]} L{_wall(end, own.width, begin, 1, across, back=True)[1:]} Z"
        pipe.insert(0, ("bore", outline))
    if flows:
        pipe.append(("flow", _stream(across, _unseen(own))))
        pipe.append(("way", _arrow(forth, across)))
    return tuple(pipe)


def _joint(drawn: Sequence[Segment], at: int, beside: int) -> float:
    """Width where two parts meet; a part that nothing is known of keeps its own."""
    own = drawn[at]
    if not 0 <= beside < len(drawn) or _unseen(own) or _unseen(drawn[beside]):
        return own.width
    return (own.width + drawn[beside].width) / 2


def _wall(begin: float, own: float, end: float, side: int, across: bool, back: bool = False) -> str:
    """One wall of the pipe as a path along the part, from its beginning or back from its end."""
    first, middle, last = (_MIDDLE + side * width / 2 for width in (begin, own, end))
    along = (0, 14, 14, 28, 72, 86, 86, 100)
    places = [100 - each for each in along] if back else list(along)
    heights = (first, first, middle, middle, middle, middle, last, last)
    points = [_point(x, y, across) for x, y in zip(places, heights, strict=True)]
    return "M{} C{} {} {} L{} C{} {} {}".format(*points)


def _stream(across: bool, ends: bool) -> str:
    low, high = _MIDDLE - FLOW / 2, _MIDDLE + FLOW / 2
    # A little beyond both ends, so that no seam shows; where it is seen through, it would.
    first, last = (0.0, 100.0) if ends else (-0.5, 100.5)
    corners = ((first, low), (last, low), (last, high), (first, high))
    return f"M{' L'.join(_point(x, y, across) for x, y in corners)} Z"


def _arrow(forth: bool, across: bool) -> str:
    tip = 53 if forth else 47
    back = 100 - tip
    points = ((back, _MIDDLE - 4), (tip, _MIDDLE), (back, _MIDDLE + 4))
    return f"M{' L'.join(_point(x, y, across) for x, y in points)}"


def _point(along: float, beside: float, across: bool) -> str:
    x, y = (along, beside) if across else (beside, along)
    return f"{x:.1f},{y:.1f}"
