"""The rate of each copy from report to report: a line a copy, then what is unusual."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.console import Console

from bottleneck.analysis.finding import Verdict, WordError
from bottleneck.analysis.phrases import cap_text, dialect_text
from bottleneck.analysis.rules.registry import check_words
from bottleneck.documents import terminal
from bottleneck.documents.document import Block, Table, Text, columns, points
from bottleneck.documents.stages import join_names
from bottleneck.records.trend import Trend, Trends, cap_change
from bottleneck.text.safe import safe
from bottleneck.text.units import count_text, percent_text, range_text, rate_text

DIGITS = "_.:-=+*#"
"""Levels of a sparkline in rising order, with an encoding that has no blocks."""
LONGEST_LINE = 24
"""Reports that a sparkline shows, the latest ones."""
WIDE_COLUMNS = 110
MOST_UNUSUAL = 3
"""Sentences on one copy, of the latest reports."""
DATE_CHARACTERS = 10
MINUTE_CHARACTERS = 16


def print_trends(trends: Trends, console: Console) -> None:
    """Writes the result in one sentence, a line for each copy, and what is unusual."""
    width = LONGEST_LINE if console.width >= WIDE_COLUMNS else LONGEST_LINE // 2
    terminal.show(console, _trends(trends, width, terminal.signs_of(console)))


def summary(trends: Trends) -> str:
    """Returns which copies are unusual in the last report, or in how many, in one sentence."""
    last = [
        f"{each.copy} is {each.unusual[-1].standing}"
        for each in trends.copies
        if each.unusual and each.unusual[-1].started == each.points[-1].started
    ]
    if last:
        return f"Unusual in the last report: {', '.join(last)} than in the others"
    drifts = join_names((e.drift.words, e.copy) for e in trends.copies if e.drift is not None)
    if drifts:
        return "; ".join(f"{words}: {names}" for words, names in drifts.items())
    copies = [each for each in trends.copies if each.unusual]
    when = {unusual.started for each in copies for unusual in each.unusual}
    if copies:
        counts = f"{count_text(len(when))} of {count_text(trends.reports)} reports"
        return f"Unusual: {', '.join(each.copy for each in copies)} in {counts}"
    return "Nothing unusual" if trends.copies else "Not comparable: the reports have no copy"


def _trends(trends: Trends, width: int, signs: terminal.Signs) -> Iterator[Block]:
    yield Text(safe(summary(trends), 2000), "strong")
    heading = f"{count_text(trends.reports)} reports since {_day(trends.started)}"
    titles = ("copy", "dialect", "reports", "first", "last", "change", "last report")
    table = Table(heading, columns(*titles, right="3 4 5"))
    for each in trends.copies:
        first, last = each.points[0].bytes_per_second, each.points[-1].bytes_per_second
        standing = _last_standing(each)
        table.add(
            safe(each.copy, 40),
            dialect_text(each.dialect),
            sparkline([point.bytes_per_second for point in each.points], width, signs),
            rate_text(first),
            rate_text(last),
            _change(first, last),
            standing,
            mark="chosen" if standing == "lower" else "",
        )
    if table.rows:
        yield table
    yield from (Text(text, hanging="- ") for each in trends.copies for text in remarks(each))
    yield from points("Reports of another path, left out", trends.left_out)


def _last_standing(trend: Trend) -> str:
    last = trend.unusual[-1] if trend.unusual else None
    return last.standing if last and last.started == trend.points[-1].started else "usual"


def sparkline(rates: Sequence[float], width: int, signs: terminal.Signs) -> str:
    """Returns rates as blocks of a height from nothing to the highest; the latest `width` of them.

    It begins at 0, not at the lowest rate: noise is not blown up.
    """
    levels = signs.rising or DIGITS
    latest = rates[-width:]
    highest = max(latest)
    return "".join(levels[round(rate / highest * (len(levels) - 1))] for rate in latest)


def remarks(trend: Trend) -> Iterator[str]:
    """Yields sentences on the reports in which a copy is unusual, and on a changed bottleneck."""
    name = f"{safe(trend.copy, 40)} ({dialect_text(trend.dialect)})"
    others = len(trend.points) - 1
    for each in trend.unusual[-MOST_UNUSUAL:]:
        usual = range_text(each.usual_low_bytes_per_second, each.usual_high_bytes_per_second)
        day = safe(each.started[:MINUTE_CHARACTERS].replace("T", " "))
        yield (
            f"{name}: {rate_text(each.bytes_per_second)} on {day} is "
            f"{each.standing} than in the {count_text(others)} other reports ({usual})."
        )
    if trend.drift is not None:
        yield f"{name}: {trend.drift.words}, {trend.drift.rates}."
    changed = cap_change(trend)
    if changed is not None:
        was, now = changed
        caps = f"from {_cap(was.cap)} to {_cap(now.cap)}"
        yield f"{name}: the bottleneck changed on {_day(now.started)} {caps}."


def _change(first: float, last: float) -> str:
    text = percent_text(abs(last / first - 1))
    sign = "" if text == percent_text(0) else "+" if last > first else "-"
    return f"{sign}{text}"


def _day(started: str) -> str:
    return safe(started[:DATE_CHARACTERS])


def _cap(cap: str) -> str:
    component, _, rest = cap.partition("/")
    side, _, cause = rest.rpartition("/")
    try:
        check_words(component, side or None, cause)
    except WordError:
        # A word of a version that came later.
        return safe(cap, 80)
    return cap_text(Verdict(component, side or None, cause, 0.0, None, ""))
