"""The key below a drawing: a mark and its meaning in words, in as many lines as they take."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bottleneck.reports.plots.shapes import FONT, LINE, WIDTH, label, text_width

Mark = Callable[[float, float], str]
"""Draws a mark around a place."""
SIDE = 19
"""Width of a mark with the room behind it."""
_GAP = 14


def key(entries: Sequence[tuple[Mark, str]], top: float, left: float = 0.0) -> tuple[str, float]:
    """The entries as shapes, and where the next thing may stand below them."""
    parts: list[str] = []
    x, y = left, top
    for mark, text in entries:
        wide = SIDE + text_width(text)
        if x > left and x + wide > WIDTH:
            x, y = left, y + LINE
        parts.append(mark(x + 6, y + LINE / 2))
        parts.append(
            label(x + SIDE, y + LINE / 2 + FONT / 3, text, "muted", width=WIDTH - x - SIDE)
        )
        x += wide + _GAP
    return "".join(parts), (y + LINE if entries else top)
