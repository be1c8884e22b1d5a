"""Less protection than both ends could have, and ways to somewhere else, by who is between them."""

from __future__ import annotations

import socket
import struct

import edits as e
from behaviour import (
    BAD_NETWORK_NAME,
    FORGED,
    GONE,
    LATE,
    NO_SMB,
    NOT_ASKED,
    PATH_NOT_COVERED,
    SYMLINK,
    THIRD_HOST,
    Terms,
    alter,
    attacks,
)
from middle import SMB1, Message, Talk
from server import answers

ASKED = "request:negotiate"
TAMPERED = FORGED + "|ACCESS_DENIED|access is denied|failed to verify|" + GONE


def _spoilt_smb2(message: Message, talk: Talk) -> None:
    if message[:4] != SMB1:
        message[:4] = b"HTTP"


def _symlink(server: str) -> bytes:
    """SYMLINK_ERROR of MS-SMB2 2.2.2.2.1 that leads to another host."""
    name = f"\\??\\UNC\\{server}\\share\\x".encode("utf-16-le")
    size = len(name)
    head = struct.pack("<IIHHH", 0x4C4D5953, 0xA000000C, size * 2 + 12, 0, 0)
    body = head + struct.pack("<HHHI", size, size, size, 0) + name + name
    return struct.pack("<I", len(body)) + body


def _redirection() -> bytes:
    """A redirection of a share (MS-SMB2 2.2.2.2.2)."""
    target = f"\\\\{THIRD_HOST}\\share".encode("utf-16-le")
    head = struct.pack("<IIIIHHIB", 48 + len(target), 3, 48, len(target), 0, 0, 1, 1)
    redirect = head + bytes(19) + target
    return struct.pack("<II", len(redirect), 0x72645253) + redirect


