"""What the verdict on each copy stands on: its ceilings, its evidence, what would lift it."""

from __future__ import annotations

from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis
from bottleneck.reports.html.copies import rate_of
from bottleneck.reports.html.ladder import ladder, target
from bottleneck.reports.html.lists import block, folded, points
from bottleneck.reports.html.markup import Markup, tag, together
from bottleneck.reports.html.tables import Line, bar, more, table
from bottleneck.reports.html.wording import ceiling_text, copy_text, spread_text
from bottleneck.reports.units import bits_beside, rate_text
from bottleneck.reports.waterfall import is_cap, longest_bar
from bottleneck.reports.words import cap_text

STANDINGS = {
    "measured": "measured",
    "inferred": "inferred from a copy",
    "estimated": "by its load",
    "at-least": "more was not tried",
}
MOST_COPIES = 64
_TITLES = ("", "", "rate", "low to high", "in bits", "how it is known")


def evidence(diagnosis: Diagnosis) -> Markup | None:
    """Each copy in a part that opens; the headline's first, and open; None: there are no copies."""
    chosen = diagnosis.chosen
    ordered = sorted(diagnosis.copies, key=lambda copy: copy is not chosen)
    shown = ordered[:MOST_COPIES]
    found = [_headline(copy) if copy is chosen else _other(copy) for copy in shown]
    return together((*found, more(len(ordered) - len(shown)))) if any(found) else None


def _headline(copy: CopyDiagnosis) -> Markup | None:
    """Without what the page has said of it above."""
    told = (block("Evidence", points(copy.evidence)), block("Ceilings", ceilings(copy)))
    return folded(_title(copy), *told, opened=True)


def _other(copy: CopyDiagnosis) -> Markup | None:
    return folded(
        _title(copy),
        tag("p", copy.verdict.sentence),
        block("Evidence", points(copy.evidence)),
        block("Advice", points(copy.advice)),
        block("Ceilings", ceilings(copy)),
        block("If its caps were lifted", ladder(copy)),
        target(copy),
    )


def _title(copy: CopyDiagnosis) -> str:
    return f"{copy_text(copy)}: {rate_of(copy)}, {cap_text(copy.verdict)}"


def ceilings(copy: CopyDiagnosis) -> Markup | None:
    """The copy's own rate and every ceiling, lowest first, the cap marked; None: none is known."""
    rate = copy.bytes_per_second
    if not copy.ceilings or not rate:
        return None
    most = longest_bar(copy, rate)
    cap = next((each for each in copy.ceilings if is_cap(copy.verdict, each)), None)
    itself = Line(("the copy itself", bar(rate, most), rate_text(rate), None, None, None), "chosen")
    lines = [itself, *(_ceiling(each, each is cap, most) for each in copy.ceilings)]
    caption = f"What {copy_text(copy)} is held by, lowest ceiling first"
    return table(caption, _TITLES, lines, frozenset({2, 3, 4}))


def _ceiling(ceiling: Ceiling, capped: bool, most: float) -> Line:
    of_link = ceiling.component in ("network", "bus")
    cells = (
        f"{cap_text(ceiling)}{' (the cap)' if capped else ''}",
        bar(ceiling.bytes_per_second, most),
        ceiling_text(ceiling),
        spread_text(ceiling.low_bytes_per_second, ceiling.high_bytes_per_second),
        (bits_beside(ceiling.bytes_per_second) or None) if of_link else None,
        STANDINGS[ceiling.standing],
    )
    softer = "soft" if ceiling.standing == "at-least" else ""
    return Line(cells, "cap" if capped else softer)
