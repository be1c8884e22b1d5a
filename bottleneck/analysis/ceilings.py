"""All ceilings of one copy: every rule is asked, and what the copy itself refutes is dropped."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import supplied
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.registry import OF_ANY_COPY, OF_MADE_COPIES, REFINEMENTS
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report
from bottleneck.units import rate_text

REFUTED_RATIO = 1.1
"""A copy this far above a ceiling shows that it was none."""


@dataclass(frozen=True)
class Ladder:
    """What is known of one copy's ceilings."""

    claims: tuple[Claim, ...]
    """Lowest first."""
    remarks: tuple[str, ...]

    @property
    def valid(self) -> tuple[Claim, ...]:
        """Those that are the component's own and not mere lower bounds."""
        return tuple(each for each in self.claims if each.ceiling.standing != "at-least")


def ladder(report: Report, copy: Copy, copy_rate: float) -> Ladder:
    """The ceilings of a copy that ran at a rate, bytes per second."""
    claims: list[Claim] = []
    remarks: list[str] = []
    given = Evidence(report, copy)
    made = () if copy.made is None else OF_MADE_COPIES
    for rule in (*OF_ANY_COPY, *made, supplied.rule):
        for found in rule(given):
            if isinstance(found, str):
                remarks.append(found)
            elif not _refuted(found, copy_rate):
                claims.append(found)
            elif found.ceiling.standing != "at-least":
                limit = rate_text(found.ceiling.bytes_per_second)
                remarks.append(
                    f"Ignored: a limit of {limit} for {name_with_verb(found.ceiling)}, because the "
                    f"copy ran at {rate_text(copy_rate)}."
                )
    for refine in REFINEMENTS:
        claims = list(refine(given, claims))
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return Ladder(tuple(claims), tuple(dict.fromkeys(remarks)))


def _refuted(claim: Claim, copy_rate: float) -> bool:
    ceiling = claim.ceiling
    margin = 1.0 if ceiling.standing == "at-least" else REFUTED_RATIO
    return ceiling.bytes_per_second * margin < copy_rate
