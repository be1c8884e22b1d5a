"""What a comparison of two reports finds: frozen records in bytes, seconds and ratios."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from bottleneck.analysis.finding import Verdict
from bottleneck.analysis.model import Band
from probes.records import Spread

Judged = Literal["right", "more", "less"]
"""The copy then ran within the prediction, above it, below it."""


@dataclass(frozen=True)
class FactChange:
    """A fact of a host or of the target that is another one now."""

    fact: str
    """Where it stands: `client.interface.rate_bits_per_second`, `target.dialect`."""
    before: Any
    after: Any
    """None: not told."""


@dataclass(frozen=True)
class RateChange:
    """A stage that both reports measured."""

    stage: str
    setting: dict[str, Any]
    """Of the later step."""
    initiator: str
    before_bytes_per_second: Spread
    after_bytes_per_second: Spread
    ratio: float
    """After over before."""
    significant: bool
    """Whether the difference is beyond the noise of both."""


@dataclass(frozen=True)
class Lift:
    """A cap that is gone, or whose ceiling rose, and what that was said to be worth."""

    component: str
    side: str | None
    cause: str
    from_bytes_per_second: float
    to_bytes_per_second: float | None
    """Its ceiling now; None: it is not what caps the copy any more."""
    predicted_bytes_per_second: Band | None
    """By the earlier report; None: it could not tell."""
    judged: Judged | None
    """None: nothing was predicted."""


@dataclass(frozen=True)
class CopyChange:
    """A copy that both reports have."""

    copy: str
    initiator: str
    before_dialect: str
    after_dialect: str
    before_bytes_per_second: Spread | None
    after_bytes_per_second: Spread | None
    """None: it could not be made."""
    ratio: float | None
    significant: bool
    before_verdict: Verdict
    after_verdict: Verdict
    lift: Lift | None
    """None: the cap is the same, or one of both is not known."""
    sentence: str


@dataclass(frozen=True)
class Change:
    """All that is different between two reports."""

    summary: str
    copies: tuple[CopyChange, ...]
    stages: tuple[RateChange, ...]
    facts: tuple[FactChange, ...]
    only_before: tuple[str, ...]
    only_after: tuple[str, ...]
    """Copies that one report alone has."""
