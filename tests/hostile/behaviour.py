"""Hostile behaviours, and the words that their cases share.

Servers: `plain` asks for nothing, `signing` and `sealing` require it, `wishing` would like
encryption, `old` speaks 2.1 at best. A behaviour that is harmless has to end in a copy that is
right; every other one in a refusal for the reason that is told, or, where nothing but the content
can tell, in a mismatch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from middle import Edit, Tamper
from server import Script

ACCESS_DENIED, LOGON_FAILURE = 0xC0000022, 0xC000006D
ACCOUNT_LOCKED, END_OF_FILE = 0xC0000234, 0xC0000011
PATH_NOT_COVERED, SYMLINK = 0xC0000257, 0x8000002D
BAD_NETWORK_NAME, SHARING_VIOLATION = 0xC00000CC, 0xC0000043
DISK_FULL, NETWORK_NAME_DELETED = 0xC000007F, 0xC00000C9
NOT_SUPPORTED, NO_SUCH_FILE = 0xC00000BB, 0xC0000034
THIRD_HOST = "127.0.0.77"
"""Named by referrals; nobody may ever ask there."""

FORGED = r"without (?:the|its)(?: right)? signature|wrong signature"
SPOILT = r"altered on its way"
NO_SMB = r"not an SMB message|does not offer SMB|invalid answer|check the port"
LATE = r"it ran out of time|no answer in|stalled"
GONE = r"closed the connection|connection failed|socket was closed"
NOT_ASKED = r"which was not asked|something else than what was asked"

Does = Script | tuple[Tamper, ...]
"""Words of a server without files, or what a man in the middle does to a real one."""


@dataclass(frozen=True)
class Terms:
    """Facts that several behaviours have in common."""

    name: str
    """Beginning of all their names."""
    says: str = ""
    """Found in the refusal's text."""
    dialect: str = "3.1.1"
    copy: str = "pull.cached"
    server: str = "plain"
    outcome: str = "refused"
    """refused: not measured, in any of the product's words; harmless: measured, and right;
    mismatch: measured, and the check of the content says that it is not what was sent; told:
    measured and right, by a lesser protection that nobody could find to be one: the details say
    which, in the words of `says`."""
    logins: int | None = None
    """Challenges that the client answered, where that is what counts; never more than 1."""
    with_folder: bool = False
    """The run's folder is made and held through the same peer first, which is one more login."""
    product_limits: bool = False
    """With the product's own time limits in place of short ones."""


@dataclass(frozen=True)
class Behaviour(Terms):
    """One hostile behaviour and what has to come of it."""

    does: Does = ()


def alter(moment: str, *edits: Edit, nth: int = 1, every: bool = False) -> tuple[Tamper, ...]:
    return (Tamper(moment, edits, nth, every),)


Table = Mapping[Terms, Mapping[str, Does | tuple[str, Does]]]


def attacks(table: Table) -> tuple[Behaviour, ...]:
    """A behaviour for each row, which may have words of its own that are found in the text."""
    behaviours = []
    for terms, rows in table.items():
        for name, row in rows.items():
            text, does = row if isinstance(row, tuple) and isinstance(row[0], str) else ("", row)
            facts = {**vars(terms), "name": terms.name + name, "says": text or terms.says}
            behaviours.append(Behaviour(**facts, does=does))
    return tuple(behaviours)
