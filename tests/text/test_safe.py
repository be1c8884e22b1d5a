"""Foreign text on a terminal."""

import sys
import unicodedata

import pytest

from bottleneck.text.safe import safe


@pytest.mark.parametrize(
    ("text", "escaped"),
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
        ("a\u180bb\u180f", "a\\u180bb\\u180f"),
        ("a\ufe0fb\U000e0100", "a\\ufe0fb\\U000e0100"),
        ("\u2066x\u2069\u061c", "\\u2066x\\u2069\\u061c"),
        ("\u00ad\u2060\u200d", "\\xad\\u2060\\u200d"),
        ("\ue000\U0010ffff", "\\ue000\\U0010ffff"),
        (7, "7"),
    ],
)
def test_what_moves_hides_or_reorders_is_escaped(text, escaped):
    assert safe(text) == escaped


@pytest.mark.long
def test_no_character_at_all_passes_that_controls_anything():
    dangerous = {"Cc", "Cf", "Cs", "Zl", "Zp"}
    for code in range(sys.maxunicode + 1):
        for character in safe(chr(code)):
            assert unicodedata.category(character) not in dangerous, hex(code)


def test_a_cut_is_shown():
    assert safe("x" * 300).endswith("x...")
    assert safe("abcdef", 5) == "ab..."
    assert safe("abcde", 5) == "abcde"


# fmt: off
INVISIBLE = (
    0x00AD, 0x034F, 0x061C, 0x115F, 0x1160, 0x17B4, 0x17B5, *range(0x180B, 0x1810),
    *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0x3164,
    *range(0xFE00, 0xFE10), 0xFEFF, 0xFFA0, *range(0xFFF0, 0xFFFC), *range(0x1BCA0, 0x1BCA4),
    *range(0x1D173, 0x1D17B), *range(0xE0000, 0xE1000),
)
# fmt: on
"""Default_Ignorable_Code_Point of Unicode 15.1 and the separators: drawn as nothing at all."""


def test_nothing_that_draws_nothing_is_hidden_in_a_name():
    passed = [hex(code) for code in INVISIBLE if not safe(chr(code)).isascii()]
    assert passed == []


@pytest.mark.parametrize("longest", [4, 10, 40, 256])
@pytest.mark.parametrize("text", ["x", "\x1b", "\u202e", "\U000e0041", "\ud800", "日", "é\x00"])
def test_ten_thousand_characters_end_at_the_limit(text, longest):
    once = safe(text * 10_000, longest)
    assert len(once) <= longest
    assert once.endswith("...")
    assert once.isprintable()
    assert safe(once, longest) == once


@pytest.mark.long
def test_every_character_passes_unchanged_through_a_second_call():
    for code in range(sys.maxunicode + 1):
        once = safe(chr(code))
        assert safe(once) == once, hex(code)


@pytest.mark.long
def test_what_is_safe_can_be_written():
    everything = "".join(safe(chr(code)) for code in range(sys.maxunicode + 1))
    assert everything.encode("utf-8").decode("utf-8") == everything
    assert len(everything.splitlines()) == 1
