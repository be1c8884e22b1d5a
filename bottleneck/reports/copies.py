"""The copies of a run, each with its cap, and as a grid of directions and caches.

What a person made of the file (pull, push; cached, uncached) stands in the grid's places.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.analysis.finding import (
    Ceiling,
    CopyDiagnosis,
    Diagnosis,
    Rung,
    Standing,
    Target,
    Verdict,
)
from bottleneck.analysis.model import looks_like
from bottleneck.reports.document import (
    ON_PAGES,
    POINTER,
    VERY_WIDE,
    WIDE,
    Bar,
    Block,
    Cell,
    Column,
    Points,
    Table,
    Text,
    columns,
    points,
)
from bottleneck.reports.safe import safe
from bottleneck.reports.units import bits_beside, link_text, rate_text
from bottleneck.reports.words import (
    DOUBT_SIGNS,
    STANDINGS,
    cap_text,
    confidence_text,
    dialect_text,
    known,
    spread_text,
)

LEAST_IN_GRID = 2
LONGEST_BAR, SHORTEST_BAR = 40, 4
LEAST_RUNGS = 2
EVIDENCE_SHOWN = 8
_NAME = re.compile(r"(server\.)?(push|pull)\.(cached|uncached)")
_WIDE = VERY_WIDE
Place = tuple[str, str]


def copies(diagnosis: Diagnosis) -> Iterator[Block]:
    """A line for each copy; a wide terminal has room for what comes after its cap."""
    if not diagnosis.copies:
        return
    table = Table(
        "Copies",
        (
            *columns("copy", "dialect", "rate", "cap", "confidence", right="2"),
            Column("ceiling", right=True, least_columns=_WIDE),
            Column("next", least_columns=_WIDE),
            Column("without the cap", right=True, least_columns=_WIDE),
            Column("started by", least_columns=ON_PAGES),
        ),
    )
    for copy in diagnosis.copies:
        after = copy.predicted_bytes_per_second
        table.add(
            safe(copy.copy, 40),
            dialect_text(copy.dialect),
            known(rate_text, copy.bytes_per_second),
            cap_text(copy.verdict),
            confidence_text(copy.verdict),
            known(rate_text, copy.verdict.ceiling_bytes_per_second),
            known(cap_text, copy.next),
            known(lambda told: spread_text(told.low, told.high, always=True), after),
            copy.initiator,
            mark="chosen" if copy is diagnosis.chosen else "",
        )
    yield table


def grid(diagnosis: Diagnosis) -> Iterator[Block]:
    """Push and pull down, cached and uncached across, for each dialect and who starts the copy."""
    groups: dict[str, dict[Place, float]] = {}
    for copy in diagnosis.copies:
        named = _NAME.fullmatch(copy.copy)
        if named and copy.bytes_per_second:
            who = f"{dialect_text(copy.dialect)}{' by server' if named[1] else ''}"
            # The first of a name is the one that was made in full.
            groups.setdefault(who, {}).setdefault((named[2], named[3]), copy.bytes_per_second)
    groups = {who: rates for who, rates in groups.items() if len(rates) >= LEAST_IN_GRID}
    if not groups:
        return
    most = max(rate for rates in groups.values() for rate in rates.values())
    names = max(map(len, groups))

    def length(width: int) -> int:
        return max(SHORTEST_BAR, min(LONGEST_BAR, (width - names - 2 * 13 - 16) // 2))

    bars = Column("", bar=length)
    figures = (Column("cached", right=True), bars, Column("uncached", right=True), bars)
    table = Table("Push and pull, the source cached and not", (Column(""), Column(""), *figures))
    for who, rates in groups.items():
        verbs = [verb for verb in ("push", "pull") if any(verb == each[0] for each in rates)]
        for verb in verbs:
            cells: list[Cell] = []
            for cache in ("cached", "uncached"):
                rate = rates.get((verb, cache))
                cells += [known(rate_text, rate), "" if rate is None else Bar(rate, most)]
            table.add(who if verb == verbs[0] else "", verb, *cells)
    yield table


def ceilings(copy: CopyDiagnosis) -> Iterator[Block]:
    """What holds a copy: its own rate and every ceiling; nothing where neither is known."""
    rate = copy.bytes_per_second
    if not rate or not copy.ceilings:
        return
    table = Table(
        f"What {name_text(copy)} is held by, lowest ceiling first",
        (
            Column(""),
            Column("", bar=_ceiling_bar),
            Column("rate", right=True),
            Column(""),
            Column(""),
            Column("low to high", least_columns=ON_PAGES),
            Column("how it is known", least_columns=ON_PAGES),
        ),
    )
    most = longest_bar(copy, rate)
    itself = ("the copy itself", Bar(rate, most), rate_text(rate), "", "", "", "")
    table.add(*itself, mark="chosen")
    cap = next((each for each in copy.ceilings if is_cap(copy.verdict, each)), None)
    for each in copy.ceilings:
        table.add(
            cap_text(each),
            Bar(each.bytes_per_second, most),
            f"{DOUBT_SIGNS[each.standing]}{rate_text(each.bytes_per_second)}",
            _remark(each),
            f"{POINTER} cap" if each is cap else "",
            spread_text(each.low_bytes_per_second, each.high_bytes_per_second),
            STANDINGS[each.standing],
            mark="cap" if each is cap else "soft" if each.standing == "at-least" else "",
        )
    yield table


def name_text(copy: CopyDiagnosis) -> str:
    """A copy by its name and dialect: `pull.uncached over SMB 3.1.1`."""
    apart = {"native": "(native)", "none": "(without SMB)"}
    over = apart.get(copy.dialect, f"over {dialect_text(copy.dialect)}")
    return f"{safe(copy.copy, 40)} {over}"


def _ceiling_bar(width: int) -> int:
    return 16 if width < WIDE else 30 if width < VERY_WIDE else 80


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


def _remark(ceiling: Ceiling) -> str:
    if ceiling.component in ("network", "bus"):
        return bits_beside(ceiling.bytes_per_second)
    if ceiling.standing == "measured":
        return spread_text(ceiling.low_bytes_per_second, ceiling.high_bytes_per_second)
    return {"at-least": "or more", "estimated": "by its load"}.get(ceiling.standing, "inferred")


def ladder(copy: CopyDiagnosis) -> Iterator[Block]:
    """What holds a copy once all that is lower is lifted, and what it then runs at."""
    if len(copy.ladder) < LEAST_RUNGS:
        return
    titles = ("cap, then the next", "ceiling", "copy runs at", "range", "")
    title, figures = "If its caps were lifted, one after the other", columns(*titles, right="1 2")
    table = Table(title, figures, about=name_text(copy))
    for at, rung in enumerate(copy.ladder):
        told = rung.predicted_bytes_per_second
        table.add(
            cap_text(rung),
            DOUBT_SIGNS[_standing(copy, rung)] + rate_text(rung.ceiling_bytes_per_second),
            known(lambda told: rate_text(told.median), told),
            "" if told is None else spread_text(told.low, told.high, always=True),
            _rung_remark(at, rung),
            mark="chosen" if at == 0 else "",
        )
    yield table


def _standing(copy: CopyDiagnosis, rung: Rung) -> Standing:
    """How far a rung's ceiling can be trusted: that of the copy's ceiling that it is."""
    named = (rung.component, rung.side, rung.cause, rung.ceiling_bytes_per_second)
    return next(
        (
            each.standing
            for each in copy.ceilings
            if (each.component, each.side, each.cause, each.bytes_per_second) == named
        ),
        "measured",
    )


def _rung_remark(at: int, rung: Rung) -> str:
    """What a rung's rate stands on, in few words: the assumed link, or why there is none."""
    if at == 0:
        return "as it is"
    if rung.predicted_bytes_per_second is None:
        return "a stage is not known"
    link = rung.assumed_link_bytes_per_second
    match = None if link is None else looks_like(link)
    return "" if match is None else f"with {link_text(match.bits_per_second)}"


