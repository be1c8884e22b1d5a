"""smb/signing and smb/encryption: a CPU that is full mostly with a copy's cryptography.

A full core is the CPU rule's finding, and remains so for quotas and for other processes' work. If
the file server's signing or encryption is most of its load, that is named: without it the same core
carries more. This tool's own cryptography belongs to rule instrument, a mount's to rule mount. The
cost is measured by the same bytes without it, if the server allows that. If it insists, by its
pulls: a file server that reads from RAM and sends takes about twice the CPU time of TCP alone.
Sources: smb.conf(5), server signing and server smb encrypt; MS-SMB2 3.1.4.
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
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.text.units import cost_text, percent_text, rate_text

OFF = "Turn off {} if the network is trusted ({})"
SWITCHES = {
    "signing": "Samba: `server signing`; Windows: RequireSecuritySignature",
    "encryption": "Samba: `server smb encrypt`; Windows: EncryptData",
}
SIGNING, ENCRYPTION = (
    Cause("smb", word, word, word, limits_without_fault=True, remedy=OFF.format(word, switch))
    for word, switch in SWITCHES.items()
)
CAUSES = {"signing": SIGNING, "encryption": ENCRYPTION}
PLAIN = "plain"
NOUNS = {"signed": "signing", "encrypted": "encryption"}
"""Cause words by the session's security (steps.security)."""
MOSTLY_RATIO, AT_LEAST_RATIO = 0.5, 0.4
"""Least share of a copy's CPU time in cryptography that fills the CPU; as a lower bound."""
LEAST_LEFT_RATIO = 0.05
"""Least share of the CPU time that is other work."""
PLAIN_TIMES = 2.0
"""CPU time of a plain pull over that of TCP alone: measured are 1.3 where cores are full, and 3
where packets come slowly."""
SHORT_BYTES = 64 << 10
"""Request size whose overhead doubles a pull's CPU time; longer requests have less of it."""
CLEAR_RATIO = 2.25
"""Least CPU time / a plain pull's at which the difference can only be cryptography."""
LEAST_SECONDS = 0.03
"""Least difference of CPU times, which are counted in ticks of 10 ms."""
_FULL = ("one-core", "all-cores")
_OPTIONS = {"signing": ("server signing",), "encryption": ("server smb encrypt", "smb encrypt")}
_BEST = {"signing": "aes-gmac", "encryption": "aes-128-gcm"}
"""Cheapest algorithms of SMB 3.1.1."""


