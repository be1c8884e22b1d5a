"""Facts from a card's driver: negotiation, flow control, offloads, counters.

One ioctl (SIOCETHTOOL), with questions that any user may ask. A fact that the driver does not
support is absent. Source: include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import array
import re
import socket
import struct
import sys
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Callable, Dict, Iterator, NamedTuple, Optional

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
"""Times, states, and parts of other counters."""


class Negotiation(NamedTuple):
    """Result of the negotiation between the two ends of a cable."""

    rate_bits_per_second: Optional[int] = None
    duplex: Optional[str] = None
    autonegotiated: Optional[bool] = None
    able_bits_per_second: Optional[int] = None
    """Fastest mode of this end."""
    partner_bits_per_second: Optional[int] = None
    """Fastest mode that the other end advertised; None: it advertised none."""


def parse_driver(answer: bytes | None) -> tuple[str | None, str | None]:
    """Returns the driver's name and the card's place on its bus, of ethtool_drvinfo."""
    if answer is None or len(answer) < 132:
        return None, None
    return _text(answer[4:36]) or None, _text(answer[100:132]) or None


def parse_negotiation(answer: bytes | None) -> Negotiation | None:
    """Parses ethtool_link_settings with its masks of supported, advertised, partner's modes."""
    if answer is None or len(answer) < LINK_BYTES:
        return None
    fields = LINK.unpack_from(answer)
    rate, duplex, negotiated, words = fields[1], fields[2], fields[5], fields[9]
    masks = [b"", b"", b""]
    if words > 0 and len(answer) >= LINK_BYTES + 12 * words:
        ends = [LINK_BYTES + 4 * words * each for each in range(4)]
        masks = [answer[ends[each] : ends[each + 1]] for each in range(3)]
    return Negotiation(
        rate_bits_per_second=None if rate in NO_RATE else rate * 1_000_000,
        duplex={0: "half", 1: "full"}.get(duplex),
        autonegotiated={0: False, 1: True}.get(negotiated),
        able_bits_per_second=fastest(masks[0]),
        partner_bits_per_second=fastest(masks[2]),
    )


