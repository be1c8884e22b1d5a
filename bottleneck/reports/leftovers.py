"""What a clean-up found, removed and left, a line each."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from bottleneck.leftovers import Cleaned, Found
from bottleneck.reports.safe import safe
from bottleneck.reports.units import size_text

LONGEST = 600
_PLACES = {"client": "here", "server": "server", "share": "share"}
MINUTE_SECONDS, HOUR_SECONDS, DAY_SECONDS = 60, 3600, 86400


def print_found(found: Sequence[Found], console: Console) -> None:
    """What could be removed, and what only looks like it and why it stays."""
    if not found:
        console.print("Nothing of a killed run was found.")
    for each in found:
        seen = each.leftover
        files = "1 file" if seen.files == 1 else f"{seen.files} files"
        about = f"{files}, {size_text(seen.size_bytes)}, unchanged for {_age(seen.age_seconds)}"
        if seen.processes:
            about += f", with {len(seen.processes)} processes of a Samba"
        word = "ours" if each.removable else "left"
        reason = about if each.removable else seen.why_left
        _line(console, word, each, reason)


def print_cleaned(cleaned: Sequence[Cleaned], console: Console) -> None:
    """What is gone, what is still there and why, and of what neither is known."""
    for each in cleaned:
        word = ("left" if each.why_left else "removed") if each.known else "unknown"
        _line(console, word, each.found, each.why_left)


def _line(console: Console, word: str, found: Found, more: str) -> None:
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
