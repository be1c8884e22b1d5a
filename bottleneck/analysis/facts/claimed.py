"""What the rules beside the model claim of causes, as facts about the components they are of."""

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
"""A component, and what is claimed of it."""
REFUTED_RATIO = 1.1
"""Least ratio of another rate through a component to a limit, to show that it is none."""
DISKLESS_RATIO = 1.5
"""The ratio for a CPU's limit by its load: a host without a disk in its way moves more."""
PASSING = frozenset(("contention", "delay", "loss", "quota", "mtu", "zone", "seek", "sync"))
"""Causes of one time, length or place, of which other steps say nothing."""
REFUTABLE = frozenset(("network", "tcp", "disk"))
"""Components whose limits other steps refute; and CPUs' by their load, and round trips."""


def by_part(report: Report, copy: Copy, claims: Iterable[Claim]) -> Iterator[Claimed]:
    """Yields each claim with the component on the copy's way that it is of."""
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
            case "smb" if each.ceiling.cause in ("signing", "encryption") and not copy.native:
                yield ("cpu", side), each
            case "smb":
                yield ("smb", steps.other(copy.initiator)), each
            case _:
                yield (component, side), each


def _is_of_disk(report: Report, claim: Claim) -> bool:
    shown = (steps.found_at(report, index) for index in claim.ceiling.steps)
    return any(each is not None and each.step.stage == "disk" for each in shown)


def claim_facts(copy: Copy, claims: Iterable[Claimed]) -> Iterator[Fact]:
    """Yields the limits that were claimed: of disks by themselves, and what settings allow."""
    claims = tuple(claims)
    own = -1 if copy.step is None else copy.step.index
    limited = {part for part, each in claims if _kind(each) == ALONE}
    for part, claim in claims:
        ceiling, kind = claim.ceiling, _kind(claim)
        # What was read off the copy itself is no witness beside it; nor is what a disk would do
        # without what limits it.
        is_own = ceiling.component == "disk" and own in ceiling.steps
        is_freed = kind == SHOWN and part in limited
        if kind is not None and not is_own and not is_freed:
            rate, high = ceiling.bytes_per_second, ceiling.high_bytes_per_second
            level = Level(ceiling.low_bytes_per_second, rate, rate if claim.reached else high)
            yield Fact(part, kind, level, name_with_verb(ceiling), ceiling.steps)


def refuting(copy: Copy, each: Claimed, shown: Iterable[Fact]) -> Fact | None:
    """Returns the fastest that moved through a component beyond its claimed limit; None: nothing.

    The copy itself refutes any limit; another transfer no limit of one time or place.
    """
    part, ceiling = each[0], each[1].ceiling
    is_bound, level = ceiling.standing == "at-least", ceiling.bytes_per_second
    is_load = ceiling.standing == "estimated" and ceiling.component in ("cpu", "instrument")
    is_refutable = is_load or ceiling.component in REFUTABLE or ceiling.cause == "round-trips"
    facts = []
    if is_refutable and not is_bound and ceiling.cause not in PASSING:
        least = (DISKLESS_RATIO if is_load else REFUTED_RATIO) * level
        facts += [e for e in shown if e.part == part and e.level.median > least]
    rate = 0.0 if copy.step is None else copy.step.rate.median
    if rate > (1 if is_bound else REFUTED_RATIO) * level:
        facts.append(Fact(part, SHOWN, Level.around(rate), "the copy"))
    return max(facts, key=lambda each: each.level.median, default=None)


def ignored(claim: Claim, fact: Fact) -> str:
    """Returns what is said of a claimed limit that something moved beyond."""
    level, most = claim.ceiling.bytes_per_second, fact.level.median
    return (
        f"Ignored: a limit of {rate_text(level)} for {name_with_verb(claim.ceiling)}, because "
        f"{fact.words} ran at {rate_text(most)}."
    )


def is_path_held(claims: Iterable[Claim]) -> bool:
    """Whether something else than the path held the tests of TCP by itself."""
    found = [e.ceiling for e in claims if e.ceiling.component in ("network", "bus")]
    return bool(found) and all(each.standing == "at-least" for each in found)


def _kind(claim: Claim) -> Kind | None:
    """Returns the kind of fact that a claim is; None: the model has it from elsewhere."""
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
