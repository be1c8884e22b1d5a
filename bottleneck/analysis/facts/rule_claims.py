"""Turns the claims of the rules into facts about the components that they concern."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.facts.record import ALLOWS, ALONE, NETWORK, SHOWN, Fact, Kind, Level, Part
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text

Claimed = tuple[Part, Claim]
"""A component, and a claim about it."""
REFUTED_RATIO = 1.1
"""Least other rate through a component / claimed limit at which the rate refutes the limit."""
DISKLESS_RATIO = 1.5
"""Such a ratio for a CPU's limit by its load: a host moves more where it uses no disk."""
NOT_REFUTABLE = frozenset(("contention", "delay", "loss", "quota", "mtu", "zone", "seek", "sync"))
"""Causes of one moment, packet size or place, which other steps cannot refute."""
REFUTABLE = frozenset(("network", "tcp", "disk"))
"""Components whose limits other steps refute; so are limits by CPU load and by round trips."""


def claims_by_part(report: Report, copy: Copy, claims: Iterable[Claim]) -> Iterator[Claimed]:
    """Yields each claim with the component of the copy's chain that it concerns."""
    for each in claims:
        component, side = each.ceiling.part
        match component:
            case "memory" if each.ceiling.cause == "swap" and not _is_of_disk(report, each):
                yield ("cpu", side), each
            case "memory":
                yield ("disk", side), each
            case "bus":
                yield ("disk", side) if _is_of_disk(report, each) else NETWORK, each
            case "network":
                yield NETWORK, each
            case "instrument":
                yield ("cpu", side), each
            case "smb" if each.ceiling.cause in ("signing", "encryption") and not copy.is_native:
                yield ("cpu", side), each
            case "smb":
                yield ("smb", steps.other(copy.initiator)), each
            case _:
                yield (component, side), each


def _is_of_disk(report: Report, claim: Claim) -> bool:
    claim_steps = (steps.found_at(report, index) for index in claim.ceiling.steps)
    return any(each is not None and each.plan.stage == "disk" for each in claim_steps)


def claim_facts(copy: Copy, claims: Iterable[Claimed]) -> Iterator[Fact]:
    """Yields the claimed limits as facts: of disks measured alone, and of settings."""
    claims = tuple(claims)
    copy_index = -1 if copy.step is None else copy.step.index
    limited = {part for part, each in claims if _kind(each) == ALONE}
    for part, claim in claims:
        ceiling, kind = claim.ceiling, _kind(claim)
        # A limit read off the copy itself is no second witness; nor is the rate that a disk would
        # reach without its limit.
        is_of_copy = ceiling.component == "disk" and copy_index in ceiling.steps
        is_without_limit = kind == SHOWN and part in limited
        if kind is not None and not is_of_copy and not is_without_limit:
            rate, high = ceiling.bytes_per_second, ceiling.high_bytes_per_second
            level = Level(ceiling.low_bytes_per_second, rate, rate if claim.reached else high)
            yield Fact(part, kind, level, name_with_verb(ceiling), ceiling.steps)


def refuting_transfer(copy: Copy, claimed: Claimed, transfers: Iterable[Fact]) -> Fact | None:
    """Returns the fastest transfer through a component beyond its claimed limit; None: none.

    The copy itself refutes any limit; another transfer no limit of one moment or place.
    """
    part, ceiling = claimed[0], claimed[1].ceiling
    is_bound, level = ceiling.standing == "at-least", ceiling.bytes_per_second
    is_load = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    is_refutable = is_load or ceiling.component in REFUTABLE or ceiling.cause == "round-trips"
    facts = []
    if is_refutable and not is_bound and ceiling.cause not in NOT_REFUTABLE:
        threshold = (DISKLESS_RATIO if is_load else REFUTED_RATIO) * level
        facts += [e for e in transfers if e.part == part and e.level.median > threshold]
    rate = 0.0 if copy.step is None else copy.step.rate.median
    if rate > (1 if is_bound else REFUTED_RATIO) * level:
        facts.append(Fact(part, SHOWN, Level.with_spread(rate), "the copy"))
    return max(facts, key=lambda each: each.level.median, default=None)


def ignored_remark(claim: Claim, fact: Fact) -> str:
    """Returns the remark about a claimed limit that a transfer exceeded."""
    level, rate = claim.ceiling.bytes_per_second, fact.level.median
    return (
        f"Ignored: a limit of {rate_text(level)} for {name_with_verb(claim.ceiling)}, because "
        f"{fact.words} ran at {rate_text(rate)}."
    )


def is_path_unmeasured(claims: Iterable[Claim]) -> bool:
    """Whether the tests of TCP alone were limited by something other than the path."""
    ceilings = [e.ceiling for e in claims if e.ceiling.component in ("network", "bus")]
    return bool(ceilings) and all(each.standing == "at-least" for each in ceilings)


def _kind(claim: Claim) -> Kind | None:
    """Returns the kind of fact that a claim becomes; None: the model has it from elsewhere."""
    standing, component = claim.ceiling.standing, claim.ceiling.component
    if component == "disk":
        return SHOWN if standing == "at-least" else ALONE
    if standing == "at-least":
        return None
    if claim.ceiling.is_link and standing == "measured":
        return ALONE
    if component == "memory":
        return None if claim.reached is False else ALONE
    is_inferred = claim.ceiling.cause in ("round-trips", "link-rate") and standing == "inferred"
    return ALLOWS if is_inferred or component in ("tcp", "bus") else None
