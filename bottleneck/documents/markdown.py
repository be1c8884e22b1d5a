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
    """Returns text within a line; nothing in it is emphasis, code, a link, an image or a tag."""
    markup = _INLINE.sub(r"\\\g<0>", text)
    for pattern, escaped in _LINKS:
        markup = pattern.sub(escaped, markup)
    return _REFERENCE.sub(rf"\\\g<0>{APART}", markup)


def at_start(text: str) -> str:
    """Returns text for a line's start: it is no heading, list, quote, rule or command either."""
    line = inline(text.strip())
    number = _ORDERED.match(line)
    if number is not None:
        return f"{number[0]}\\{line[number.end() :]}"
    return f"\\{line}" if _BLOCK.match(line) else line


def paragraph(text: str, longest: int = 600, bullet: str = "", limit: int = 20) -> list[str]:
    """Returns at most `limit` lines of WIDTH columns of a foreign text; a bullet hangs in front.

    If there are more, the last sentences are left out; a first one that is longer is cut.
    """
    plain = " ".join(safe(text, longest).split())
    while len(plain) > limit * (WIDTH - 8) and (shorter := _without_last_sentence(plain)):
        plain = shorter
    indent = " " * len(bullet)
    room = WIDTH - len(bullet)
    for width in (room, room // 2 - 1, room // 6):
        lines = [at_start(each) for each in textwrap.wrap(plain, width, break_on_hyphens=False)]
        if all(len(each) <= room for each in lines):
            break
    if len(lines) > limit:
        lines = [*lines[: limit - 1], f"{lines[limit - 1][: room - 4].rstrip(chr(92))} ..."]
    return [f"{indent if index else bullet}{each}" for index, each in enumerate(lines)]


def _without_last_sentence(text: str) -> str:
    return text[: max(text.rstrip(".").rfind(". "), text.rstrip(".").rfind("; ")) + 1]


def section(title: str, blocks: Iterable[Block], limit: int = 20) -> list[str]:
    """Returns blocks under a heading, each point in at most `limit` lines; empty without blocks."""
    lines: list[str] = []
    for block in blocks:
        match block:
            case Text(text):
                lines += [*paragraph(text, limit=limit), ""]
            case Points():
                for each in block.lines:
                    lines += paragraph(each, len(each), "- ", limit)
                lines += [f"- and {block.left_out} more"] if block.left_out else []
            case Table():
                lines += [*_table(block), *([block.note] if block.note else []), ""]
            case Verbatim():
                # No line of them may begin with a fence.
                lines += [f"```{block.language}", *block.lines, "```"]
    return [f"## {title}", "", *lines, ""] if lines else []


def _table(table: Table) -> list[str]:
    """Returns the table with padded columns; the cells are foreign text, and short."""
    titles = tuple(each.title for each in table.columns)
    cells = [tuple(inline(safe(each, 40)) for each in row.cells) for row in table.rows]
    widths = [max(len(row[index]) for row in [titles, *cells]) for index in range(len(titles))]
    return [
        f"| {' | '.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))} |"
        for row in [titles, tuple("-" * width for width in widths), *cells]
    ]
