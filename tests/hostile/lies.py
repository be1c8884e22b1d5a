"""Lies about lengths, places, counts and content, where nothing is signed."""

from __future__ import annotations

import edits as e
from behaviour import (
    ACCESS_DENIED,
    DISK_FULL,
    END_OF_FILE,
    NOT_ASKED,
    Behaviour,
    first,
    payload_byte,
)
from middle import Tamper


def _lengths() -> tuple[Behaviour, ...]:
    """Lies about lengths, places and counts, where nothing is signed."""
    put, alter = e.put, e.altered
    read = "with . bytes|with .* bytes at|too short"
    return tuple(
        Behaviour(f"lie: {name}", does, says, dialect, f"{verb}.cached")
        for name, verb, dialect, does, says in (
            (
                "READ: more bytes than asked",
                "pull",
                "2.1",
                first("read", alter(put(68, "I", 0x7FFFFFFF)), 2),
                read,
            ),
            (
                "READ: one byte too many",
                "pull",
                "3.1.1",
                first("read", alter(put(68, "I", 65537)), 2),
                read,
            ),
            ("READ: no bytes", "pull", "3.1.1", first("read", alter(put(68, "I", 0)), 2), read),
            (
                "READ: data before the message",
                "pull",
                "2.1",
                first("read", alter(put(66, "B", 2)), 2),
                read,
            ),
            (
                "READ: data behind the message",
                "pull",
                "2.1",
                first("read", alter(put(66, "B", 255)), 2),
                read,
            ),
            (
                "READ: cut to the header",
                "pull",
                "3.1.1",
                first("read", alter(e.shortened(64)), 2),
                "too short",
            ),
            (
                "READ: cut to one byte",
                "pull",
                "3.1.1",
                first("read", alter(e.shortened(1)), 2),
                "too short",
            ),
            (
                "READ: half of its data",
                "pull",
                "2.1",
                first("read", alter(e.shortened(30000)), 2),
                read,
            ),
            (
                "READ: the file ends here",
                "pull",
                "3.1.1",
                first("read", e.failed(END_OF_FILE), 3),
                "END_OF_FILE",
            ),
            (
                "READ: an empty success",
                "pull",
                "3.1.1",
                first("read", e.failed(0), 3),
                "too short|with .* bytes",
            ),
            (
                "WRITE: fewer bytes than sent",
                "push",
                "3.1.1",
                first("write", alter(put(68, "I", 1)), 2),
                "of the .* bytes sent",
            ),
            (
                "WRITE: more bytes than sent",
                "push",
                "2.1",
                first("write", alter(put(68, "I", 1 << 30)), 2),
                "of the .* bytes sent",
            ),
            (
                "WRITE: cut to the header",
                "push",
                "3.1.1",
                first("write", alter(e.shortened(64)), 2),
                "too short",
            ),
            (
                "WRITE: the disk is full",
                "push",
                "3.1.1",
                first("write", e.failed(DISK_FULL), 3),
                "disk is full",
            ),
            (
                "FLUSH: failed",
                "push",
                "3.1.1",
                first("flush", e.failed(ACCESS_DENIED)),
                "ACCESS_DENIED",
            ),
            (
                "OPEN: a file of no bytes",
                "pull",
                "3.1.1",
                first("open", alter(put(112, "Q", 0)), 2),
                "has 0 bytes",
            ),
            ("OPEN: cut", "pull", "2.1", first("open", alter(e.shortened(100))), "open"),
            ("share's reply cut", "pull", "2.1", first("share", alter(e.shortened(70))), "share"),
            (
                "greatest READ 0 bytes",
                "pull",
                "2.1",
                first("negotiate", alter(put(96, "I", 0))),
                "no sound answer",
            ),
            (
                "greatest READ 1 byte",
                "pull",
                "2.1",
                first("negotiate", alter(put(96, "I", 1))),
                "no sound answer",
            ),
            (
                "greatest WRITE 0 bytes",
                "push",
                "2.1",
                first("negotiate", alter(put(100, "I", 0))),
                "no sound answer",
            ),
            (
                "a message of 16 MiB announced",
                "pull",
                "3.1.1",
                first("read", e.replaced(b"\0\xff\xff\xff"), 2),
                "announced a message",
            ),
            (
                "a message of 4 GiB announced",
                "pull",
                "3.1.1",
                first("read", e.replaced(b"\xff" * 4), 2),
                "no SMB message",
            ),
            (
                "an empty message",
                "pull",
                "3.1.1",
                first("read", e.preceded(b"\0\0\0\0"), 2),
                "too short",
            ),
            (
                "no credits from the login on",
                "pull",
                "2.1",
                (
                    Tamper("login", alter(put(14, "H", 0)), 1, True),
                    Tamper("share", alter(put(14, "H", 0)), 1, True),
                    Tamper("open", alter(put(14, "H", 0)), 1, True),
                ),
                "credits",
            ),
            ("NextCommand on a READ", "pull", "3.1.1", first("read", e.chained(64), 2), "garbled"),
            ("NextCommand on an OPEN", "pull", "2.1", first("open", e.chained(152)), NOT_ASKED),
            ("NextCommand 1 on an OPEN", "pull", "2.1", first("open", e.chained(1)), "open"),
        )
    )


