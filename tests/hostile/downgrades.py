"""Less protection than both ends could have, made by somebody between them."""

from __future__ import annotations

import struct

import edits as e
import server as s
from behaviour import FORGED, GONE, LATE, NOT_ASKED, Behaviour, first
from middle import SMB1, Message, framed


def _documented() -> tuple[Behaviour, ...]:
    """What nobody could find: the copy is right, and the report says by what it was made."""
    weaker = first("logged in", e.altered(e.unsigned, e.put(66, "H", 0)))
    return (
        Behaviour(
            "told: SMB2 spoilt, where SMB1 is on",
            first("negotiate", e.altered(_spoilt_smb2)),
            "^smb1 ",
            dialect="",
            outcome="told",
        ),
        Behaviour(
            "harmless: 3.0's wish for encryption cleared, but the share's own",
            weaker,
            dialect="3.0",
            server="wishing",
            outcome="harmless",
        ),
        Behaviour(
            "told: 2.1 asked, greatest READ lowered",
            first("negotiate", e.altered(e.put(96, "I", 65536))),
            "^2.1 ",
            dialect="2.1",
            outcome="told",
        ),
    )


def _spoilt_smb2(message: Message) -> None:
    if message[:4] != SMB1:
        message[:4] = b"HTTP"


def _downgrades() -> tuple[Behaviour, ...]:
    """Less than both ends could do, made by somebody between them."""
    alter, asked = e.altered, "request:negotiate"
    tampered = FORGED + "|ACCESS_DENIED|access is denied|failed to verify|" + GONE
    return (
        Behaviour(
            "downgrade: 3.1.1 to 3.0.2 of all dialects",
            first(asked, e.dialects(0x0202, 0x0210, 0x0300, 0x0302)),
            tampered,
            dialect="",
        ),
        Behaviour(
            "downgrade: 3.1.1 to 3.0 of all dialects",
            first(asked, e.dialects(0x0202, 0x0210, 0x0300)),
            tampered,
            dialect="",
        ),
        Behaviour(
            "downgrade: 3.1.1 to 2.1 of all dialects",
            first(asked, e.dialects(0x0202, 0x0210)),
            tampered,
            dialect="",
        ),
        Behaviour(
            "downgrade: 3.1.1 to 2.0.2 of all dialects",
            first(asked, e.dialects(0x0202)),
            tampered,
            dialect="",
        ),
        Behaviour(
            "downgrade: 2.0.2 in place of 3.1.1 alone",
            first(asked, e.dialects(0x0202)),
            "does not offer",
        ),
        Behaviour(
            "downgrade: the reply says 3.0",
            first("negotiate", alter(e.put(68, "H", 0x0300))),
            f"{tampered}|offer",
            dialect="",
        ),
        Behaviour(
            "downgrade: 3.0 without encryption",
            first("negotiate", alter(e.cleared(88, "I", 0x40))),
            tampered,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: 3.0.2 without large MTU",
            first("negotiate", alter(e.cleared(88, "I", 0x4))),
            tampered,
            dialect="3.0.2",
        ),
        Behaviour(
            "downgrade: 3.0 where signing is not required",
            first("negotiate", alter(e.cleared(66, "H", 2))),
            tampered,
            dialect="3.0",
            server="signing",
        ),
        Behaviour(
            "downgrade: 3.1.1 where signing is not required",
            first("negotiate", alter(e.cleared(66, "H", 2))),
            tampered,
            server="signing",
        ),
        Behaviour(
            "downgrade: client's capabilities cleared, 3.0",
            first(asked, alter(e.put(72, "I", 0))),
            tampered,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: client's security mode altered, 3.0",
            first(asked, alter(e.put(68, "H", 0))),
            tampered,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: client's GUID altered, 3.0.2",
            first(asked, alter(e.flipped(80))),
            tampered,
            dialect="3.0.2",
        ),
        Behaviour(
            "downgrade: the server's GUID altered, 3.0.2",
            first("negotiate", alter(e.flipped(75))),
            tampered,
            dialect="3.0.2",
        ),
        Behaviour(
            "downgrade: no encryption context asked",
            first(asked, e.without_context(2, False)),
            tampered,
        ),
        Behaviour(
            "downgrade: no encryption context answered",
            first("negotiate", e.without_context(2, True)),
            tampered,
        ),
        Behaviour(
            "downgrade: no signing context asked",
            first(asked, e.without_context(8, False)),
            tampered,
        ),
        Behaviour(
            "downgrade: no hash context answered",
            first("negotiate", e.without_context(1, True)),
            "no sound answer|does not offer",
        ),
        Behaviour(
            "downgrade: the hash's salt altered",
            first("negotiate", alter(e.flipped(-1))),
            tampered + "|no sound answer|offer",
        ),
        Behaviour(
            "downgrade: the client's login altered, 3.1.1",
            first("request:login", alter(e.flipped(-1))),
            "login",
        ),
        Behaviour(
            "downgrade: the challenge altered, 3.1.1",
            first("login", alter(e.flipped(72 + 24))),
            "login",
        ),
        Behaviour(
            "downgrade: the login's reply says guest",
            first("logged in", alter(e.unsigned, e.put(66, "H", 1))),
            "guest",
        ),
        Behaviour(
            "downgrade: the login's reply says nobody",
            first("logged in", alter(e.unsigned, e.put(66, "H", 2))),
            "guest",
        ),
        Behaviour(
            "downgrade: the signed login's reply says guest",
            first("logged in", alter(e.put(66, "H", 1)), 1),
            "guest",
            server="signing",
        ),
        Behaviour(
            "downgrade: guest in a session of 2.1",
            first("logged in", alter(e.unsigned, e.put(66, "H", 1))),
            "guest",
            dialect="2.1",
        ),
        Behaviour(
            "downgrade: guest in SMB1",
            first("logged in", alter(e.unsigned, e.put(37, "H", 1))),
            "guest",
            dialect="smb1",
        ),
        Behaviour(
            "downgrade: the login's signature stripped, 3.1.1",
            first("logged in", alter(e.unsigned)),
            FORGED,
        ),
        Behaviour(
            "downgrade: the login's signature wrong, 3.1.1",
            first("logged in", alter(e.flipped(50))),
            FORGED,
        ),
        Behaviour(
            "downgrade: encryption wished, flag cleared",
            first("logged in", alter(e.unsigned, e.put(66, "H", 0))),
            FORGED,
            server="wishing",
        ),
        Behaviour(
            "downgrade: encryption wished, flag alone cleared, 3.0",
            first("logged in", alter(e.put(66, "H", 0))),
            FORGED,
            server="wishing",
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: share's flags altered, 3.1.1",
            first("share", alter(e.unsigned, e.put(68, "I", 0))),
            FORGED,
        ),
        Behaviour(
            "downgrade: share's flags altered, 3.0",
            first("share", alter(e.unsigned, e.flipped(68))),
            FORGED,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: the check of 3.0 forged",
            first("ioctl", alter(e.unsigned)),
            FORGED,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: the check of 3.0 refused",
            first("ioctl", e.failed(0xC00000BB)),
            FORGED,
            dialect="3.0",
        ),
        Behaviour(
            "downgrade: the check of 3.0 refused, with a false signature",
            first(
                "ioctl",
                lambda m, t: [
                    framed(
                        bytes(m[:8])
                        + struct.pack("<I", 0xC00000BB)
                        + bytes(m[12:16])
                        + struct.pack("<I", 1)
                        + bytes(m[20:48])
                        + b"\x01" * 16
                        + s.ERROR
                    )
                ],
            ),
            FORGED,
            dialect="3.0.2",
        ),
        Behaviour(
            "downgrade: the check of 3.0 dropped", first("ioctl", e.dropped), LATE, dialect="3.0"
        ),
        Behaviour(
            "downgrade: SMB1 without NTLMv2",
            first(
                "negotiate", alter(e.cleared(32 + 20, "I", 0x80000000), e.cleared(10, "H", 0x0800))
            ),
            "SMB1",
            dialect="smb1",
        ),
        Behaviour(
            "downgrade: SMB1 where signing is not required",
            first("negotiate", alter(e.cleared(35, "B", 0x0C))),
            f"access is denied|signature|{GONE}",
            dialect="smb1",
            server="signing",
        ),
        Behaviour(
            "disguise: an OPEN's reply as a login's",
            first("open", e.disguised),
            NOT_ASKED,
            server="signing",
        ),
        Behaviour(
            "disguise: a share's reply as a login's",
            first("share", e.disguised),
            NOT_ASKED,
            server="signing",
        ),
        Behaviour(
            "disguise: a READ's reply as a login's",
            first("read", e.disguised),
            NOT_ASKED,
            server="signing",
        ),
    )


DOWNGRADES = (*_documented(), *_downgrades())
