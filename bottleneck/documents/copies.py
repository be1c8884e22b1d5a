"""The copies of a run: a table, where the time of each went, and their limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import phrases, steps
from bottleneck.analysis.cap import stolen_ratio
from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Rung, Verdict
from bottleneck.analysis.model import looks_like
from bottleneck.documents import document, stages
from bottleneck.report.report import Report, median_run
from bottleneck.text.safe import safe
from bottleneck.text.units import (
    bits_beside,
    count_text,
    link_text,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
)
from probes.core.records import SIDES, Measured

LONGEST_SHARE, SHARE_COLUMNS = 45, 30
"""Cells of a bar, and of the text beside it on its line."""
LEAST_RUNGS = 2
_WIDE, _WIDEST = document.VERY_WIDE, 190


def loads(report: Report, copies: Sequence[CopyDiagnosis]) -> list[tuple[str, ...]]:
    """Returns what the client and the server were busy with in each copy; empty: not measured."""
    by_key = steps.made_copies(report)
    keys = ((e.copy, e.dialect, e.initiator, e.bytes_per_second or 0.0) for e in copies)
    return [
        tuple("" if each is None else phrases.busy_text(each.usage(side)) for side in SIDES)
        for each in (by_key.get(each) for each in keys)
    ]


def load_line(load: Sequence[str]) -> str:
    """Returns the load of both hosts in one copy as a line."""
    hosts = zip(SIDES, load, strict=True)
    return "CPU, RAM: " + ", ".join(f"{side} {each or 'not measured'}" for side, each in hosts)


def copies(report: Report, diagnosis: Diagnosis) -> Iterator[document.Block]:
    """Yields a line for each copy; a wide terminal has room for its further limits."""
    if not diagnosis.copies:
        return
    by_server = [True] if any(each.initiator == "server" for each in diagnosis.copies) else []
    table = document.Table(
        "Copies",
        (
            *document.columns("copy", "dialect", "rate", "limited by", "confidence", right="2"),
            *(replace(each, least_columns=_WIDE) for each in stages.LOADS),
            document.Column("limit", right=True, least_columns=_WIDEST),
            document.Column("next limit", least_columns=_WIDEST),
            document.Column("expected", right=True, least_columns=_WIDEST),
            *(document.Column("initiator", least_columns=document.ON_PAGES) for _ in by_server),
        ),
    )
    for copy, load in zip(diagnosis.copies, loads(report, diagnosis.copies), strict=True):
        prediction = copy.predicted_bytes_per_second
        table.add(
            safe(copy.copy, 40),
            phrases.dialect_text(copy.dialect),
            phrases.cell_text(rate_text, copy.bytes_per_second),
            phrases.cap_text(copy.verdict),
            phrases.confidence_text(copy.verdict, unknown="-"),
            *load,
            phrases.cell_text(rate_text, copy.verdict.ceiling_bytes_per_second),
            phrases.cell_text(phrases.cap_text, copy.next),
            phrases.cell_text(
                lambda spread: phrases.spread_text(spread.low, spread.high, always=True), prediction
            ),
            *(copy.initiator for _ in by_server),
            mark="chosen" if copy is diagnosis.main_copy else "",
        )
    yield table


def cache_growth(report: Report) -> Iterator[document.Block]:
    """Yields the bytes of each pull that stayed in its sender's RAM, where the next finds them."""
    lines = []
    for step, outcome in report.entries:
        if "pull." not in str(step.setting.get("copy", "")) or not isinstance(outcome, Measured):
            continue
        sender = outcome.responder
        if sender is not None and sender.memory_cached_growth_bytes:
            grown = size_text(sender.memory_cached_growth_bytes)
            lines.append(f"{phrases.stage_text(step)}: {grown} in one run")
    yield from document.points("Growth of the sender's page cache", lines)


