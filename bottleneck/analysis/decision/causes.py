"""Table of causes: conditions by signs and facts for each component; the first that holds counts.

A row is evaluated twice: before the decision, because a cause that is observed in this very copy
makes figures of other moments void and speaks for its component; and after it, to name the cause.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import Literal

from bottleneck.analysis.decision.conditions import (
    Holds,
    always,
    claim_of,
    either,
    has_claim,
    is_lossy,
    is_lossy_alone,
    is_reached,
    is_shared,
    is_signing_program,
    is_slow_one_way,
    is_starting,
    mtus_differ,
    receives,
    sign,
    stands_still,
    unless_throttled,
    vanish,
    was_faster,
)
from bottleneck.analysis.facts.record import OTHERS_RATIO, THROTTLED_RATIO, CopyFacts, Part

Support = Literal["reached", "passing", "speaks", "alike", ""]
"""Support that a cause gives its component: the copy is at its limit; it holds at this moment, so
that other steps' figures of the component are void; it speaks for it; it looks like it; none."""


@dataclass(frozen=True)
class Row:
    """One cause of a component."""

    words: str
    """The contract's component and cause: "network/loss"."""
    label: str
    holds: Holds
    side: str = ""
    """Side to act on: receiver, server, initiator, or that of a sign by this name; empty: the
    component's own."""
    is_evidence: bool = False
    """Whether the cause raises its component's likelihood, and does not only explain it."""
    passing: bool = False
    """Whether it does so, and holds at this moment: other steps' figures are void then."""
    trust: float = 0.98
    """Highest confidence in it."""
    sign: str = ""
    """Sign whose words describe its observation; empty: none does."""
    remedy: str = ""
    """Action to take unless a rule or a setting names one, for a {side}."""

    def side_of(self, copy: CopyFacts, part: Part) -> str | None:
        """Returns the side to act on in a copy; part: the component that the cause is behind."""
        sides = {"receiver": copy.receiver, "initiator": copy.initiator, "server": "server"}
        sign = copy.sign(self.side) if self.side not in sides else None
        if sign is not None and sign.side is not None:
            return sign.side
        claim = claim_of(copy, self.words, part)
        return sides.get(self.side) or (claim.ceiling.side if claim is not None else part[1])


def rows(copy: CopyFacts, part: Part) -> list[Row]:
    """Returns the rows that hold for a component, the first being its cause."""
    return [row for row in TABLE.get(part[0], ()) if row.holds(copy, part)]


def support_of(copy: CopyFacts, part: Part) -> Support:
    """Returns the support that causes observed in a copy give a component."""
    # A cause that may have limited the copy for a part of the time is a likeness, and no proof.
    proven = tuple(each for each in copy.claims if each[1].reached or not each[1].partly)
    matches = rows(replace(copy, claims=proven), part)
    if any(of == part and is_reached(claim) for of, claim in copy.claims):
        return "reached"
    if any(row.passing for row in matches):
        return "passing"
    if any(row.is_evidence for row in matches):
        return "speaks"
    return "alike" if any(row.passing or row.is_evidence for row in rows(copy, part)) else ""


