"""What a user expects of a report, read from the command line's words; pure.

A condition says what alarms: `pull.uncached < 80MB/s`, `path.rtt >= 5ms`, `loss > 1%`. A range says
what does not, as Nagios writes it: `pull.uncached=80MB/s:`, `latency=~:5ms`, `cpu.server=@0.9:1`.
Source of ranges: Monitoring Plugins Development Guidelines, section Threshold and Ranges.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Literal

from bottleneck.analysis.rules.registry import CAUSES, PLACES
from bottleneck.gate import metrics
from bottleneck.gate.metrics import ExpectationError
from bottleneck.text import units
from probes.core.records import SIDES

Severity = Literal["warning", "critical"]
_CONDITION = re.compile(r"\s*(?P<metric>[^<>=\s]+)\s*(?P<sign><=|>=|<|>)\s*(?P<limit>.+?)\s*")
_HOLDS = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}
_BREAKS = {"<": "below", "<=": "at or below", ">": "above", ">=": "at or above"}
_PERCENT = re.compile(r"\d+(?:\.\d+)?\s*%", re.ASCII)
_BARE = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?", re.ASCII)


@dataclass(frozen=True)
class Limit:
    """Where a metric alarms."""

    metric: str
    severity: Severity
    words: str
    """What holds while it does not: `>= 80MB/s`; of a range `in 80MB/s:`."""
    broken: str
    """What is said where it alarms: `below 80MB/s`."""
    range: str
    """The figures that do not alarm, as Nagios writes it, in the unit's base."""
    low: float
    high: float
    inside: bool = False
    """Whether it alarms from low to high, both included, and not outside of them."""
    strict: bool = False
    """Whether low and high themselves alarm too (`<=`, `>=`)."""

    def alarms(self, value: float) -> bool:
        """Whether a figure is one to alarm at."""
        if self.inside:
            return self.low <= value <= self.high
        if self.strict:
            return not self.low < value < self.high
        return not self.low <= value <= self.high


@dataclass(frozen=True)
class Cap:
    """What should cap a copy."""

    words: str
    """As it was given."""
    component: str
    side: str | None
    """None: whichever."""
    cause: str | None
    copy: str = metrics.HEADLINE


Expectation = Limit | Cap


def limit(text: str, severity: Severity) -> Limit:
    """A condition or a range. Errors: ExpectationError."""
    match = _CONDITION.fullmatch(text)
    if match is not None:
        return _condition(match, severity)
    name, equals, told = text.partition("=")
    if not equals or not told.strip():
        raise ExpectationError(
            f"{text[:80]!r} is not a condition; use for example 'pull.uncached < 80MB/s' "
            "or pull.uncached=80MB/s:"
        )
    return _range(metrics.check(name.strip()), told.strip(), severity)


def _condition(match: re.Match[str], severity: Severity) -> Limit:
    metric, sign = metrics.check(match["metric"]), match["sign"]
    value = _quantity(match["limit"], metric, bare=False)
    low, high = (value, math.inf) if sign in ("<", "<=") else (-math.inf, value)
    words, broken = (f"{each[sign]} {match['limit']}" for each in (_HOLDS, _BREAKS))
    nagios = f"{_plain(low)}:" if high == math.inf else f"~:{_plain(high)}"
    strict = sign in ("<=", ">=")
    return Limit(metric, severity, words, broken, nagios, low, high, strict=strict)


def _range(metric: str, text: str, severity: Severity) -> Limit:
    """A range, its ends with units or bare; nagiosplugin says what it means."""
    from nagiosplugin import Range

    inverted = text.startswith("@")
    begin, colon, end = text.removeprefix("@").strip().rpartition(":")
    first = begin.strip()
    if first not in ("", "~"):
        first = _plain(_quantity(first, metric, bare=True))
    second = _plain(_quantity(end, metric, bare=True)) if end.strip() else ""
    plain = f"{'@' if inverted else ''}{first}{colon}{second}"
    try:
        told = Range(plain)
    except ValueError as error:
        raise ExpectationError(f"{text[:80]!r} is not a range: {error}") from None
    words = (f"in {text}", f"not in {text}")
    return Limit(metric, severity, *words, plain, told.start, told.end, inside=told.invert)