ELSEWHERE, MOVED = _symlink(THIRD_HOST), _redirection()
DOWNGRADES = attacks(
    {
        Terms("told: ", "^smb1 ", dialect="", outcome="told"): {
            "SMB2 spoilt, where SMB1 is on": alter("negotiate", _spoilt_smb2)
        },
        Terms("harmless: ", dialect="3.0", server="wishing", outcome="harmless"): {
            "3.0's wish for encryption cleared, but the share's own": alter(
                "logged in", e.unsigned, e.put(66, "H", 0)
            )
        },
        Terms("told: ", "^2.1 ", dialect="2.1", outcome="told"): {
            "2.1 asked, greatest READ lowered": alter("negotiate", e.put(96, "I", 65536))
        },
        Terms("downgrade: ", TAMPERED, dialect=""): {
            "3.1.1 to 3.0.2 of all dialects": alter(
                ASKED, e.dialects(0x0202, 0x0210, 0x0300, 0x0302)
            ),
            "3.1.1 to 3.0 of all dialects": alter(ASKED, e.dialects(0x0202, 0x0210, 0x0300)),
            "3.1.1 to 2.1 of all dialects": alter(ASKED, e.dialects(0x0202, 0x0210)),
            "3.1.1 to 2.0.2 of all dialects": alter(ASKED, e.dialects(0x0202)),
            "the reply says 3.0": (f"{TAMPERED}|offer", alter("negotiate", e.put(68, "H", 0x0300))),
        },
        Terms("downgrade: "): {
            "2.0.2 in place of 3.1.1 alone": ("does not offer", alter(ASKED, e.dialects(0x0202))),
            "no encryption context asked": (TAMPERED, alter(ASKED, e.without_context(2, False))),
            "no encryption context answered": (
                TAMPERED,
                alter("negotiate", e.without_context(2, True)),
            ),
            "no signing context asked": (TAMPERED, alter(ASKED, e.without_context(8, False))),
            "no hash context answered": (
                "invalid answer|does not offer",
                alter("negotiate", e.without_context(1, True)),
            ),
            "the hash's salt altered": (
                TAMPERED + "|invalid answer|offer",
                alter("negotiate", e.flipped(-1)),
            ),
            "the client's login altered, 3.1.1": ("login", alter("request:login", e.flipped(-1))),
            "the challenge altered, 3.1.1": ("login", alter("login", e.flipped(72 + 24))),
            "the login's reply says guest": (
                "guest",
                alter("logged in", e.unsigned, e.put(66, "H", 1)),
            ),
            "the login's reply says nobody": (
                "guest",
                alter("logged in", e.unsigned, e.put(66, "H", 2)),
            ),
            "the login's signature stripped, 3.1.1": (FORGED, alter("logged in", e.unsigned)),
            "the login's signature wrong, 3.1.1": (FORGED, alter("logged in", e.flipped(50))),
            "share's flags altered, 3.1.1": (FORGED, alter("share", e.unsigned, e.put(68, "I", 0))),
        },
        Terms("downgrade: ", dialect="3.0"): {
            "3.0 without encryption": (TAMPERED, alter("negotiate", e.cleared(88, "I", 0x40))),
            "client's capabilities cleared, 3.0": (TAMPERED, alter(ASKED, e.put(72, "I", 0))),
            "client's security mode altered, 3.0": (TAMPERED, alter(ASKED, e.put(68, "H", 0))),
            "share's flags altered, 3.0": (FORGED, alter("share", e.unsigned, e.flipped(68))),
            "the check of 3.0 forged": (FORGED, alter("ioctl", e.unsigned)),
            "the check of 3.0 refused": (FORGED, alter("ioctl", e.failed(0xC00000BB))),
            "the check of 3.0 dropped": (LATE, alter("ioctl", e.dropped)),
        },
        Terms("downgrade: ", TAMPERED, dialect="3.0.2"): {
            "3.0.2 without large MTU": alter("negotiate", e.cleared(88, "I", 0x4)),
            "client's GUID altered, 3.0.2": alter(ASKED, e.flipped(80)),
            "the server's GUID altered, 3.0.2": alter("negotiate", e.flipped(75)),
            "the check of 3.0 refused, with a false signature": (
                FORGED,
                alter("ioctl", e.falsely_signed_failure(0xC00000BB)),
            ),
        },
        Terms("downgrade: ", TAMPERED, dialect="3.0", server="signing"): {
            "3.0 where signing is not required": alter("negotiate", e.cleared(66, "H", 2))
        },
        Terms("downgrade: ", TAMPERED, server="signing"): {
            "3.1.1 where signing is not required": alter("negotiate", e.cleared(66, "H", 2)),
            "the signed login's reply says guest": ("guest", alter("logged in", e.put(66, "H", 1))),
        },
        Terms("downgrade: ", "guest", dialect="2.1"): {
            "guest in a session of 2.1": alter("logged in", e.unsigned, e.put(66, "H", 1))
        },
        Terms("downgrade: ", "guest", dialect="smb1"): {
            "guest in SMB1": alter("logged in", e.unsigned, e.put(37, "H", 1)),
            "SMB1 without NTLMv2": (
                "SMB1",
                alter("negotiate", e.cleared(32 + 20, "I", 0x80000000), e.cleared(10, "H", 0x0800)),
            ),
        },
        Terms("downgrade: ", FORGED, server="wishing"): {
            "encryption wished, flag cleared": alter("logged in", e.unsigned, e.put(66, "H", 0))
        },
        Terms("downgrade: ", FORGED, dialect="3.0", server="wishing"): {
            "encryption wished, flag alone cleared, 3.0": alter("logged in", e.put(66, "H", 0))
        },
        Terms(
            "downgrade: ", f"access is denied|signature|{GONE}", dialect="smb1", server="signing"
        ): {"SMB1 where signing is not required": alter("negotiate", e.cleared(35, "B", 0x0C))},
        Terms("disguise: ", NOT_ASKED, server="signing"): {
            "an OPEN's reply as a login's": alter("open", e.disguised),
            "a share's reply as a login's": alter("share", e.disguised),
            "a READ's reply as a login's": alter("read", e.disguised),
        },
    }
)

REDIRECTS = attacks(
    {
        Terms("redirect: ", "symbolic link"): {
            "OPEN: a DFS link": ("DFS link", alter("open", e.failed(PATH_NOT_COVERED), every=True)),
            "OPEN: a symbolic link in 3.1.1": alter(
                "open", e.failed(SYMLINK, struct.pack("<II", 64, 0) + ELSEWHERE, 1), every=True
            ),
            "OPEN: a symbolic link of garbage": alter(
                "open", e.failed(SYMLINK, b"\xff" * 40, 255), every=True
            ),
            "NetBIOS sends elsewhere": (
                NO_SMB,
                answers(b"\x84\0\0\x06" + socket.inet_aton(THIRD_HOST) + struct.pack(">H", 445)),
            ),
        },
        Terms("redirect: ", dialect="2.1"): {
            "share: a DFS link": ("DFS link", alter("share", e.failed(PATH_NOT_COVERED))),
            "OPEN: a symbolic link": (
                "symbolic link",
                alter("open", e.failed(SYMLINK, ELSEWHERE), every=True),
            ),
            "the share moved": (
                "share not found",
                alter("share", e.failed(BAD_NETWORK_NAME, MOVED, 1)),
            ),
        },
        Terms("redirect: ", "symbolic link", dialect="3.0"): {
            "OPEN: a link to itself, for ever": alter(
                "open", e.failed(SYMLINK, _symlink("127.0.0.1")), every=True
            )
        },
        Terms("redirect: ", dialect="2.1", outcome="harmless"): {
            "the share is a DFS root": alter("share", e.put(72, "I", 8), e.put(68, "I", 3))
        },
    }
)
