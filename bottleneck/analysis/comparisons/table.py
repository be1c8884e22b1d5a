"""Figures of one stage side by side: read from its details, and shown as a comparison's rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, TypeVar

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.load import SATURATED_RATIO, load
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.steps import Found

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    T = TypeVar("T", bound=DataclassInstance)

MOVING = {"pull": "Pulling", "push": "Pushing"}
"""What a step does by its verb, as a sentence begins."""
Row = dict[str, Any]


def read(kind: type[T], details: Any, **known: Any) -> T | None:
    """A record whose fields, but for the known ones, stand in details by their own names.

    A `float` has to be there and be more than nothing, else there is no such record; any other
    field is an amount or None.
    """
    for field in fields(kind):
        if field.name not in known:
            known[field.name] = steps.amount(details, field.name)
            if field.type == "float" and not steps.positive(details, field.name):
                return None
    return kind(**known)


def several(kind: type[T], found: Found, name: str, **known: Any) -> tuple[T, ...]:
    """The records of a list in a step's details."""
    told = steps.items(found.outcome.details, name)
    return tuple(each for each in (read(kind, row, **known) for row in told) if each is not None)


def full_cores(found: Found, *sides: str) -> Iterator[str]:
    """A sentence for each of the hosts on which this tool used a whole core."""
    for side in sides:
        seen = load(found.usage(side))
        if seen is not None and seen.process_ratio >= SATURATED_RATIO:
            yield f"This tool used a full core of the {side}: other programs may be faster."


def compared(
    about: str,
    sentence: str,
    rows: Iterable[DataclassInstance | Row],
    found: Iterable[Found],
    rates: tuple[float | None, float | None] = (None, None),
    *,
    believed: bool = True,
    least_ratio: float = SINGLE_RATIO,
) -> Comparison:
    """Figures side by side as a comparison; its ratio is that of both rates.

    believed: else their difference means nothing, and below least_ratio it means nothing either.
    """
    one, two = rates
    ratio = None if one is None or two is None else factor(one, two)
    return Comparison(
        about=about,
        sentence=sentence,
        rows=tuple(each if isinstance(each, dict) else asdict(each) for each in rows),
        ratio=ratio,
        significant=believed and ratio is not None and ratio > least_ratio,
        steps=tuple(dict.fromkeys(each.index for each in found)),
    )
