"""What a gate found: each expectation, whether it holds, and the worst of them; pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report

State = Literal["ok", "warning", "critical", "unknown"]
EXIT_CODES: dict[State, int] = {"ok": 0, "warning": 1, "critical": 2, "unknown": 3}
"""Of Nagios' plugins."""


@dataclass(frozen=True)
class Judged:
    """One expectation of a report, held against it."""

    name: str
    """As it was asked for: `pull.uncached >= 80 MB/s`."""
    metric: str
    """What it speaks of, in ASCII without blanks: `pull.uncached`, `tcp.push`, `cap`."""
    state: State
    message: str
    """One sentence: what was found, which component is behind it, or why nothing is known."""
    value: float | None = None
    """What was found, in the unit's base; None: not measured, or no number."""
    unit: Literal["bytes_per_second", "seconds", "ratio", ""] = ""
    warning: str = ""
    """The range that is no warning, as Nagios writes it; empty: none."""
    critical: str = ""


@dataclass(frozen=True)
class Judgement:
    """A report judged: what `check` says, in whichever format."""

    state: State
    """The worst of all; "unknown" ranks below "critical" and above "warning"."""
    sentence: str
    """One line for a person: the worst expectation, or what all of them found."""
    judged: tuple[Judged, ...]
    report: Report | None
    """None: there is none to be judged; the sentence says why."""
    diagnosis: Diagnosis | None
    age_seconds: float | None = None
    """Since the report's start; None: there is no report."""
