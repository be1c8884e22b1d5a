"""What holds one copy, on a terminal: its own rate and every ceiling as bars, the cap marked."""

from __future__ import annotations

from rich.console import Console

from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Verdict
from bottleneck.reports import layout
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.units import bits_beside, range_text, rate_text
from bottleneck.reports.words import DOUBT_SIGNS, cap_text, dialect_text


def print_waterfall(copy: CopyDiagnosis, console: Console, signs: Signs) -> None:
    """Nothing where the copy was not made, or nothing is known of what it went through."""
    rate = copy.bytes_per_second
    if not rate or not copy.ceilings:
        return
    name, dialect = safe(copy.copy, 40), dialect_text(copy.dialect)
    apart = {"native": "(native)", "none": "(without SMB)"}
    over = apart.get(dialect, f"over {dialect}")
    layout.heading(console, f"What {name} {over} is held by, lowest ceiling first")
    table = Columns(("", "", "rate", "", ""), right=frozenset({2}))
    width = _bar_columns(console.width)
    most = longest_bar(copy, rate)
    table.add(
        "the copy itself",
        layout.bar(rate, most, width, signs),
        rate_text(rate),
        "",
        "",
        style="bold",
    )
    cap = next((each for each in copy.ceilings if is_cap(copy.verdict, each)), None)
    for each in copy.ceilings:
        table.add(
            cap_text(each),
            layout.bar(each.bytes_per_second, most, width, signs),
            _rate(each),
            _remark(each, signs),
            signs.cap if each is cap else "",
            style="bold red" if each is cap else "dim" if each.standing == "at-least" else "",
        )
    table.print(console)


def _bar_columns(width: int) -> int:
    return 16 if width < layout.WIDE else 30 if width < layout.VERY_WIDE else 80


def longest_bar(copy: CopyDiagnosis, rate: float) -> float:
    """Bytes per second that the longest bar beside a copy's rate stands for.

    The scale reaches to the next ceiling; an idle core's may be a hundred times as high.
    """
    beyond = copy.next.ceiling_bytes_per_second if copy.next else 0.0
    return max(2 * rate, min(8 * rate, 1.05 * beyond))


def is_cap(verdict: Verdict, ceiling: Ceiling) -> bool:
    """Whether it is this ceiling that the verdict names."""
    named = (verdict.component, verdict.side, verdict.cause, verdict.ceiling_bytes_per_second)
    return named == (ceiling.component, ceiling.side, ceiling.cause, ceiling.bytes_per_second)


def _rate(ceiling: Ceiling) -> str:
    return f"{DOUBT_SIGNS[ceiling.standing]}{rate_text(ceiling.bytes_per_second)}"


def _remark(ceiling: Ceiling, signs: Signs) -> str:
    if ceiling.component in ("network", "bus"):
        return bits_beside(ceiling.bytes_per_second)
    if ceiling.standing == "measured":
        told = range_text(ceiling.low_bytes_per_second, ceiling.high_bytes_per_second)
        return told.replace("-", signs.dash) if "-" in told else ""
    return {"at-least": "or more", "estimated": "by its load"}.get(ceiling.standing, "inferred")
