"""A server's false replies: lengths, offsets, content; plain, signed, sealed; space, folders."""

from __future__ import annotations

import struct

import edits as e
from behaviour import (
    ACCESS_DENIED,
    DISK_FULL,
    END_OF_FILE,
    FORGED,
    GONE,
    LATE,
    NO_SUCH_FILE,
    NOT_ASKED,
    NOT_SUPPORTED,
    SPOILT,
    Behaviour,
    Terms,
    attacks,
    first,
)

READS = "with . bytes|with .* bytes at|too short"
MOST = (1 << 63) - 1
NO_REPLY, OTHER_TREE = e.cleared(16, "I", 1), e.other_tree
"""Without SMB2_FLAGS_SERVER_TO_REDIR; with another TreeId (MS-SMB2 2.2.1.2)."""
NO_CREDITS = (
    *first("login", e.put(14, "H", 0), every=True),
    *first("share", e.put(14, "H", 0), every=True),
    *first("open", e.put(14, "H", 0), every=True),
)


def interface(following: int, family: int = 2) -> bytes:
    """One entry of NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5)."""
    head = struct.pack("<IIIIQ", following, 7, 3, 0, 0xFFFFFFFFFFFFFFFF)
    return head + struct.pack("<HH4s120x", family, 0, bytes((127, 0, 0, 77)))


