"""The parts that a copy's data passes, in its order, with the limit of each.

A page draws them as one pipe around the copy's stream, logarithmic over the copy's own rate: limits
lie a hundredfold apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck import words
from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Part
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.report import Report
from bottleneck.reports.copies import is_cap
from bottleneck.reports.document import Flow, Place
from bottleneck.safe import safe
from bottleneck.units import rate_text
from probes.records import SIDES

LOWEST = 3
"""So many of the lowest limits have a place of their own in the chain."""
NARROWEST, WIDEST = 22.0, 94.0
"""Widths of the pipe around the copy's stream, in hundredths of the drawing."""
SIGNS = {"~": "estimated", ">": "at least", "?": "not measured", "-": "none seen"}
Room = tuple[str, tuple[Part, ...], bool]
"""A place by its name, what belongs to it, and whether every copy has it."""


def ends(copy: CopyDiagnosis) -> tuple[str, str]:
    """The sides that the bytes come from and go to."""
    verb = copy.copy.split(".")[-2] if "." in copy.copy else "pull"
    sender = steps.sender(verb, copy.initiator)
    return sender, steps.other(sender)


def flow(report: Report, diagnosis: Diagnosis, copy: CopyDiagnosis) -> Iterator[Flow]:
    """The chain of a copy; nothing of one that was not made, or of which no limit is known."""
    rate = copy.bytes_per_second
    if not rate or not copy.ceilings:
        return
    limits = [each for each in copy.ceilings if not each.tool or each.part == copy.verdict.part]
    lowest = {each.part for each in limits[:LOWEST]} | {copy.verdict.part}
    shown = [
        (name, parts, here)
        for name, parts, always in _rooms(copy)
        if (here := [each for each in limits if each.part in parts])
        and lowest & set(parts)
        or always
    ]
    most = max((each.bytes_per_second for each in limits), default=rate)
    nearest = next((e for e in limits if e.standing in ("measured", "inferred")), None)
    places = []
    for name, parts, here in shown:
        named = [each for each in here if is_cap(copy.verdict, each)]
        surer = [each for each in here if each.standing != "at-least"]
        limit = min(named or surer or here, key=_level, default=None)
        mark = ""
        if copy.verdict.part in parts and not diagnosis.healthy:
            mark = "bottleneck"
        elif limit is not None and copy.verdict.detail == f"or {name_with_verb(limit)}":
            mark = "or this"
        elif copy.verdict.component == "unknown" and limit is not None and limit is nearest:
            mark = "nearest"
        label = "" if limit is None else words.cap_text(limit)
        value = _limit_text(report, limit, parts)
        places.append(Place(name, value, mark, label, _width(limit, rate, most)))
    signs = (sign for sign in SIGNS if any(each.value.startswith(sign) for each in places))
    legend = ", ".join(f"{sign} {SIGNS[sign]}" for sign in signs)
    title = f"Limits of {safe(copy.copy, 40)}, in the order of the data"
    yield Flow(title, _joined(places), legend)


def _rooms(copy: CopyDiagnosis) -> Iterator[Room]:
    sender, receiver = ends(copy)
    if copy.copy.endswith(".cached"):
        yield f"{sender} cache", (("memory", sender), ("disk", sender)), True
    else:
        yield f"{sender} disk", (("disk", sender),), True
        yield f"{sender} memory", (("memory", sender),), False
    yield from _inside(copy, sender)
    yield "SMB", tuple(("smb", side) for side in (*SIDES, "path")), False
    yield "TCP", tuple(("tcp", side) for side in SIDES), False
    yield "network", tuple(("network", side) for side in (*SIDES, "path")), True
    yield from reversed(tuple(_inside(copy, receiver)))
    yield f"{receiver} memory", (("memory", receiver),), False
    yield f"{receiver} disk", (("disk", receiver),), True


def _inside(copy: CopyDiagnosis, side: str) -> Iterator[Room]:
    yield f"{side} CPU", (("cpu", side),), True
    if copy.verdict.part == ("instrument", side):
        yield f"this tool ({side})", (copy.verdict.part,), True
    yield f"{side} bus", (("bus", side),), False


def _limit_text(report: Report, limit: Ceiling | None, parts: tuple[Part, ...]) -> str:
    """A limit with its sign; `-`: none was seen; `?`: it was not measured."""
    if limit is not None:
        sign = words.DOUBT_SIGNS[limit.standing].strip()
        return f"{sign}{rate_text(limit.bytes_per_second)}"
    component, side = parts[0]
    seen = component == "memory" or component == "cpu" and (side == "client" or report.server)
    return "-" if seen else "?"


def _level(limit: Ceiling) -> float:
    return limit.bytes_per_second


def _width(limit: Ceiling | None, rate: float, most: float) -> float | None:
    if limit is None:
        return None
    if most <= rate or limit.bytes_per_second <= rate:
        return NARROWEST
    share = math.log(limit.bytes_per_second / rate) / math.log(most / rate)
    return NARROWEST + (WIDEST - NARROWEST) * share


def _joined(places: Sequence[Place]) -> tuple[Place, ...]:
    """With the widths where a place meets its neighbours; one without a limit keeps its own."""

    def joint(own: Place, beside: Place) -> float:
        if own.width is None or beside.width is None:
            return own.width or WIDEST
        return (own.width + beside.width) / 2

    before, behind = (places[0], *places[:-1]), (*places[1:], places[-1])
    return tuple(
        replace(own, begin=joint(own, one), end=joint(own, other))
        for own, one, other in zip(places, before, behind, strict=True)
    )
