"""The primitives: what they draw stays where it is to stay, and says what it says safely."""

from __future__ import annotations

import pytest

from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.key import key
from bottleneck.reports.plots.numbered import numbered
from bottleneck.reports.plots.shapes import WIDTH, label, shortened, text_width, told


def within(drawing, svg):
    """The marks of some shapes."""
    box = f'<svg viewBox="0 0 {WIDTH} 100">{svg}</svg>'
    return drawing(type("Plot", (), {"svg": box})).marks


@pytest.mark.parametrize(("width", "height"), [(100, 11), (3, 40), (0.5, 0.5), (40, 40), (5, 5)])
def test_a_hatch_stays_in_its_rectangle(drawing, width, height):
    for mark in within(drawing, shapes.hatch(10, 20, width, height, "x")):
        assert mark.left >= 10
        assert mark.right <= 10 + width + 0.05
        assert mark.top >= 20
        assert mark.bottom <= 20 + height + 0.05


@pytest.mark.parametrize("width", [6, 30, 100])
def test_dots_stay_in_their_rectangle(drawing, width):
    (mark,) = within(drawing, shapes.dots(10, 20, width, 8, "x"))
    assert mark.left > 10
    assert mark.right < 10 + width
    assert shapes.dots(10, 20, 3, 8, "x") == ""


def test_what_has_no_length_is_seen_all_the_same(drawing):
    (mark,) = within(drawing, shapes.rect(1, 1, 0, -5, "x"))
    assert mark.width == mark.bottom - mark.top == 0.5


@pytest.mark.parametrize("text", ["i" * 90, "\u5bb6" * 90, "short", ""])
@pytest.mark.parametrize("strong", [False, True])
def test_a_shortened_text_is_no_wider_than_it_may_be(text, strong):
    shown = shortened(text, 120, strong)
    assert text_width(shown, strong) <= 120
    assert shown == text or shown.endswith("...")


def test_a_texts_markup_is_shown_and_not_read(drawing):
    (mark,) = within(drawing, label(0, 10, '<b a="1">&</b>'))
    assert mark.text == '<b a="1">&</b>'
    (mark,) = within(drawing, shapes.rect(0, 0, 1, 1, "x", "<i>'&\""))
    assert mark.text == "<i>'&\""


def test_a_key_breaks_into_lines_that_fit(drawing):
    entries = [(lambda x, y: shapes.circle(x, y, 3, "x"), f"a meaning, number {n}") for n in "1234"]
    svg, below = key(entries, 50.0)
    marks = within(drawing, svg)
    assert all(mark.right <= WIDTH for mark in marks)
    assert below == 50 + 4 * shapes.LINE
    assert key([], 50.0) == ("", 50.0)


def test_two_sentences_of_many_are_told():
    assert told("One is 1.5. Two: 3 MB/s. Three.") == "One is 1.5. Two: 3 MB/s."
    assert len(told("x" * 5000)) == 600
    assert "\x1b" not in told("a\x1b[2J")


def test_only_the_last_of_too_many_says_that_there_are_more():
    assert [each[0] for each in numbered("abc", 3)] == [1, 2, 3]
    assert {each[2] for each in numbered("abc", 3)} == {""}
    *_, last = numbered("abcde", 3)
    assert last == (3, "c", " 2 more of this kind are not drawn.")
