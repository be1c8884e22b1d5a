"""The answer on one screen: the verdict, its reason, what to do, the copies, and their time.

Line 1 is the verdict and nothing else: `Bottleneck: X`, `Bottleneck: not identified` or
`No fault found: X`; above it only bytes that arrived altered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import phrases, steps
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis, Part
from bottleneck.analysis.interface_facts import ALSO_BACK
from bottleneck.analysis.link_end import is_told
from bottleneck.documents import copies, stages
from bottleneck.documents.document import Block, Column, Mark, Table, Text
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import rate_text
from probes.core.records import OWN_COPIES, Failed, Skipped

INSET = "  "
MOST_COPIES = 6
MOST_SHARES = 4
LEAST_COLUMNS_OF_CONFIDENCE = 70
"""Below that a long cause beside it would break the line; the verdict has its own."""
MOST_STEPS = 3
"""Of the advice: what to do, what to expect of it, and what to do about an equal limit."""
LONGEST_SENTENCE, LONGEST_LINE = 600, 180
MORE = "--section limits|disks|network|smb|settings|..., --html FILE"
SERVER_COPY = "server."
SKIPPED, SMB1_OFF = ": skipped: ", "SMB1 is off"


def answer(
    report: Report, diagnosis: Diagnosis, kept: bool = False, whole: bool = False
) -> Iterator[Block]:
    """The whole of it: at most 30 lines on a terminal of 100 columns.

    kept: whether `explain` finds this report without its file's name. whole: whether all sections
    come below it.
    """
    chosen = diagnosis.chosen
    yield from verdict(report, diagnosis)
    if chosen is not None and _named(chosen):
        yield from _steps(diagnosis, chosen)
    if chosen is not None and chosen.bytes_per_second:
        yield from copies.target(chosen)
        yield _copies(report, diagnosis, chosen)
        # A report that is not complete takes a line to say so.
        yield from copies.time(chosen, MOST_SHARES - (report.status != "complete"))
    yield from _of_share(report)
    left_out = tuple(_left_out(report, diagnosis))
    yield from left_out
    if not whole:
        how = f"More: --verbose, {'bottleneck explain ' if kept else ''}{MORE}"
        yield Text(how, apart=not left_out)


def _of_share(report: Report) -> Iterator[Text]:
    """Says that the login was a guest's, and what the share does with deleted files."""
    if report.target.get("guest") is True:
        yield Text("Logged in as a guest, not as a user.")
    if name := report.target.get("bin"):
        text = f"Deleted files go to the share's recycle bin ({name}). Test files are empty there, "
        text += "and removed at the end if this user may. To exclude them: bottleneck-* (Samba: "
        text += "recycle:exclude_dir), or use another share."
        yield Text(safe(text, LONGEST_SENTENCE), hanging=INSET)


def verdict(report: Report, diagnosis: Diagnosis) -> Iterator[Text]:
    """The first line, why, and how sure that is: what --quiet shows."""
    chosen = diagnosis.chosen
    if diagnosis.altered:
        where = ", ".join(diagnosis.altered)
        yield Text(
            safe(f"DATA CORRUPTED: received bytes differ from sent bytes ({where})"), "alarm"
        )
    rates = () if diagnosis.copies else tuple(stages.short_lines(report))
    if rates:
        yield from (Text(each, "strong") for each in rates)
        return
    yield Text(phrases.first_line(diagnosis), "strong")
    for sentence in dict.fromkeys(_why(report, diagnosis)):
        yield Text(safe(f"{sentence[:1].upper()}{sentence[1:]}", LONGEST_SENTENCE), hanging=INSET)
    if chosen is not None and _named(chosen):
        yield Text(f"Confidence: {phrases.confidence_text(chosen.verdict)}", label=True)
    yield from _program(report, chosen)
    told = ending(report, chosen)
    if told:
        yield Text(safe(told, LONGEST_LINE), "alarm")


def _program(report: Report, chosen: CopyDiagnosis | None) -> Iterator[Text]:
    """Yields the program of a watched copy with its folders; nothing if none was watched."""
    program = steps.target_of(report).program
    if chosen is None or program is None or not program.name:
        return
    known = "" if program.process is None else f" (process {program.process:.0f})"
    ways = (("from", program.reads), ("to", program.writes))
    places = [
        f" {way} {each.folder}" + (f" ({each.filesystem})" if each.filesystem else "")
        for way, each in ways
        if each is not None
    ]
    local = any(each.on_one_host for each in steps.copies(report))
    over = "; no network file system carries it" if local else ""
    if program.connections is not None and program.connections > 1:
        over = f"; the rate is that of its {program.connections:.0f} connections"
    yield Text(safe(f"Watched: {program.name}{known}{''.join(places)}{over}", LONGEST_SENTENCE))


