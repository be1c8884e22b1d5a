"""A document's blocks as Markdown that shows just that, and reads as well where nobody renders it.

What CommonMark (0.31) and GitHub's dialect would take as markup gets a backslash; controls are gone
by safe() before. So does what GitLab takes for a person, an issue, or a command to itself. GitHub
looks for persons and issues behind the backslash too: an empty comment parts them.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable

from bottleneck.documents.document import Block, Points, Table, Text, Verbatim
from bottleneck.text.safe import safe

WIDTH = 100
_INLINE = re.compile(r"[\\`*\[\]<>|$]|&(?=#?\w+;)|~(?=\S)|(?<!\w)_|_(?!\w)")
_LINKS = (
    (re.compile(r"(?i)(?<=http):(?=//)|(?<=https):(?=//)|(?<=ftp):(?=//)"), r":\\"),
    (re.compile(r"(?i)(?<=\bwww)\."), r"\\."),
    (re.compile(r"(?i)(?<=mailto):|(?<=xmpp):"), r"\\:"),
)
_REFERENCE = re.compile(r"@(?=\S)|#(?=\d)")
APART = "<!---->"
_BLOCK = re.compile(r"/(?=\w)|#{1,6}(?=\s|$)|[-+](?=\s|$)|(?<=\d)[.)](?=\s|$)|[=-]+\s*$")
_ORDERED = re.compile(r"\d{1,9}(?=[.)](\s|$))")


def inline(text: str) -> str:
    """Text inside of a line; nothing in it is emphasis, code, a link, an image or a tag."""
    found = _INLINE.sub(r"\\\g<0>", text)
    for pattern, escaped in _LINKS:
        found = pattern.sub(escaped, found)
    return _REFERENCE.sub(rf"\\\g<0>{APART}", found)


def at_start(text: str) -> str:
    """The same at a line's beginning: it is no heading, list, quote, rule or command either."""
    found = inline(text.strip())
    number = _ORDERED.match(found)
    if number is not None:
        return f"{number[0]}\\{found[number.end() :]}"
    return f"\\{found}" if _BLOCK.match(found) else found


def paragraph(text: str, longest: int = 600, bullet: str = "", most: int = 20) -> list[str]:
    """At most so many lines of WIDTH columns that show a foreign text; a bullet hangs in front.

    Of more the last sentences are left out; a first one that is longer is cut.
    """
    plain = " ".join(safe(text, longest).split())
    while len(plain) > most * (WIDTH - 8) and (shorter := _without_last_sentence(plain)):
        plain = shorter
    indent = " " * len(bullet)
    room = WIDTH - len(bullet)
    for width in (room, room // 2 - 1, room // 6):
        lines = [at_start(each) for each in textwrap.wrap(plain, width, break_on_hyphens=False)]
        if all(len(each) <= room for each in lines):
            break
    if len(lines) > most:
        lines = [*lines[: most - 1], f"{lines[most - 1][: room - 4].rstrip(chr(92))} ..."]
    return [f"{indent if at else bullet}{each}" for at, each in enumerate(lines)]


def _without_last_sentence(text: str) -> str:
    return text[: max(text.rstrip(".").rfind(". "), text.rstrip(".").rfind("; ")) + 1]


def section(title: str, blocks: Iterable[Block], most: int = 20) -> list[str]:
    """Blocks under a heading, each point in at most so many lines; nothing where there are none."""
    lines: list[str] = []
    for block in blocks:
        match block:
            case Text(text):
                lines += [*paragraph(text, most=most), ""]
            case Points():
                for each in block.lines:
                    lines += paragraph(each, len(each), "- ", most)
                lines += [f"- and {block.left_out} more"] if block.left_out else []
            case Table():
                lines += [*_table(block), *([block.note] if block.note else []), ""]
            case Verbatim():
                # No line of them may begin with a fence.
                lines += [f"```{block.language}", *block.lines, "```"]
    return [f"## {title}", "", *lines, ""] if lines else []


def _table(table: Table) -> list[str]:
    """Its columns padded; the cells are foreign text, and short."""
    titles = tuple(each.title for each in table.columns)
    cells = [tuple(inline(safe(each, 40)) for each in row.cells) for row in table.rows]
    widths = [max(len(row[at]) for row in [titles, *cells]) for at in range(len(titles))]
    lines = [titles, tuple("-" * width for width in widths), *cells]
    return [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in lines
    ]
