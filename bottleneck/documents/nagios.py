"""A judgement as a Nagios or Icinga plugin prints it: a status line, performance data, details."""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterator

from nagiosplugin import Performance, Range

from bottleneck.analysis.phrases import time_text
from bottleneck.gate.expectation import age_text
from bottleneck.gate.judged import LONGEST_TEXT, Judgement, Ruling, share_of, worst_first
from bottleneck.text.safe import safe

LONGEST_STATUS = 100
"""Characters of the status line before its bar: what an SMS and a table's cell show."""
LEAST_CLAUSE = 25
"""Characters of a clause that tells something by itself."""
MOST_LINES = 16
"""Lines of details: Nagios keeps 8 KiB of a plugin's output."""
MOST_FIGURES = 24
UNIQUE = 19
"""First characters of a label that tell it from the others: a limit of RRD."""
_TAG = re.compile(r"<(?=[A-Za-z/!?])")
_SHORTER = {"uncached": "u", "cached": "c", "sustained": "sust"}


def nagios_text(judgement: Judgement) -> str:
    """Returns the plugin's whole output, with a newline at its end.

    `BOTTLENECK STATE - sentence | 'label'=value;warn;crit;min;max ...`, then a line for each
    expectation, the worst first. Rates are bare numbers of bytes per second, for which the
    guideline has no unit; times have `s`. What was not measured has no performance data.

    Source: Monitoring Plugins Development Guidelines, sections Plugin Output and Performance data.
    """
    begin = f"BOTTLENECK {judgement.state.upper()} - "
    if judgement.report is not None and judgement.judged and not judgement.report.entries:
        # A run that measured nothing has a reason only.
        return f"{begin}{_plain(judgement.judged[0].message, 2000)}\n"
    sentence = _plain(judgement.sentence, 2000)
    status = begin + _shorten(_summary_line(judgement) or sentence, LONGEST_STATUS - len(begin))
    figures = " ".join(_figures(judgement))
    lines = [f"{status} | {figures}" if figures else status]
    if not status.endswith(sentence):
        lines.append(sentence)
    lines += _details(judgement)
    return "\n".join(lines) + "\n"


def _summary_line(judgement: Judgement) -> str:
    """Returns the line of the summary's copy, if the sentence is the summary; else empty."""
    diagnosis = judgement.diagnosis
    if diagnosis is None or judgement.sentence != diagnosis.summary:
        return ""
    lines = (each for each in judgement.judged if each.unit and each.metric == diagnosis.headline)
    return next((_plain(f"{each.name}: {each.message}", 2000) for each in lines), "")


def label(metric: str) -> str:
    """Returns a metric's name in performance data, the same in every run: graphs depend on it.

    A name that is longer than RRD can tell apart is shortened, and marked by its hash if needed.
    """
    clean = re.sub(r"[^A-Za-z0-9@._/-]", "_", metric) or "_"
    if len(clean) <= UNIQUE:
        return clean
    name, separator, dialect = clean.partition("@")
    short = ".".join(_SHORTER.get(word, word) for word in name.split(".")) + separator + dialect
    if len(short) <= UNIQUE:
        return short
    return f"{short[: UNIQUE - 7]}-{hashlib.sha256(metric.encode()).hexdigest()[:6]}"


def _figures(judgement: Judgement) -> Iterator[str]:
    """Yields each metric once, with the thresholds of all its expectations."""
    merged: dict[str, Ruling] = {}
    warnings: dict[str, str] = {}
    criticals: dict[str, str] = {}
    for each in judgement.judged:
        if each.value is None or not each.unit or not math.isfinite(each.value):
            continue
        merged.setdefault(each.metric, each)
        warnings[each.metric] = warnings.get(each.metric) or _range(each.warning)
        criticals[each.metric] = criticals.get(each.metric) or _range(each.critical)
    for metric, each in list(merged.items())[:MOST_FIGURES]:
        value, unit = _number(each.value or 0.0), "s" if each.unit == "seconds" else ""
        limits = warnings[metric], criticals[metric]
        yield str(Performance(label(metric), value, unit, *limits, "0"))


def _details(judgement: Judgement) -> Iterator[str]:
    ordered = worst_first(judgement)
    for each in ordered[:MOST_LINES]:
        text = f"{each.name.rstrip(':')}: {each.message}"
        yield f"[{each.state.upper()}] {_plain(text, LONGEST_TEXT)}"
    if len(ordered) > MOST_LINES:
        yield f"and {len(ordered) - MOST_LINES} more"
    copy = judgement.diagnosis.main_copy if judgement.diagnosis else None
    if copy is not None and copy.time:
        yield _plain(f"time of {copy.copy}: {time_text(copy.time)}", LONGEST_TEXT)
    if judgement.report is not None:
        age = judgement.age_seconds
        ago = "" if age is None else f", {age_text(age)} ago"
        when = _plain(judgement.report.started, 40)
        yield f"{_plain(share_of(judgement), 100)} measured {when}{ago}".lstrip()


def _plain(text: str, longest: int) -> str:
    """Returns text without bars and line ends, which separate, and tags, which old pages render."""
    return _TAG.sub(r"\\x3c", safe(text, longest).replace("|", r"\x7c"))


def _shorten(text: str, longest: int) -> str:
    """Returns the text, or its first clauses that fit; where none does, the words that fit."""
    if len(text) <= longest:
        return text
    ends = (text[: longest + 2].rfind(mark) for mark in ("; ", ". ", ", ", ": ", " because "))
    clause = max((each for each in ends if each >= LEAST_CLAUSE), default=0)
    text = text[:clause] if clause else text[: longest - 3].rpartition(" ")[0] + "..."
    opened = text.rfind(" (")
    return text[:opened] if opened > max(text.rfind(")"), LEAST_CLAUSE) else text


def _range(text: str) -> str:
    """Returns a threshold in plain numbers (the guideline knows no exponents); empty: none."""
    try:
        bounds = Range(text)
    except ValueError:
        return ""
    if not text or math.isnan(bounds.start) or math.isnan(bounds.end):
        return ""
    begin = "~:" if bounds.start == -math.inf else f"{_number(bounds.start)}:"
    end = "" if bounds.end == math.inf else _number(bounds.end)
    return f"{'@' if bounds.invert else ''}{end if begin == '0:' and end else begin + end}"


def _number(value: float) -> str:
    """Returns digits, a point and a sign: rates to the byte, all else to the nanosecond."""
    return f"{value:.0f}" if abs(value) >= 1e6 else f"{value:.9f}".rstrip("0").rstrip(".")
