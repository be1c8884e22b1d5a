"""Parses a user's expectations of a report from the command line; pure.

A condition alarms if it holds: `pull.uncached < 80MB/s`, `path.rtt >= 5ms`, `loss > 1%`. A range in
Nagios' form alarms outside: `pull.uncached=80MB/s:`, `latency=~:5ms`, `cpu.server=@0.9:1`.
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
    """Limit of a metric, and the severity of its alarm."""

    metric: str
    severity: Severity
    words: str
    """Condition without an alarm: `>= 80MB/s`; for a range `in 80MB/s:`."""
    broken: str
    """Words of the alarm: `below 80MB/s`."""
    range: str
    """Figures without an alarm, in Nagios' form and the unit's base."""
    low: float
    high: float
    inside: bool = False
    """Whether figures from low to high, both included, alarm, instead of those outside."""
    strict: bool = False
    """Whether low and high themselves alarm too (`<=`, `>=`)."""

    def alarms(self, value: float) -> bool:
        """Whether a figure alarms."""
        if self.inside:
            return self.low <= value <= self.high
        if self.strict:
            return not self.low < value < self.high
        return not self.low <= value <= self.high


@dataclass(frozen=True)
class Cap:
    """Expected cap of a copy."""

    words: str
    """Text of the user."""
    component: str
    side: str | None
    """None: either side."""
    cause: str | None
    copy: str = metrics.HEADLINE


Expectation = Limit | Cap


def limit(text: str, severity: Severity) -> Limit:
    """Parses a condition or a range. Errors: ExpectationError."""
    match = _CONDITION.fullmatch(text)
    if match is not None:
        return _condition(match, severity)
    name, equals, bounds = text.partition("=")
    if not equals or not bounds.strip():
        raise ExpectationError(
            f"{text[:80]!r} is not a condition; use for example 'pull.uncached < 80MB/s' "
            "or pull.uncached=80MB/s:"
        )
    return _range(metrics.check(name.strip()), bounds.strip(), severity)


def _condition(match: re.Match[str], severity: Severity) -> Limit:
    metric, sign = metrics.check(match["metric"]), match["sign"]
    value = _quantity(match["limit"], metric, bare=False)
    low, high = (value, math.inf) if sign in ("<", "<=") else (-math.inf, value)
    words, broken = (f"{each[sign]} {match['limit']}" for each in (_HOLDS, _BREAKS))
    nagios = f"{_plain(low)}:" if high == math.inf else f"~:{_plain(high)}"
    return Limit(metric, severity, words, broken, nagios, low, high, strict=sign in ("<=", ">="))


def _range(metric: str, text: str, severity: Severity) -> Limit:
    """Parses a range whose ends may have units; nagiosplugin defines its meaning."""
    from nagiosplugin import Range

    inverted = text.startswith("@")
    begin, colon, end = text.removeprefix("@").strip().rpartition(":")
    first = begin.strip()
    if first not in ("", "~"):
        first = _plain(_quantity(first, metric, bare=True))
    second = _plain(_quantity(end, metric, bare=True)) if end.strip() else ""
    plain = f"{'@' if inverted else ''}{first}{colon}{second}"
    try:
        parsed = Range(plain)
    except ValueError as error:
        raise ExpectationError(f"{text[:80]!r} is not a range: {error}") from None
    words = (f"in {text}", f"not in {text}")
    return Limit(metric, severity, *words, plain, parsed.start, parsed.end, inside=parsed.invert)


def _quantity(text: str, metric: str, bare: bool) -> float:
    """Parses a figure into the base of the metric's unit; bare: the unit may be missing."""
    unit, word = metrics.unit(metric), text.strip()
    figure = _ratio(word) if bare or unit == "ratio" else None
    if figure is not None and (unit == "ratio" or not word.endswith("%")):
        return figure
    if unit == "ratio":
        raise ExpectationError(f"{metric}: {word[:40]!r} is not a share, as 1% or 0.01")
    try:
        return units.parse_seconds(word) if unit == "seconds" else units.parse_rate(word)
    except units.UnitError as error:
        raise ExpectationError(f"{metric}: {error}") from None


def _ratio(word: str) -> float | None:
    """Parses `10%` or `0.1`; None: it is neither."""
    value = math.nan
    if _PERCENT.fullmatch(word):
        value = float(word.removesuffix("%")) / 100
    elif _BARE.fullmatch(word):
        value = float(word)
    return value if math.isfinite(value) else None


def _plain(value: float) -> str:
    """Formats without an exponent, which ranges do not accept."""
    return f"{value:.0f}" if value >= 1e6 else f"{value:.9f}".rstrip("0").rstrip(".")


def cap(text: str) -> Cap:
    """Parses `[COPY=]component[/side[/cause]]`. Errors: ExpectationError."""
    which, equals, cap_words = text.strip().rpartition("=")
    copy = metrics.HEADLINE
    if equals:
        copy = metrics.check(which.strip())
        if copy.partition("@")[0] not in (*metrics.NAMED_COPIES, metrics.HEADLINE):
            raise ExpectationError(f"{copy} is not a copy and has no bottleneck")
    words = cap_words.strip().split("/")
    component = words[0]
    if component not in CAUSES or component == "unknown":
        choices = ", ".join(name for name in CAUSES if name != "unknown")
        raise ExpectationError(f"component {component[:40]!r}: must be one of {choices}")
    sides = sorted(side for side in PLACES.get(component, frozenset(SIDES)) if side)
    side = words[1] if len(words) > 1 else None
    if side is not None and side not in sides:
        hint = f"; use {component}/SIDE/{side}" if side in CAUSES[component] else ""
        choices = ", ".join(sides)
        raise ExpectationError(f"side {side[:40]!r} of {component}: must be one of {choices}{hint}")
    cause = words[2] if len(words) > 2 else None
    if cause is not None and cause not in CAUSES[component] or len(words) > 3:
        choices, cap_words = ", ".join(sorted(CAUSES[component])), "/".join(words[2:])
        raise ExpectationError(f"{cap_words[:40]!r} of {component}: must be one of {choices}")
    return Cap(cap_words.strip(), component, side, cause, copy)


def share(text: str) -> float:
    """Parses a ratio below one from `10%` or `0.1`. Errors: ExpectationError."""
    value = _ratio(text.strip())
    if value is None or not 0 <= value < 1:
        raise ExpectationError(f"{text[:40]!r} is not a share below 1; use for example 10%")
    return value


_AGE = re.compile(r"(?P<number>\d+(?:\.\d+)?)\s*(?P<unit>s|min|m|h|d)", re.ASCII)
_AGE_SECONDS = {"s": 1.0, "min": 60.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_OLDEST_SECONDS = 1e10


def age(text: str) -> float:
    """Parses seconds from `26h`, `90min`, `7d`, `600s`. Errors: ExpectationError."""
    match = _AGE.fullmatch(text.strip())
    seconds = float(match["number"]) * _AGE_SECONDS[match["unit"]] if match else 0.0
    if not 0 < seconds <= _OLDEST_SECONDS:
        raise ExpectationError(f"{text[:40]!r} is not an age; use for example 26h or 7d")
    return seconds


def age_text(seconds: float) -> str:
    """Formats an age in its largest whole unit: `40 s`, `12 min`, `26 h`, `5 days`."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.0f} h" if seconds < 72 * 3600 else f"{seconds / 86400:.0f} days"
