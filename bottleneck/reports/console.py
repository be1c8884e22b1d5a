"""A diagnosis on a terminal: the verdict first, then what it stands on."""

from __future__ import annotations

from collections.abc import Iterator

from rich.console import Console

from bottleneck.analysis.finding import Ceiling, CopyDiagnosis, Diagnosis, Verdict
from bottleneck.report import Report, Step
from bottleneck.reports import layout
from bottleneck.reports.comparisons import print_comparisons
from bottleneck.reports.disks import print_disks
from bottleneck.reports.interfaces import print_interfaces
from bottleneck.reports.ladder import print_rungs, print_target
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.path import print_path
from bottleneck.reports.safe import safe
from bottleneck.reports.units import (
    bit_rate_text,
    explorer_text,
    percent_text,
    range_text,
    rate_text,
    seconds_text,
    size_text,
)
from bottleneck.reports.zone_curve import print_zone_curves
from probes.records import Failed, Measured, Outcome, Skipped, Spread, Usage, rates

SURE_RATIO = 0.9
FAIR_RATIO = 0.7
WIDE_COLUMNS = 110
LONGEST_REASON = 200
EVIDENCE_SHOWN = 8
SETTINGS_SHOWN = 4


def print_report(
    report: Report, diagnosis: Diagnosis, console: Console, verbose: bool = False
) -> None:
    """Writes the whole diagnosis; readable from 80 columns on.

    verbose: evidence and advice of every copy, not of the headline's alone, and every row of the
    comparisons. Foreign text is made safe, and none of it is read as markup.
    """
    signs = layout.signs(console)
    chosen = diagnosis.chosen
    _print_verdict(report, diagnosis, console)
    if diagnosis.copies:
        _print_copies(diagnosis, console, signs)
    if chosen is not None and chosen.ceilings and chosen.bytes_per_second:
        _print_ladder(chosen, chosen.bytes_per_second, console, signs)
        print_rungs(chosen, console, signs)
    for copy in diagnosis.copies if verbose else [each for each in [chosen] if each]:
        print_target(copy, console)
    print_zone_curves(report, console, signs)
    print_comparisons(diagnosis, console, signs, verbose)
    _print_stages(report, console, signs)
    print_path(report, console)
    print_interfaces(report, console)
    print_disks(report, console)
    if verbose:
        for copy in diagnosis.copies:
            which = f" ({safe(copy.copy, 40)}, {_dialect(copy.dialect)})"
            _print_points(console, f"Evidence{which}", copy.evidence)
            _print_points(console, f"Advice{which}", copy.advice)
    elif chosen is not None:
        _print_points(console, "Evidence", chosen.evidence, EVIDENCE_SHOWN)
        _print_points(console, "Advice", chosen.advice)
    costly = tuple(_costly_settings(report))
    title = "What costs throughput in the server's smb.conf"
    _print_points(console, title, costly, None if verbose else SETTINGS_SHOWN)
    title = "What costs throughput in the hosts' TCP settings"
    _print_points(console, title, tuple(_costly_host_settings(report, "tcp_settings")))
    title = "What costs throughput below the hosts' folders"
    _print_points(console, title, tuple(_costly_host_settings(report, "disk_settings")))
    _print_points(console, "Not measured", tuple(_missing(report)))
    if verbose:
        _print_points(console, "Why each step was made", tuple(_reasons(report)))
    _print_points(console, "Notes", report.notes)
    if chosen is not None and chosen.bytes_per_second:
        _print_footnote(console, chosen.bytes_per_second)


def _reasons(report: Report) -> Iterator[str]:
    """Each reason once, with the steps that were made for it."""
    made: dict[str, list[str]] = {}
    for step, _ in report.entries:
        if step.why:
            made.setdefault(safe(step.why, LONGEST_REASON), []).append(stage_text(step))
    for why, names in made.items():
        yield f"{why}: {', '.join(dict.fromkeys(names))}"


def confidence_text(verdict: Verdict) -> str:
    """A confidence in a word and a number: `high (0.97)`; a dash where nothing is named."""
    if verdict.component == "unknown":
        return "-"
    if verdict.confidence >= SURE_RATIO:
        word = "high"
    elif verdict.confidence >= FAIR_RATIO:
        word = "fair"
    else:
        word = "low"
    return f"{word} ({verdict.confidence:.2f})"


def cap_text(verdict: Verdict | Ceiling) -> str:
    """A component, its side and the cause in one phrase: `server disk: read`."""
    if verdict.component == "unknown":
        return verdict.cause
    place = "" if verdict.side in (None, "path") else f"{verdict.side} "
    name = {"instrument": "tool", "cpu": "CPU"}.get(verdict.component, verdict.component)
    return f"{place}{name}: {verdict.cause}"


