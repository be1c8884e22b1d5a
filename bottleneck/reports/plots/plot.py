"""One drawing of a page: SVG without script or address outside, and the same figures as a table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plot:
    """A drawing and what it says in words and in a table, for whoever cannot see it."""

    name: str
    """Of its place in the page: `waterfall`, `zones-1`; unique, letters, digits and hyphens."""
    title: str
    sentence: str
    """What the drawing shows, in one or two sentences; plain text, safe."""
    svg: str
    """An <svg> element, ASCII, ready to stand in the page; colours by the page's CSS variables."""
    columns: tuple[str, ...]
    """Titles of the table behind it; plain text."""
    rows: tuple[tuple[str, ...], ...]
    """Its cells; plain text, safe, not escaped."""
