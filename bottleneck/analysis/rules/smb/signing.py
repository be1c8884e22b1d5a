"""smb/signing and smb/encryption: a CPU that is full, most of it with the crypto of a copy.

A full core is the CPU rule's finding, and stays so for quotas and for other processes' work. Where
most of what fills it is the file server's signing or encrypting, that is named: without it the same
core carries more. This tool's own crypto is the instrument's affair, and that of a mount the
mount's. What it takes is told by the same bytes without it, where the server allows them. Where it
insists, by its pulls: a file server that reads from RAM and sends does what TCP alone does, and
once more as much. Sources: smb.conf(5), server signing and server smb encrypt; MS-SMB2 3.1.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause, behind
from bottleneck.analysis.evidence.copies import Evidence, transfers
from bottleneck.analysis.evidence.details import ServerSetting
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Copy, Found
from bottleneck.text.units import cost_text, percent_text, rate_text

OFF = "Turn off {} if the network is trusted ({})"
SWITCHES = {
    "signing": "Samba: `server signing`; Windows: RequireSecuritySignature",
    "encryption": "Samba: `server smb encrypt`; Windows: EncryptData",
}
SIGNING, ENCRYPTION = (
    Cause("smb", word, word, word, stays=True, remedy=OFF.format(word, switch))
    for word, switch in SWITCHES.items()
)
CAUSES = {"signing": SIGNING, "encryption": ENCRYPTION}
PLAIN = "plain"
NOUNS = {"signed": "signing", "encrypted": "encryption"}
"""The contract's word for what a session does, by steps.security."""
MOSTLY_RATIO, AT_LEAST_RATIO = 0.5, 0.4
"""Share of the CPU time of a copy from which on the crypto is what fills the CPU; where what it
takes is known as a lower bound."""
LEAST_LEFT_RATIO = 0.05
"""Of the CPU time: no copy is nothing but crypto."""
PLAIN_TIMES = 2.0
"""CPU time of a plain pull over that of TCP alone: measured are 1.3 where cores are full, and 3
where packets come slowly."""
SHORT_BYTES = 64 << 10
"""Requests of that size cost as much again; longer and shorter ones in proportion."""
CLEAR_RATIO = 2.25
"""Over what a plain pull takes, from which on the rest can only be the crypto."""
LEAST_SECONDS = 0.03
"""CPU time is told in ticks of 10 ms: a difference of less is none."""
_FULL = ("one-core", "all-cores")
_OPTIONS = {"signing": ("server signing",), "encryption": ("server smb encrypt", "smb encrypt")}
_BEST = {"signing": "aes-gmac", "encryption": "aes-128-gcm"}
"""The cheapest of SMB 3.1.1."""