LIES = attacks(
    {
        Terms("lie: ", dialect="2.1"): {
            "READ: more bytes than asked": (
                READS,
                first("read", e.put(68, "I", 0x7FFFFFFF), nth=2),
            ),
            "READ: data before the message": (READS, first("read", e.put(66, "B", 2), nth=2)),
            "READ: data behind the message": (READS, first("read", e.put(66, "B", 255), nth=2)),
            "READ: half of its data": (READS, first("read", e.shortened(30000), nth=2)),
            "OPEN: cut": ("open", first("open", e.shortened(100))),
            "share's reply cut": ("share", first("share", e.shortened(70))),
            "greatest READ 0 bytes": ("invalid answer", first("negotiate", e.put(96, "I", 0))),
            "greatest READ 1 byte": ("invalid answer", first("negotiate", e.put(96, "I", 1))),
            "NextCommand on an OPEN": (NOT_ASKED, first("open", e.chained(152))),
            "NextCommand 1 on an OPEN": ("open", first("open", e.chained(1))),
            "no credits from the login on": ("credits", NO_CREDITS),
        },
        Terms("lie: "): {
            "READ: one byte too many": (READS, first("read", e.put(68, "I", 65537), nth=2)),
            "READ: no bytes": (READS, first("read", e.put(68, "I", 0), nth=2)),
            "READ: cut to the header": ("too short", first("read", e.shortened(64), nth=2)),
            "READ: cut to one byte": ("too short", first("read", e.shortened(1), nth=2)),
            "READ: the file ends here": (
                "END_OF_FILE",
                first("read", e.failed(END_OF_FILE), nth=3),
            ),
            "READ: an empty success": (
                "too short|with .* bytes",
                first("read", e.failed(0), nth=3),
            ),
            "OPEN: a file of no bytes": ("has 0 bytes", first("open", e.put(112, "Q", 0), nth=2)),
            "a message of 16 MiB announced": (
                "announced a message",
                first("read", e.replaced(b"\0\xff\xff\xff"), nth=2),
            ),
            "a message of 4 GiB announced": (
                "not an SMB message",
                first("read", e.replaced(b"\xff" * 4), nth=2),
            ),
            "an empty message": ("too short", first("read", e.preceded(b"\0\0\0\0"), nth=2)),
            "NextCommand on a READ": ("garbled", first("read", e.chained(64), nth=2)),
        },
        Terms("lie: ", copy="push.cached"): {
            "WRITE: fewer bytes than sent": (
                "of the .* bytes sent",
                first("write", e.put(68, "I", 1), nth=2),
            ),
            "WRITE: cut to the header": ("too short", first("write", e.shortened(64), nth=2)),
            "WRITE: the disk is full": ("disk is full", first("write", e.failed(DISK_FULL), nth=3)),
            "FLUSH: failed": ("ACCESS_DENIED", first("flush", e.failed(ACCESS_DENIED))),
        },
        Terms("lie: ", "of the .* bytes sent", dialect="2.1", copy="push.cached"): {
            "WRITE: more bytes than sent": first("write", e.put(68, "I", 1 << 30), nth=2),
            "greatest WRITE 0 bytes": ("invalid answer", first("negotiate", e.put(100, "I", 0))),
        },
        Terms("lie: SMB1: ", dialect="smb1"): {
            "READ: more bytes than asked": (READS, first("read", e.put(47, "H", 0x7FFF), nth=2)),
            "READ: no bytes": (READS, first("read", e.put(43, "H", 0), e.put(47, "H", 0), nth=2)),
            "READ: data before the message": (READS, first("read", e.put(45, "H", 2), nth=2)),
            "READ: data behind the message": (READS, first("read", e.put(45, "H", 0xFFFF), nth=2)),
            "READ: other words": (READS, first("read", e.put(32, "B", 255), nth=2)),
            "READ: cut to the header": ("too short", first("read", e.shortened(32), nth=2)),
            "READ: another session": (
                "another session",
                first("read", e.put(28, "H", 0x7777), nth=2),
            ),
            "READ: another message": (
                "which was not asked",
                first("read", e.put(30, "H", 0x7777), nth=2),
            ),
            "READ: a request in place of a reply": (
                "garbled",
                first("read", e.put(9, "B", 0), nth=2),
            ),
            "READ: an error": ("ACCESS_DENIED", first("read", e.failed1(ACCESS_DENIED), nth=3)),
            "READ: an error of DOS": ("DOS error", first("read", e.dos_error, nth=3)),
            "OPEN: cut": ("open", first("open", e.shortened(40))),
            "the login cut": ("login", first("login", e.shortened(40))),
            "a message of 4 GiB announced": (
                "not an SMB message",
                first("read", e.replaced(b"\xff" * 4), nth=2),
            ),
            "a message of 16 MiB announced": (
                "announced",
                first("open", e.replaced(b"\0\xff\xff\xff")),
            ),
        },
        Terms("lie: SMB1: ", "of the .* bytes sent", dialect="smb1", copy="push.cached"): {
            "WRITE: fewer bytes than sent": first("write", e.put(37, "H", 1), nth=2),
            "WRITE: cut": first("write", e.shortened(36), nth=2),
        },
        Terms("header: ", f"another share|{NOT_ASKED}"): {
            "OPEN: another tree": first("open", OTHER_TREE),
            "OPEN: another command": first("open", e.put(12, "H", 6)),
            "READ: another tree": first("read", OTHER_TREE, nth=2),
            "READ: another command": first("read", e.put(12, "H", 9), nth=2),
        },
        Terms("header: ", "is no reply|garbled|does not offer"): {
            "NEGOTIATE: no reply": first("negotiate", NO_REPLY),
            "login: no reply": first("login", NO_REPLY),
            "share: no reply": first("share", NO_REPLY),
            "OPEN: no reply": first("open", NO_REPLY),
            "READ: no reply": first("read", NO_REPLY, nth=2),
        },
        Terms("header: ", "another share", copy="push.cached"): {
            "WRITE: another tree": first("write", OTHER_TREE, nth=2)
        },
        Terms("header: ", "is no reply|garbled|SMB1 is off", dialect="smb1"): {
            "SMB1: NEGOTIATE: no reply": first("negotiate", e.put(9, "B", 0x08)),
            "SMB1: login: no reply": first("login", e.put(9, "B", 0x08)),
            "SMB1: OPEN: no reply": first("open", e.put(9, "B", 0x08)),
            "SMB1: READ: another tree": (
                "another share",
                first("read", e.put(24, "H", 0x7777), nth=2),
            ),
        },
        Terms("header: ", dialect="2.1", outcome="harmless"): {
            "READ: asynchronous": first("read", e.asynchronous, nth=2),
            "OPEN: asynchronous": first("open", e.asynchronous),
            "login: a tree that means nothing": first("login", OTHER_TREE),
        },
        Terms("plain: ", dialect="2.1", outcome="mismatch"): {
            "one bit of a READ": first("read", e.flipped(-1), nth=7)
        },
        Terms("plain: ", outcome="mismatch"): {
            "a bit of every READ": first("read", e.payload_byte, every=True),
            "replies of two READs exchanged": first("read", e.swapped, nth=2)
            + first("read", e.swapped, nth=3),
            "an earlier READ's reply again": first("read", e.keep, nth=2)
            + first("read", e.replayed, nth=5),
        },
        Terms("plain: ", dialect="smb1", outcome="mismatch"): {
            "a bit of every READ in SMB1": first("read", e.payload_byte, every=True)
        },
        Terms("plain: ", copy="push.cached", outcome="mismatch"): {
            "a bit of every WRITE": first("request:write", e.flipped(-1), every=True)
        },
        Terms("plain: ", dialect="smb1", copy="push.cached", outcome="mismatch"): {
            "a bit of every WRITE in SMB1": first("request:write", e.flipped(-1), every=True)
        },
    }
)

