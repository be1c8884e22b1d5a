"""The cap that a copy's own time names, in the words and figures of the rules behind it.

Attribution says which component held the copy and on which side. A rule may know the cause behind
it, and what it does beside this copy; else the copy's own rate is all that is known of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import cap as caps
from bottleneck.analysis import ceilings, shown, socket_buffers
from bottleneck.analysis.attribution.attribution import Attribution, attribute
from bottleneck.analysis.cap import Cap, at_rate, bounded, reaches, settled
from bottleneck.analysis.claim import claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim, Ladder
from bottleneck.analysis.rules.network import link_rate, loss
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.sentences import part_name
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, share_text
from probes.core.records import Spread

LEAST_CONFIDENCE = 0.6
"""Below it two components had work at most times: a limit that was measured alone decides."""
MOST_CONFIDENCE = 0.99
SURE_CONFIDENCE = 0.8
"""From here on what moved more at another time refutes nothing."""
IDLE_SHARE = 0.4
"""Of the time, which what holds a copy has at least, the unknown counted."""
CHANGED_TIMES = 1.5
"""What moved over the path at another time, over what the copy found there."""
FITS = 0.75, 1.1
"""The copy's rate over a limit that was measured alone, where that is what the copy ran at."""
_DISK = (
    *(("disk", "seek"), ("disk", "zone"), ("memory", "swap"), ("bus", "usb"), ("bus", "pcie")),
)
_NETWORK = (("network", "wrong-path"), ("network", "duplex"), ("bus", "usb"), ("bus", "pcie"))
_SMB = (("smb", "dialect"), ("smb", "server-software"))
_CPU = (("smb", "signing"), ("smb", "encryption"), *_SMB)
BEHIND: dict[tuple[str, str], tuple[tuple[str, str], ...]] = {
    ("disk", "read"): (*_DISK, ("memory", "cache-size")),
    ("disk", "write"): (*_DISK, ("memory", "writeback"), ("disk", "sync")),
    ("disk", "contention"): _DISK,
    ("network", "link-rate"): _NETWORK,
    ("smb", "round-trips"): _SMB,
    ("cpu", "one-core"): _CPU,
    ("cpu", "all-cores"): _CPU,
}
"""By what the time of a copy names, what a rule may find behind it, the first before the others."""


@dataclass(frozen=True)
class Decision:
    """What limits a copy, and what it was decided by."""

    cap: Cap | None
    """None: nothing is named."""
    ladder: Ladder
    time: Attribution | None
    """None: its time was not looked at."""


def decide(report: Report, copy: Copy) -> Decision:
    """Decides what limits a copy that was made: by its own time, or by the limits around it."""
    assert copy.made is not None
    ladder, went = ceilings.ladder(report, copy), attribute(report, copy)
    cap = caps.find(copy, copy.made, ladder)
    if went is not None and cap is not None and idle(went, cap):
        cap = None
    by_time = cap_by_time(report, copy, ladder, went, cap) if went is not None else None
    return Decision(*(by_time or (cap, ladder)), went)


def cap_by_time(
    report: Report, copy: Copy, ladder: Ladder, went: Attribution, cap: Cap | None
) -> tuple[Cap, Ladder] | None:
    """The cap that a copy's time names, and the ladder with it; None: it does not decide.

    cap: what the limits that were measured alone name. It stands where two components had work at
    most times, and where what else the run moved refutes what the copy's time alone names.
    """
    made = copy.made
    if made is None or went.component == "unknown" or cap is not None and cap.claim.ceiling.tool:
        return None
    if cap is not None and went.confidence < LEAST_CONFIDENCE:
        return None
    everything = tuple(shown.moved(report, copy.sender))
    known = (_at_its_rate(each, made.rate) for each in _behind(made, ladder, went))
    found = (each for each in known if shown.refuting(everything, copy, each) is None)
    chosen = next(found, None) or _own(Evidence(report, copy), went, everything)
    more = shown.refuting(everything, copy, chosen)
    if more is not None and went.confidence < SURE_CONFIDENCE:
        return None
    if more is not None:
        # It carried more at another time, and held this copy all the same.
        level = more.bytes_per_second
        ceiling = replace(chosen.ceiling, bytes_per_second=level, high_bytes_per_second=level)
        chosen = replace(chosen, ceiling=ceiling)
    agree = cap is not None and cap.claim.ceiling.named == chosen.ceiling.named
    confidence = went.confidence
    if cap is not None and agree:
        # A limit that was measured beside the copy knows nothing of its time.
        doubt = (1 - confidence) * (1 - cap.confidence if _beside(made, cap) else 1)
        confidence = max(cap.confidence, min(MOST_CONFIDENCE, 1 - doubt))
    by_time = Cap(chosen, bounded(copy, made, round(confidence, 2)))
    return by_time, _spare(settled(ladder, by_time), by_time)