def target(copy: CopyDiagnosis) -> Iterator[Block]:
    """What it takes to bring a copy to the wanted rate; nothing where none was asked for."""
    if copy.target is not None:
        yield _target(copy, copy.target)


def _target(copy: CopyDiagnosis, target: Target) -> Points:
    wanted = rate_text(target.bytes_per_second)
    name = f"{safe(copy.copy, 40)} ({safe(copy.dialect, 16)})"
    if target.reached:
        return Points(f"{name} reaches the {wanted} that are wanted", ())
    needs = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in target.needs]
    nothing = ["Nothing that is known is in the way."] if not (needs or target.unknown) else []
    title = f"What it takes to bring {name} to {wanted}"
    return Points(title, (*needs, *target.unknown, *nothing))


def evidence(copy: CopyDiagnosis, which: str = "", most: int | None = None) -> Iterator[Block]:
    """What its verdict stands on."""
    yield from points(f"Evidence{which}", copy.evidence, most)


def advice(copy: CopyDiagnosis, which: str = "") -> Iterator[Block]:
    """What would lift its cap."""
    yield from points(f"Advice{which}", copy.advice)


def which(copy: CopyDiagnosis) -> str:
    """What tells a copy from the others: ` (pull.cached, SMB 3.1.1)`."""
    return f" ({safe(copy.copy, 40)}, {dialect_text(copy.dialect)})"


def verdict(diagnosis: Diagnosis, status: str) -> Iterator[Block]:
    """The summary, how sure it is, and whether the run came to its end."""
    yield Text(safe(diagnosis.summary, 2000), "strong")
    chosen = diagnosis.chosen
    if chosen is not None and chosen.verdict.component != "unknown":
        yield Text(f"Confidence: {confidence_text(chosen.verdict)}")
    if status != "complete":
        yield Text(f"The run is {status}: this is what it came to.", "alarm")
