"""What is done to the replies of sessions that are signed or encrypted."""

from __future__ import annotations

import edits as e
from behaviour import FORGED, GONE, SPOILT, Behaviour, first, payload_byte
from middle import Tamper


def _signature(dialect: str, algorithm: str) -> tuple[Behaviour, ...]:
    """What is done to the replies of a signed session; the same in every dialect."""
    old = e.replayed1 if dialect == "smb1" else e.replayed
    count = e.flipped(37 if dialect == "smb1" else 68)
    cases: tuple[tuple[str, str, tuple[Tamper, ...]], ...] = (
        (
            "stripped, payload altered",
            "pull",
            first("read", e.altered(e.unsigned, payload_byte), 3),
        ),
        ("stripped, nothing else", "pull", first("read", e.altered(e.unsigned), 2)),
        ("zeroed", "pull", first("read", e.altered(e.zeroed), 2)),
        ("left, payload altered", "pull", first("read", e.altered(payload_byte), 4)),
        ("left, last byte altered", "pull", first("read", e.altered(e.flipped(-1)), 1)),
        ("of another reply", "pull", (Tamper("read", e.kept("old"), 2), Tamper("read", old, 5))),
        ("stripped from a WRITE's reply", "push", first("write", e.altered(e.unsigned), 2)),
        ("left, count of a WRITE altered", "push", first("write", e.altered(count), 2)),
        ("stripped from a FLUSH's reply", "push", first("flush", e.altered(e.unsigned))),
        ("stripped from an OPEN's reply", "pull", first("open", e.altered(e.unsigned))),
        ("wrong on an OPEN's reply", "pull", first("open", e.altered(e.flipped(-3)))),
    )
    return tuple(
        Behaviour(
            f"{algorithm}: {name}",
            does,
            FORGED,
            dialect,
            f"{verb}.cached",
            "signing",
        )
        for name, verb, does in cases
    )


def _sealed(dialect: str, cipher: str) -> tuple[Behaviour, ...]:
    """What is done to the replies of an encrypted session."""
    alter = e.altered
    cases: tuple[tuple[str, str, tuple[Tamper, ...], str], ...] = (
        ("ciphertext altered", "pull", first("payload", alter(e.flipped(-100)), 2), SPOILT),
        (
            "ciphertext's head altered",
            "pull",
            first("payload", alter(e.flipped(52)), 2),
            f"{SPOILT}|garbled",
        ),
        ("tag altered", "pull", first("payload", alter(e.flipped(5)), 2), SPOILT),
        (
            "nonce altered",
            "pull",
            first("payload", alter(e.flipped(20)), 2),
            f"{SPOILT}|garbled|not asked",
        ),
        (
            "session id altered",
            "pull",
            first("payload", alter(e.flipped(44)), 2),
            "not of this session",
        ),
        (
            "inner length altered",
            "pull",
            first("payload", alter(e.flipped(36)), 2),
            "not of this session",
        ),
        (
            "flags altered",
            "pull",
            first("payload", alter(e.put(42, "H", 0)), 2),
            "not of this session",
        ),
        ("cut off", "pull", first("payload", alter(e.shortened(9000)), 2), "not of this session"),
        (
            "cut to its header",
            "pull",
            first("payload", alter(e.shortened(60)), 2),
            "without the encryption",
        ),
        (
            "replaced by plain replies",
            "pull",
            first("payload", e.in_clear, 2),
            "without the encryption",
        ),
        (
            "an earlier one in its place",
            "pull",
            (Tamper("payload", e.kept("old"), 1), Tamper("payload", e.instead, 4)),
            "which was not asked",
        ),
        ("sent twice", "pull", first("payload", e.twice, 2), "which was not asked"),
        ("an OPEN's reply altered", "pull", first("sealed", alter(e.flipped(-1)), 2), SPOILT),
        ("an OPEN's tag altered", "push", first("sealed", alter(e.flipped(4)), 2), SPOILT),
        ("a WRITE's reply altered", "push", first("sealed", alter(e.flipped(-1)), 8), SPOILT),
        (
            "a WRITE's data altered",
            "push",
            first("request:payload", alter(e.flipped(-9)), 2),
            f"{GONE}|ACCESS_DENIED|status",
        ),
    )
    return tuple(
        Behaviour(f"{cipher}: {name}", does, says, dialect, f"{verb}.cached", "sealing")
        for name, verb, does, says in cases
    )


PROTECTED = (
    *_signature("2.1", "hmac-sha256"),
    *_signature("3.0", "aes-cmac"),
    *_signature("3.1.1", "aes-gmac"),
    *_signature("smb1", "md5"),
    *_sealed("3.0", "aes-128-ccm"),
    *_sealed("3.1.1", "aes-128-gcm"),
)
