"""Which token stands for which name: the same for the same name, numbered by what it names."""

from __future__ import annotations

import re
from collections.abc import Iterator

UNNUMBERED = ("client-host", "server-host")
"""Roles of which there is one; a second name of theirs is numbered from 2 on."""
_TOKEN = re.compile(
    r"(client-host|server-host)(-\d{1,6})?|(word|key|host|share|user|domain|address|path|file|device"
    r"|interface|serial|guid)-\d{1,6}"
)


def is_token(text: str) -> bool:
    """Whether it is one already: what is redacted twice stays as it is."""
    return _TOKEN.fullmatch(text) is not None


MOST_NAMES = 2_000
"""Of one report: each sentence is searched for all of them."""


class TooManyNames(ValueError):
    """More than a report of a run has; one line."""


FAMILIES = ("host", "share", "user", "domain", "file", "path", "address", "device", "interface")
"""Of roles, in the order in which a word of a sentence is looked up."""


def _family(role: str) -> str:
    return "host" if role in UNNUMBERED else role


class Names:
    """The tokens of one run, in the order in which its names came.

    A name has one token in each role: a share that is called as its host is another thing.
    """

    def __init__(self) -> None:
        self._tokens: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}

    def token(self, role: str, name: str) -> str:
        """The token of a name; a new one of this role where it has none. Case does not count."""
        if not name or is_token(name):
            return name
        key = _family(role), name.casefold()
        if key not in self._tokens:
            if len(self._tokens) >= MOST_NAMES:
                raise TooManyNames(f"more than {MOST_NAMES} names to replace")
            count = self._counts[role] = self._counts.get(role, 0) + 1
            alone = role in UNNUMBERED and count == 1
            self._tokens[key] = role if alone else f"{role}-{count}"
        return self._tokens[key]

    def known(self, name: str, *families: str) -> str | None:
        """The token of a name that has one, of the first of these families that knows it."""
        folded = name.casefold()
        for family in families or FAMILIES:
            if (family, folded) in self._tokens:
                return self._tokens[family, folded]
        return None

    def alias(self, role: str, name: str, token: str) -> None:
        """Another name of what a token stands for."""
        if name and not is_token(name):
            self._tokens.setdefault((_family(role), name.casefold()), token)

    def spaced(self) -> Iterator[str]:
        """Names of more than one word, the longest first."""
        found = {name for _, name in self._tokens if re.search(r"[^\w.'-]", name)}
        return iter(sorted(found, key=lambda name: (-len(name), name)))
