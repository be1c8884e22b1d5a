"""The structures that a card's driver answers to ethtool, read; pure.

Source: include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from typing import Optional

STRING_BYTES = 32
NO_RATE = (0, 0xFFFF, 0xFFFFFFFF)
LINK = struct.Struct("=IIBBBBBBBbBBBB")
"""ethtool_link_settings: command, rate in Mbit/s, duplex, port, PHY, autonegotiation ..."""
LINK_BYTES = 48

MODES = {
    10: (0, 1, 92),
    100: (2, 3, 67, 90, 91),
    1000: (4, 5, 17, 41, 68),
    2500: (15, 47),
    5000: (48,),
    10000: (12, 18, 19, 20, 42, 43, 44, 45, 46),
    25000: (31, 32, 33),
    40000: (23, 24, 25, 26),
    50000: (34, 35, 40, 52, 53, 54, 55, 56),
    100000: (36, 37, 38, 39, 57, 58, 59, 60, 61, 75, 76, 77, 78, 79),
    200000: (62, 63, 64, 65, 66, 80, 81, 82, 83, 84),
    400000: (69, 70, 71, 72, 73, 85, 86, 87, 88, 89),
}
"""ETHTOOL_LINK_MODE_*_BIT by Mbit/s."""

_PAUSES = re.compile(r"pause|xon|xoff|flow_control|\bfc_|_fc_", re.IGNORECASE)
_LOSSES = re.compile(
    r"no_?buf|no_?desc|no_?dma|out_of_buf|buf_alloc|alloc.*fail|ring_full|missed|fifo|overrun"
    r"|over_errors|(rx|tx|receive|in).*(drop|discard)",
    re.IGNORECASE,
)
_NO_COUNTS = re.compile(
    r"duration|transition|storm|steer|prio|tc\d|queue|^\[|\d+[_.: ]|dropless|bytes"
)
"""Times, states, and parts of what is counted in whole elsewhere."""


@dataclass(frozen=True)
class Negotiated:
    """What the two ends of a cable agreed on."""

    rate_bits_per_second: Optional[int]
    duplex: Optional[str]
    autonegotiated: Optional[bool]
    able_bits_per_second: Optional[int]
    """The fastest mode of this end."""
    partner_bits_per_second: Optional[int]
    """The fastest that the other end of the cable told of; None: it told of none."""


def parse_driver(answer: bytes | None) -> tuple[str | None, str | None]:
    """Name and place of ethtool_drvinfo."""
    if answer is None or len(answer) < 132:
        return None, None
    return _text(answer[4:36]) or None, _text(answer[100:132]) or None


def parse_negotiated(answer: bytes | None) -> Negotiated | None:
    """ethtool_link_settings with its masks of supported, advertised and the partner's modes."""
    if answer is None or len(answer) < LINK_BYTES:
        return None
    fields = LINK.unpack_from(answer)
    rate, duplex, negotiated, words = fields[1], fields[2], fields[5], fields[9]
    masks = [b"", b"", b""]
    if words > 0 and len(answer) >= LINK_BYTES + 12 * words:
        ends = [LINK_BYTES + 4 * words * each for each in range(4)]
        masks = [answer[ends[each] : ends[each + 1]] for each in range(3)]
    return Negotiated(
        rate_bits_per_second=None if rate in NO_RATE else rate * 1_000_000,
        duplex={0: "half", 1: "full"}.get(duplex),
        autonegotiated={0: False, 1: True}.get(negotiated),
        able_bits_per_second=fastest(masks[0]),
        partner_bits_per_second=fastest(masks[2]),
    )


def fastest(mask: bytes) -> int | None:
    """Bits per second of the fastest mode in a mask of ethtool's words; None: of none known."""
    words = struct.unpack(f"={len(mask) // 4}I", mask[: len(mask) // 4 * 4])
    bits = {32 * at + bit for at, word in enumerate(words) for bit in range(32) if word >> bit & 1}
    rates = [megabits for megabits, modes in MODES.items() if bits & set(modes)]
    return max(rates) * 1_000_000 if rates else None


def parse_pause(answer: bytes | None) -> dict[str, bool]:
    """ethtool_pauseparam: whether flow control is negotiated, obeyed and used."""
    if answer is None or len(answer) < 16:
        return {}
    _, negotiated, receives, sends = struct.unpack_from("=4I", answer)
    return {"autonegotiated": bool(negotiated), "receives": bool(receives), "sends": bool(sends)}


def parse_coalescing(answer: bytes | None) -> tuple[dict[str, float], dict[str, bool]]:
    """ethtool_coalesce: how long, and for how many packets, an interrupt waits; if by itself."""
    if answer is None or len(answer) < 92:
        return {}, {}
    told = struct.unpack_from("=23I", answer)
    waits = {
        "receive_seconds": told[1] / 1e6,
        "receive_packets": float(told[2]),
        "send_seconds": told[5] / 1e6,
        "send_packets": float(told[6]),
    }
    return waits, {"receive": bool(told[10]), "send": bool(told[11])}


def parse_rings(answer: bytes | None) -> dict[str, int]:
    """ethtool_ringparam: packets that the card's rings hold, and could hold."""
    if answer is None or len(answer) < 36:
        return {}
    told = struct.unpack_from("=9I", answer)
    return {
        "receive_packets": told[5],
        "send_packets": told[8],
        "able_receive_packets": told[1],
        "able_send_packets": told[4],
    }


def parse_names(answer: bytes | None) -> list[str]:
    """ethtool_gstrings: the driver's names of its counters, in order."""
    if answer is None or len(answer) < 12:
        return []
    count = min(struct.unpack_from("=I", answer, 8)[0], (len(answer) - 12) // STRING_BYTES)
    starts = range(12, 12 + count * STRING_BYTES, STRING_BYTES)
    return [_text(answer[at : at + STRING_BYTES]) for at in starts]


def parse_counts(names: list[str], answer: bytes | None) -> dict[str, int]:
    """ethtool_stats by the driver's names: those alone that count pause frames or lost packets."""
    if answer is None or len(answer) < 8:
        return {}
    count = min(struct.unpack_from("=I", answer, 4)[0], (len(answer) - 8) // 8, len(names))
    values = struct.unpack_from(f"={count}Q", answer, 8)
    return {name: value for name, value in zip(names, values) if matters(name)}


def is_pause(name: str) -> bool:
    """Whether a counter counts frames of flow control."""
    return bool(_PAUSES.search(name))


def matters(name: str) -> bool:
    """Whether a counter counts pause frames or lost packets, in whole."""
    return not _NO_COUNTS.search(name) and bool(is_pause(name) or _LOSSES.search(name))


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode("utf-8", "replace").strip()
