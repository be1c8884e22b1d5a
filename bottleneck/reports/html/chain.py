"""The components that a copy passes, drawn as one pipe: how wide each is, and where it is narrow.

The pipe's width is logarithmic over the copy's own rate: ceilings lie a hundredfold apart.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis
from bottleneck.reports.html.markup import Markup, tag, together
from bottleneck.reports.html.wording import ceiling_text
from bottleneck.reports.units import rate_text
from bottleneck.reports.waterfall import is_cap
from bottleneck.reports.words import cap_text

FLOW, NARROWEST, WIDEST = 14.0, 22.0, 94.0
"""Widths of the copy's stream and of the pipe around it, in hundredths of the drawing."""
_MIDDLE = 50.0


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


def chain(copy: CopyDiagnosis) -> Markup:
    """The drawing as a list of its parts, each with its ceiling in words, the cap marked."""
    drawn = segments(copy)
    verb = copy.copy.split(".")[-2] if "." in copy.copy else "pull"
    sender = steps.sender(verb, copy.initiator)
    items = [_item(drawn, at, sender == "client", copy) for at in range(len(drawn))]
    rate = copy.bytes_per_second
    runs = "" if rate is None else f" at {rate_text(rate)}, the filled stream"
    told = (
        f"The bytes go from the {sender} to the {steps.other(sender)}{runs}. The pipe around it is "
        "as wide as the lowest ceiling of each part, on a logarithmic scale; dashed where nothing "
        "was measured."
    )
    return together((tag("ol", *items, class_="chain"), tag("p", told, class_="note small")))


def _item(drawn: Sequence[Segment], at: int, forth: bool, copy: CopyDiagnosis) -> Markup:
    own = drawn[at]
    name = tag("div", own.part.name, tag("span", own.part.under), class_="part")
    flows = copy.bytes_per_second is not None
    svg = tag(
        "svg",
        tag("g", *_pipe(drawn, at, forth, flows, across=True), class_="across"),
        tag("g", *_pipe(drawn, at, forth, flows, across=False), class_="down"),
        viewBox="0 0 100 100",
        preserveAspectRatio="none",
        aria_hidden="true",
    )
    classes = [word for word, fits in (("is-cap", own.capped), ("unseen", _unseen(own))) if fits]
    return tag("li", name, svg, _told(own), class_=" ".join(classes) or None)


def _unseen(segment: Segment) -> bool:
    return segment.ceiling is None and not segment.capped


def _told(segment: Segment) -> Markup:
    cap = tag("span", "the cap") if segment.capped else None
    if segment.ceiling is None:
        words = "the cap" if segment.capped else "not measured"
        return tag("div", words, class_="told")
    cause = tag("span", cap_text(segment.ceiling))
    return tag("div", ceiling_text(segment.ceiling), cause, cap, class_="told")


def _pipe(
    drawn: Sequence[Segment], at: int, forth: bool, flows: bool, across: bool
) -> tuple[Markup, ...]:
    own = drawn[at]
    begin, end = (_joint(drawn, at, beside) for beside in (at - 1, at + 1))
    walls = [_wall(begin, own.width, end, side, across) for side in (-1, 1)]
    pipe = [tag("path", d=wall, class_="pipe") for wall in walls]
    if not _unseen(own):
        outline = f"{walls[0]} L{_wall(end, own.width, begin, 1, across, back=True)[1:]} Z"
        pipe.insert(0, tag("path", d=outline, class_="bore"))
    if flows:
        pipe.append(tag("path", d=_stream(across, _unseen(own)), class_="flow"))
        pipe.append(tag("path", d=_arrow(forth, across), class_="way"))
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
