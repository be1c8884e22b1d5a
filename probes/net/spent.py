"""A generator's result, where nobody wants what it yields on the way; pure."""

from __future__ import annotations

from typing import Any, Generator, TypeVar

T = TypeVar("T")


def spent(running: Generator[Any, None, T]) -> T:
    """Runs it to its end; what it returns."""
    while True:
        try:
            next(running)
        except StopIteration as end:
            result: T = end.value
            return result
