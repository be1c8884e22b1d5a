"""Lines of a terminal: hanging bullets, bars, the signs to draw with; no line ends in a space."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.text import Text

from bottleneck.reports.units import rate_text, scale_ends

GAP = "  "
WIDE, VERY_WIDE = 110, 160
"""Columns from which on there is room for longer bars, and for more of them."""
PROSE_COLUMNS = 120
"""The longest line of sentences: eyes lose the next one behind a longer one."""


@dataclass(frozen=True)
class Signs:
    """The characters to draw with, by what the terminal's encoding has."""

    blocks: str
    """Parts of a cell in rising order, a full one last."""
    rising: str
    """Heights of a cell in rising order; empty: there are none."""
    cap: str
    knee: str
    dash: str
    none: str


UNICODE = Signs(blocks="▏▎▍▌▋▊▉█", rising="▁▂▃▄▅▆▇█", cap="◀ cap", knee="◀", dash="–", none="·")
ASCII = Signs(blocks="#", rising="", cap="<- cap", knee="<-", dash="-", none=".")


def line(console: Console, text: str, style: str = "") -> None:
    """One line as it is: no markup, no highlighting, no wrapping.

    What the terminal's encoding has no character for is written as its escape.
    """
    shown = text.rstrip().encode(console.encoding, "backslashreplace").decode(console.encoding)
    console.print(Text(shown, style=style), no_wrap=True, overflow="ignore", crop=False)


def paragraph(console: Console, text: str, style: str = "", bullet: str = "") -> None:
    """Text wrapped to the console's width; a bullet hangs in front."""
    indent = " " * len(bullet)
    wrapped = textwrap.wrap(
        text,
        max(20, min(console.width, PROSE_COLUMNS)),
        initial_indent=bullet,
        subsequent_indent=indent,
        break_on_hyphens=False,
    )
    for each in wrapped:
        line(console, each, style)


def bullets(console: Console, title: str, lines: Sequence[str]) -> None:
    """A heading and its points; nothing where there are none."""
    if lines:
        heading(console, title)
    for each in lines:
        paragraph(console, each, bullet="- ")


def heading(console: Console, text: str) -> None:
    """A blank line and a title."""
    console.print()
    line(console, text, "bold")


def signs(console: Console) -> Signs:
    """Blocks where the encoding has them, else ASCII."""
    try:
        "".join(vars(UNICODE).values()).encode(console.encoding)
    except (UnicodeEncodeError, LookupError):
        return ASCII
    return ASCII if console.legacy_windows else UNICODE


def log_bar(bytes_per_second: float, width: int, with_signs: Signs) -> str:
    """A logarithmic bar on the one scale of all stages, so that they compare; empty below it."""
    low, high = scale_ends()
    if bytes_per_second <= low:
        return ""
    return bar(math.log(bytes_per_second / low, high / low), 1.0, width, with_signs)


def scale_text(width: int) -> str:
    """What stands above logarithmic bars of a width; empty where nothing fits."""
    ends = " to ".join(rate_text(each) for each in scale_ends())
    texts = (f"{ends}, logarithmic", f"{ends}, log", "log scale", "log")
    return next((each for each in texts if len(each) <= width), "")


def bar(value: float, most: float, width: int, with_signs: Signs) -> str:
    """A bar in parts of a cell; one longer than the scale ends in a sign that says so."""
    full_sign = with_signs.blocks[-1]
    if value > most:
        return full_sign * (width - 1) + ">"
    parts = len(with_signs.blocks)
    full, rest = divmod(max(1, round(value / most * width * parts)), parts)
    return full_sign * full + (with_signs.blocks[rest - 1] if rest else "")


def spark(value: float, most: float, with_signs: Signs) -> str:
    """A value as the height of one cell; empty where the encoding has no such cells."""
    heights = with_signs.rising
    return (
        heights[max(0, min(len(heights), round(value / most * len(heights))) - 1)]
        if heights
        else ""
    )
