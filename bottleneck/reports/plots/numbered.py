"""So many of a kind are drawn and no more; the last one says how many are left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TypeVar

T = TypeVar("T")


def numbered(found: Sequence[T], most: int) -> Iterator[tuple[int, T, str]]:
    """The first so many with their numbers from 1, and what the sentence of each has to add."""
    left = len(found) - most
    for at, each in enumerate(found[:most], 1):
        last = at == most and left > 0
        yield at, each, f" {left} more of this kind are not drawn." if last else ""
