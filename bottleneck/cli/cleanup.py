"""`bottleneck cleanup [TARGET]`: remove what a killed run left."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bottleneck.cli import exits, interrupts, options

if TYPE_CHECKING:
    from rich.console import Console

    from bottleneck.doctor.leftovers import Cleaned, Found

LONGEST = 600
_PLACES = {"client": "here", "server": "server", "share": "share"}
MINUTE_SECONDS, HOUR_SECONDS, DAY_SECONDS = 60, 3600, 86400
Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="Also search this share or mount.")
]


@dataclass(frozen=True)
class Ends(options.Ends):
    """Where runs were made."""

    agent: str = options.value(
        "SPEC",
        "Also search the server's own disk, through ssh://[user@]host[:port] or exec:COMMAND.",
        "none",
    )
    folder: Path = options.value("DIR", "Directory of the run.", Path(), usual=options.HERE)


@options.group("Removal")
class Removal:
    """What is removed, and whether the user is asked."""

    older_than: float = options.value(
        "SECONDS",
        "Keep what was changed less than SECONDS ago; what is in use is always kept.",
        3600.0,
    )
    dry_run: bool = options.flag("List the files; remove nothing.")
    yes: bool = options.flag("Do not ask before removing.")


def cleanup(target: Target = None, *, who: options.Login, ends: Ends, removal: Removal) -> int:
    """Remove the test files of an interrupted run.

    Searches this host, the agent's host and TARGET, and asks before removing anything. Removes
    only folders that a journal of this program names, or whose files begin with its mark.
    """
    with interrupts.held():
        import os

        from bottleneck.agents.bootstrap import command_for
        from bottleneck.cli import documents, running
        from bottleneck.doctor.leftovers import REMOVED, Cleanup
        from bottleneck.documents import terminal
        from bottleneck.target import target as targets
        from probes.core.records import Access
        from probes.core.stage import Refused

    older_than = removal.older_than
    if not math.isfinite(older_than) or older_than < 0:
        raise Refused("usage", "--older-than: must be 0 seconds or more")
    named = None if target is None else targets.parse(target, os.path.isdir)
    folders = [str(ends.folder.absolute())]
    if named is not None and named.path:
        folders.append(str(Path(named.path).absolute()))
        named = None
    if ends.agent != "none":
        command_for(ends.agent)
    access = Access() if named is None else running.log_in_as(who, named)
    where = (tuple(folders), older_than, named, access, ends.agent, ends.server_folder)
    cleaned: list[Cleaned] = []
    with Cleanup(*where) as places:
        found = places.look()
        done = documents.shown(lambda: _print_found(found, terminal.console()))
        ours = [each for each in found if not each.leftover.why_left]
        if ours and not removal.dry_run:
            if not removal.yes:
                things = "this" if len(ours) == 1 else f"these {len(ours)}"
                running.ask(f"Remove {things}?", "removing files", "removed")
            cleaned = places.remove(ours)
    done = documents.shown(lambda: print_cleaned(cleaned, terminal.console())) and done
    if places.trouble is not None:
        raise places.trouble
    stays = any(each.leftover.why_left for each in found) and not removal.dry_run
    stays = stays or any(each.word != REMOVED for each in cleaned)
    return exits.DONE if done and not stays else exits.INCOMPLETE


def _print_found(found: Sequence[Found], console: Console) -> None:
    """What could be removed, and what only looks like it and why it stays."""
    from bottleneck.text.units import size_text

    if not found:
        console.print("No files of an interrupted run found.")
    for each in found:
        seen = each.leftover
        if seen.why_left:
            _line(console, "left", each, seen.why_left)
        elif seen.noted:
            about = f"created {_age(seen.age_seconds)} ago by an interrupted run"
            _line(console, "ours", each, about)
        else:
            files = "1 file" if seen.files == 1 else f"{seen.files} files"
            about = f"{files}, {size_text(seen.size_bytes)}, unchanged for {_age(seen.age_seconds)}"
            _line(console, "ours", each, about)


def print_cleaned(cleaned: Sequence[Cleaned], console: Console) -> None:
    """What is gone, what is still there and why, and of what neither is known."""
    for each in cleaned:
        _line(console, each.word, each.item, each.why)


def _line(console: Console, word: str, found: Found, more: str) -> None:
    from rich.text import Text

    from bottleneck.text.safe import safe

    line = Text.assemble((f"{word:<8}", "yellow" if word in ("left", "unknown") else ""))
    line.append(safe(f"{_PLACES[found.where]:<7}{found.name}", LONGEST))
    if more:
        line.append(safe(f": {more}", LONGEST))
    console.print(line, soft_wrap=True)


def _age(seconds: float) -> str:
    for name, unit in (("days", DAY_SECONDS), ("h", HOUR_SECONDS), ("min", MINUTE_SECONDS)):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