def work(report: Report) -> Iterator[document.Block]:
    """Yields a line for each copy: its check, its process, its requests and its connection.

    verified: the share of the bytes that was compared; CPU: of this tool's process; pending:
    interim replies; window: the sender's congestion window, median; stolen: by a hypervisor.
    """
    titles = ("user CPU", "system", "requests", "pending", "retransmits", "window", "stolen")
    right = (document.Column(each, right=True) for each in titles)
    columns = (*document.columns("copy", "verified", right="1"), *right)
    table = document.Table("Copies: content, process, requests and connection", columns)
    for step, outcome in report.entries:
        if isinstance(outcome, Measured) and isinstance(step.setting.get("copy"), str):
            cells = tuple(_work_of(outcome))
            if any(cells[:-1]):
                table.add(phrases.stage_text(step), *cells)
    if table.rows:
        yield table


def _work_of(outcome: Measured) -> Iterator[str | None]:
    details, moved_bytes = outcome.details, median_run(outcome)[-1].moved_bytes
    intact, checked = steps.flag(details, "hash_ok"), steps.amount(details, "checked_bytes")
    share = "yes" if checked is None else percent_text(min(1.0, checked / max(1, moved_bytes)))
    yield {True: share, False: "ALTERED", None: None}[intact]
    for name in ("user_seconds", "system_seconds"):
        yield phrases.cell_text(seconds_text, steps.amount(details, name))
    for name in ("requests", "pending_replies"):
        yield phrases.cell_text(count_text, steps.amount(details, name))
    yield phrases.cell_text(count_text, steps.amount(details, "sockets", "retransmitted_segments"))
    window = steps.positive(details, "sockets", "congestion_window_bytes_median")
    yield phrases.cell_text(size_text, window)
    is_known = outcome.initiator or outcome.responder
    yield percent_text(stolen_ratio(outcome)) if is_known else None


def time(copy: CopyDiagnosis, limit: int | None = None) -> Iterator[document.Table]:
    """Yields the time of a copy as bars; nothing where it is not known.

    limit: rows; the smallest shares are added up in the last one.
    """
    parts = [(phrases.share_name(e), e.ratio) for e in copy.time if e.ratio >= phrases.LEAST_SHARE]
    if limit is not None and len(parts) > limit:
        rest = sum(ratio for _, ratio in parts[limit - 1 :])
        parts = [*parts[: limit - 1], ("others", rest)]
    if not parts:
        return
    titles = (
        document.Column(""),
        document.Column("", bar=lambda width: min(LONGEST_SHARE, width - SHARE_COLUMNS)),
        document.Column("", right=True),
    )
    title = f"Where the time of {safe(copy.copy, 40)} went (seen from {copy.view})"
    table = document.Table(title, titles, suffix=name_text(copy), inset=True)
    cap_name = phrases.share_name(copy.verdict)
    for name, ratio in parts:
        bar = document.Bar(ratio, 1.0)
        table.add(name, bar, percent_text(ratio), mark="cap" if name == cap_name else "")
    yield table


def ceilings(copy: CopyDiagnosis) -> Iterator[document.Block]:
    """Yields a copy's own rate and every ceiling as bars; nothing where neither is known."""
    rate = copy.bytes_per_second
    if not rate or not copy.ceilings:
        return
    table = document.Table(
        f"Limits of {name_text(copy)}",
        (
            document.Column(""),
            document.Column("", bar=_ceiling_bar),
            document.Column("rate", right=True),
            document.Column(""),
            document.Column(""),
        ),
    )
    scale = longest_bar(copy, rate)
    cells = ("the copy", document.Bar(rate, scale), rate_text(rate), "", "")
    table.add(*cells, mark="chosen")
    cap = next((each for each in copy.ceilings if is_cap(copy.verdict, each)), None)
    for each in copy.ceilings:
        table.add(
            phrases.cap_text(each),
            document.Bar(each.bytes_per_second, scale),
            f"{phrases.DOUBT_SIGNS[each.standing]}{rate_text(each.bytes_per_second)}",
            f"{document.POINTER} bottleneck" if each is cap else "",
            _remark(each),
            mark="cap" if each is cap else "soft" if each.standing == "at-least" else "",
        )
    yield table


