"""The verdict of a copy: the likeliest component, its cause, and how sure both are."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.claim import LIKENESS, SURE
from bottleneck.analysis.decision.causes import TABLE, Row, rows, support_of
from bottleneck.analysis.decision.conditions import claim_of, faster_twin, limit_fact
from bottleneck.analysis.decision.weigh import IDLE, weigh
from bottleneck.analysis.facts.record import UNKNOWN, CopyFacts, Part, View
from bottleneck.analysis.finding import Named, Suspect

LEAST = 0.5
"""Least probability of a component that is named."""
TIE_LEAST, TIE_SUM = 0.4, 0.8
"""Two components that are named together: least probability of the first, and of both."""
ENDS_LEAST, ENDS_SUM = 0.3, 0.6
"""Two ends of one connection, named as one suspect: least probability of the first, and of both."""
RIVAL = 0.3
"""Least probability of a second component that is named beside the first."""
MOST: dict[View, float] = {"both": 0.98, "hidden": 0.9, "alone": 0.9, "capture": 0.9}
MOST |= {"counters": 0.85, "": 0.85}
LEAST_LIKELY = 0.01
MOST_SUPPLIED = 0.7
"""Highest confidence in figures that a person supplied; in others by view, as in MOST."""


@dataclass(frozen=True)
class Decision:
    """Decision about the cap of one copy."""

    copy: CopyFacts
    part: Part
    """UNKNOWN: nothing is named."""
    row: Row | None
    confidence: float
    suspects: tuple[tuple[Part, float], ...] = ()
    """The likeliest components first."""
    rival: Part | None = None
    """A component about as likely as the first."""

    def suspects_named(self) -> tuple[Suspect, ...]:
        """Returns the likeliest components that have a name, each with its cause."""
        likely = (each for each in self.suspects if each[0] != UNKNOWN and each[1] >= LEAST_LIKELY)
        return tuple(self.suspect(*each) for each in likely)

    def suspect(self, part: Part, likelihood: float) -> Suspect:
        """Returns a component with the cause that is behind it."""
        return Suspect(*self._words(part, rows(self.copy, part)[0]), round(likelihood, 2))

    @property
    def key(self) -> Named:
        """Component, side and cause, in the contract's words."""
        if self.row is None:
            return "unknown", None, "inconclusive" if self.copy.rate is not None else "not-measured"
        return self._words(self.part, self.row)

    def _words(self, part: Part, row: Row) -> Named:
        component, _, cause = row.words.partition("/")
        if self.copy.supplied and row.label == "requests in flight":
            return component, "path", cause  # which end asks for too little was not told
        return component, row.side_of(self.copy, part), cause


def is_supported(copy: CopyFacts, part: Part) -> bool:
    """Whether any fact speaks for a component, beyond the lack of facts against it."""
    is_busy = (copy.busy(part) or 0.0) > IDLE
    return is_busy or bool(
        limit_fact(copy, part) or support_of(copy, part) or faster_twin(copy, part)
    )


def decide(copy: CopyFacts) -> Decision:
    """Decides what caps a copy."""
    tool = next((each for _, each in copy.claims if each.ceiling.tool and each.reached), None)
    if tool is not None and not copy.is_scattered:
        part: Part = ("cpu", tool.ceiling.side)
        row = next(each for each in TABLE["cpu"] if each.words == "instrument/ceiling")
        return Decision(copy, part, row, min(copy.trust, tool.trust))
    ranked = sorted(weigh(copy).items(), key=lambda each: -each[1])
    (first, likely), (second, less) = ranked[0], ranked[1]
    rival = second if less >= RIVAL and second != UNKNOWN else None
    suspects = tuple(ranked[:4])
    allowed = copy.component_trust.get(first, copy.component_trust.get(first[0], 1.0))
    if first != UNKNOWN and (not is_supported(copy, first) or allowed < LEAST):
        return Decision(copy, UNKNOWN, None, 0.0, suspects)
    if first == UNKNOWN or likely < LEAST:
        ends = first[0] == second[0] == "tcp"
        threshold, both = (ENDS_LEAST, ENDS_SUM) if ends else (TIE_LEAST, TIE_SUM)
        if UNKNOWN in (first, second) or likely < threshold or likely + less < both:
            return Decision(copy, UNKNOWN, None, 0.0, suspects)
        rival = second
    row = rows(copy, first)[0]
    claim = claim_of(copy, row.words, first)
    is_shown = row.passing or (claim is not None and claim.reached)
    if copy.is_scattered and not copy.is_watched and not is_shown:
        return Decision(copy, UNKNOWN, None, 0.0, suspects)
    trust = min(MOST_SUPPLIED if copy.supplied else MOST[copy.view], row.trust, copy.trust)
    trust = min(trust, allowed)
    if claim is not None:
        is_likeness = claim.partly and not claim.reached
        trust = min(trust, LIKENESS if is_likeness else claim.trust if claim.trust < SURE else 1.0)
    return Decision(copy, first, row, round(min(trust, likely), 2), suspects, rival)
