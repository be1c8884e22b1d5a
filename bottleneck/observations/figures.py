"""Figures with their units, read from an observations file's texts.

Errors: ReportError, one line that says where and what.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from bottleneck.report import ReportError

T = TypeVar("T")


def read(where: str, text: str | None, parse: Callable[[str], T]) -> T | None:
    """What a text says, by one of the parsers of the units; None: nothing was told."""
    try:
        return None if text is None else parse(text)
    except ValueError as error:
        raise ReportError(f"{where}: {error}") from None


def needed(where: str, text: str, parse: Callable[[str], T]) -> T:
    """The same where it has to be told."""
    found = read(where, text, parse)
    assert found is not None
    return found


def one_of(where: str, word: str, words: tuple[str, ...]) -> str:
    """The word, if it is one of these."""
    if word not in words:
        raise ReportError(f"{where}: {word[:40]!r} is none of {', '.join(words)}")
    return word


def ratio(where: str, value: float | None) -> float | None:
    """A share, which is at most the whole."""
    if value is not None and value > 1:
        raise ReportError(f"{where}: {value:g} is not between 0 and 1")
    return value


def known(**values: Any) -> dict[str, Any]:
    """What is known of these, by name."""
    return {name: value for name, value in values.items() if value is not None}