def name_text(copy: CopyDiagnosis) -> str:
    """Returns a copy's name and dialect: `pull.uncached over SMB 3.1.1`."""
    return f"{safe(copy.copy, 40)} {over_text(copy)}"


def over_text(copy: CopyDiagnosis) -> str:
    """Returns the carrier of a copy: `over SMB 3.1.1`, `with the operating system's copy`."""
    apart = {"native": "with the operating system's copy", "none": "without SMB"}
    return apart.get(copy.dialect, f"over {phrases.dialect_text(copy.dialect)}")


def _ceiling_bar(width: int) -> int:
    return 12 if width < document.WIDE else 30 if width < document.VERY_WIDE else 80


def longest_bar(copy: CopyDiagnosis, rate: float) -> float:
    """Returns the bytes per second that the longest bar beside a copy's rate stands for.

    The scale reaches to the next ceiling; an idle core's may be a hundred times as high.
    """
    beyond = copy.next.ceiling_bytes_per_second if copy.next else 0.0
    return max(2 * rate, min(8 * rate, 1.05 * beyond))


def is_cap(limit: Verdict | Rung, ceiling: Ceiling) -> bool:
    """Whether a verdict or a rung names this ceiling."""
    same_rate = limit.ceiling_bytes_per_second == ceiling.bytes_per_second
    return same_rate and limit.key == ceiling.key


def _remark(ceiling: Ceiling) -> str:
    if ceiling.component in ("network", "bus"):
        return bits_beside(ceiling.bytes_per_second)
    if ceiling.standing == "measured":
        return phrases.spread_text(ceiling.low_bytes_per_second, ceiling.high_bytes_per_second)
    return {"at-least": "at least", "estimated": "estimated"}.get(ceiling.standing, "inferred")


def ladder(copy: CopyDiagnosis) -> Iterator[document.Block]:
    """Yields each successive limit of a copy, and its rate once all lower ones are lifted."""
    if len(copy.ladder) < LEAST_RUNGS:
        return
    titles = document.columns("limited by", "limit", "copy runs at", "range", "", right="1 2")
    table = document.Table("Successive limits", titles, suffix=name_text(copy))
    for index, rung in enumerate(copy.ladder):
        spread = rung.predicted_bytes_per_second
        doubt = (each.standing for each in copy.ceilings if is_cap(rung, each))
        table.add(
            phrases.cap_text(rung),
            phrases.DOUBT_SIGNS[next(doubt, "measured")] + rate_text(rung.ceiling_bytes_per_second),
            phrases.cell_text(lambda spread: rate_text(spread.median), spread),
            "" if spread is None else phrases.spread_text(spread.low, spread.high, always=True),
            _rung_remark(index, rung),
            mark="chosen" if index == 0 else "",
        )
    yield table


def _rung_remark(index: int, rung: Rung) -> str:
    """Returns the basis of a rung's rate: the assumed link, or why there is none."""
    if index == 0:
        return "today"
    if rung.predicted_bytes_per_second is None:
        return "incomplete"
    link = rung.assumed_link_bytes_per_second
    match = None if link is None else looks_like(link)
    return "" if match is None else f"with {link_text(match.bits_per_second)}"


def target(copy: CopyDiagnosis) -> Iterator[document.Points]:
    """Yields what a copy needs to reach the target rate; nothing without one."""
    target = copy.target
    if target is None:
        return
    rate = rate_text(target.bytes_per_second)
    name = f"{safe(copy.copy, 40)} ({safe(copy.dialect, 16)})"
    if target.reached:
        yield document.Points(f"{name} reaches {rate}", ())
        return
    needs = [f"{each.sentence[0].upper()}{each.sentence[1:]}." for each in target.needs]
    nothing = ["No measured component is in the way."] if not (needs or target.unknown) else []
    yield document.Points(f"Needed for {rate}: {name}", (*needs, *target.unknown, *nothing))


def ends(copy: CopyDiagnosis) -> tuple[str, str]:
    """Returns the sides that the bytes come from and go to."""
    sender = steps.sender(steps.verb_and_cache(copy.copy)[0], copy.initiator)
    return sender, steps.other(sender)
