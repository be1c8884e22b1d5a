"""Two ends of a stream prove that they know one token, and every line carries its own proof.

It keeps others from sending lines, changing, repeating, leaving out or reordering them; it hides
nothing: whoever sits on the path reads all of it. Pure; the standard library alone.
Sources: HMAC-SHA-256, RFC 2104 and FIPS 180-4; challenge and response both ways as in RFC 2195.
"""

from __future__ import annotations

import base64
import hmac
import re
import secrets
from dataclasses import dataclass

NONCE_BYTES = 32
TOKEN_BYTES = 15
"""120 bits: who hears both proofs cannot try them all."""
MARK = b"copy-bottleneck-listen 1 "
"""Opens the listener's first line; the number is that of this protocol."""
WRONG, BUSY = b"refused wrong-token", b"refused busy"
"""What the listener says instead of its proof."""
LONGEST_WORDS_BYTES = 256
"""Of each line until both have proven themselves."""
PROOF_CHARACTERS = 64

_HEX = re.compile(rb"[0-9a-f]{64}")


class Forged(Exception):
    """A line that the other end cannot have sent, or not at this place."""


def new_token() -> str:
    """A fresh secret, in groups that a person can read out: abcd-efgh-..."""
    letters = base64.b32encode(secrets.token_bytes(TOKEN_BYTES)).decode().lower()
    return "-".join(letters[at : at + 4] for at in range(0, len(letters), 4))


def normal(token: str) -> bytes:
    """A token as both ends reckon with it, however it was typed."""
    return re.sub(r"[\s-]", "", token).lower().encode("utf-8", "surrogateescape")


@dataclass
class Seal:
    """The proofs of one direction of one stream."""

    key: bytes
    count: int = 0
    """Lines so far: a line proves its place too."""

    def sealed(self, line: bytes) -> bytes:
        """The next line with its proof in front, and a newline; the line has none."""
        frame = self._proof(line) + b" " + line + b"\n"
        self.count += 1
        return frame

    def opened(self, frame: bytes) -> bytes:
        """The line of a frame without its newline. Raises Forged."""
        line = frame[PROOF_CHARACTERS + 1 :]
        if not hmac.compare_digest(frame[: PROOF_CHARACTERS + 1], self._proof(line) + b" "):
            raise Forged(f"line {self.count + 1} is not what the other end sent")
        self.count += 1
        return line

    def _proof(self, line: bytes) -> bytes:
        return _proof(self.key, self.count.to_bytes(8, "big"), line)


@dataclass(frozen=True)
class Meeting:
    """What both ends know of one connection: the token and both nonces."""

    token: bytes
    listener_nonce: bytes
    caller_nonce: bytes

    def proof(self, end: str) -> bytes:
        """What `listener` or `caller` proves itself by, 64 hex digits."""
        return _proof(self.token, end.encode(), self.listener_nonce + self.caller_nonce)

    def seal(self, direction: str) -> Seal:
        """For `requests` (from the caller) or `replies`."""
        nonces = self.listener_nonce + self.caller_nonce
        return Seal(hmac.digest(self.token, b"key of the " + direction.encode() + nonces, "sha256"))


def nonce() -> bytes:
    """A fresh one, 64 hex digits."""
    return secrets.token_hex(NONCE_BYTES).encode()


def read_hello(line: bytes) -> bytes | None:
    """The listener's nonce in its first line; None: it is no such line."""
    told = line.removeprefix(MARK)
    return told if told != line and _HEX.fullmatch(told) else None


def read_answer(line: bytes) -> tuple[bytes, bytes] | None:
    """The caller's nonce and proof; None: it is no such line."""
    told, _, proof = line.partition(b" ")
    return (told, proof) if _HEX.fullmatch(told) and _HEX.fullmatch(proof) else None


def same(one: bytes, other: bytes) -> bool:
    """Whether two proofs are equal, in a time that tells nothing."""
    return hmac.compare_digest(one, other)


def _proof(key: bytes, what: bytes, line: bytes) -> bytes:
    # The length in front: no two pairs of what and line give one text.
    text = len(what).to_bytes(4, "big") + what + line
    return hmac.new(key, text, "sha256").hexdigest().encode()
