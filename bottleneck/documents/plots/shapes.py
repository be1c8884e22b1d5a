"""The shapes of a drawing as SVG text: numbers rounded, texts escaped, colours by class alone.

The page's policy forbids style attributes: a shape has presentation attributes and classes.
Source: Scalable Vector Graphics 1.1, chapters 5 (structure), 8 (paths), 9 (shapes), 10 (text).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from xml.sax.saxutils import escape

from bottleneck.text.safe import safe

WIDTH = 330
"""Width of every drawing, in units: as many pixels as a figure has on a phone."""
FONT = 12
LINE = 15
"""Units from one line of text to the next."""
_EM = 0.64
"""Width of a usual character over the font's size: DejaVu Sans has as much."""
_WIDE_EM = 1.05
_STRONG_RATIO = 1.08
"""Width of a heavy text over that of a usual one."""
HATCH_STEP = 5.0
LONGEST_SENTENCE = 600
_ENDS = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

TEMPLATES = Path(__file__).parent.with_name("templates")
Point = tuple[float, float]


@cache
def sheet(*names: str) -> str:
    """Returns style sheets one after the other; they hold no markup and no address."""
    return "".join((TEMPLATES / f"{each}.css").read_text("ascii") for each in names)


def number(value: float) -> str:
    """Returns a coordinate, exact to a tenth of a unit."""
    return f"{value:.1f}".removesuffix(".0")


def drawing(
    name: str, title: str, sentence: str, height: float, shapes: Iterable[str], style: str = ""
) -> str:
    """Returns an <svg> element as wide as WIDTH units, with its title and description; ASCII.

    Args:
        name: of the plot: unique in the page, letters, digits and hyphens.
        style: of a drawing that stands alone, in a file of its own.
    """
    tall = number(height)
    root = ' xmlns="http://www.w3.org/2000/svg" font-family="sans-serif"' if style else ""
    parts = (
        f'<svg class="plot"{root} role="img" aria-labelledby="plot-{name}-title plot-{name}-desc" '
        f'viewBox="0 0 {WIDTH} {tall}" width="{WIDTH}" height="{tall}" font-size="{FONT}">',
        *([f"<style>{style}</style>"] if style else []),
        f'<title id="plot-{name}-title">{escape(title)}</title>',
        f'<desc id="plot-{name}-desc">{escape(sentence)}</desc>',
        *shapes,
        "</svg>",
    )
    # ASCII alone, so that every file and terminal takes it.
    return "\n".join(parts).encode("ascii", "xmlcharrefreplace").decode("ascii")


def opening(sentences: str) -> str:
    """Returns the first two sentences of the analysis on a subject, safe and bounded."""
    return safe(" ".join(_ENDS.split(sentences)[:2]), LONGEST_SENTENCE)


def text_width(text: str, strong: bool = False) -> float:
    """Returns about the width of a text at the drawings' font, in units; rather more than less."""
    wide = sum(unicodedata.east_asian_width(each) in "WF" for each in text)
    usual = FONT * (_EM * (len(text) - wide) + _WIDE_EM * wide)
    return usual * (_STRONG_RATIO if strong else 1.0)


def shortened_text(text: str, width: float, strong: bool = False) -> str:
    """Returns the text, cut with three dots where it is wider than so many units."""
    if text_width(text, strong) <= width:
        return text
    while text and text_width(f"{text}...", strong) > width:
        text = text[:-1]
    return f"{text.rstrip()}..."


def label(
    x: float,
    y: float,
    text: str,
    css_class: str = "",
    anchor: str = "start",
    width: float = float(WIDTH),
) -> str:
    """Returns a text with its base line at y, no wider than so many units."""
    content = escape(shortened_text(text, width, "strong" in css_class))
    side = "" if anchor == "start" else f' text-anchor="{anchor}"'
    css = f' class="{css_class}"' if css_class else ""
    return f'<text x="{number(x)}" y="{number(y)}"{side}{css}>{content}</text>'


def rect(x: float, y: float, width: float, height: float, css_class: str, tip: str = "") -> str:
    """Returns a rectangle, at least half a unit wide and high; tip: shown when pointed at."""
    return _shape("rect", css_class, tip, x=x, y=y, width=max(0.5, width), height=max(0.5, height))


def line(x1: float, y1: float, x2: float, y2: float, css_class: str) -> str:
    """Returns a straight line."""
    return _shape("line", css_class, x1=x1, y1=y1, x2=x2, y2=y2)


def polyline(points: Sequence[Point], css_class: str, tip: str = "") -> str:
    """Returns lines from point to point."""
    return _shape("polyline", css_class, tip, points=_points(points))


def area(points: Sequence[Point], css_class: str, tip: str = "") -> str:
    """Returns a filled shape around points."""
    return _shape("polygon", css_class, tip, points=_points(points))


def circle(x: float, y: float, radius: float, css_class: str, tip: str = "") -> str:
    """Returns a dot."""
    return _shape("circle", css_class, tip, cx=x, cy=y, r=radius)


def upright_whisker(x: float, low: float, high: float) -> str:
    """Returns an upright range with a stop at both ends, and a halo: it shows on a bar too."""
    stem = f"M{number(x)} {number(low)}V{number(high)}"
    stops = (f"M{number(x - 3)} {number(each)}H{number(x + 3)}" for each in (low, high))
    path = "".join((stem, *stops))
    return _shape("path", "halo", d=path) + _shape("path", "whisker", d=path)


def hatch(x: float, y: float, width: float, height: float, css_class: str) -> str:
    """Returns rising lines that fill a rectangle and stay in it."""
    bits = []
    count = math.ceil((width + height) / HATCH_STEP)
    for each in range(1, count):
        right = each * HATCH_STEP
        # From the left or lower side to the upper or right one.
        begin = (x, y + right) if right <= height else (x + right - height, y + height)
        end = (x + right, y) if right <= width else (x + width, y + right - width)
        bits.append(f"M{number(begin[0])} {number(begin[1])}L{number(end[0])} {number(end[1])}")
    return _shape("path", f"thin {css_class}", d="".join(bits)) if bits else ""


def translate(x: float, y: float, shapes: Iterable[str]) -> str:
    return f'<g transform="translate({number(x)} {number(y)})">{"".join(shapes)}</g>'


def _shape(tag: str, css_class: str, tip: str = "", **attributes: float | str) -> str:
    pairs = (
        f'{key}="{value if isinstance(value, str) else number(value)}"'
        for key, value in attributes.items()
    )
    head = f'{tag} {" ".join(pairs)} class="{css_class}"'
    return f"<{head}><title>{escape(tip)}</title></{tag}>" if tip else f"<{head}/>"


def _points(points: Sequence[Point]) -> str:
    return " ".join(f"{number(x)},{number(y)}" for x, y in points)