def stage_text(step: Step) -> str:
    """A step in a few words: `tcp pull x4`, `disk server read uncached`."""
    told = {key: safe(word, 24) for key, word in step.setting.items() if word is not None}
    streams = told.get("streams", "1")
    many = "" if streams == "1" else f" x{streams}"
    match step.stage:
        case "smb-copy":
            where = " mem" if told.get("end") == "memory" else ""
            by = f" {told['engine']}" if told.get("engine", "own") != "own" else ""
            return f"{told.get('copy', '')} {told.get('dialect', '')}{where}{by}"
        case "native-copy":
            return f"{told.get('copy', '')} native"
        case "smb-tax":
            return f"smb-tax {told.get('verb', '')} {told.get('security', '')}"
        case "disk":
            how = told.get("pattern", "sequential")
            if how == "sequential":
                how = told.get("cache", "") if told.get("verb") == "read" else ""
            return f"disk {told.get('side', '')} {told.get('verb', '')} {how}".rstrip()
        case "loopback":
            return f"loopback {step.initiator}{many}"
        case "matrix":
            return f"matrix {told.get('verb', '')}"
        case "sweep":
            over = told.get("over", "")
            where = step.initiator if over == "loopback" else told.get("verb", "")
            return f"sweep {over} {where}"
        case stage:
            return f"{safe(stage, 24)} {told.get('verb', '')}{many}".rstrip()


def _dialect(dialect: str) -> str:
    if dialect in ("native", "none"):
        return dialect
    if dialect == "unknown":
        return "SMB"
    return "SMB1" if dialect == "smb1" else f"SMB {safe(dialect, 16)}"


def _print_verdict(report: Report, diagnosis: Diagnosis, console: Console) -> None:
    layout.paragraph(console, safe(diagnosis.summary, 2000), "bold")
    chosen = diagnosis.chosen
    if chosen is not None and chosen.verdict.component != "unknown":
        layout.line(console, f"Confidence: {confidence_text(chosen.verdict)}")
    if report.status != "complete":
        layout.line(console, f"The run is {report.status}: this is what it came to.", "yellow")


def _print_copies(diagnosis: Diagnosis, console: Console, signs: Signs) -> None:
    layout.heading(console, "Copies")
    table = Columns(("copy", "dialect", "rate", "cap", "confidence"), right=frozenset({2}))
    for copy in diagnosis.copies:
        rate = copy.bytes_per_second
        table.add(
            safe(copy.copy, 40),
            _dialect(copy.dialect),
            signs.none if rate is None else rate_text(rate),
            cap_text(copy.verdict),
            confidence_text(copy.verdict),
            style="bold" if copy is diagnosis.chosen else "",
        )
    table.print(console)


def _print_ladder(copy: CopyDiagnosis, rate: float, console: Console, signs: Signs) -> None:
    """The copy's own rate and every ceiling with a bar, the cap marked."""
    name, dialect = safe(copy.copy, 40), _dialect(copy.dialect)
    apart = {"native": "(native)", "none": "(without SMB)"}
    over = apart.get(dialect, f"over {dialect}")
    layout.heading(console, f"What {name} {over} is held by, lowest ceiling first")
    table = Columns(("", "", "rate", "", ""), right=frozenset({2}))
    width = 30 if console.width >= WIDE_COLUMNS else 16
    # The scale reaches to the next ceiling; an idle core's may be a hundred times as high.
    beyond = copy.next.ceiling_bytes_per_second if copy.next else 0.0
    most = max(2 * rate, min(8 * rate, 1.05 * beyond))
    table.add(
        "the copy itself",
        layout.bar(rate, most, width, signs),
        rate_text(rate),
        "",
        "",
        style="bold",
    )
    cap = next((each for each in copy.ceilings if _is_cap(copy.verdict, each)), None)
    for each in copy.ceilings:
        table.add(
            cap_text(each),
            layout.bar(each.bytes_per_second, most, width, signs),
            _ceiling_rate(each),
            _ceiling_remark(each, signs),
            signs.cap if each is cap else "",
            style="bold red" if each is cap else "dim" if each.standing == "at-least" else "",
        )
    table.print(console)


def _is_cap(verdict: Verdict, ceiling: Ceiling) -> bool:
    named = (verdict.component, verdict.side, verdict.cause, verdict.ceiling_bytes_per_second)
    return named == (ceiling.component, ceiling.side, ceiling.cause, ceiling.bytes_per_second)


def _ceiling_rate(ceiling: Ceiling) -> str:
    sign = {"at-least": "> ", "estimated": "~ ", "inferred": "~ "}.get(ceiling.standing, "")
    return f"{sign}{rate_text(ceiling.bytes_per_second)}"


