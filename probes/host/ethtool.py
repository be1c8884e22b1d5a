"""What a card's driver tells: negotiation, flow control, offloads, coalescing, rings, counters.

One ioctl (SIOCETHTOOL); all that is asked here is answered to any user. A driver that has no answer
leaves the fact out. Source: include/uapi/linux/ethtool.h.
"""

from __future__ import annotations

import array
import socket
import struct
import sys
from dataclasses import dataclass, field
from typing import Dict, Optional

from probes.host import ethtool_answers as answers
from probes.host.ethtool_answers import LINK, LINK_BYTES, STRING_BYTES, Negotiated

SIOCETHTOOL = 0x8946
GDRVINFO, GCOALESCE, GRINGPARAM, GPAUSEPARAM = 0x03, 0x0E, 0x10, 0x12
GSTRINGS, GSTATS, GSSET_INFO, GLINKSETTINGS = 0x1B, 0x1D, 0x37, 0x4C
GFLAGS = 0x25
OFFLOADS = {
    "receive_checksum": 0x14,
    "send_checksum": 0x16,
    "scatter_gather": 0x18,
    "tcp_segmentation": 0x1E,
    "generic_segmentation": 0x23,
    "generic_receive": 0x2B,
}
"""ETHTOOL_GRXCSUM, GTXCSUM, GSG, GTSO, GGSO, GGRO: each answers one number."""
LARGE_RECEIVE_FLAG = 1 << 15
STATISTICS_SET = 1
MOST_STATISTICS = 8192
SPARE_BYTES = 64 << 10
"""Behind the counters: old kernels write as many as the driver has by then, whatever was asked."""
MOST_MASK_WORDS = 127


@dataclass(frozen=True)
class Card:
    """A card by its driver's own words; what is not told is None or absent."""

    driver: Optional[str] = None
    bus: Optional[str] = None
    """Where it sits, for a PCI card its address: 0000:03:00.0."""
    negotiated: Optional[Negotiated] = None
    pause: Dict[str, bool] = field(default_factory=dict)
    offloads: Dict[str, bool] = field(default_factory=dict)
    coalescing: Dict[str, float] = field(default_factory=dict)
    adaptive: Dict[str, bool] = field(default_factory=dict)
    rings: Dict[str, int] = field(default_factory=dict)
    counts: Dict[str, int] = field(default_factory=dict)


def read_card(name: str) -> Card:
    """All that the driver of an interface tells; empty on a system without ethtool's ioctl."""
    if not sys.platform.startswith("linux"):
        return Card()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asking = _Asking(any_socket, name)
        driver = answers.parse_driver(asking.ask(GDRVINFO, 196))
        coalescing, adaptive = answers.parse_coalescing(asking.ask(GCOALESCE, 92))
        return Card(
            driver=driver[0],
            bus=driver[1],
            negotiated=_negotiated(asking),
            pause=answers.parse_pause(asking.ask(GPAUSEPARAM, 16)),
            offloads=_offloads(asking),
            coalescing=coalescing,
            adaptive=adaptive,
            rings=answers.parse_rings(asking.ask(GRINGPARAM, 36)),
            counts=_counts(asking),
        )


class _Asking:
    """Questions about one interface over one socket."""

    def __init__(self, any_socket: socket.socket, name: str) -> None:
        self.socket = any_socket
        self.name = name.encode("utf-8", "surrogateescape")[:15]

    def ask(self, command: int, length: int, filled: bytes = b"") -> bytes | None:
        """The structure that the driver answers; None: it has no such answer.

        filled: what the question says behind its command.
        """
        import fcntl

        question = struct.pack("=I", command) + filled
        buffer = array.array("B", question.ljust(length, b"\0"))
        address, _ = buffer.buffer_info()
        try:
            fcntl.ioctl(self.socket, SIOCETHTOOL, struct.pack("16sP16x", self.name, address))
        except OSError:
            return None
        return buffer.tobytes()


def _negotiated(asking: _Asking) -> Negotiated | None:
    """The kernel first answers how many words a mask has, as a negative number."""
    first = asking.ask(GLINKSETTINGS, LINK_BYTES)
    if first is None:
        return None
    words = -LINK.unpack_from(first)[9]
    if not 0 < words <= MOST_MASK_WORDS:
        return answers.parse_negotiated(first)
    filled = LINK.pack(0, 0, 0, 0, 0, 0, 0, 0, 0, words, 0, 0, 0, 0)[4:]
    return answers.parse_negotiated(asking.ask(GLINKSETTINGS, LINK_BYTES + 12 * words, filled))


def _offloads(asking: _Asking) -> dict[str, bool]:
    found = {}
    for name, command in OFFLOADS.items():
        answer = asking.ask(command, 8)
        if answer is not None:
            found[name] = bool(struct.unpack_from("=I", answer, 4)[0])
    answer = asking.ask(GFLAGS, 8)
    if answer is not None:
        flags = struct.unpack_from("=I", answer, 4)[0]
        found["large_receive"] = bool(flags & LARGE_RECEIVE_FLAG)
    return found


def _counts(asking: _Asking) -> dict[str, int]:
    """The counters that matter; a driver with none, or with absurdly many, tells nothing."""
    answer = asking.ask(GSSET_INFO, 20, struct.pack("=IQ", 0, 1 << STATISTICS_SET))
    if answer is None or not struct.unpack_from("=Q", answer, 8)[0] >> STATISTICS_SET & 1:
        return {}
    count = struct.unpack_from("=I", answer, 16)[0]
    if not 0 < count <= MOST_STATISTICS:
        return {}
    length = 12 + count * STRING_BYTES + SPARE_BYTES
    filled = struct.pack("=II", STATISTICS_SET, count)
    names = answers.parse_names(asking.ask(GSTRINGS, length, filled))
    if not any(map(answers.matters, names)):
        return {}
    length = 8 + count * 8 + SPARE_BYTES
    return answers.parse_counts(names, asking.ask(GSTATS, length, struct.pack("=I", count)))


def read_counts(name: str) -> dict[str, int]:
    """The driver's counters of pause frames and lost packets alone, by its own names."""
    if not sys.platform.startswith("linux"):
        return {}
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        return _counts(_Asking(any_socket, name))