def refine(evidence: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yields the claims; for a CPU full of cryptography, that claim and the CPU's without it."""
    side = steps.other(evidence.copy.initiator)
    full = [e for e in claims if e.ceiling.part == ("cpu", side) and e.ceiling.cause in _FULL]
    cost = crypto_cost(evidence) if full else None
    if cost is None:
        yield from claims
        return
    first = min(full, key=lambda each: each.ceiling.bytes_per_second)
    for claim in claims:
        share = _share(evidence.step, side, claim, cost) if claim in full else 0.0
        if share < (MOSTLY_RATIO if cost.compared else AT_LEAST_RATIO):
            yield claim
            continue
        if claim is first:
            yield _crypto(evidence, side, claim, cost, share)
        yield _rest(claim, side, NOUNS[steps.security(evidence.step) or ""], 1 / (1 - share))


@dataclass(frozen=True)
class CryptoCost:
    """CPU time that signing or encryption takes on the host of the file server."""

    seconds_per_byte: float
    compared: bool
    """Whether the same bytes were moved without it; else it is CPU time without another cause."""
    evidence: str
    steps: tuple[int, ...]


def _share(step: MeasuredStep, side: str, claim: Claim, cost: CryptoCost) -> float:
    """Returns cryptography's share of a byte's CPU time, on one core or all of them."""
    usage = step.usage(side)
    cores = len(usage.core_busy_ratios) if usage and claim.ceiling.cause == "all-cores" else 1
    seconds_per_byte = cores / claim.ceiling.bytes_per_second
    return min(1 - LEAST_LEFT_RATIO, cost.seconds_per_byte / seconds_per_byte)


def _crypto(evidence: Evidence, side: str, claim: Claim, cost: CryptoCost, share: float) -> Claim:
    kind, name = NOUNS[steps.security(evidence.step) or ""], evidence.details.algorithm
    nearly = "" if cost.compared else "about "
    return replace(
        claim,
        ceiling=behind(claim.ceiling, CAUSES[kind], side, *cost.steps),
        words=f"{claim.words}, {nearly}{percent_text(share)} of that for {kind} ({name})",
        evidence=(*claim.evidence, cost.evidence),
        remedy=_remedy(evidence, side, kind, name, cost),
        detail=next((f"`{each.option} = {each.value}`" for each in _set(evidence, side, kind)), ""),
    )


def _set(evidence: Evidence, side: str, kind: str) -> list[ServerSetting]:
    return [each for each in evidence.smb_conf(side) if each.option in _OPTIONS[kind]]


def _rest(claim: Claim, side: str, kind: str, times: float) -> Claim:
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


def _remedy(evidence: Evidence, side: str, kind: str, name: str | None, cost: CryptoCost) -> str:
    takes = f"{'' if cost.compared else 'at least '}{cost_text(cost.seconds_per_byte)}"
    best = _BEST[kind]
    cheaper = "" if name == best else f"{best.upper()} of SMB 3.1.1, or "
    setting = SWITCHES[kind]
    for each in _set(evidence, side, kind):
        setting = f"`{each.option} = {each.value}` in its smb.conf"
    return (
        f"{OFF.format(kind, setting)}. Otherwise use {cheaper}a CPU on the {side} with "
        f"instructions for {name}, which takes {takes} there"
    )


# -- cost --------------------------------------------------------------------------------------


def cpu_seconds_per_byte(step: MeasuredStep, side: str) -> float | None:
    """Returns the CPU time of the copy's processes on a host per byte moved; None: not known."""
    usage, size = step.usage(side), step.moved_bytes
    return None if usage is None or size < 1 else usage.copy_cpu_seconds / size


def crypto_cost(evidence: Evidence) -> CryptoCost | None:
    """Returns the cost of the copy's signing or encryption on the host of its file server.

    None: it used neither, or the cost is not known. On the initiator programs differ too much.
    """
    kind = None if evidence.copy.step is None else steps.security(evidence.step)
    if kind not in NOUNS:
        return None
    return _cost_beside_plain(evidence, kind) or _cost_beside_tcp(evidence, kind)


def _cost_beside_plain(evidence: Evidence, kind: str) -> CryptoCost | None:
    """Returns the cost by the same bytes with and without cryptography, if slower with."""
    side = steps.other(evidence.copy.initiator)
    by_security = {
        steps.security(each): each
        for each in steps.measured_steps(evidence.report, "smb-tax")
        if _is_alike(each, evidence.copy) and each.setting.verb == evidence.copy.verb
    }
    plain, guarded = by_security.get(PLAIN), by_security.get(kind)
    if plain is None or guarded is None:
        return None
    low, high = (cpu_seconds_per_byte(each, side) for each in (plain, guarded))
    if low is None or high is None or (high - low) * guarded.moved_bytes < LEAST_SECONDS:
        return None
    if plain.rate.median < guarded.rate.median or not differ(plain.rate, guarded.rate):
        return None
    return CryptoCost(
        high - low,
        True,
        f"The same bytes took {cost_text(high)} of the {side}'s CPU {kind}, and {cost_text(low)} "
        "plain.",
        (plain.index, guarded.index),
    )


def _is_alike(step: MeasuredStep, copy: Copy) -> bool:
    """Whether a step went to the same file server by the same initiator in the same dialect."""
    same = (step.plan.initiator, step.setting.dialect) == (copy.initiator, copy.dialect)
    return step.is_intact and same


def _cost_beside_tcp(evidence: Evidence, kind: str) -> CryptoCost | None:
    """Returns the cost of pulls beyond that of plain ones.

    Cryptography costs the same in both directions; a disk's share of a push is not known.
    """
    side = steps.other(evidence.copy.initiator)
    tcp_costs = [cpu_seconds_per_byte(each, side) for each in transfers(evidence.report, side)]
    sending = max((each for each in tcp_costs if each is not None), default=None)
    pulls = [
        (cost, each)
        for stage in ("smb-copy", "smb-tax")
        for each in steps.measured_steps(evidence.report, stage)
        if "pull" in (each.setting.copy or each.setting.verb)
        and _is_alike(each, evidence.copy)
        and steps.security(each) == kind
        and each.details.algorithm == evidence.details.algorithm
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
