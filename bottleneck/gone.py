"""What a release took away, and what takes its place: refused by one line, for one release."""

from __future__ import annotations

from probes.stage import Refused

INSTEAD = {
    "tcp://": "--agent tcp:// was removed: use ssh://[user@]host, or exec:COMMAND",
    "--listen": "agent --listen was removed: use --agent ssh://[user@]host on the client",
    "--any-address": "agent --any-address was removed together with --listen",
    "--idle": "agent --idle was removed together with --listen",
}
"""By what was typed."""


def instead_of(what: str) -> str:
    """What takes the place of an option; empty: it never was one."""
    return INSTEAD.get(what, "")


def refuse(what: str, typed: bool = True) -> None:
    """Raises Refused, kind "usage", where something that went was typed."""
    if typed and what in INSTEAD:
        raise Refused("usage", INSTEAD[what])
