"""The primitives: what they draw stays where it is to stay, and says what it says safely."""

from __future__ import annotations

import pytest

from bottleneck.documents.plots import shapes
from bottleneck.documents.plots.shapes import WIDTH, opening, shortened_text, text_width


def within(drawing, svg):
    box = f'<svg viewBox="0 0 {WIDTH} 100">{svg}</svg>'
    return drawing(type("Plot", (), {"svg": box})).marks


@pytest.mark.parametrize(("width", "height"), [(100, 11), (3, 40), (0.5, 0.5), (40, 40), (5, 5)])
def test_a_hatch_stays_in_its_rectangle(parse_drawing, width, height):
    for mark in within(parse_drawing, shapes.hatch(10, 20, width, height, "x")):
        assert mark.left_x >= 10
        assert mark.right <= 10 + width + 0.05
        assert mark.top >= 20
        assert mark.bottom <= 20 + height + 0.05


@pytest.mark.parametrize("text", ["i" * 90, "\u5bb6" * 90, "short", ""])
@pytest.mark.parametrize("strong", [False, True])
def test_a_shortened_text_is_no_wider_than_it_may_be(text, strong):
    short = shortened_text(text, 120, strong)
    assert text_width(short, strong) <= 120
    assert short == text or short.endswith("...")


def test_two_sentences_of_many_are_opening():
    assert opening("One is 1.5. Two: 3 MB/s. Three.") == "One is 1.5. Two: 3 MB/s."
    assert len(opening("x" * 5000)) == 600
    assert "\x1b" not in opening("a\x1b[2J")
