"""The rate of each copy from run to run, on a terminal: a line a copy, then what is unusual."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from rich.console import Console

from bottleneck import trend as trends_of
from bottleneck.analysis.finding import Verdict, WordError
from bottleneck.analysis.rules.registry import check_words
from bottleneck.reports import terminal
from bottleneck.reports.document import Block, Table, Text, columns
from bottleneck.safe import safe
from bottleneck.trend import Kept, Trend
from bottleneck.units import count_text, percent_text, range_text, rate_text
from bottleneck.words import cap_text, dialect_text, known

DIGITS = "_.:-=+*#"
"""Levels of a sparkline in rising order, with an encoding that has no blocks."""
LONGEST_LINE = 24
"""Runs that a sparkline shows, the latest ones."""
WIDE_COLUMNS = 110
DATE_CHARACTERS, MINUTE_CHARACTERS = 10, 16


def print_trend(trends: Sequence[Trend], console: Console) -> None:
    """Writes a line for each copy that has two runs or more, and nothing where none has."""
    width = LONGEST_LINE if console.width >= WIDE_COLUMNS else LONGEST_LINE // 2
    terminal.show(console, _trend(trends, width, terminal.signs_of(console)))


def _trend(trends: Sequence[Trend], width: int, signs: terminal.Signs) -> Iterator[Block]:
    told = [each for each in trends if len(each.points) > 1]
    if not told:
        return
    most = max(len(each.points) for each in told)
    since = min(each.points[0].started for each in told)
    titles = ("copy", "dialect", "runs", "first", "last", "change", "last run")
    heading = f"Trend: {count_text(most)} runs since {_date(since)}"
    table = Table(heading, columns(*titles, right="3 4 5"))
    for each in told:
        first, last = each.points[0].bytes_per_second, each.points[-1].bytes_per_second
        table.add(
            safe(each.copy, 40),
            dialect_text(each.dialect),
            sparkline([point.bytes_per_second for point in each.points], width, signs),
            rate_text(first),
            rate_text(last),
            _change(first, last),
            trends_of.standing(each),
            mark="chosen" if trends_of.standing(each) == "lower" else "",
        )
    yield table
    yield from (Text(sentence, hanging="- ") for sentence in remarks(told))


def sparkline(rates: Sequence[float], width: int, signs: terminal.Signs) -> str:
    """Rates as blocks of a height from nothing to the highest; of more than width the latest.

    It begins at 0, not at the lowest rate: noise is not blown up.
    """
    levels = signs.rising or DIGITS
    shown = rates[-width:]
    most = max(shown)
    return "".join(levels[round(rate / most * (len(levels) - 1))] for rate in shown)


def remarks(trends: Iterable[Trend]) -> Iterator[str]:
    """Sentences on the copies whose last run is unusual, or whose bottleneck changed."""
    for each in trends:
        name = f"{safe(each.copy, 40)} ({dialect_text(each.dialect)})"
        place = trends_of.standing(each)
        usual = trends_of.usual_range(each)
        if usual is not None and place in ("lower", "higher"):
            last = rate_text(each.points[-1].bytes_per_second)
            before = len(each.points) - 1
            yield (
                f"{name}: the last run, {last}, is {place} than the usual range of the "
                f"{count_text(before)} runs before ({range_text(*usual)})."
            )
        changed = trends_of.cap_change(each)
        if changed is not None:
            was, now = changed
            caps = f"from {_cap(was.cap)} to {_cap(now.cap)}"
            yield f"{name}: the bottleneck changed on {_date(now.started)} {caps}."


def print_runs(runs: Sequence[Kept], console: Console) -> None:
    """Writes a line for each run, in the given order."""
    titles = ("share", "started", "status", "copy", "rate", "limited by")
    table = Table("", columns(*titles, right="4"))
    none = terminal.signs_of(console).none
    for each in runs:
        table.add(
            safe(f"{each.share or none} ({each.client or none})", 80),
            safe(each.started[:MINUTE_CHARACTERS].replace("T", " ")),
            safe(each.status, 12),
            known(lambda copy: safe(copy, 24), each.copy or None),
            known(rate_text, each.bytes_per_second),
            known(_cap, each.cap),
        )
    terminal.show(console, [table])


def _change(first: float, last: float) -> str:
    text = percent_text(abs(last / first - 1))
    sign = "" if text == percent_text(0) else "+" if last > first else "-"
    return f"{sign}{text}"


def _date(started: str) -> str:
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
