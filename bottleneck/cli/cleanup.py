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

    from bottleneck.doctor.leftovers import FoundLeftover, RemovalResult

LONGEST = 600
_PLACES = {"client": "here", "server": "server", "share": "share"}
MINUTE_SECONDS, HOUR_SECONDS, DAY_SECONDS = 60, 3600, 86400
Target = Annotated[
    str | None, typer.Argument(metavar="[TARGET]", help="Also search this share or mount.")
]


@dataclass(frozen=True)
class Ends(options.Ends):
    """Hosts on which runs were made."""

    agent: str = options.value(
        "SPEC",
        "Also search the server's own disk, through ssh://[user@]host[:port] or exec:COMMAND.",
        "none",
    )
    folder: Path = options.value("DIR", "Directory of the run.", Path(), usual=options.HERE)


@options.group("Removal")
class Removal:
    older_than: float = options.value(
        "SECONDS",
        "Keep what was changed less than SECONDS ago; what is in use is always kept.",
        3600.0,
    )
    dry_run: bool = options.flag("List the files; remove nothing.")
    yes: bool = options.flag("Do not ask before removing.")


def cleanup(target: Target = None, *, login: options.Login, ends: Ends, removal: Removal) -> int:
    """Remove the test files of an interrupted run.

    Searches this host, the agent's host and TARGET, and asks before removing anything. Removes
    only folders that a journal of this program names, or whose files begin with its mark.
    """
    with interrupts.defer():
        import os

        from bottleneck.agents.bootstrap import command_for
        from bottleneck.cli import documents, measuring
        from bottleneck.doctor.leftovers import REMOVED, Cleanup
        from bottleneck.documents import terminal
        from bottleneck.login import target as targets
        from probes.core.records import Access
        from probes.core.stage import Refused

    older_than = removal.older_than
    if not math.isfinite(older_than) or older_than < 0:
        raise Refused("usage", "--older-than: must be 0 seconds or more")
    place = None if target is None else targets.parse(target, os.path.isdir)
    folders = [str(ends.folder.absolute())]
    if place is not None and place.path:
        folders.append(str(Path(place.path).absolute()))
        place = None
    if ends.agent != "none":
        command_for(ends.agent)
    access = Access() if place is None else measuring.log_in_as(login, place)
    arguments = (tuple(folders), older_than, place, access, ends.agent, ends.server_folder)
    cleaned: list[RemovalResult] = []
    with Cleanup(*arguments) as places:
        leftovers = places.look()
        done = documents.show(lambda: _print_leftovers(leftovers, terminal.console()))
        ours = [each for each in leftovers if not each.leftover.why_left]
        if ours and not removal.dry_run:
            if not removal.yes:
                things = "this" if len(ours) == 1 else f"these {len(ours)}"
                measuring.ask(f"Remove {things}?", "removing files", "removed")
            cleaned = places.remove(ours)
    done = documents.show(lambda: print_cleaned(cleaned, terminal.console())) and done
    if places.trouble is not None:
        raise places.trouble
    stays = any(each.leftover.why_left for each in leftovers) and not removal.dry_run
    stays = stays or any(each.word != REMOVED for each in cleaned)
    return exits.DONE if done and not stays else exits.INCOMPLETE


def _print_leftovers(leftovers: Sequence[FoundLeftover], console: Console) -> None:
    """Writes what could be removed, and what only looks like it and why it stays."""
    from bottleneck.text.units import size_text

    if not leftovers:
        console.print("No files of an interrupted run found.")
    for each in leftovers:
        leftover = each.leftover
        if leftover.why_left:
            _line(console, "left", each, leftover.why_left)
        elif leftover.noted:
            text = f"created {_age(leftover.age_seconds)} ago by an interrupted run"
            _line(console, "ours", each, text)
        else:
            files = "1 file" if leftover.files == 1 else f"{leftover.files} files"
            age = _age(leftover.age_seconds)
            text = f"{files}, {size_text(leftover.size_bytes)}, unchanged for {age}"
            _line(console, "ours", each, text)


def print_cleaned(cleaned: Sequence[RemovalResult], console: Console) -> None:
    """Writes what is gone, what is still there and why, and of what neither is known."""
    for each in cleaned:
        _line(console, each.word, each.item, each.why)


def _line(console: Console, word: str, entry: FoundLeftover, details: str) -> None:
    from rich.text import Text

    from bottleneck.text.safe import safe

    line = Text.assemble((f"{word:<8}", "yellow" if word in ("left", "unknown") else ""))
    line.append(safe(f"{_PLACES[entry.where]:<7}{entry.name}", LONGEST))
    if details:
        line.append(safe(f": {details}", LONGEST))
    console.print(line, soft_wrap=True)


def _age(seconds: float) -> str:
    for name, unit in (("days", DAY_SECONDS), ("h", HOUR_SECONDS), ("min", MINUTE_SECONDS)):
        if seconds >= 2 * unit:
            return f"{seconds / unit:.0f} {name}"
    return f"{seconds:.0f} s"
