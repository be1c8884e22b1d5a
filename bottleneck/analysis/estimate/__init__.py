"""The back of the envelope: ceilings, the rate to expect and the likely cap; nothing measured."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from bottleneck.analysis import model
from bottleneck.analysis.estimate.envelope import Envelope
from bottleneck.analysis.estimate.rules import Missing, all_claims
from bottleneck.analysis.finding import Claim, Verdict
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.reports.units import range_text, rate_text

__all__ = ["Envelope", "Estimate", "Likely", "Missing", "estimate", "likely"]

STAGES = ("disk", "network", "bus", "memory")
"""Components that all bytes pass one after the other."""
NEAR_RATIO, CLEAR_RATIO = 1.1, 1.5
CLEAR_TRUST, FAIR_TRUST, NEAR_TRUST = 0.6, 0.5, 0.4
"""Nothing of it was measured: never more, and the last where the next is near or a part unknown."""
INITIAL_SEGMENTS = 10
"""What TCP sends before the first acknowledgement (RFC 6928)."""
LOGIN_ROUND_TRIPS = 5
"""TCP connect, NEGOTIATE, SESSION_SETUP twice (NTLMSSP), TREE_CONNECT."""
FILE_ROUND_TRIPS = {"pull": 2, "push": 3}
"""CREATE and CLOSE; FLUSH where the server is written to."""
HISTORY = {10_000_000: 1e6, 100_000_000: 10e6, 1_000_000_000: 30e6}
"""What PCs of 2005 got over such a link, by a rule of thumb of that year."""
HISTORY_YEAR = 2005


@dataclass(frozen=True)
class Likely:
    """The lowest of some ceilings."""

    claim: Claim
    rival: Claim | None
    """Another part's, so near that it may as well be this one."""
    following: Claim | None
    """The next part's."""
    ratio: float
    """The next part's ceiling over it; infinite where there is none."""


@dataclass(frozen=True)
class Estimate:
    """What follows from an envelope; rates in bytes per second."""

    given: Envelope
    claims: tuple[Claim, ...]
    """Lowest ceiling first; the evidence of each is the rule of thumb that it rests on."""
    missing: tuple[Missing, ...]
    verdict: Verdict
    in_turn: float | None
    """Where each stage waits for the one before it; None: no ceiling is known."""
    overlapped: float | None
    """Where all stages work at once."""
    cold_round_trips: int
    """Connect, login, open and close, and the slow start."""
    cold_seconds: float | None
    """What those take; None: the round trip is not known."""

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Shortest and longest time of the copy, from its connect on; None: not known."""
        size = self.given.size_bytes
        if size is None or self.in_turn is None or self.overlapped is None:
            return None
        cold = self.cold_seconds or 0.0
        return cold + size / self.overlapped, cold + size / self.in_turn

    @property
    def history(self) -> float | None:
        """What PCs of HISTORY_YEAR got over this link."""
        return HISTORY.get(round(self.given.link_bits_per_second or 0))


def estimate(given: Envelope) -> Estimate:
    """Every ceiling of an envelope, and what a copy below all of them can be expected to do."""
    found = tuple(all_claims(given))
    missing = tuple(each for each in found if isinstance(each, Missing))
    claims = [each for each in found if isinstance(each, Claim)]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    overlapped = in_turn = None
    if claims:
        overlapped = model.overlapped([each.ceiling.bytes_per_second for each in claims])
        stages = _stages(claims)
        in_turn = min(overlapped, model.in_turn(stages)) if stages else overlapped
    trips = LOGIN_ROUND_TRIPS + FILE_ROUND_TRIPS[given.verb] + _slow_start(given, overlapped)
    rtt = given.rtt_seconds
    return Estimate(
        given=given,
        claims=tuple(claims),
        missing=missing,
        verdict=_verdict(likely(claims), missing, in_turn, overlapped),
        in_turn=in_turn,
        overlapped=overlapped,
        cold_round_trips=trips,
        cold_seconds=None if rtt is None else trips * rtt,
    )


def _stages(claims: Sequence[Claim]) -> list[float]:
    """The lowest rate of each stage."""
    found: dict[tuple[str, str | None], float] = {}
    for each in claims:
        if each.ceiling.component in STAGES:
            found.setdefault(each.ceiling.part, each.ceiling.bytes_per_second)
    return list(found.values())


def likely(claims: Sequence[Claim]) -> Likely | None:
    """The lowest ceiling of those that are sorted, lowest first; None: there is none."""
    if not claims:
        return None
    first = claims[0]
    following = next((e for e in claims if e.ceiling.part != first.ceiling.part), None)
    if following is None:
        return Likely(first, None, None, math.inf)
    ratio = following.ceiling.bytes_per_second / first.ceiling.bytes_per_second
    return Likely(first, following if ratio < NEAR_RATIO else None, following, ratio)


def _slow_start(given: Envelope, rate: float | None) -> int:
    """Round trips until the congestion window holds what the path can have in flight."""
    if rate is None or given.rtt_seconds is None:
        return 0
    first = INITIAL_SEGMENTS * given.segment_bytes * given.streams
    return max(0, math.ceil(math.log2(rate * given.rtt_seconds / first)))


def _verdict(
    found: Likely | None,
    missing: Sequence[Missing],
    in_turn: float | None,
    overlapped: float | None,
) -> Verdict:
    if found is None or in_turn is None or overlapped is None:
        text = "Nothing is known that would bound this copy."
        return Verdict("unknown", None, "not-measured", 0.0, None, text)
    ceiling = found.claim.ceiling
    on_the_way = any(each.required for each in missing)
    clear = CLEAR_TRUST if found.ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = NEAR_TRUST if found.rival is not None or on_the_way else clear
    near = "" if found.rival is None else f"; too close to tell from it: {found.rival.words}"
    after = ""
    if found.rival is None and found.following is not None:
        level = rate_text(found.following.ceiling.bytes_per_second)
        after = f" After it comes {name_with_verb(found.following.ceiling)} ({level})."
    open_parts = " Not all of its way is known: something else may hold it." if on_the_way else ""
    expected = f"can be expected to run at {range_text(in_turn, overlapped)}"
    if on_the_way:
        expected = f"can run at no more than {rate_text(overlapped)}"
    return Verdict(
        *(ceiling.component, ceiling.side, ceiling.cause, trust, ceiling.bytes_per_second),
        f"Such a copy {expected}: {found.claim.words}{near}.{after}{open_parts}",
    )
