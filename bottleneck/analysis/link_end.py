"""Whose end of the path a slow link is, where figures that were told show it.

A hop that every client meets lies at the server. A link that one end has and the other has not is
that end's.
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
"""Name of a network interface that a person told of."""
UNEQUAL_RATIO = 2.0
"""One end's link over the other's, from which on the slower one is that end's affair."""
FILLED_LOW_RATIO, FILLED_HIGH_RATIO = 0.88, 1.03
"""Of a link's payload: what many streams make of it."""
SAME_RATIO = 1.15
"""Between several clients' rates that are the same hop's."""


def is_told(report: Report) -> bool:
    """Whether the figures of a report are what a person told, and not what was measured."""
    return steps.word(report.tool, "observations") is not None


def refine(given: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """All claims of a copy, a link's with the end that it is at, where figures that were told show
    it.
    """
    for each in claims:
        seen = each.ceiling
        end = None
        if is_told(given.report) and (seen.component, seen.cause) == ("network", "link-rate"):
            end = _of_every_client(given) or _of_slower(given.report, seen.bytes_per_second)
        if end is None:
            yield each
        else:
            yield replace(
                each,
                ceiling=replace(seen, side=end.side),
                words=f"{each.words}, at the {end.side}'s end ({end.since})",
                evidence=(*each.evidence, end.why),
                remedy=(
                    f"Use a {link_text(model.faster_link(UNEQUAL_RATIO * seen.bytes_per_second))} "
                    f"link at the {end.side}'s end (card, cable and switch port)"
                ),
            )


@dataclass(frozen=True)
class SlowLink:
    """The slowest link that was told."""

    bits_per_second: int
    side: str
    """client, server; path where both ends have the same, or one alone was told."""


def slower_link(report: Report) -> SlowLink | None:
    """The slower of both ends' links, as they are claimed; None: none is known."""
    claimed = ((side, link.rate_bits_per_second) for side, link in interfaces(report))
    rates = {side: rate for side, rate in claimed if rate}
    if not rates:
        return None
    side, slowest = min(rates.items(), key=lambda each: each[1])
    unequal = len(rates) == 2 and max(rates.values()) >= UNEQUAL_RATIO * slowest
    return SlowLink(slowest, side if unequal else "path")


def claimed_payload(report: Report) -> float:
    """Payload of the slower link of both ends; 0: none was told."""
    slow = slower_link(report)
    return 0.0 if slow is None else model.link_payload(slow.bits_per_second)


@dataclass(frozen=True)
class End:
    """The end that a link is at."""

    side: str
    since: str
    """Why, in a few words."""
    why: str
    """The same as a sentence with its figures."""


def _of_every_client(given: Evidence) -> End | None:
    """The server's, where each client that was told by name gets the same link's payload."""
    found = sorted(given.believed, key=lambda each: each.rate.median)
    by_client = {each.details.client: each.rate.median for each in found if each.details.client}
    rates = list(by_client.values())
    if len(rates) < 2 or factor(min(rates), max(rates)) > SAME_RATIO:
        return None
    match = given.looks_like(max(rates))
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


def _of_slower(report: Report, bytes_per_second: float) -> End | None:
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
