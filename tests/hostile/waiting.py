"""Peers that take their time, or all of ours; and those that are only odd."""

from __future__ import annotations

import edits as e
from behaviour import (
    ACCESS_DENIED,
    GONE,
    LATE,
    NETWORK_NAME_DELETED,
    NO_SMB,
    NOT_ASKED,
    SHARING_VIOLATION,
    Behaviour,
    first,
)
from middle import framed


def _liveness() -> tuple[Behaviour, ...]:
    """Peers that take their time, or all of ours."""
    endless = e.for_ever(lambda m, t: framed(bytes(e.pending(m))))
    pulls = (
        ("the negotiation", "negotiate"),
        ("the login", "login"),
        ("the share", "share"),
        ("an OPEN", "open"),
        ("a READ", "read"),
    )
    found: list[Behaviour] = []
    for what, moment in pulls:
        found += [
            Behaviour(f"waiting: {what}: silence", first(moment, e.dropped), LATE),
            Behaviour(f"waiting: {what}: PENDING for ever", first(moment, endless), LATE),
            Behaviour(f"waiting: {what}: closed", first(moment, e.closed), f"{GONE}|{NO_SMB}"),
            Behaviour(f"waiting: {what}: reset", first(moment, e.reset), f"{GONE}|{NO_SMB}"),
            Behaviour(
                f"waiting: {what}: a byte now and then", first(moment, e.trickled(0.3)), LATE
            ),
            Behaviour(
                f"waiting: {what}: garbage",
                first(moment, e.replaced(framed(b"\xfeSMB" + bytes(range(200))))),
                f"{NO_SMB}|{NOT_ASKED}|garbled|makes no sense",
            ),
        ]
    return (
        *found,
        Behaviour(
            "waiting: a READ: keep-alives for ever",
            first("read", e.for_ever(e.keep_alives, 0.05)),
            LATE,
        ),
        Behaviour(
            "waiting: a WRITE: silence",
            first("write", e.dropped, 2, True),
            LATE,
            copy="push.cached",
        ),
        Behaviour(
            "waiting: a WRITE: PENDING for ever",
            first("write", endless, 2, True),
            LATE,
            copy="push.cached",
        ),
        Behaviour("waiting: a FLUSH: silence", first("flush", e.dropped), LATE, copy="push.cached"),
        Behaviour(
            "waiting: a FLUSH: PENDING for ever", first("flush", endless), LATE, copy="push.cached"
        ),
        Behaviour(
            "waiting: the server takes no more of a push",
            first("request:write", e.stalled_server, 2),
            LATE,
            copy="push.cached",
        ),
        Behaviour(
            "waiting: the server takes no more, SMB1",
            first("request:write", e.stalled_server, 2),
            LATE,
            copy="push.cached",
            dialect="smb1",
        ),
        Behaviour(
            "waiting: a READ of SMB1: silence", first("read", e.dropped, 2), LATE, dialect="smb1"
        ),
        Behaviour(
            "waiting: the login of SMB1: silence", first("login", e.dropped), LATE, dialect="smb1"
        ),
        Behaviour(
            "waiting: the negotiation of SMB1: silence",
            first("negotiate", e.dropped),
            LATE,
            dialect="smb1",
        ),
        Behaviour(
            "waiting: a sealed READ: silence",
            first("payload", e.dropped, 2),
            LATE,
            server="sealing",
        ),
        Behaviour(
            "waiting: a signed READ: PENDING for ever",
            first("read", endless, 2),
            LATE,
            server="signing",
        ),
        Behaviour(
            "waiting: an OPEN, with the product's own limits",
            first("open", endless),
            LATE,
            product_limits=True,
        ),
        Behaviour(
            "waiting: every reply a little late",
            first("any", e.late(4.0), 1, True),
            "did not end within its time",
            product_limits=True,
        ),
        Behaviour(
            "odd: an oplock is broken that nobody has",
            first("read", e.oplock_break, 2),
            "which was not asked",
        ),
        Behaviour(
            "odd: an oplock is broken before an OPEN",
            first("open", e.oplock_break),
            "which was not asked",
        ),
        Behaviour("odd: a READ's reply twice", first("read", e.twice, 3), "which was not asked"),
        Behaviour(
            "odd: an OPEN's status unknown", first("open", e.failed(0xDEADBEEF)), "0xdeadbeef"
        ),
        Behaviour(
            "odd: the share is denied",
            first("share", e.failed(ACCESS_DENIED)),
            "access is denied",
            dialect="2.1",
        ),
        Behaviour(
            "odd: the file is in use", first("open", e.failed(SHARING_VIOLATION), 2), "in use"
        ),
        Behaviour(
            "odd: the share goes in mid-copy",
            first("read", e.failed(NETWORK_NAME_DELETED), 4),
            "0xc00000c9",
        ),
        Behaviour("harmless: nothing at all", first("read", e.altered()), outcome="harmless"),
        Behaviour(
            "harmless: keep-alives",
            first("read", e.preceded(b"\x85\0\0\0" * 50), 1, True),
            outcome="harmless",
        ),
        Behaviour(
            "harmless: 7 MiB behind a READ's data",
            first("read", e.padded(7 << 20), 2),
            outcome="harmless",
        ),
        Behaviour(
            "harmless: one PENDING", first("read", e.after_pendings(1), 3), outcome="harmless"
        ),
        Behaviour(
            "harmless: 200 PENDINGs of an OPEN",
            first("open", e.after_pendings(200)),
            outcome="harmless",
        ),
        Behaviour(
            "harmless: PENDING for a FLUSH",
            first("flush", e.after_pendings(3)),
            outcome="harmless",
            copy="push.cached",
        ),
        Behaviour(
            "harmless: PENDING in a signed session",
            first("read", e.after_pendings(2), 3),
            outcome="harmless",
            server="signing",
        ),
        Behaviour(
            "harmless: OPEN: contexts behind the message",
            first("open", e.altered(e.put(144, "I", 0x7FFFFFFF), e.put(148, "I", 0x7FFFFFFF)), 2),
            outcome="harmless",
            dialect="2.1",
        ),
        Behaviour(
            "harmless: a READ's reply says 65535 credits",
            first("read", e.altered(e.put(14, "H", 0xFFFF)), 1, True),
            outcome="harmless",
        ),
        Behaviour(
            "harmless: a READ in small parts",
            first("read", e.partly, 1, True),
            outcome="harmless",
            dialect="2.1",
        ),
        Behaviour(
            "harmless: a CLOSE's reply without its signature",
            first("close", e.altered(e.unsigned)),
            outcome="harmless",
            server="signing",
        ),
        Behaviour(
            "harmless: no reply to the last CLOSE", first("unshare", e.dropped), outcome="harmless"
        ),
    )


def _controls() -> tuple[Behaviour, ...]:
    """The same way with nothing done to it: without them the rest would prove nothing."""
    found = []
    for server, dialects in (
        ("plain", ("", "smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1")),
        ("signing", ("", "smb1", "2.0.2", "2.1", "3.0", "3.1.1")),
        ("sealing", ("", "3.0", "3.1.1")),
        ("wishing", ("3.0", "3.1.1")),
        ("old", ("",)),
    ):
        for number, dialect in enumerate(dialects):
            copy = "push.cached" if number % 2 else "pull.cached"
            moment = "sealed" if server in ("sealing", "wishing") else "negotiate"
            found.append(
                Behaviour(
                    f"harmless: {dialect or 'best'}, {server}, {copy}",
                    first(moment, e.altered()),
                    dialect=dialect,
                    copy=copy,
                    server=server,
                    outcome="harmless",
                )
            )
    return tuple(found)


WAITING = _liveness()
HARMLESS = _controls()
