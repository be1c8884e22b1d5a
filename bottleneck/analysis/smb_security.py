"""Causes smb/signing and smb/encryption: a CPU that is full, most of it with the crypto of a copy.

A full core is the CPU rule's finding, and stays so for quotas and for other processes' work. Where
most of what fills it is the file server's signing or encrypting, that is named: without it the same
core carries more. This tool's own crypto is the instrument's affair, and that of a mount the
mount's. Sources: smb.conf(5), server signing and server smb encrypt; MS-SMB2 3.1.4.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.crypto_cost import NOUNS, CryptoCost, algorithm, crypto_cost
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import cost_text, percent_text, rate_text

MOSTLY_RATIO = 0.5
"""Share of the CPU time of a copy from which on the crypto is what fills the CPU."""
LEAST_LEFT_RATIO = 0.05
"""Of the CPU time: no copy is nothing but crypto."""
COMPARED_TRUST, DEDUCED_TRUST = 0.9, 0.8
_FULL = ("one-core", "all-cores")
_OPTIONS = {"signing": ("server signing",), "encryption": ("server smb encrypt", "smb encrypt")}
_BEST = {"signing": "aes-gmac", "encryption": "aes-128-gcm"}
"""The cheapest of SMB 3.1.1."""


def refine(report: Report, copy: Copy, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims; of a CPU that is mostly the crypto's, the crypto and what the CPU allows then."""
    side = steps.other(copy.initiator)
    full = [each for each in claims if _is_full_cpu(each, side)]
    cost = crypto_cost(report, copy) if full else None
    if copy.made is None or cost is None:
        yield from claims
        return
    first = min(full, key=lambda each: each.ceiling.bytes_per_second)
    for claim in claims:
        share = _share(copy.made, side, claim, cost) if claim in full else 0.0
        if share < MOSTLY_RATIO:
            yield claim
            continue
        if claim is first:
            yield _crypto(report, copy, copy.made, claim, cost, share)
        yield _rest(claim, side, 1 / (1 - share))


def _is_full_cpu(claim: Claim, side: str) -> bool:
    ceiling = claim.ceiling
    return ceiling.part == ("cpu", side) and ceiling.cause in _FULL


def _share(made: Found, side: str, claim: Claim, cost: CryptoCost) -> float:
    """Crypto's share of the CPU time that a byte takes of one core, or of all of them."""
    usage = made.usage(side)
    cores = len(usage.core_busy_ratios) if usage and claim.ceiling.cause == "all-cores" else 1
    seconds_per_byte = cores / claim.ceiling.bytes_per_second
    return min(1 - LEAST_LEFT_RATIO, cost.seconds_per_byte / seconds_per_byte)


def _crypto(
    report: Report, copy: Copy, made: Found, claim: Claim, cost: CryptoCost, share: float
) -> Claim:
    kind = NOUNS[steps.security(made) or ""]
    side = steps.other(copy.initiator)
    name = algorithm(made)
    about = "" if cost.compared else "about "
    return replace(
        claim,
        ceiling=replace(
            claim.ceiling,
            component="smb",
            cause=kind,
            steps=tuple(dict.fromkeys((*claim.ceiling.steps, *cost.steps))),
        ),
        words=f"{claim.words}, {about}{percent_text(share)} of that with {kind} ({name})",
        trust=min(claim.trust, COMPARED_TRUST if cost.compared else DEDUCED_TRUST),
        evidence=(*claim.evidence, cost.evidence),
        remedy=_remedy(report, side, kind, name, cost),
    )


def _rest(claim: Claim, side: str, times: float) -> Claim:
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
        words=f"without the crypto the {side}'s CPU carries about {rate_text(level)}",
        reached=False,
        partial_trust=0.0,
        evidence=(),
    )


def _remedy(report: Report, side: str, kind: str, name: str | None, cost: CryptoCost) -> str:
    """What to do about it, as the subject of a sentence."""
    takes = f"{'' if cost.compared else 'at least '}{cost_text(cost.seconds_per_byte)}"
    best = _BEST[kind]
    cheaper = "" if name == best else f", or {best.upper()} of SMB 3.1.1 instead of {name}"
    return (
        f"No {kind} where the network can be trusted ({_setting(report, side, kind)}){cheaper}, or "
        f"a CPU on the {side} with instructions for {name}, which takes {takes} there,"
    )


def _setting(report: Report, side: str, kind: str) -> str:
    """What makes the server insist, as it is set there, else what it may be."""
    if side == "server":
        for each in steps.items(report.target, "smb_conf"):
            option, value = steps.word(each, "option"), steps.word(each, "value")
            if option in _OPTIONS[kind] and value is not None:
                return f"{option} is {value} in its smb.conf"
    switch = "RequireSecuritySignature" if kind == "signing" else "EncryptData"
    return f"Samba: {_OPTIONS[kind][0]}; Windows: {switch}"