def refine(given: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims; of a CPU that is mostly the crypto's, the crypto and what the CPU allows then."""
    side = steps.other(given.copy.initiator)
    full = [
        each
        for each in claims
        if each.ceiling.part == ("cpu", side) and each.ceiling.cause in _FULL
    ]
    cost = crypto_cost(given) if full else None
    if cost is None:
        yield from claims
        return
    first = min(full, key=lambda each: each.ceiling.bytes_per_second)
    for claim in claims:
        share = _share(given.step, side, claim, cost) if claim in full else 0.0
        if share < (MOSTLY_RATIO if cost.compared else AT_LEAST_RATIO):
            yield claim
            continue
        if claim is first:
            yield _crypto(given, side, claim, cost, share)
        yield _rest(claim, side, NOUNS[steps.security(given.step) or ""], 1 / (1 - share))


@dataclass(frozen=True)
class CryptoCost:
    """CPU time that signing or encryption takes on the host of the file server."""

    seconds_per_byte: float
    compared: bool
    """Whether the same bytes were moved without it; else it is what nothing else explains."""
    evidence: str
    steps: tuple[int, ...]


def _share(made: Found, side: str, claim: Claim, cost: CryptoCost) -> float:
    """Crypto's share of the CPU time that a byte takes of one core, or of all of them."""
    usage = made.usage(side)
    cores = len(usage.core_busy_ratios) if usage and claim.ceiling.cause == "all-cores" else 1
    seconds_per_byte = cores / claim.ceiling.bytes_per_second
    return min(1 - LEAST_LEFT_RATIO, cost.seconds_per_byte / seconds_per_byte)


def _crypto(given: Evidence, side: str, claim: Claim, cost: CryptoCost, share: float) -> Claim:
    kind, name = NOUNS[steps.security(given.step) or ""], given.details.algorithm
    about = "" if cost.compared else "about "
    return replace(
        claim,
        ceiling=behind(claim.ceiling, CAUSES[kind], side, *cost.steps),
        words=f"{claim.words}, {about}{percent_text(share)} of that for {kind} ({name})",
        evidence=(*claim.evidence, cost.evidence),
        remedy=_remedy(given, side, kind, name, cost),
        detail=next((f"`{each.option} = {each.value}`" for each in _set(given, side, kind)), ""),
    )


def _set(given: Evidence, side: str, kind: str) -> list[ServerSetting]:
    """What makes the server insist on it, as it is set there."""
    return [each for each in given.smb_conf(side) if each.option in _OPTIONS[kind]]


def _rest(claim: Claim, side: str, kind: str, times: float) -> Claim:
    """What the same CPU allows without the crypto."""
    ceiling = claim.ceiling
    level = ceiling.bytes_per_second * times
    return replace(
        claim,
        ceiling=replace(
            ceiling,
            bytes_per_second=level,
            low_bytes_per_second=ceiling.low_bytes_per_second * times,
            high_bytes_per_second=ceiling.high_bytes_per_second * times,
        ),
        words=f"the {side}'s CPU carries about {rate_text(level)} without {kind}",
        reached=False,
        partly=False,
        evidence=(),
    )


def _remedy(given: Evidence, side: str, kind: str, name: str | None, cost: CryptoCost) -> str:
    """What to do about it."""
    takes = f"{'' if cost.compared else 'at least '}{cost_text(cost.seconds_per_byte)}"
    best = _BEST[kind]
    cheaper = "" if name == best else f"{best.upper()} of SMB 3.1.1, or "
    setting = SWITCHES[kind]
    for each in _set(given, side, kind):
        setting = f"`{each.option} = {each.value}` in its smb.conf"
    return (
        f"{OFF.format(kind, setting)}. Otherwise use {cheaper}a CPU on the {side} with "
        f"instructions for {name}, which takes {takes} there"
    )


# -- what it costs -----------------------------------------------------------------------------


def cpu_seconds_per_byte(found: Found, side: str) -> float | None:
    """CPU time of the copy's processes on a host, per byte that was moved; None: not told."""
    usage, moved = found.usage(side), found.moved_bytes
    return None if usage is None or moved < 1 else usage.copy_cpu_seconds / moved


def crypto_cost(given: Evidence) -> CryptoCost | None:
    """What the copy's signing or encryption takes on the host of its file server.

    None: it did neither, or nothing tells. The initiator's is not told: its programs differ.
    """
    kind = None if given.copy.step is None else steps.security(given.step)
    if kind not in NOUNS:
        return None
    return _by_plain(given, kind) or _by_tcp(given, kind)


def _by_plain(given: Evidence, kind: str) -> CryptoCost | None:
    """From the same bytes with and without, where they were really slower with it."""
    side = steps.other(given.copy.initiator)
    found = {
        steps.security(each): each
        for each in steps.measured(given.report, "smb-tax")
        if _alike(each, given.copy) and each.setting.verb == given.copy.verb
    }
    plain, guarded = found.get(PLAIN), found.get(kind)
    if plain is None or guarded is None:
        return None
    less, more = (cpu_seconds_per_byte(each, side) for each in (plain, guarded))
    if less is None or more is None or (more - less) * guarded.moved_bytes < LEAST_SECONDS:
        return None
    if plain.rate.median < guarded.rate.median or not differ(plain.rate, guarded.rate):
        return None
    return CryptoCost(
        more - less,
        True,
        f"The same bytes took {cost_text(more)} of the {side}'s CPU {kind}, and {cost_text(less)} "
        "plain.",
        (plain.index, guarded.index),
    )


def _alike(found: Found, copy: Copy) -> bool:
    """Whether a step went to the same file server by the same initiator in the same dialect."""
    same = (found.step.initiator, found.setting.dialect) == (copy.initiator, copy.dialect)
    return found.intact and same


def _by_tcp(given: Evidence, kind: str) -> CryptoCost | None:
    """What pulls cost beyond what they would without it.

    To sign or encrypt costs the same both ways; what a disk adds to a push is not known.
    """
    side = steps.other(given.copy.initiator)
    alone = [cpu_seconds_per_byte(each, side) for each in transfers(given.report, side)]
    sending = max((each for each in alone if each is not None), default=None)
    pulls = [
        (cost, each)
        for stage in ("smb-copy", "smb-tax")
        for each in steps.measured(given.report, stage)
        if "pull" in (each.setting.copy or each.setting.verb)
        and _alike(each, given.copy)
        and steps.security(each) == kind
        and each.details.algorithm == given.details.algorithm
        and (cost := cpu_seconds_per_byte(each, side)) is not None
    ]
    if sending is None or not pulls:
        return None
    cost, pull = min(pulls, key=lambda each: each[0])
    size = pull.details.request_bytes or SHORT_BYTES
    plain = sending * PLAIN_TIMES * (1 + SHORT_BYTES / size)
    if cost < CLEAR_RATIO * plain or (cost - plain) * pull.moved_bytes < LEAST_SECONDS:
        return None
    return CryptoCost(
        cost - plain,
        False,
        f"A pull took {cost_text(cost)} of the {side}'s CPU {kind}. TCP by itself took "
        f"{cost_text(sending)}, so a plain pull takes about {cost_text(plain)}.",
        (pull.index,),
    )