def ending(report: Report, chosen: CopyDiagnosis | None) -> str:
    """That results are partial, and what is missing; empty: they are complete."""
    if report.status == "complete":
        return ""
    told = stages.ENDINGS.get(report.status, report.status)
    if report.status == "partial":
        lost = _lost(report, chosen).items()
        parts = [f"{names} not measured{_bracketed(why)}" for why, names in lost]
        counts = {"tests skipped": _count(report, Skipped), "tests failed": _count(report, Failed)}
        rest = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
        told = "; ".join(parts) or rest or told
    return f"Partial results: {told}"


def _named(copy: CopyDiagnosis) -> bool:
    """Whether there is a rate, or what stopped the copy is known."""
    return bool(copy.bytes_per_second) or copy.verdict.component != "unknown"


def _why(report: Report, diagnosis: Diagnosis) -> Iterator[str]:
    chosen = diagnosis.chosen
    sentence = diagnosis.summary if chosen is None else chosen.verdict.sentence
    yield sentence
    stopped = chosen is not None and _named(chosen) and _count(report, Failed)
    if chosen is None or not (chosen.bytes_per_second or stopped):
        # The first note that skips no test has the reason behind all that was not made.
        no_reason = (SKIPPED, SMB1_OFF)
        told = (each for each in report.notes if each not in sentence)
        yield from [each for each in told if not any(words in each for words in no_reason)][:1]


def _count(report: Report, kind: type[Skipped | Failed]) -> int:
    return sum(isinstance(outcome, kind) for _, outcome in report.entries)


def advice(diagnosis: Diagnosis, chosen: CopyDiagnosis) -> tuple[str, ...]:
    """What to do, and what to expect of it; that nothing has to be done where nothing is wrong."""
    told = chosen.advice
    if diagnosis.healthy and chosen.bytes_per_second and told:
        rate = rate_text(chosen.bytes_per_second)
        # Each direction may have a limit of its own.
        own = [e for e in diagnosis.copies if e.copy in OWN_COPIES and e.dialect == chosen.dialect]
        both = ALSO_BACK in told[0] or not all(e.verdict.detail and e.advice for e in own)
        alike = [] if both else own
        then = " ".join(dict.fromkeys((told[0], *(each.advice[0] for each in alike))))
        return (
            f"Nothing, unless you need more than {rate}. Then {then[0].lower()}{then[1:]}",
            *told[1:],
        )
    return told


def _steps(diagnosis: Diagnosis, chosen: CopyDiagnosis) -> Iterator[Text]:
    told = advice(diagnosis, chosen)[:MOST_STEPS]
    if told:
        yield Text("What to do", "strong", apart=True)
    for each in told:
        yield Text(safe(each, LONGEST_SENTENCE), hanging=INSET)


# -- the copies --------------------------------------------------------------------------------


def _copies(report: Report, diagnosis: Diagnosis, chosen: CopyDiagnosis) -> Table:
    """With each host's load where there is room; else with a line of the copy that leads."""
    by_server = chosen.copy.startswith(SERVER_COPY)
    alike = (each for each in diagnosis.copies if each.dialect == chosen.dialect)
    shown = [each for each in alike if each.copy.startswith(SERVER_COPY) == by_server]
    shown.sort(key=_place)
    shown = shown[:MOST_COPIES]
    more = len(diagnosis.copies) - len(shown)
    beside = f" (plus {more}: --section copies)" if more else ""
    title, confidence = f"Copies {copies.over_text(chosen)}{beside}", Column("confidence")
    begin, limit = (Column("copy"), Column("rate", right=True)), Column("limited by")
    narrow = replace(confidence, least_columns=LEAST_COLUMNS_OF_CONFIDENCE)
    below = Table(title, (*begin, limit, narrow), inset=True)
    loads = copies.loads(report, shown)
    own = next((load for copy, load in zip(shown, loads, strict=True) if copy is chosen), ())
    below.note = INSET + copies.load_line(own) if any(own) else ""
    columns = (*begin, *stages.LOADS, limit, confidence)
    table = Table(title, columns, inset=True, note=INSET + stages.LOAD, narrower=below)
    for copy, load in zip(shown, loads, strict=True):
        name = safe(copy.copy, 40), phrases.known(rate_text, copy.bytes_per_second) or "-"
        cap = phrases.cap_text(copy.verdict), phrases.confidence_text(copy.verdict, unknown="-")
        mark: Mark = "chosen" if copy is chosen else ""
        table.add(*name, *(each or "-" for each in load), *cap, mark=mark)
        below.add(*name, *cap, mark=mark)
    return table if any(map(any, loads)) else below