def fastest(mask: bytes) -> int | None:
    """Returns bits per second of the fastest known mode in a mask of ethtool's words, or None."""
    words = struct.unpack(f"={len(mask) // 4}I", mask[: len(mask) // 4 * 4])
    bits = {32 * i + bit for i, word in enumerate(words) for bit in range(32) if word >> bit & 1}
    rates = [megabits for megabits, modes in MODES.items() if bits & set(modes)]
    return max(rates) * 1_000_000 if rates else None


def parse_words(answer: bytes | None, places: Dict[str, int]) -> Dict[str, int]:
    """Returns numbers at places of a structure of 32-bit words; empty: it is too short."""
    if answer is None or len(answer) < 4 * (max(places.values()) + 1):
        return {}
    return {key: struct.unpack_from("=I", answer, 4 * index)[0] for key, index in places.items()}


def parse_names(answer: bytes | None) -> list[str]:
    """Parses ethtool_gstrings: the driver's names of its counters, in order."""
    if answer is None or len(answer) < 12:
        return []
    count = min(struct.unpack_from("=I", answer, 8)[0], (len(answer) - 12) // STRING_BYTES)
    starts = range(12, 12 + count * STRING_BYTES, STRING_BYTES)
    return [_text(answer[start : start + STRING_BYTES]) for start in starts]


def parse_counts(names: list[str], answer: bytes | None) -> dict[str, int]:
    """Parses ethtool_stats by the driver's names: only pause frames and lost packets."""
    if answer is None or len(answer) < 8:
        return {}
    count = min(struct.unpack_from("=I", answer, 4)[0], (len(answer) - 8) // 8, len(names))
    values = struct.unpack_from(f"={count}Q", answer, 8)
    return {name: value for name, value in zip(names, values) if matters(name)}


def matters(name: str) -> bool:
    """Whether a counter is a total of pause frames or lost packets."""
    return not _NO_COUNTS.search(name) and bool(_PAUSES.search(name) or _LOSSES.search(name))


def _text(raw: bytes) -> str:
    return raw.split(b"\0")[0].decode("utf-8", "replace").strip()


PAUSE = {"autonegotiated": 1, "receives": 2, "sends": 3}
"""Words of ethtool_pauseparam: whether flow control is negotiated, obeyed and used."""
SIOCETHTOOL = 0x8946
GDRVINFO, GPAUSEPARAM = 0x03, 0x12
GSTRINGS, GSTATS, GSSET_INFO, GLINKSETTINGS = 0x1B, 0x1D, 0x37, 0x4C
OFFLOADS = {"tcp_segmentation": 0x1E, "generic_receive": 0x2B}
"""ETHTOOL_GTSO, ETHTOOL_GGRO: the answer to each is one number."""
GEEE, EEE_BYTES = 0x44, 40
EEE = {"active": 4}
"""Word of ethtool_eee: whether both ends use it."""
STATISTICS_SET = 1
MOST_STATISTICS = 8192
SPARE_BYTES = 64 << 10
"""Space behind the counters: old kernels write as many as the driver has, not as requested."""
MOST_MASK_WORDS = 127


@dataclass(frozen=True)
class Card:
    """Facts of a card from its driver; unknown ones are None or absent."""

    driver: Optional[str] = None
    bus: Optional[str] = None
    """Place on its bus, for a PCI card its address: 0000:03:00.0."""
    negotiated: Negotiation = Negotiation()
    counts: Dict[str, int] = field(default_factory=dict)
    facts: Dict[str, Any] = field(default_factory=dict)
    """pause and offloads: see records.InterfaceFacts."""


Ask = Callable[..., Optional[bytes]]
"""Request for the structure of a command, with its length and the content behind the command; None:
the driver does not support it."""


def read_card(name: str) -> Card:
    """Reads all facts from an interface's driver; empty on a system without ethtool's ioctl."""
    with _ask_function(name) as ask:
        driver, bus = parse_driver(ask(GDRVINFO, 196))
        return Card(
            driver=driver,
            bus=bus,
            negotiated=_read_negotiation(ask) or Negotiation(),
            counts=_counts(ask),
            facts={
                "pause": _flags(parse_words(ask(GPAUSEPARAM, 16), PAUSE)),
                "offloads": _flags(_offloads(ask)),
            },
        )


def read_counts(name: str) -> Dict[str, int]:
    """Reads only the driver's counters of pause frames and lost packets, by its own names."""
    with _ask_function(name) as ask:
        return _counts(ask)


def sleeps(name: str) -> bool:
    """Whether both ends of the cable agreed on Energy-Efficient Ethernet and it is active."""
    with _ask_function(name) as ask:
        return bool(parse_words(ask(GEEE, EEE_BYTES), EEE).get("active"))


@contextmanager
def _ask_function(name: str) -> Iterator[Ask]:
    """Yields a function for requests about one interface; it returns None without the ioctl."""
    if not sys.platform.startswith("linux"):
        yield lambda *_: None
        return
    import fcntl

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:

        def ask(command: int, length: int, filled: bytes = b"") -> Optional[bytes]:
            question = struct.pack("=I", command) + filled
            buffer = array.array("B", question.ljust(length, b"\0"))
            address, _ = buffer.buffer_info()
            interface = name.encode("utf-8", "surrogateescape")[:15]
            try:
                fcntl.ioctl(any_socket, SIOCETHTOOL, struct.pack("16sP16x", interface, address))
            except OSError:
                return None
            return buffer.tobytes()

        yield ask


def _flags(words: Dict[str, int]) -> Dict[str, bool]:
    return {key: bool(value) for key, value in words.items()}


def _read_negotiation(ask: Ask) -> Negotiation | None:
    """Reads the negotiation; the kernel first returns a mask's words, as a negative number."""
    first = ask(GLINKSETTINGS, LINK_BYTES)
    if first is None:
        return None
    words = -LINK.unpack_from(first)[9]
    if not 0 < words <= MOST_MASK_WORDS:
        return parse_negotiation(first)
    filled = LINK.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, words, 0, 0, 0, 0)[4:]
    return parse_negotiation(ask(GLINKSETTINGS, LINK_BYTES + 12 * words, filled))


def _offloads(ask: Ask) -> Dict[str, int]:
    flags: Dict[str, int] = {}
    for name, command in OFFLOADS.items():
        flags.update(parse_words(ask(command, 8), {name: 1}))
    return flags


def _counts(ask: Ask) -> Dict[str, int]:
    """Reads the counters that matter; empty of a driver with none, or with absurdly many."""
    answer = ask(GSSET_INFO, 20, struct.pack("=IQ", 0, 1 << STATISTICS_SET))
    if answer is None or not struct.unpack_from("=Q", answer, 8)[0] >> STATISTICS_SET & 1:
        return {}
    count = struct.unpack_from("=I", answer, 16)[0]
    if not 0 < count <= MOST_STATISTICS:
        return {}
    length = 12 + count * STRING_BYTES + SPARE_BYTES
    names = parse_names(ask(GSTRINGS, length, struct.pack("=II", STATISTICS_SET, count)))
    if not any(map(matters, names)):
        return {}
    length = 8 + count * 8 + SPARE_BYTES
    return parse_counts(names, ask(GSTATS, length, struct.pack("=I", count)))
