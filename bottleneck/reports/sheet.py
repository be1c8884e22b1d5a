"""The style sheets of the page and of drawings that stand alone, as files beside the template."""

from __future__ import annotations

from functools import cache
from pathlib import Path

TEMPLATES = Path(__file__).with_name("html") / "templates"


@cache
def sheet(*names: str) -> str:
    """Style sheets one after the other; they hold no markup and no address."""
    return "".join((TEMPLATES / f"{each}.css").read_text("ascii") for each in names)
