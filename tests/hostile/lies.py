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
    alter,
    attacks,
)

ERROR = "with . bytes|with .* bytes at|too short"
"""Pattern of the error of a READ."""
MOST = (1 << 63) - 1
NO_REPLY, OTHER_TREE = e.cleared(16, "I", 1), e.other_tree
"""Without SMB2_FLAGS_SERVER_TO_REDIR; with another TreeId (MS-SMB2 2.2.1.2)."""
NO_CREDITS = (
    *alter("login", e.put(14, "H", 0), every=True),
    *alter("share", e.put(14, "H", 0), every=True),
    *alter("open", e.put(14, "H", 0), every=True),
)


def interface(following: int, family: int = 2) -> bytes:
    """One entry of NETWORK_INTERFACE_INFO (MS-SMB2 2.2.32.5)."""
    head = struct.pack("<IIIIQ", following, 7, 3, 0, 0xFFFFFFFFFFFFFFFF)
    return head + struct.pack("<HH4s120x", family, 0, bytes((127, 0, 0, 77)))


LIES = attacks(
    {
        Terms("lie: ", dialect="2.1"): {
            "READ: more bytes than asked": (
                ERROR,
                alter("read", e.put(68, "I", 0x7FFFFFFF), nth=2),
            ),
            "READ: data before the message": (ERROR, alter("read", e.put(66, "B", 2), nth=2)),
            "READ: data behind the message": (ERROR, alter("read", e.put(66, "B", 255), nth=2)),
            "READ: half of its data": (ERROR, alter("read", e.shortened(30000), nth=2)),
            "OPEN: cut": ("open", alter("open", e.shortened(100))),
            "share's reply cut": ("share", alter("share", e.shortened(70))),
            "greatest READ 0 bytes": ("invalid answer", alter("negotiate", e.put(96, "I", 0))),
            "greatest READ 1 byte": ("invalid answer", alter("negotiate", e.put(96, "I", 1))),
            "NextCommand on an OPEN": (NOT_ASKED, alter("open", e.chained(152))),
            "NextCommand 1 on an OPEN": ("open", alter("open", e.chained(1))),
            "no credits from the login on": ("credits", NO_CREDITS),
        },
        Terms("lie: "): {
            "READ: one byte too many": (ERROR, alter("read", e.put(68, "I", 65537), nth=2)),
            "READ: no bytes": (ERROR, alter("read", e.put(68, "I", 0), nth=2)),
            "READ: cut to the header": ("too short", alter("read", e.shortened(64), nth=2)),
            "READ: cut to one byte": ("too short", alter("read", e.shortened(1), nth=2)),
            "READ: the file ends here": (
                "END_OF_FILE",
                alter("read", e.failed(END_OF_FILE), nth=3),
            ),
            "READ: an empty success": (
                "too short|with .* bytes",
                alter("read", e.failed(0), nth=3),
            ),
            "OPEN: a file of no bytes": ("has 0 bytes", alter("open", e.put(112, "Q", 0), nth=2)),
            "a message of 16 MiB announced": (
                "announced a message",
                alter("read", e.replaced(b"\0\xff\xff\xff"), nth=2),
            ),
            "a message of 4 GiB announced": (
                "not an SMB message",
                alter("read", e.replaced(b"\xff" * 4), nth=2),
            ),
            "an empty message": ("too short", alter("read", e.preceded(b"\0\0\0\0"), nth=2)),
            "NextCommand on a READ": ("garbled", alter("read", e.chained(64), nth=2)),
        },
        Terms("lie: ", copy="push.cached"): {
            "WRITE: fewer bytes than sent": (
                "of the .* bytes sent",
                alter("write", e.put(68, "I", 1), nth=2),
            ),
            "WRITE: cut to the header": ("too short", alter("write", e.shortened(64), nth=2)),
            "WRITE: the disk is full": ("disk is full", alter("write", e.failed(DISK_FULL), nth=3)),
            "FLUSH: failed": ("ACCESS_DENIED", alter("flush", e.failed(ACCESS_DENIED))),
        },
        Terms("lie: ", "of the .* bytes sent", dialect="2.1", copy="push.cached"): {
            "WRITE: more bytes than sent": alter("write", e.put(68, "I", 1 << 30), nth=2),
            "greatest WRITE 0 bytes": ("invalid answer", alter("negotiate", e.put(100, "I", 0))),
        },
        Terms("lie: SMB1: ", dialect="smb1"): {
            "READ: more bytes than asked": (ERROR, alter("read", e.put(47, "H", 0x7FFF), nth=2)),
            "READ: no bytes": (ERROR, alter("read", e.put(43, "H", 0), e.put(47, "H", 0), nth=2)),
            "READ: data before the message": (ERROR, alter("read", e.put(45, "H", 2), nth=2)),
            "READ: data behind the message": (ERROR, alter("read", e.put(45, "H", 0xFFFF), nth=2)),
            "READ: other words": (ERROR, alter("read", e.put(32, "B", 255), nth=2)),
            "READ: cut to the header": ("too short", alter("read", e.shortened(32), nth=2)),
            "READ: another session": (
                "another session",
                alter("read", e.put(28, "H", 0x7777), nth=2),
            ),
            "READ: another message": (
                "which was not asked",
                alter("read", e.put(30, "H", 0x7777), nth=2),
            ),
            "READ: a request in place of a reply": (
                "garbled",
                alter("read", e.put(9, "B", 0), nth=2),
            ),
            "READ: an error": ("ACCESS_DENIED", alter("read", e.failed1(ACCESS_DENIED), nth=3)),
            "READ: an error of DOS": ("DOS error", alter("read", e.dos_error, nth=3)),
            "OPEN: cut": ("open", alter("open", e.shortened(40))),
            "the login cut": ("login", alter("login", e.shortened(40))),
            "a message of 4 GiB announced": (
                "not an SMB message",
                alter("read", e.replaced(b"\xff" * 4), nth=2),
            ),
            "a message of 16 MiB announced": (
                "announced",
                alter("open", e.replaced(b"\0\xff\xff\xff")),
            ),
        },
        Terms("lie: SMB1: ", "of the .* bytes sent", dialect="smb1", copy="push.cached"): {
            "WRITE: fewer bytes than sent": alter("write", e.put(37, "H", 1), nth=2),
            "WRITE: cut": alter("write", e.shortened(36), nth=2),
        },
        Terms("header: ", f"another share|{NOT_ASKED}"): {
            "OPEN: another tree": alter("open", OTHER_TREE),
            "OPEN: another command": alter("open", e.put(12, "H", 6)),
            "READ: another tree": alter("read", OTHER_TREE, nth=2),
            "READ: another command": alter("read", e.put(12, "H", 9), nth=2),
        },
        Terms("header: ", "is no reply|garbled|does not offer"): {
            "NEGOTIATE: no reply": alter("negotiate", NO_REPLY),
            "login: no reply": alter("login", NO_REPLY),
            "share: no reply": alter("share", NO_REPLY),
            "OPEN: no reply": alter("open", NO_REPLY),
            "READ: no reply": alter("read", NO_REPLY, nth=2),
        },
        Terms("header: ", "another share", copy="push.cached"): {
            "WRITE: another tree": alter("write", OTHER_TREE, nth=2)
        },
        Terms("header: ", "is no reply|garbled|SMB1 is off", dialect="smb1"): {
            "SMB1: NEGOTIATE: no reply": alter("negotiate", e.put(9, "B", 0x08)),
            "SMB1: login: no reply": alter("login", e.put(9, "B", 0x08)),
            "SMB1: OPEN: no reply": alter("open", e.put(9, "B", 0x08)),
            "SMB1: READ: another tree": (
                "another share",
                alter("read", e.put(24, "H", 0x7777), nth=2),
            ),
        },
        Terms("header: ", dialect="2.1", outcome="harmless"): {
            "READ: asynchronous": alter("read", e.asynchronous, nth=2),
            "OPEN: asynchronous": alter("open", e.asynchronous),
            "login: a tree that means nothing": alter("login", OTHER_TREE),
        },
        Terms("plain: ", dialect="2.1", outcome="mismatch"): {
            "one bit of a READ": alter("read", e.flipped(-1), nth=7)
        },
        Terms("plain: ", outcome="mismatch"): {
            "a bit of every READ": alter("read", e.payload_byte, every=True),
            "replies of two READs exchanged": alter("read", e.swapped, nth=2)
            + alter("read", e.swapped, nth=3),
            "an earlier READ's reply again": alter("read", e.keep, nth=2)
            + alter("read", e.replayed, nth=5),
        },
        Terms("plain: ", dialect="smb1", outcome="mismatch"): {
            "a bit of every READ in SMB1": alter("read", e.payload_byte, every=True)
        },
        Terms("plain: ", copy="push.cached", outcome="mismatch"): {
            "a bit of every WRITE": alter("request:write", e.flipped(-1), every=True)
        },
        Terms("plain: ", dialect="smb1", copy="push.cached", outcome="mismatch"): {
            "a bit of every WRITE in SMB1": alter("request:write", e.flipped(-1), every=True)
        },
    }
)

