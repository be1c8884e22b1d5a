"""Foreign text on a terminal."""

import sys
import unicodedata

import pytest

from bottleneck.reports.safe import LONGEST, safe


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("nas-2 (media) ä 日本", "nas-2 (media) ä 日本"),
        ("\x1b[31mred", "\\x1b[31mred"),
        ("a\nb\tc\x00", "a\\x0ab\\x09c\\x00"),
        ("\x9b31m", "\\x9b31m"),
        ("txt\u202egpj", "txt\\u202egpj"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("\udcff", "\\udcff"),
        ("a\u2028b", "a\\u2028b"),
        ("x\U000e0041", "x\\U000e0041"),
        ("\u3164", "\\u3164"),
        (7, "7"),
    ],
)
def test_what_moves_hides_or_reorders_is_escaped(text, shown):
    assert safe(text) == shown


def test_no_character_at_all_passes_that_controls_anything():
    dangerous = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        for character in safe(chr(code)):
            assert unicodedata.category(character) not in dangerous, hex(code)


@pytest.mark.parametrize("text", ["x" * 300, "\x1b" * 300, "\u202e" * 63 + "xyz", "a\x1b[0m"])
def test_the_result_is_short_and_passes_unchanged(text):
    once = safe(text)
    assert len(once) <= LONGEST
    assert safe(once) == once


def test_a_cut_is_shown():
    assert safe("x" * 300).endswith("x...")
    assert safe("abcdef", 5) == "ab..."
    assert safe("abcde", 5) == "abcde"
