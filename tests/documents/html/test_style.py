"""The style sheet: nothing from outside, and every colour can be read on every ground."""

from __future__ import annotations

import itertools
import re

import pytest

from bottleneck.documents.html import HEAT_LEVELS
from bottleneck.documents.plots.shapes import sheet

GROUNDS = ("paper", "surface", "faint")
TEXTS = ("ink", "muted", "accent", "cap", "good", "warn", *(f"series-{n}" for n in range(1, 7)))
SHEET = sheet("colours", "page", "plots")
LEAST_CONTRAST = 4.5
"""WCAG 2.2, 1.4.3."""


def schemes():
    """Variables of the light and of the dark set; paper has the light one."""
    themes = [
        dict(re.findall(r"--([\w-]+):(#[0-9a-f]{3,6})", rule))
        for rule in re.findall(r":root\{([^}]*)\}", SHEET)
        if "--paper" in rule
    ]
    assert "@media screen and (prefers-color-scheme:dark)" in SHEET
    return dict(zip(("light", "dark"), themes, strict=True))


def luminance(colour: str) -> float:
    """Source: WCAG 2.2, relative luminance."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * each for each in colour[1:])
    parts = (int(digits[n : n + 2], 16) / 255 for n in (0, 2, 4))
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    dark, bright = sorted((luminance(one), luminance(other)))
    return (bright + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_texts_can_be_read_on_every_ground(scheme):
    colours = schemes()[scheme]
    for text, ground in itertools.product(TEXTS, GROUNDS):
        assert contrast(colours[text], colours[ground]) >= LEAST_CONTRAST, (text, ground)
    for ground in TEXTS[2:]:
        assert contrast(colours["on-accent"], colours[ground]) >= LEAST_CONTRAST, ground
    steps = [colours[f"heat-{n}"] for n in range(HEAT_LEVELS)]
    for n, ground in enumerate(steps):
        assert contrast(colours[f"heat-{n}-ink"], ground) >= LEAST_CONTRAST
    levels = [luminance(each) for each in steps]
    assert levels in (sorted(levels), sorted(levels, reverse=True))


def test_the_sheet_asks_for_nothing_and_holds_no_markup():
    assert SHEET.isascii()
    assert "<" not in SHEET
    assert not re.search(r"url\(|@import|@font-face|expression|http", SHEET)
    assert SHEET.count("{") == SHEET.count("}")


def test_every_variable_that_is_used_is_defined():
    used = set(re.findall(r"var\(--([\w-]+)", SHEET))
    assert used <= set(re.findall(r"--([\w-]+):", SHEET))