FOLDER_LIES = attacks(
    {
        Terms("holding: ", copy="push.cached", outcome="harmless", with_folder=True): {
            "nothing at all": alter("query"),
            "interfaces: a chain that leads back": alter("ioctl", e.answer(interface(0xFFFFFF68))),
            "interfaces: a chain of itself": alter("ioctl", e.answer(interface(1) * 400)),
            "interfaces: 6000 of them": alter("ioctl", e.answer(interface(152) * 6000)),
            "interfaces: an unknown family": alter("ioctl", e.answer(interface(0, 99))),
            "interfaces: cut": alter("ioctl", e.shortened(100)),
            "interfaces: not supported": alter("ioctl", e.failed(NOT_SUPPORTED)),
            "room: more than there can be": alter(
                "query", e.room(MOST, MOST, 0xFFFFFFFF, 0xFFFFFFFF)
            ),
            "room: less than nothing": alter("query", e.room(-1, -1, 1, 4096)),
        },
        Terms("holding: ", copy="push.cached", with_folder=True): {
            "interfaces: silence": (LATE, alter("ioctl", e.dropped)),
            "interfaces: PENDING for ever": (LATE, alter("ioctl", e.pending_for_ever)),
            "room: cut": ("free space", alter("query", e.shortened(80))),
            "room: denied": ("free space", alter("query", e.failed(ACCESS_DENIED))),
            "room: closed": (GONE, alter("query", e.closed)),
            "folder: denied": ("access is denied", alter("open", e.failed(ACCESS_DENIED))),
            "folder: said to be gone": (
                "file or folder not found",
                alter("open", e.failed(NO_SUCH_FILE)),
            ),
        },
    }
)


