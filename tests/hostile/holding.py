"""Lies about what a run asks when it makes its folder: room, interfaces, and whether it is gone."""

from __future__ import annotations

import struct

import edits as e
from behaviour import ACCESS_DENIED, GONE, LATE, Behaviour, first
from middle import Edit, Message, Outcome, Talk, Tamper, framed

_NOT_SUPPORTED, _NO_SUCH_FILE = 0xC00000BB, 0xC0000034


def _answer(data: bytes) -> Edit:
    """An IOCTL's reply with another answer (MS-SMB2 2.2.32)."""

    def edit(message: Message, talk: Talk) -> Outcome:
        struct.pack_into("<IIII", message, 96, 112, 0, 112, len(data))
        message[112:] = data
        return [framed(message)]

    return edit


def _interface(following: int, family: int = 2) -> bytes:
    """One entry of NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5)."""
    head = struct.pack("<IIIIQ", following, 7, 3, 0, 0xFFFFFFFFFFFFFFFF)
    return head + struct.pack("<HH4s120x", family, 0, bytes((127, 0, 0, 77)))


def _room(total: int, free: int, sectors: int = 1, sector_bytes: int = 4096) -> Edit:
    """A QUERY_INFO's reply with other figures (MS-FSCC 2.5.4)."""
    figures = struct.pack("<qqqII", total, free, free, sectors, sector_bytes)

    def edit(message: Message, talk: Talk) -> Outcome:
        struct.pack_into("<HI", message, 66, 72, len(figures))
        message[72:] = figures
        return [framed(message)]

    return edit


def _holding() -> tuple[Behaviour, ...]:
    most = (1 << 63) - 1
    endless = e.for_ever(lambda m, t: framed(bytes(e.pending(m))))
    found: list[tuple[str, tuple[Tamper, ...], str, str]] = [
        ("nothing at all", first("query", e.altered()), "", "harmless"),
        (
            "interfaces: a chain that leads back",
            first("ioctl", _answer(_interface(0xFFFFFF68))),
            "",
            "harmless",
        ),
        (
            "interfaces: a chain of itself",
            first("ioctl", _answer(_interface(1) * 400)),
            "",
            "harmless",
        ),
        (
            "interfaces: 6000 of them",
            first("ioctl", _answer(_interface(152) * 6000)),
            "",
            "harmless",
        ),
        (
            "interfaces: an unknown family",
            first("ioctl", _answer(_interface(0, 99))),
            "",
            "harmless",
        ),
        ("interfaces: cut", first("ioctl", e.altered(e.shortened(100))), "", "harmless"),
        ("interfaces: not supported", first("ioctl", e.failed(_NOT_SUPPORTED)), "", "harmless"),
        ("interfaces: silence", first("ioctl", e.dropped), LATE, "refused"),
        ("interfaces: PENDING for ever", first("ioctl", endless), LATE, "refused"),
        (
            "room: more than there can be",
            first("query", _room(most, most, 0xFFFFFFFF, 0xFFFFFFFF)),
            "",
            "harmless",
        ),
        ("room: less than nothing", first("query", _room(-1, -1)), "", "harmless"),
        ("room: cut", first("query", e.altered(e.shortened(80))), "free space", "refused"),
        ("room: denied", first("query", e.failed(ACCESS_DENIED)), "free space", "refused"),
        ("room: closed", first("query", e.closed), GONE, "refused"),
        ("folder: denied", first("open", e.failed(ACCESS_DENIED)), "access is denied", "refused"),
        (
            "folder: said to be gone",
            first("open", e.failed(_NO_SUCH_FILE)),
            "no such file",
            "refused",
        ),
    ]
    return tuple(
        Behaviour(f"holding: {name}", does, says, outcome=outcome, copy="push.cached", held=True)
        for name, does, says, outcome in found
    )


HOLDING = _holding()