def _content() -> tuple[Behaviour, ...]:
    """Altered content in a session that nobody protects: the check of the copy has to find it."""
    swap = e.swapped()
    return (
        Behaviour(
            "plain: one bit of a READ",
            first("read", e.altered(e.flipped(-1)), 7),
            dialect="2.1",
            outcome="mismatch",
        ),
        Behaviour(
            "plain: a bit of every READ",
            first("read", e.altered(payload_byte), 1, True),
            outcome="mismatch",
        ),
        Behaviour(
            "plain: a bit of every READ in SMB1",
            first("read", e.altered(payload_byte), 1, True),
            dialect="smb1",
            outcome="mismatch",
        ),
        Behaviour(
            "plain: replies of two READs exchanged",
            (Tamper("read", swap, 2), Tamper("read", swap, 3)),
            outcome="mismatch",
        ),
        Behaviour(
            "plain: an earlier READ's reply again",
            (Tamper("read", e.kept("old"), 2), Tamper("read", e.replayed, 5)),
            outcome="mismatch",
        ),
        Behaviour(
            "plain: a bit of every WRITE",
            first("request:write", e.altered(e.flipped(-1)), 1, True),
            copy="push.cached",
            outcome="mismatch",
        ),
        Behaviour(
            "plain: a bit of every WRITE in SMB1",
            first("request:write", e.altered(e.flipped(-1)), 1, True),
            dialect="smb1",
            copy="push.cached",
            outcome="mismatch",
        ),
    )


def _lengths1() -> tuple[Behaviour, ...]:
    """The same lies in SMB1 (MS-CIFS 2.2.4.42.2, 2.2.4.43.2)."""
    put, alter = e.put, e.altered
    read = "with .* bytes at|too short"
    return tuple(
        Behaviour(f"lie: SMB1: {name}", does, says, "smb1", f"{verb}.cached")
        for name, verb, does, says in (
            (
                "READ: more bytes than asked",
                "pull",
                first("read", alter(put(47, "H", 0x7FFF)), 2),
                read,
            ),
            (
                "READ: no bytes",
                "pull",
                first("read", alter(put(43, "H", 0), put(47, "H", 0)), 2),
                read,
            ),
            (
                "READ: data before the message",
                "pull",
                first("read", alter(put(45, "H", 2)), 2),
                read,
            ),
            (
                "READ: data behind the message",
                "pull",
                first("read", alter(put(45, "H", 0xFFFF)), 2),
                read,
            ),
            ("READ: other words", "pull", first("read", alter(put(32, "B", 255)), 2), read),
            (
                "READ: cut to the header",
                "pull",
                first("read", alter(e.shortened(32)), 2),
                "too short",
            ),
            (
                "READ: another session",
                "pull",
                first("read", alter(put(28, "H", 0x7777)), 2),
                "another session",
            ),
            (
                "READ: another message",
                "pull",
                first("read", alter(put(30, "H", 0x7777)), 2),
                "which was not asked",
            ),
            (
                "READ: a request in place of a reply",
                "pull",
                first("read", alter(put(9, "B", 0)), 2),
                "garbled",
            ),
            ("READ: an error", "pull", first("read", e.failed1(ACCESS_DENIED), 3), "ACCESS_DENIED"),
            ("READ: an error of DOS", "pull", first("read", e.dos_error, 3), "DOS error"),
            (
                "WRITE: fewer bytes than sent",
                "push",
                first("write", alter(put(37, "H", 1)), 2),
                "of the .* bytes sent",
            ),
            (
                "WRITE: cut",
                "push",
                first("write", alter(e.shortened(36)), 2),
                "of the .* bytes sent",
            ),
            ("OPEN: cut", "pull", first("open", alter(e.shortened(40))), "open"),
            ("the login cut", "pull", first("login", alter(e.shortened(40))), "login"),
            (
                "a message of 4 GiB announced",
                "pull",
                first("read", e.replaced(b"\xff" * 4), 2),
                "no SMB message",
            ),
            (
                "a message of 16 MiB announced",
                "pull",
                first("open", e.replaced(b"\0\xff\xff\xff")),
                "announced",
            ),
        )
    )


LIES = (*_lengths(), *_lengths1(), *_content())