def _signature(dialect: str, algorithm: str) -> tuple[Behaviour, ...]:
    """Returns changes to the replies of a signed session; the same in every dialect."""
    kind, altered_count = f"{algorithm}: ", e.flipped(37 if dialect == "smb1" else 68)
    return attacks(
        {
            Terms(kind, FORGED, dialect=dialect, server="signing"): {
                "stripped, payload altered": alter("read", e.unsigned, e.payload_byte, nth=3),
                "stripped, nothing else": alter("read", e.unsigned, nth=2),
                "zeroed": alter("read", e.zeroed, nth=2),
                "left, payload altered": alter("read", e.payload_byte, nth=4),
                "left, last byte altered": alter("read", e.flipped(-1)),
                "of another reply": alter("read", e.keep, nth=2) + alter("read", e.replayed, nth=5),
                "stripped from an OPEN's reply": alter("open", e.unsigned),
                "wrong on an OPEN's reply": alter("open", e.flipped(-3)),
            },
            Terms(kind, FORGED, dialect=dialect, copy="push.cached", server="signing"): {
                "stripped from a WRITE's reply": alter("write", e.unsigned, nth=2),
                "left, count of a WRITE altered": alter("write", altered_count, nth=2),
                "stripped from a FLUSH's reply": alter("flush", e.unsigned),
            },
        }
    )


def _sealed(dialect: str, cipher: str) -> tuple[Behaviour, ...]:
    kind, strange = f"{cipher}: ", "not of this session"
    again = alter("payload", e.keep) + alter("payload", e.instead, nth=4)
    return attacks(
        {
            Terms(kind, SPOILT, dialect=dialect, server="sealing"): {
                "ciphertext altered": alter("payload", e.flipped(-100), nth=2),
                "tag altered": alter("payload", e.flipped(5), nth=2),
                "an OPEN's reply altered": alter("sealed", e.flipped(-1), nth=2),
            },
            Terms(kind, f"{SPOILT}|garbled|not asked", dialect=dialect, server="sealing"): {
                "ciphertext's head altered": alter("payload", e.flipped(52), nth=2),
                "nonce altered": alter("payload", e.flipped(20), nth=2),
            },
            Terms(kind, strange, dialect=dialect, server="sealing"): {
                "session id altered": alter("payload", e.flipped(44), nth=2),
                "inner length altered": alter("payload", e.flipped(36), nth=2),
                "flags altered": alter("payload", e.put(42, "H", 0), nth=2),
                "cut off": alter("payload", e.shortened(9000), nth=2),
            },
            Terms(kind, "without the encryption", dialect=dialect, server="sealing"): {
                "cut to its header": alter("payload", e.shortened(60), nth=2),
                "replaced by plain replies": alter("payload", e.in_clear, nth=2),
            },
            Terms(kind, "which was not asked", dialect=dialect, server="sealing"): {
                "an earlier one in its place": again,
                "sent twice": alter("payload", e.twice, nth=2),
            },
            Terms(kind, SPOILT, dialect=dialect, copy="push.cached", server="sealing"): {
                "an OPEN's tag altered": alter("sealed", e.flipped(4), nth=2),
                "a WRITE's reply altered": alter("sealed", e.flipped(-1), nth=8),
                "a WRITE's data altered": (
                    f"{GONE}|ACCESS_DENIED|status",
                    alter("request:payload", e.flipped(-9), nth=2),
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
