"""The words that may stay in a sentence: those of this program's own text, and of the system's.

A sentence in a report may repeat anything that a server, a system or a person said. What is to
stay is therefore told, not what is to go.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

from bottleneck.analysis.finding import ABOUTS, CAUSES
from probes import STAGES
from probes.records import DIALECTS, SIDES

_WORD = re.compile(r"[a-z]{2,}")
_SYSTEM_CODE = re.compile(r"(NT_)?STATUS_[A-Z0-9_]{2,60}|E[A-Z0-9]{2,14}|0x[0-9a-fA-F]{1,8}")
_FIGURE = re.compile(
    r"x?\d[\d.,:+TZ-]*(th|nd|st|x|B|[kKMGT]i?B|[kMG]?bit|[num]?s|min|h|d)?|[.'_-]+", re.ASCII
)
_PLACEHOLDERS = ("host", "share", "folder", "localhost")


def schema_words() -> frozenset[str]:
    """Words that the report's own fields consist of: a name that is one of them tells nothing."""
    told = [*CAUSES, *(cause for each in CAUSES.values() for cause in each), *ABOUTS, *STAGES]
    told += [*DIALECTS, *SIDES, *_PLACEHOLDERS, "path", "pull", "push", "cached", "uncached"]
    told += ["measured", "skipped", "failed", "complete", "partial", "interrupted", "agent"]
    return frozenset(part for each in told for part in (each, *re.split(r"[-.]", each)) if part)


@cache
def words() -> frozenset[str]:
    """All words of the program's text, and of the system's messages, in lower case."""
    found = set(schema_words()) | {"a", "i", "s", "p", "t", "n", "x"}
    for package in ("bottleneck", "probes"):
        for text in _texts(resources.files(package)):
            found.update(_WORD.findall(text.lower()))
    for number in errno.errorcode:
        found.update(_WORD.findall(os.strerror(number).lower()))
    return frozenset(found)


def _texts(folder: Traversable) -> Iterator[str]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _texts(each)
        elif each.name.endswith(".py"):
            yield each.read_text(encoding="utf-8")


def is_figure(word: str) -> bool:
    """Whether it is a number, with or without its unit, a version, a time or a sign."""
    return _FIGURE.fullmatch(word) is not None


def may_stay(word: str) -> bool:
    """Whether a word, or each of its parts, is one of the program's or the system's."""
    if is_figure(word) or _SYSTEM_CODE.fullmatch(word):
        return True
    parts = re.split(r"[.'_-]+|(?<=[a-zA-Z])(?=\d)|(?<=\d)(?=[a-zA-Z])", word)
    return all(part.lower() in words() or part.isdecimal() for part in parts if part)