def _ceiling_remark(ceiling: Ceiling, signs: Signs) -> str:
    if ceiling.component in ("network", "bus"):
        return bit_rate_text(ceiling.bytes_per_second)
    if ceiling.standing == "measured":
        return _range(ceiling.low_bytes_per_second, ceiling.high_bytes_per_second, signs)
    return {"at-least": "or more", "estimated": "by its load"}.get(ceiling.standing, "inferred")


def _range(low: float, high: float, signs: Signs) -> str:
    told = range_text(low, high)
    return told.replace("-", signs.dash) if "-" in told else ""


def _print_stages(report: Report, console: Console, signs: Signs) -> None:
    wide = console.width >= WIDE_COLUMNS
    titles = ("stage", "rate", "low-high", "client", "server")
    table = Columns(titles, right=frozenset({1, 3, 4}))
    throttled = False
    for step, outcome in report.entries:
        spread = _spread(outcome)
        if not isinstance(outcome, Measured) or spread is None:
            continue
        usages = (outcome.initiator, outcome.responder)
        client, server = usages if step.initiator == "client" else usages[::-1]
        throttled = throttled or any(each and each.throttled_ratio for each in usages)
        table.add(
            stage_text(step),
            rate_text(spread.median),
            _spread_text(step, spread, wide, signs),
            _usage_text(client, wide, signs),
            _usage_text(server, wide, signs),
        )
    if table.rows:
        layout.heading(console, "Stages: rate, then busiest core and RAM in use at both ends")
        table.print(console)
    if throttled:
        layout.line(console, "* stopped by its CPU quota some or all of the time", "dim")


def _spread(outcome: Outcome) -> Spread | None:
    """None: there is no rate to show, as of a stage that moves no payload."""
    try:
        spread = rates(outcome) if isinstance(outcome, Measured) else None
    except (ValueError, IndexError):
        return None
    return spread if spread is not None and spread.high > 0 else None


def _spread_text(step: Step, spread: Spread, wide: bool, signs: Signs) -> str:
    about = _range(spread.low, spread.high, signs)
    unit = rate_text(spread.median).split(" ")[1]
    about = about.removesuffix(f" {unit}")
    bits = bit_rate_text(spread.median) if step.stage == "tcp" else ""
    return "  ".join(each for each in (bits, about) if each) if wide else bits or about


def _usage_text(usage: Usage | None, wide: bool, signs: Signs) -> str:
    if usage is None or not usage.core_busy_ratios:
        return signs.none
    core = percent_text(min(1.0, usage.busiest_core_ratio)).replace(" ", "")
    core += "*" if usage.throttled_ratio else ""
    if usage.memory_used_bytes is None:
        return core
    dirty = usage.memory_dirty_bytes
    written = f" dirty {size_text(dirty)}" if wide and dirty is not None else ""
    return f"{core} {size_text(usage.memory_used_bytes)}{written}"


def _costly_settings(report: Report) -> Iterator[str]:
    """Lines of the file server's configuration, as its agent found them."""
    told = report.target.get("smb_conf")
    for each in told if isinstance(told, list) else ():
        if isinstance(each, dict):
            words = {key: str(each.get(key) or "") for key in ("option", "value", "why", "remedy")}
            yield "{option} = {value}: {why}; {remedy}".format_map(words)


def _costly_host_settings(report: Report, field: str) -> Iterator[str]:
    for side, host in (("client", report.client), ("server", report.server)):
        for each in getattr(host, field) if host else ():
            doubt = "" if each.tested else " (untested on such a system)"
            yield f"{side}: {each.option} = {each.value}: {each.why}; {each.remedy}{doubt}"


def _missing(report: Report) -> Iterator[str]:
    """What was not measured: each reason once, with all the steps that it holds for."""
    reasons: dict[str, list[str]] = {}
    for step, outcome in report.entries:
        match outcome:
            case Skipped(reason):
                reasons.setdefault(reason, []).append(stage_text(step))
            case Failed(error, samples):
                after = f" after {seconds_text(samples[-1].elapsed_seconds)}" if samples else ""
                reasons.setdefault(f"failed{after}: {error}", []).append(stage_text(step))
    for reason, stages in reasons.items():
        yield f"{', '.join(dict.fromkeys(stages))}: {reason}"


def _print_points(
    console: Console, title: str, points: tuple[str, ...], most: int | None = None
) -> None:
    layout.bullets(console, title, [safe(each, 600) for each in points[:most]])
    if most is not None and len(points) > most:
        layout.line(console, f"  and {len(points) - most} more with --verbose", "dim")


def _print_footnote(console: Console, rate: float) -> None:
    console.print()
    note = (
        "MB/s is 10^6 bytes per second. Windows Explorer counts 2^20 bytes and calls them MB too: "
        f"{rate_text(rate)} is {explorer_text(rate)} there."
    )
    layout.paragraph(console, note, "dim")