def idle(went: Attribution, cap: Cap) -> bool:
    """Whether the disk that a limit names had next to no work in the copy's time."""
    shares = {(each.component, each.side): each.ratio for each in went.shares}
    ceiling, unknown = cap.claim.ceiling, shares.get(("unknown", None), 0.0)
    disk = ceiling.component == "disk"
    return disk and shares.get(ceiling.part, 0.0) + unknown < IDLE_SHARE


def _beside(made: Found, cap: Cap) -> bool:
    """Whether a limit was measured by other steps than the copy, with no other as near."""
    ceiling = cap.claim.ceiling
    alone = ceiling.standing == "measured" and made.index not in ceiling.steps
    return alone and cap.rival is None and cap.claim.reached is None


def _at_its_rate(each: Claim, rate: Spread) -> Claim:
    """A claim whose limit the copy runs at: the one that is known, or what the copy had of it."""
    return each if _fits(each, rate) else at_rate(rate, each)


def _fits(each: Claim, rate: Spread) -> bool:
    return FITS[0] <= rate.median / each.ceiling.bytes_per_second <= FITS[1]


def _behind(made: Found, ladder: Ladder, went: Attribution) -> Iterator[Claim]:
    """What the rules know of what is named: the cause behind it, itself, the component."""
    near = [each for each in ladder.valid if each.partly or reaches(each, made.rate)]
    for words in BEHIND.get((went.component, went.cause), ()):
        for each in near:
            if (each.ceiling.component, each.ceiling.cause) == words and _on(went, each):
                yield each
    for each in ladder.valid:
        named = (each.ceiling.component, each.ceiling.cause)
        far = each.ceiling.standing == "measured" and not (each.reached or _fits(each, made.rate))
        # Of a limit far above the copy its words would tell of another rate.
        if named == (went.component, went.cause) and _on(went, each) and not far:
            yield each


def _on(went: Attribution, each: Claim) -> bool:
    """Whether a claim is of the side that is named; a path has two ends."""
    return went.side in ("path", None) or each.ceiling.side in (went.side, "path")


def _own(given: Evidence, went: Attribution, everything: Sequence[shown.Moved]) -> Claim:
    """A claim of what no rule has seen beside this copy: its limit is the copy's own rate."""
    cause, seen = BY_WORDS[went.component, went.cause], went.confidence >= SURE_CONFIDENCE
    set_by = socket_buffers.limiting(given, went.cause, went.side or "")
    lost = given.details.sockets.loss_ratio if cause == loss.CAUSE else None
    detail = f"{share_text(lost)} of the packets" if lost else ""
    remedy = cause.remedy.format(side=went.side) if set_by is None else set_by.remedy
    most = max((each.bytes_per_second for each in everything), default=0.0)
    if cause == link_rate.CAUSE and most > CHANGED_TIMES * given.rate.median:
        remedy = link_rate.CHANGED
    return claim(
        *(cause, went.side, given.made, limited_words(went)),
        standing="estimated",
        reached=seen or None,
        remedy=remedy,
        detail=detail if set_by is None else set_by.detail,
    )


def limited_words(went: Attribution) -> str:
    """What limited a copy, for how much of its time: after "because"."""
    label = BY_WORDS[went.component, went.cause].label
    own = [e.ratio for e in went.shares if (e.component, e.side) == (went.component, went.side)]
    ratio = own[0] if own else went.shares[0].ratio
    what = f"{part_name((went.component, went.side))} ({label})"
    return f"it was limited by {what} for {percent_text(ratio)} of the time"


def _spare(ladder: Ladder, cap: Cap) -> Ladder:
    """The ladder with the cap, where others had time to spare: below it they are lower bounds."""
    level = cap.claim.ceiling.bytes_per_second
    claims = [each for each in ladder.claims if each != cap.claim]
    for at, each in enumerate(claims):
        lower = each.ceiling.bytes_per_second < level
        if lower and each.ceiling.part != cap.claim.ceiling.part:
            claims[at] = replace(each, ceiling=replace(each.ceiling, standing="at-least"))
    claims.append(cap.claim)
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return replace(ladder, claims=tuple(claims))
