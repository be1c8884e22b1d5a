"""Ways to somewhere else."""

from __future__ import annotations

import struct

import edits as e
from behaviour import (
    BAD_NETWORK_NAME,
    NO_SMB,
    PATH_NOT_COVERED,
    STOPPED_ON_SYMLINK,
    THIRD_HOST,
    Behaviour,
    first,
)

from scripts import answers


def _symlink(server: str, share: str) -> bytes:
    """SYMLINK_ERROR of MS-SMB2 2.2.2.2.1 that leads to another host."""
    name = f"\\??\\UNC\\{server}\\{share}\\x".encode("utf-16-le")
    head = struct.pack(
        "<IIHHHHHHI",
        0x4C4D5953,
        0xA000000C,
        len(name) * 2 + 12,
        0,
        0,
        len(name),
        len(name),
        len(name),
        0,
    )
    body = head + name + name
    return struct.pack("<I", len(body)) + body


def _redirects() -> tuple[Behaviour, ...]:
    """Ways to somewhere else."""
    target = f"\\\\{THIRD_HOST}\\share".encode("utf-16-le")
    redirect = (
        struct.pack("<IIIIHHIB", 48 + len(target), 3, 48, len(target), 0, 0, 1, 1)
        + bytes(19)
        + target
    )
    context = struct.pack("<II", len(redirect), 0x72645253) + redirect
    ip = bytes(int(each) for each in THIRD_HOST.split("."))
    return (
        Behaviour(
            "redirect: OPEN: a DFS link",
            first("open", e.failed(PATH_NOT_COVERED), 1, True),
            "DFS link",
        ),
        Behaviour(
            "redirect: share: a DFS link",
            first("share", e.failed(PATH_NOT_COVERED)),
            "DFS link",
            dialect="2.1",
        ),
        Behaviour(
            "redirect: OPEN: a symbolic link",
            first("open", e.failed(STOPPED_ON_SYMLINK, _symlink(THIRD_HOST, "share"), 0), 1, True),
            "symbolic link",
            dialect="2.1",
        ),
        Behaviour(
            "redirect: OPEN: a symbolic link in 3.1.1",
            first(
                "open",
                e.failed(
                    STOPPED_ON_SYMLINK, struct.pack("<II", 64, 0) + _symlink(THIRD_HOST, "share"), 1
                ),
                1,
                True,
            ),
            "symbolic link",
        ),
        Behaviour(
            "redirect: OPEN: a symbolic link of garbage",
            first("open", e.failed(STOPPED_ON_SYMLINK, b"\xff" * 40, 255), 1, True),
            "symbolic link",
        ),
        Behaviour(
            "redirect: OPEN: a link to itself, for ever",
            first("open", e.failed(STOPPED_ON_SYMLINK, _symlink("127.0.0.1", "share"), 0), 1, True),
            "symbolic link",
            dialect="3.0",
        ),
        Behaviour(
            "redirect: the share moved",
            first("share", e.failed(BAD_NETWORK_NAME, context, 1)),
            "no such share",
            dialect="2.1",
        ),
        Behaviour(
            "redirect: the share is a DFS root",
            first("share", e.altered(e.put(72, "I", 8), e.put(68, "I", 3))),
            outcome="harmless",
            dialect="2.1",
        ),
        Behaviour(
            "redirect: NetBIOS sends elsewhere",
            answers(b"\x84\0\0\x06" + ip + struct.pack(">H", 445)),
            NO_SMB,
        ),
    )


REDIRECTS = _redirects()