TABLE: dict[str, tuple[Row, ...]] = {
    "network": (
        Row(
            "network/mtu",
            "large packets are dropped",
            either(vanish, has_claim("network/mtu")),
            passing=True,
            trust=0.95,
        ),
        Row(
            "network/mtu",
            "MTUs differ",
            mtus_differ,
            is_evidence=True,
            trust=0.65,
            remedy="Test the path with full packets (`ping -M do -s 8972`), and use one MTU "
            "on all hops",
            sign="mtu-differs",
        ),
        Row("network/duplex", "half duplex", has_claim("network/duplex"), is_evidence=True),
        Row("network/wrong-path", "slower path", sign("faster-path")),
        Row("bus/usb", "USB slower than the card", has_claim("bus/usb")),
        Row("bus/pcie", "slot slower than the card", has_claim("bus/pcie")),
        Row(
            "network/contention",
            "other traffic",
            either(has_claim("network/contention"), is_shared),
            passing=True,
            sign="others-traffic",
        ),
        Row(
            "network/loss",
            "packet loss, or a policer",
            is_lossy_alone,
            passing=True,
            trust=0.7,
            sign="lost",
        ),
        Row("network/loss", "packet loss", is_lossy, passing=True, sign="lost"),
        Row(
            "network/loss",
            "packet loss",
            partial(is_lossy, sign="tests-lost"),
            trust=0.85,
            sign="tests-lost",
        ),
        Row(
            "network/loss",
            "slow in one direction only",
            is_slow_one_way,
            side="receiver",
            trust=0.6,
            remedy="Check the {side} for dropped packets (`ethtool -S`), duplex and cable",
            sign="one-way",
        ),
        Row(
            "network/link-rate",
            "Wi-Fi",
            sign("radio"),
            side="radio",
            trust=0.7,
            remedy="Use a cable at the {side}, or a place nearer to the access point",
            sign="radio",
        ),
        Row(
            "network/link-rate",
            "slow at this client's end",
            sign("other-faster"),
            side="other-faster",
            remedy="Find the slow hop at the {side}'s end: cable, switch port, card",
            sign="other-faster",
        ),
        Row(
            "network/link-rate",
            "same for all clients",
            sign("clients-alike"),
            side="clients-alike",
            sign="clients-alike",
        ),
        Row(
            "network/link-rate",
            "below its link's rate",
            sign("below-link"),
            trust=0.55,
            remedy="Check why the path is below its links: USB port or slot of the card (`lsusb "
            "-t`, `lspci -vv`), rate of each switch port, a full CPU core",
            sign="below-link",
        ),
        Row("network/delay", "TCP's start on a long path", is_starting, trust=0.9),
        Row(
            "network/link-rate",
            "slower than before",
            was_faster,
            remedy="Find out what changed on the path: a link that negotiated a lower rate, a "
            "shaper, or a path that took over. Then repeat the run",
        ),
        Row("network/link-rate", "link speed", always, side="slower-end"),
    ),
    "tcp": (
        Row(
            "tcp/receive-window",
            "receive window",
            sign("small-window"),
            passing=True,
            sign="small-window",
        ),
        Row(
            "tcp/send-buffer",
            "send buffer",
            sign("small-buffer"),
            passing=True,
            sign="small-buffer",
        ),
        Row("tcp/receive-window", "receive window", receives),
        Row("tcp/congestion-control", "congestion window", sign("pinned"), is_evidence=True),
        Row("tcp/send-buffer", "send buffer", always),
    ),
    "disk": (
        Row("memory/swap", "swapping", has_claim("memory/swap"), passing=True),
        Row("disk/contention", "others' I/O", has_claim("disk/contention")),
        Row(
            "disk/contention",
            "others' I/O",
            unless_throttled(sign("others-disk", OTHERS_RATIO)),
            passing=True,
        ),
        Row("disk/seek", "seek time", has_claim("disk/seek")),
        Row("disk/zone", "slow zone", either(has_claim("disk/zone"), sign("slow-zone"))),
        Row("bus/usb", "USB slower than the disk", has_claim("bus/usb")),
        Row("bus/pcie", "slot slower than the disk", has_claim("bus/pcie")),
        Row("disk/sync", "synchronous writes", sign("synced"), passing=True, sign="synced"),
        Row("disk/sync", "synchronous writes", has_claim("disk/sync"), is_evidence=True, trust=0.6),
        Row(
            "memory/cache-size",
            "the file does not stay in the cache",
            has_claim("memory/cache-size"),
        ),
        Row("memory/writeback", "writeback", has_claim("memory/writeback"), is_evidence=True),
        Row("disk/write", "write", either(receives, sign("writes-most"))),
        Row("disk/read", "read", always),
    ),
    "cpu": (
        Row("memory/swap", "swapping", has_claim("memory/swap"), is_evidence=True),
        Row(
            "cpu/quota",
            "CPU quota",
            either(sign("throttled", THROTTLED_RATIO), has_claim("cpu/quota")),
            passing=True,
        ),
        Row(
            "cpu/contention",
            "another process",
            either(sign("crowded"), has_claim("cpu/contention")),
            passing=True,
        ),
        Row(
            "smb/encryption",
            "encryption",
            either(has_claim("smb/encryption"), sign("encrypted")),
            sign="encrypted",
        ),
        Row(
            "smb/signing",
            "signing",
            either(has_claim("smb/signing"), sign("signed")),
            sign="signed",
        ),
        Row("instrument/ceiling", "this tool", has_claim("instrument/ceiling")),
        Row(
            "cpu/all-cores",
            "slow without its disk as well",
            sign("slow-commands"),
            is_evidence=True,
            trust=0.65,
            sign="slow-commands",
        ),
        Row("cpu/all-cores", "all cores", either(sign("all-full"), has_claim("cpu/all-cores"))),
        Row("cpu/one-core", "one core", always),
    ),
    "smb": (
        Row(
            "smb/server-software",
            "server software",
            sign("server-waits"),
            is_evidence=True,
            trust=0.7,
            sign="server-waits",
        ),
        Row(
            "smb/server-software", "the server stands still", stands_still, passing=True, trust=0.6
        ),
        Row("smb/dialect", "an old dialect", has_claim("smb/dialect"), is_evidence=True),
        Row(
            "smb/dialect",
            "an old dialect",
            sign("faster-dialect"),
            side="server",
            is_evidence=True,
            trust=0.7,
            remedy="Use SMB 3 for this copy",
            sign="faster-dialect",
        ),
        Row(
            "smb/signing",
            "signed packets",
            either(is_signing_program, has_claim("smb/signing")),
            is_evidence=True,
            trust=0.6,
        ),
        Row(
            "smb/encryption",
            "encrypted packets",
            has_claim("smb/encryption"),
            is_evidence=True,
            trust=0.6,
        ),
        Row(
            "smb/round-trips",
            "the program's requests",
            sign("faster-program"),
            side="initiator",
            is_evidence=True,
            trust=0.7,
            sign="faster-program",
            remedy="Use the faster program, or let this one ask for more at a time",
        ),
        Row(
            "smb/round-trips",
            "one request at a time",
            sign("one-request"),
            side="initiator",
            is_evidence=True,
            sign="one-request",
        ),
        Row("smb/round-trips", "requests in flight", always),
    ),
}
"""Causes by component; the last row of each always holds."""
