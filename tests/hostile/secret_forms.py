"""A password that no other text holds, and every form in which it could be found again."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field

from impacket.ntlm import compute_nthash

ALIGNMENTS = 3
"""Base64 writes three bytes as four characters: where a text begins decides how it looks."""


@dataclass(frozen=True)
class Secret:
    """A password, and its marked part: no quoting of a format changes that."""

    marked: str = field(default_factory=lambda: f"Leak{secrets.token_hex(10)}")

    @property
    def password(self) -> str:
        """With characters that a shell, a URL or a file format has to quote."""
        return f"%47 &'\"${self.marked}<>"

    def forms(self) -> dict[str, bytes]:
        """Name and bytes of each form."""
        found: dict[str, bytes] = {}
        for coding in ("utf-8", "utf-16-le"):
            plain = self.marked.encode(coding)
            found[coding] = plain
            found[f"{coding} hex"] = plain.hex().encode()
            found[f"{coding} HEX"] = plain.hex().upper().encode()
            for at in range(ALIGNMENTS):
                found[f"{coding} base64, alignment {at}"] = _inner_base64(plain, at)
        found["URL, each byte"] = "".join(f"%{each:02X}" for each in self.marked.encode()).encode()
        digest = compute_nthash(self.password)
        found["NT hash"] = digest
        found["NT hash hex"] = digest.hex().encode()
        found["NT hash HEX"] = digest.hex().upper().encode()
        return found


def _inner_base64(plain: bytes, at: int) -> bytes:
    """What base64 makes of it behind so many other bytes, without what depends on its neighbours.

    No 62nd or 63rd character comes out of letters and digits in UTF-8: the URL-safe alphabet is
    the same.
    """
    whole = (len(plain) + at) // 3 * 3
    coded = base64.b64encode((b"\0" * at + plain)[:whole])
    return coded[4:] if at else coded


def found_in(data: bytes, forms: dict[str, bytes]) -> list[str]:
    """Names of the forms that the data holds."""
    return [name for name, form in forms.items() if form in data]