def _place(copy: CopyDiagnosis) -> int:
    order = (("pull", "uncached"), ("pull", "cached"), ("push", "uncached"), ("push", "cached"))
    found = steps.verb_and_cache(copy.copy)
    return order.index(found) if found in order else len(order)


# -- what is missing ---------------------------------------------------------------------------


def _left_out(report: Report, diagnosis: Diagnosis) -> Iterator[Text]:
    """A folder of the user's, what was not measured and how to get it, and settings to look at."""
    chosen = diagnosis.chosen
    lines = [
        f"{each.sentence.partition('. ')[0]}."
        for each in diagnosis.comparisons
        if each.about == "small-files" and report.entries[each.steps[0]][0].setting.get("tree")
    ]
    unmade = stages.grouped(
        (copy.verdict.sentence, copy.copy)
        for copy in diagnosis.copies
        if copy.bytes_per_second is None
        and (chosen is None or chosen is not copy and chosen.dialect == copy.dialect)
    )
    if chosen is not None and not chosen.bytes_per_second:
        unmade.pop(chosen.verdict.sentence, None)
    lines += [f"Not measured: {names}: {why}" for why, names in unmade.items()]
    reasons = _lost(report, chosen)
    # Of a partial report the verdict has them.
    lost = reasons.items() if report.status != "partial" else ()
    lines += [f"Not measured: {names}{_bracketed(why)}." for why, names in lost]
    told_above = [why for why in (*reasons, *unmade) if why]
    untold = (e for e in stages.missing_lines(report) if not any(why in e for why in told_above))
    rest = [f"Not tested: {each}." for each in untold]
    lines += rest if len(rest) == 1 and not unmade else []
    counts = {
        "Skipped tests": _count(report, Skipped),
        "failed tests": _count(report, Failed),
        "notes": len(report.notes),
    }
    told = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
    if told:
        lines.append(f"{told[0].upper()}{told[1:]} (--section skipped).")
    review = sum(len(each.lines) for each in stages.costly(report))
    if review:
        lines.append(f"Settings to review: {review} (--section settings).")
    for at, each in enumerate(lines):
        yield Text(safe(each, LONGEST_LINE), apart=not at)


def _bracketed(why: str) -> str:
    """A reason behind what it is of: ` (out of time: use a larger --budget)`."""
    if why.endswith(")"):
        reason, _, remedy = why[:-1].rpartition(" (")
        why = f"{reason}: {remedy}"
    return why and f" ({why})"


def _lost(report: Report, chosen: CopyDiagnosis | None) -> dict[str, str]:
    """Names of the parts of the headline's way that were not measured, by the reason."""
    alone = bool(report.target.get("copy_alone"))
    return stages.grouped(() if chosen is None or alone else _unmeasured(report, chosen))


def _unmeasured(report: Report, copy: CopyDiagnosis) -> Iterator[tuple[str, str]]:
    """Why each part that every byte passes was not measured itself; its name."""
    if not copy.bytes_per_second:
        return
    if any(each.on_one_host for each in steps.copies(report)):
        return
    sender, receiver = copies.ends(copy)
    limits = [each.part for each in copy.ceilings]
    known = {part if part[0] != "network" else ("network", None) for part in limits}
    parts: list[Part] = [("network", None), ("disk", receiver)]
    if steps.verb_and_cache(copy.copy)[1] == "uncached":
        parts.insert(0, ("disk", sender))
    for component, side in parts:
        name = "raw TCP" if side is None else f"{side} {component}"
        why = _reason(report, component, side, "read" if side == sender else "write")
        if why or (why is not None and (component, side) not in known):
            yield why, name


def _reason(report: Report, component: str, side: str | None, access: str) -> str | None:
    """Why no step measured a part, with what to do about it; empty: none tells; None: one did."""
    if report.server is None and side != "client" and not is_told(report):
        return f"no agent; use {steps.with_agent(report)}"
    stage, by = ("tcp", "client") if component == "network" else (component, side)
    why = ""
    for step, outcome in report.entries:
        of_disk = component == "disk" and step.setting.get("verb", access) != access
        if step.stage == stage and step.initiator == by and not of_disk:
            match outcome:
                case Skipped(reason):
                    why = why or reason
                case Failed(error):
                    why = why or error
                case _:
                    return None
    return why
