"""A JSON document with one of its values changed: what bytes alone hardly ever reach."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from typing import Any

WHOLE = None, True, False, 0, 1, -1, 2, 7, 64, 4096, 2**31, 2**53 + 1, 2**63, 2**64, 10**400
FLOATS = 0.0, -0.0, 0.5, 1e-320, 1e300, 1.7e308, -1e9, float("inf"), float("nan"), 0.1 + 0.2
WORDS = "", "x", "client", "server", "read", "write", "push", "pull", "3.1.1", "\0", "\x1b[31m"
MARKS = "\u202e", "\ud800", "a\nb", "<b>&amp;", "[/x]", "]]>", "```", "|", "'", '"', "\u00e9" * 300
FORMS = "2026-11-20T10:00:00+00:00", "1", "-1", "1e999", "//h/s", "\\\\h\\s", "::1", "eth0"
NESTED = [], {}, [[]], [0], [0, 0], [[0, 0], [1, 1]], {"": {}}, {"kind": "measured"}
STRANGE = *WHOLE, *FLOATS, *WORDS, *MARKS, *FORMS, *NESTED


def mutated(data: bytes, chance: random.Random) -> bytes:
    """The document with one to three changes. Errors: ValueError, RecursionError: it is none."""
    document = json.loads(data)
    for _ in range(chance.randint(1, 3)):
        document = _changed(document, chance)
    return json.dumps(document).encode()


def _changed(document: Any, chance: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return copy.deepcopy(chance.choice(STRANGE))
    holder, key = chance.choice(places)
    how = chance.randrange(8)
    if how < 3:
        holder[key] = copy.deepcopy(chance.choice(STRANGE))
    elif how == 3:
        holder[key] = _near(holder[key], chance)
    elif how == 4:
        del holder[key]
    elif how == 5:
        other, place = chance.choice(places)
        holder[key] = copy.deepcopy(other[place])
    elif isinstance(holder, list):
        holder.insert(key, copy.deepcopy(holder[key]))
    elif how == 6:
        holder[key + chance.choice("xX_ \0")] = holder.pop(key)
    else:
        _, other_key = chance.choice(places)
        holder[str(other_key)] = copy.deepcopy(holder[key])
    return document


def _near(value: Any, chance: random.Random) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, (int, float)):
        return value * chance.choice((-1, 0.5, 2, 1000, 1e-9, 1e12)) + chance.choice((0, 1, -1))
    if isinstance(value, str):
        offset = chance.randint(0, len(value))
        return value[:offset] + str(chance.choice(STRANGE)) + value[offset:]
    if isinstance(value, list):
        return value[::-1] if chance.random() < 0.5 else value * 2
    return {} if value else {"x": value}


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    unseen = [value]
    while unseen:
        holder = unseen.pop()
        if isinstance(holder, (list, dict)):
            keys = range(len(holder)) if isinstance(holder, list) else list(holder)
            yield from ((holder, key) for key in keys)
            unseen += [holder[key] for key in keys]
