"""The rules, by COMPONENT/CAUSE: each turns evidence into ceilings of a copy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from bottleneck.analysis import link_end
from bottleneck.analysis.claim import Cause
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim, WordError
from bottleneck.analysis.rules import bus, captured, instrument, running
from bottleneck.analysis.rules.cpu import cores, quota
from bottleneck.analysis.rules.disk import alone, seek, sync, write, zone
from bottleneck.analysis.rules.disk import contention as disk_contention
from bottleneck.analysis.rules.memory import cache_size, swap, writeback
from bottleneck.analysis.rules.network import contention, duplex, link_rate, loss, mtu, wrong_path
from bottleneck.analysis.rules.smb import dialect, mount, round_trips, server_software, signing
from probes.core.records import SIDES

Rule = Callable[[Evidence], Iterator[Claim | str]]

BEHIND_A_DISK: tuple[alone.Behind, ...] = (swap.claims, disk_contention.claims, seek.claims) + (
    zone.claims,
    sync.claims,
    bus.disk_claims,
)
"""Rules of the causes behind the rate of a disk; the first that yields a claim counts."""

OF_ANY_COPY: tuple[Rule, ...] = (
    partial(alone.rule, behind=BEHIND_A_DISK, confirmed=write.confirmed_claim),
    link_rate.rule,
    duplex.rule,
    bus.rule,
)
OF_MADE_COPIES: tuple[Rule, ...] = (
    (contention.rule, cores.rule, instrument.rule, round_trips.rule, mount.rule)
    + (mtu.rule, running.rule, captured.rule, cache_size.rule, writeback.rule, swap.rule)
    + (write.rule, sync.rule, quota.rule, quota.contention_rule)
)
"""Each yields ceilings of a copy, and remarks for its evidence."""

REFINEMENTS = (signing.refine, dialect.refine, link_end.refine, wrong_path.refine)
"""Rules that take all claims of a copy, and replace a claim by that of the cause behind it, or add
a claim that follows only from all of them."""

DELAY = Cause(
    "network",
    "delay",
    "delay",
    limits_without_fault=True,
    remedy="Copy small files in parallel or as one archive, or shorten the path",
)
RECEIVE_WINDOW = Cause("tcp", "receive-window", "receive window")
SEND_BUFFER = Cause("tcp", "send-buffer", "send buffer")
PINNED_WINDOW = Cause(
    "tcp",
    "congestion-control",
    "congestion control",
    remedy="Look for a limit on the {side}: `cwnd` in `ip route show`, or its congestion control "
    "(`sysctl net.ipv4.tcp_congestion_control`)",
)
"""Causes that only the decision names, from a copy's time: no rule claims them."""

BY_WORDS: dict[tuple[str, str], Cause] = {
    (each.component, each.word): each
    for each in (
        (alone.READ, alone.WRITE, seek.CAUSE, zone.CAUSE, sync.CAUSE, disk_contention.CAUSE)
        + (link_rate.CAUSE, loss.CAUSE, contention.CAUSE, mtu.CAUSE, duplex.CAUSE, DELAY)
        + (wrong_path.CAUSE, RECEIVE_WINDOW, SEND_BUFFER, PINNED_WINDOW)
        + (round_trips.CAUSE, dialect.CAUSE, signing.SIGNING, signing.ENCRYPTION)
        + (server_software.CAUSE, cores.ONE_CORE, cores.ALL_CORES, quota.CAUSE, quota.CONTENTION)
        + (cache_size.CAUSE, writeback.CAUSE, swap.CAUSE, bus.PCIE, bus.USB, instrument.CAUSE)
    )
}
"""Causes by component and word."""

NOBODY = {"unknown": ("inconclusive", "not-measured")}
CAUSES: dict[str, tuple[str, ...]] = {
    **{
        component: tuple(word for each, word in BY_WORDS if each == component)
        for component, _ in BY_WORDS
    },
    **NOBODY,
}
"""Every component and the causes that it can have."""

PLACES: dict[str, frozenset[str | None]] = {
    "network": frozenset({"path", *SIDES}),
    "smb": frozenset({"path", *SIDES}),
    "unknown": frozenset({None}),
}
"""Sides to act on; components that are not here have client and server."""


def check_words(component: str, side: str | None, cause: str) -> None:
    """Raises WordError if the three do not go together, as in a later version's document."""
    sides = PLACES.get(component, frozenset(SIDES))
    if cause not in CAUSES.get(component, ()) or side not in sides:
        raise WordError(f"{component}/{side}/{cause} is not a verdict")