def _quantity(text: str, metric: str, bare: bool) -> float:
    """A figure in the base of the metric's unit; bare: one without a unit will do."""
    unit, word = metrics.unit(metric), text.strip()
    told = _ratio(word) if bare or unit == "ratio" else None
    if told is not None and (unit == "ratio" or not word.endswith("%")):
        return told
    if unit == "ratio":
        raise ExpectationError(f"{metric}: {word[:40]!r} is not a share, as 1% or 0.01")
    try:
        return units.parse_seconds(word) if unit == "seconds" else units.parse_rate(word)
    except units.UnitError as error:
        raise ExpectationError(f"{metric}: {error}") from None


def _ratio(word: str) -> float | None:
    """`10%` or `0.1`; None: it is neither."""
    value = math.nan
    if _PERCENT.fullmatch(word):
        value = float(word.removesuffix("%")) / 100
    elif _BARE.fullmatch(word):
        value = float(word)
    return value if math.isfinite(value) else None


def _plain(value: float) -> str:
    """Digits without an exponent, which ranges do not know."""
    return f"{value:.0f}" if value >= 1e6 else f"{value:.9f}".rstrip("0").rstrip(".")


def cap(text: str) -> Cap:
    """`[COPY=]component[/side[/cause]]`, in the words of a verdict. Errors: ExpectationError."""
    which, equals, told = text.strip().rpartition("=")
    copy = metrics.HEADLINE
    if equals:
        copy = metrics.check(which.strip())
        if copy.partition("@")[0] not in (*metrics.NAMED_COPIES, metrics.HEADLINE):
            raise ExpectationError(f"{copy} is not a copy and has no bottleneck")
    words = told.strip().split("/")
    component = words[0]
    if component not in CAUSES or component == "unknown":
        known = ", ".join(name for name in CAUSES if name != "unknown")
        raise ExpectationError(f"component {component[:40]!r}: must be one of {known}")
    sides = sorted(side for side in PLACES.get(component, frozenset(SIDES)) if side)
    side = words[1] if len(words) > 1 else None
    if side is not None and side not in sides:
        hint = f"; use {component}/SIDE/{side}" if side in CAUSES[component] else ""
        known = ", ".join(sides)
        raise ExpectationError(f"side {side[:40]!r} of {component}: must be one of {known}{hint}")
    cause = words[2] if len(words) > 2 else None
    if cause is not None and cause not in CAUSES[component] or len(words) > 3:
        known, told = ", ".join(sorted(CAUSES[component])), "/".join(words[2:])
        raise ExpectationError(f"{told[:40]!r} of {component}: must be one of {known}")
    return Cap(told.strip(), component, side, cause, copy)


def share(text: str) -> float:
    """A ratio below one from `10%` or `0.1`. Errors: ExpectationError."""
    value = _ratio(text.strip())
    if value is None or not 0 <= value < 1:
        raise ExpectationError(f"{text[:40]!r} is not a share below 1; use for example 10%")
    return value


_AGE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|min|m|h|d)", re.ASCII)
_AGE_SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OLDEST_SECONDS = 1e10


def age(text: str) -> float:
    """Seconds from `26h`, `90min`, `7d`, `600s`. Errors: ExpectationError."""
    match = _AGE.fullmatch(text.strip())
    seconds = float(match["number"]) * _AGE_SECONDS[match["unit"]] if match else 0.0
    if not 0 < seconds <= _OLDEST_SECONDS:
        raise ExpectationError(f"{text[:40]!r} is not an age; use for example 26h or 7d")
    return seconds


def age_text(seconds: float) -> str:
    """An age for a person, in its greatest whole unit: `40 s`, `12 min`, `26 h`, `5 days`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.0f} days"