HOLDING = attacks(
    {
        Terms("holding: ", copy="push.cached", outcome="harmless", with_folder=True): {
            "nothing at all": first("query"),
            "interfaces: a chain that leads back": first("ioctl", e.answer(interface(0xFFFFFF68))),
            "interfaces: a chain of itself": first("ioctl", e.answer(interface(1) * 400)),
            "interfaces: 6000 of them": first("ioctl", e.answer(interface(152) * 6000)),
            "interfaces: an unknown family": first("ioctl", e.answer(interface(0, 99))),
            "interfaces: cut": first("ioctl", e.shortened(100)),
            "interfaces: not supported": first("ioctl", e.failed(NOT_SUPPORTED)),
            "room: more than there can be": first(
                "query", e.room(MOST, MOST, 0xFFFFFFFF, 0xFFFFFFFF)
            ),
            "room: less than nothing": first("query", e.room(-1, -1, 1, 4096)),
        },
        Terms("holding: ", copy="push.cached", with_folder=True): {
            "interfaces: silence": (LATE, first("ioctl", e.dropped)),
            "interfaces: PENDING for ever": (LATE, first("ioctl", e.pending_for_ever)),
            "room: cut": ("free space", first("query", e.shortened(80))),
            "room: denied": ("free space", first("query", e.failed(ACCESS_DENIED))),
            "room: closed": (GONE, first("query", e.closed)),
            "folder: denied": ("access is denied", first("open", e.failed(ACCESS_DENIED))),
            "folder: said to be gone": (
                "file or folder not found",
                first("open", e.failed(NO_SUCH_FILE)),
            ),
        },
    }
)


def _signature(dialect: str, algorithm: str) -> tuple[Behaviour, ...]:
    """Returns changes to the replies of a signed session; the same in every dialect."""
    kind, count = f"{algorithm}: ", e.flipped(37 if dialect == "smb1" else 68)
    return attacks(
        {
            Terms(kind, FORGED, dialect=dialect, server="signing"): {
                "stripped, payload altered": first("read", e.unsigned, e.payload_byte, nth=3),
                "stripped, nothing else": first("read", e.unsigned, nth=2),
                "zeroed": first("read", e.zeroed, nth=2),
                "left, payload altered": first("read", e.payload_byte, nth=4),
                "left, last byte altered": first("read", e.flipped(-1)),
                "of another reply": first("read", e.keep, nth=2) + first("read", e.replayed, nth=5),
                "stripped from an OPEN's reply": first("open", e.unsigned),
                "wrong on an OPEN's reply": first("open", e.flipped(-3)),
            },
            Terms(kind, FORGED, dialect=dialect, copy="push.cached", server="signing"): {
                "stripped from a WRITE's reply": first("write", e.unsigned, nth=2),
                "left, count of a WRITE altered": first("write", count, nth=2),
                "stripped from a FLUSH's reply": first("flush", e.unsigned),
            },
        }
    )


def _sealed(dialect: str, cipher: str) -> tuple[Behaviour, ...]:
    kind, strange = f"{cipher}: ", "not of this session"
    again = first("payload", e.keep) + first("payload", e.instead, nth=4)
    return attacks(
        {
            Terms(kind, SPOILT, dialect=dialect, server="sealing"): {
                "ciphertext altered": first("payload", e.flipped(-100), nth=2),
                "tag altered": first("payload", e.flipped(5), nth=2),
                "an OPEN's reply altered": first("sealed", e.flipped(-1), nth=2),
            },
            Terms(kind, f"{SPOILT}|garbled|not asked", dialect=dialect, server="sealing"): {
                "ciphertext's head altered": first("payload", e.flipped(52), nth=2),
                "nonce altered": first("payload", e.flipped(20), nth=2),
            },
            Terms(kind, strange, dialect=dialect, server="sealing"): {
                "session id altered": first("payload", e.flipped(44), nth=2),
                "inner length altered": first("payload", e.flipped(36), nth=2),
                "flags altered": first("payload", e.put(42, "H", 0), nth=2),
                "cut off": first("payload", e.shortened(9000), nth=2),
            },
            Terms(kind, "without the encryption", dialect=dialect, server="sealing"): {
                "cut to its header": first("payload", e.shortened(60), nth=2),
                "replaced by plain replies": first("payload", e.in_clear, nth=2),
            },
            Terms(kind, "which was not asked", dialect=dialect, server="sealing"): {
                "an earlier one in its place": again,
                "sent twice": first("payload", e.twice, nth=2),
            },
            Terms(kind, SPOILT, dialect=dialect, copy="push.cached", server="sealing"): {
                "an OPEN's tag altered": first("sealed", e.flipped(4), nth=2),
                "a WRITE's reply altered": first("sealed", e.flipped(-1), nth=8),
                "a WRITE's data altered": (
                    f"{GONE}|ACCESS_DENIED|status",
                    first("request:payload", e.flipped(-9), nth=2),
                ),
            },
        }
    )


PROTECTED = (
    *_signature("2.1", "hmac-sha256"),
    *_signature("3.0", "aes-cmac"),
    *_signature("3.1.1", "aes-gmac"),
    *_signature("smb1", "md5"),
    *_sealed("3.0", "aes-128-ccm"),
    *_sealed("3.1.1", "aes-128-gcm"),
)
