"""Peers that take their time, or all of ours; and those that are only odd, or nothing at all."""

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
    Terms,
    alter,
    attacks,
)
from middle import frame

WAITING = attacks(
    {
        Terms("waiting: ", LATE): {"a READ: keep-alives for ever": alter("read", e.keep_alives)},
        Terms("waiting: ", LATE, copy="push.cached"): {
            "a WRITE: silence": alter("write", e.dropped, nth=2, every=True),
            "a WRITE: PENDING for ever": alter("write", e.pending_for_ever, nth=2, every=True),
            "a FLUSH: silence": alter("flush", e.dropped),
            "a FLUSH: PENDING for ever": alter("flush", e.pending_for_ever),
            "the server takes no more of a push": alter("request:write", e.stalled_server, nth=2),
        },
        Terms("waiting: ", LATE, dialect="smb1", copy="push.cached"): {
            "the server takes no more, SMB1": alter("request:write", e.stalled_server, nth=2)
        },
        Terms("waiting: ", LATE, dialect="smb1"): {
            "a READ of SMB1: silence": alter("read", e.dropped, nth=2),
            "the login of SMB1: silence": alter("login", e.dropped),
            "the negotiation of SMB1: silence": alter("negotiate", e.dropped),
        },
        Terms("waiting: ", LATE, server="sealing"): {
            "a sealed READ: silence": alter("payload", e.dropped, nth=2)
        },
        Terms("waiting: ", LATE, server="signing"): {
            "a signed READ: PENDING for ever": alter("read", e.pending_for_ever, nth=2)
        },
        Terms("waiting: ", LATE, product_limits=True): {
            "an OPEN, with the product's own limits": alter("open", e.pending_for_ever),
            "every reply a little late": (
                "did not end in time",
                alter("any", e.late(4.0), every=True),
            ),
        },
        Terms("odd: ", "which was not asked"): {
            "an oplock is broken that nobody has": alter("read", e.oplock_break, nth=2),
            "an oplock is broken before an OPEN": alter("open", e.oplock_break),
            "a READ's reply twice": alter("read", e.twice, nth=3),
            "an OPEN's status unknown": ("0xdeadbeef", alter("open", e.failed(0xDEADBEEF))),
            "the file is in use": ("in use", alter("open", e.failed(SHARING_VIOLATION), nth=2)),
            "the share goes in mid-copy": (
                "0xc00000c9",
                alter("read", e.failed(NETWORK_NAME_DELETED), nth=4),
            ),
        },
        Terms("odd: ", "access is denied", dialect="2.1"): {
            "the share is denied": alter("share", e.failed(ACCESS_DENIED))
        },
        Terms("harmless: ", outcome="harmless"): {
            "nothing at all": alter("read"),
            "keep-alives": alter("read", e.preceded(b"\x85\0\0\0" * 50), every=True),
            "7 MiB behind a READ's data": alter("read", e.padded(7 << 20), nth=2),
            "one PENDING": alter("read", e.after_pendings(1), nth=3),
            "200 PENDINGs of an OPEN": alter("open", e.after_pendings(200)),
            "a READ's reply says 65535 credits": alter("read", e.put(14, "H", 0xFFFF), every=True),
            "no reply to the last CLOSE": alter("unshare", e.dropped),
        },
        Terms("harmless: ", copy="push.cached", outcome="harmless"): {
            "PENDING for a FLUSH": alter("flush", e.after_pendings(3))
        },
        Terms("harmless: ", server="signing", outcome="harmless"): {
            "PENDING in a signed session": alter("read", e.after_pendings(2), nth=3),
            "a CLOSE's reply without its signature": alter("close", e.unsigned),
        },
        Terms("harmless: ", dialect="2.1", outcome="harmless"): {
            "OPEN: contexts behind the message": alter(
                "open", e.put(144, "I", 0x7FFFFFFF), e.put(148, "I", 0x7FFFFFFF), nth=2
            ),
            "a READ in small parts": alter("read", e.partly, every=True),
        },
    }
)


def _behaviours_at(what: str, moment: str) -> tuple[Behaviour, ...]:
    """One moment at which the peer is not there as it should be."""
    garbage = frame(b"\xfeSMB" + bytes(range(200)))
    return attacks(
        {
            Terms(f"waiting: {what}: ", LATE): {
                "silence": alter(moment, e.dropped),
                "PENDING for ever": alter(moment, e.pending_for_ever),
                "a byte now and then": alter(moment, e.trickled(0.3)),
            },
            Terms(f"waiting: {what}: ", f"{GONE}|{NO_SMB}"): {
                "closed": alter(moment, e.closed),
                "reset": alter(moment, e.reset),
            },
            Terms(f"waiting: {what}: ", f"{NO_SMB}|{NOT_ASKED}|garbled|is invalid"): {
                "garbage": alter(moment, e.replaced(garbage))
            },
        }
    )


MOMENTS = {"the negotiation": "negotiate", "the login": "login", "the share": "share"}
MOMENTS |= {"an OPEN": "open", "a READ": "read"}
LATE_AT = tuple(each for moment in MOMENTS.items() for each in _behaviours_at(*moment))
CONTROLS = {
    "plain": ("", "smb1", "2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"),
    "signing": ("", "smb1", "2.0.2", "2.1", "3.0", "3.1.1"),
    "sealing": ("", "3.0", "3.1.1"),
    "wishing": ("3.0", "3.1.1"),
    "old": ("",),
}
HARMLESS = tuple(
    Behaviour(
        says="",
        dialect=dialect,
        copy=copy,
        server=server,
        outcome="harmless",
        name=f"harmless: {dialect or 'best'}, {server}, {copy}",
        does=alter("sealed" if server in ("sealing", "wishing") else "negotiate"),
    )
    for server, dialects in CONTROLS.items()
    for number, dialect in enumerate(dialects)
    for copy in ("push.cached" if number % 2 else "pull.cached",)
)
"""Runs with nothing done to them: without them the rest would prove nothing."""
