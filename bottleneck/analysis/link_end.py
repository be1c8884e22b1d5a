"""Finds the end of the path at which a slow link lies, from supplied figures.

A hop that limits every client lies at the server. A link that only one end has is that end's.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bottleneck.analysis import model, steps
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.hardware_limits import interfaces
from bottleneck.analysis.noise import factor
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, link_text, range_text, rate_text

NAMELESS = "the card"
"""Name of a network interface that a person supplied."""
UNEQUAL_RATIO = 2.0
"""Least ratio of the ends' links at which the slower link lies at its end."""
FILLED_LOW_RATIO, FILLED_HIGH_RATIO = 0.88, 1.03
"""Least and most rate of many streams / a link's payload at which they fill the link."""
SAME_RATIO = 1.15
"""Greatest ratio of several clients' rates at which the same hop limits them."""


def is_supplied(report: Report) -> bool:
    """Whether the figures of a report were supplied by a person, and not measured."""
    return steps.word(report.tool, "observations") is not None


def refine(evidence: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """Yields all claims of a copy, a link's with its end if supplied figures show that."""
    for each in claims:
        ceiling = each.ceiling
        end = None
        level = ceiling.bytes_per_second
        if is_supplied(evidence.report) and ceiling.is_link:
            end = _end_of_every_client(evidence) or _slower_end(evidence.report, level)
        if end is None:
            yield each
        else:
            yield replace(
                each,
                ceiling=replace(ceiling, side=end.side),
                words=f"{each.words}, at the {end.side}'s end ({end.since})",
                evidence=(*each.evidence, end.why),
                remedy=(
                    f"Use a {link_text(model.faster_link(UNEQUAL_RATIO * level))} "
                    f"link at the {end.side}'s end (card, cable and switch port)"
                ),
            )


@dataclass(frozen=True)
class SlowLink:
    """The slowest link that was supplied."""

    bits_per_second: int
    side: str
    """client, server; path: both ends have the same, or only one was supplied."""


def slower_link(report: Report) -> SlowLink | None:
    """Returns the slower of both ends' links, as claimed; None: none is known."""
    claimed = ((side, link.rate_bits_per_second) for side, link in interfaces(report))
    rates = {side: rate for side, rate in claimed if rate}
    if not rates:
        return None
    side, slowest = min(rates.items(), key=lambda each: each[1])
    unequal = len(rates) == 2 and max(rates.values()) >= UNEQUAL_RATIO * slowest
    return SlowLink(slowest, side if unequal else "path")


def claimed_payload(report: Report) -> float:
    """Returns the payload of the slower link of both ends; 0: none is known."""
    slow = slower_link(report)
    return 0.0 if slow is None else model.link_payload(slow.bits_per_second)


@dataclass(frozen=True)
class End:
    """The end of the path at which a link lies."""

    side: str
    since: str
    """Reason in a few words."""
    why: str
    """Reason as a sentence with its figures."""


def _end_of_every_client(evidence: Evidence) -> End | None:
    """Returns the server's end, if each named client gets the same link's payload."""
    tests = sorted(evidence.believed_steps, key=lambda each: each.rate.median)
    by_client = {each.details.client: each.rate.median for each in tests if each.details.client}
    rates = list(by_client.values())
    if len(rates) < 2 or factor(min(rates), max(rates)) > SAME_RATIO:
        return None
    match = evidence.looks_like(max(rates))
    if match is None:
        return None
    what = link_text(match.bits_per_second)
    full = rate_text(match.payload_bytes_per_second)
    return End(
        "server",
        f"same for {count_text(len(rates))} clients",
        f"{count_text(len(rates))} clients got the same rate "
        f"({range_text(min(rates), max(rates))}), the usable rate of a {what} link ({full}). They "
        "share the server's card, cable and switch port.",
    )


def _slower_end(report: Report, bytes_per_second: float) -> End | None:
    slow = slower_link(report)
    if slow is None or slow.side == "path":
        return None
    payload = model.link_payload(slow.bits_per_second)
    if not FILLED_LOW_RATIO <= bytes_per_second / payload <= FILLED_HIGH_RATIO:
        return None
    return End(
        slow.side,
        "the slower link",
        f"The {slow.side}'s link was the slower one: {link_text(slow.bits_per_second)} carries "
        f"{rate_text(payload)}.",
    )
