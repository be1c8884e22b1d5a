"""Makes foreign text (host, share, file names, server messages) safe to show on a terminal."""

from __future__ import annotations

import unicodedata

LONGEST = 256
"""Characters of a foreign string that are shown."""

_HIDDEN = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0")
"""Letters by category that draw nothing."""


def safe(text: object, longest: int = LONGEST) -> str:
    """Escapes everything in a text that could move the cursor, hide or reorder characters.

    Escaped as \\xNN or \\uNNNN: C0, C1, bidirectional and zero-width controls, line separators,
    surrogates (bytes that were no UTF-8), private and unassigned characters, variation selectors.
    Longer text ends in three dots. A result passes unchanged through a second call.
    """
    pieces: list[str] = []
    length = 0
    for character in str(text)[: longest + 1]:
        piece = _escape(character) if _is_unsafe(character) else character
        pieces.append(piece)
        length += len(piece)
    return "".join(pieces) if length <= longest else "".join(pieces)[: longest - 3] + "..."


def _is_unsafe(character: str) -> bool:
    if " " <= character <= "~":
        return False
    return (
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
        or character in _HIDDEN
        or "\ufe00" <= character <= "\ufe0f"
        or "\U000e0100" <= character <= "\U000e01ef"
    )


def _escape(character: str) -> str:
    code = ord(character)
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
