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
from bottleneck.analysis.link_end import is_supplied
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
"""Least columns of a terminal at which the copies' table shows the confidence."""
MOST_STEPS = 3
"""Lines of advice: what to do, what to expect of it, what to do about an equal limit."""
LONGEST_SENTENCE, LONGEST_LINE = 600, 180
MORE = "--section limits|disks|network|smb|settings|..., --html FILE"
SERVER_COPY = "server."
SKIPPED, SMB1_OFF = ": skipped: ", "SMB1 is off"


def answer(
    report: Report, diagnosis: Diagnosis, is_recorded: bool = False, has_sections: bool = False
) -> Iterator[Block]:
    """Yields the whole answer, at most 30 lines on a terminal of 100 columns.

    is_recorded: whether `explain` finds this report without its file's name. has_sections:
    whether all sections come below it.
    """
    main_copy = diagnosis.main_copy
    yield from verdict(report, diagnosis)
    if main_copy is not None and _has_result(main_copy):
        yield from _steps(diagnosis, main_copy)
    if main_copy is not None and main_copy.bytes_per_second:
        yield from copies.target(main_copy)
        yield _copies(report, diagnosis, main_copy)
        # A report that is not complete takes a line to say so.
        yield from copies.time(main_copy, MOST_SHARES - (report.status != "complete"))
    yield from _share_notes(report)
    left_out = tuple(_left_out(report, diagnosis))
    yield from left_out
    if not has_sections:
        line = f"More: --verbose, {'bottleneck explain ' if is_recorded else ''}{MORE}"
        yield Text(line, apart=not left_out)


def _share_notes(report: Report) -> Iterator[Text]:
    """Yields whether the login was a guest's, and what the share does with deleted files."""
    if report.target.get("guest") is True:
        yield Text("Logged in as a guest, not as a user.")
    if name := report.target.get("bin"):
        text = f"Deleted files go to the share's recycle bin ({name}). Test files are empty there, "
        text += "and removed at the end if this user may. To exclude them: bottleneck-* (Samba: "
        text += "recycle:exclude_dir), or use another share."
        yield Text(safe(text, LONGEST_SENTENCE), hanging=INSET)


def verdict(report: Report, diagnosis: Diagnosis) -> Iterator[Text]:
    """Yields the first line, its reason and its confidence: what --quiet shows."""
    main_copy = diagnosis.main_copy
    if diagnosis.altered:
        names = ", ".join(diagnosis.altered)
        yield Text(
            safe(f"DATA CORRUPTED: received bytes differ from sent bytes ({names})"), "alarm"
        )
    rates = () if diagnosis.copies else tuple(stages.short_lines(report))
    if rates:
        yield from (Text(each, "strong") for each in rates)
        return
    yield Text(phrases.first_line(diagnosis), "strong")
    for sentence in dict.fromkeys(_verdict_sentences(report, diagnosis)):
        yield Text(safe(f"{sentence[:1].upper()}{sentence[1:]}", LONGEST_SENTENCE), hanging=INSET)
    if main_copy is not None and _has_result(main_copy):
        yield Text(f"Confidence: {phrases.confidence_text(main_copy.verdict)}", label=True)
    yield from _program(report, main_copy)
    end = partial_sentence(report, main_copy)
    if end:
        yield Text(safe(end, LONGEST_LINE), "alarm")


def _program(report: Report, copy: CopyDiagnosis | None) -> Iterator[Text]:
    """Yields the program of a watched copy with its folders; nothing if none was watched."""
    program = steps.target_of(report).program
    if copy is None or program is None or not program.name:
        return
    process = "" if program.process is None else f" (process {program.process:.0f})"
    places = [
        f" {way} {each.folder}" + (f" ({each.filesystem})" if each.filesystem else "")
        for way, each in (("from", program.reads), ("to", program.writes))
        if each is not None
    ]
    local = any(each.on_one_host for each in steps.copies(report))
    over = "; no network file system carries it" if local else ""
    if program.connections is not None and program.connections > 1:
        over = f"; the rate is that of its {program.connections:.0f} connections"
    yield Text(safe(f"Watched: {program.name}{process}{''.join(places)}{over}", LONGEST_SENTENCE))


def partial_sentence(report: Report, copy: CopyDiagnosis | None) -> str:
    """Returns a sentence on partial results and what is missing; empty if they are complete."""
    if report.status == "complete":
        return ""
    details = stages.ENDINGS.get(report.status, report.status)
    if report.status == "partial":
        gaps = _unmeasured_by_reason(report, copy).items()
        parts = [f"{names} not measured{_in_brackets(reason)}" for reason, names in gaps]
        counts = {"tests skipped": _count(report, Skipped), "tests failed": _count(report, Failed)}
        rest = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
        details = "; ".join(parts) or rest or details
    return f"Partial results: {details}"


def _has_result(copy: CopyDiagnosis) -> bool:
    """Whether there is a rate, or what stopped the copy is known."""
    return bool(copy.bytes_per_second) or copy.verdict.component != "unknown"


def _verdict_sentences(report: Report, diagnosis: Diagnosis) -> Iterator[str]:
    main_copy = diagnosis.main_copy
    sentence = diagnosis.summary if main_copy is None else main_copy.verdict.sentence
    yield sentence
    stopped = main_copy is not None and _has_result(main_copy) and _count(report, Failed)
    if main_copy is None or not (main_copy.bytes_per_second or stopped):
        # The first note that skips no test says why nothing was measured.
        no_reason = (SKIPPED, SMB1_OFF)
        notes = (each for each in report.notes if each not in sentence)
        yield from [each for each in notes if not any(words in each for words in no_reason)][:1]


def _count(report: Report, kind: type[Skipped | Failed]) -> int:
    return sum(isinstance(outcome, kind) for _, outcome in report.entries)


def advice(diagnosis: Diagnosis, copy: CopyDiagnosis) -> tuple[str, ...]:
    """Returns what to do and what to expect of it; nothing to do where nothing is wrong."""
    sentences = copy.advice
    if diagnosis.healthy and copy.bytes_per_second and sentences:
        rate = rate_text(copy.bytes_per_second)
        # Each direction may have a limit of its own.
        peers = [e for e in diagnosis.copies if e.copy in OWN_COPIES and e.dialect == copy.dialect]
        both = ALSO_BACK in sentences[0] or not all(e.verdict.detail and e.advice for e in peers)
        others = [] if both else peers
        then = " ".join(dict.fromkeys((sentences[0], *(each.advice[0] for each in others))))
        return (
            f"Nothing, unless you need more than {rate}. Then {then[0].lower()}{then[1:]}",
            *sentences[1:],
        )
    return sentences


def _steps(diagnosis: Diagnosis, copy: CopyDiagnosis) -> Iterator[Text]:
    sentences = advice(diagnosis, copy)[:MOST_STEPS]
    if sentences:
        yield Text("What to do", "strong", apart=True)
    yield from (Text(safe(each, LONGEST_SENTENCE), hanging=INSET) for each in sentences)


# -- the copies --------------------------------------------------------------------------------


def _copies(report: Report, diagnosis: Diagnosis, main_copy: CopyDiagnosis) -> Table:
    """Returns a table with each host's load where there is room, else with the main copy's."""
    by_server = main_copy.copy.startswith(SERVER_COPY)
    peers = (each for each in diagnosis.copies if each.dialect == main_copy.dialect)
    rows = [each for each in peers if each.copy.startswith(SERVER_COPY) == by_server]
    rows.sort(key=_place)
    rows = rows[:MOST_COPIES]
    rest = len(diagnosis.copies) - len(rows)
    beside = f" (plus {rest}: --section copies)" if rest else ""
    title, confidence = f"Copies {copies.over_text(main_copy)}{beside}", Column("confidence")
    begin, limit = (Column("copy"), Column("rate", right=True)), Column("limited by")
    narrow = replace(confidence, least_columns=LEAST_COLUMNS_OF_CONFIDENCE)
    below = Table(title, (*begin, limit, narrow), inset=True)
    loads = copies.loads(report, rows)
    main = next((load for copy, load in zip(rows, loads, strict=True) if copy is main_copy), ())
    below.note = INSET + copies.load_line(main) if any(main) else ""
    columns = (*begin, *stages.LOADS, limit, confidence)
    table = Table(title, columns, inset=True, note=INSET + stages.LOAD, narrower=below)
    for copy, load in zip(rows, loads, strict=True):
        name = safe(copy.copy, 40), phrases.cell_text(rate_text, copy.bytes_per_second) or "-"
        cap = phrases.cap_text(copy.verdict), phrases.confidence_text(copy.verdict, unknown="-")
        mark: Mark = "chosen" if copy is main_copy else ""
        table.add(*name, *(each or "-" for each in load), *cap, mark=mark)
        below.add(*name, *cap, mark=mark)
    return table if any(map(any, loads)) else below


def _place(copy: CopyDiagnosis) -> int:
    order = (("pull", "uncached"), ("pull", "cached"), ("push", "uncached"), ("push", "cached"))
    kind = steps.verb_and_cache(copy.copy)
    return order.index(kind) if kind in order else len(order)


# -- what is missing ---------------------------------------------------------------------------


def _left_out(report: Report, diagnosis: Diagnosis) -> Iterator[Text]:
    """Yields what is missing and how to get it, a folder of the user's, and settings to review."""
    main_copy = diagnosis.main_copy
    lines = [
        f"{each.sentence.partition('. ')[0]}."
        for each in diagnosis.comparisons
        if each.about == "small-files" and report.entries[each.steps[0]][0].setting.get("tree")
    ]
    failures = stages.join_names(
        (copy.verdict.sentence, copy.copy)
        for copy in diagnosis.copies
        if copy.bytes_per_second is None
        and (main_copy is None or main_copy is not copy and main_copy.dialect == copy.dialect)
    )
    if main_copy is not None and not main_copy.bytes_per_second:
        failures.pop(main_copy.verdict.sentence, None)
    lines += [f"Not measured: {names}: {why}" for why, names in failures.items()]
    reasons = _unmeasured_by_reason(report, main_copy)
    # The verdict of a partial report has them.
    gaps = reasons.items() if report.status != "partial" else ()
    lines += [f"Not measured: {names}{_in_brackets(why)}." for why, names in gaps]
    listed = [why for why in (*reasons, *failures) if why]
    missing = (e for e in stages.missing_lines(report) if not any(why in e for why in listed))
    rest = [f"Not tested: {each}." for each in missing]
    lines += rest if len(rest) == 1 and not failures else []
    counts = {
        "Skipped tests": _count(report, Skipped),
        "failed tests": _count(report, Failed),
        "notes": len(report.notes),
    }
    totals = ", ".join(f"{name}: {count}" for name, count in counts.items() if count)
    if totals:
        lines.append(f"{totals[0].upper()}{totals[1:]} (--section skipped).")
    review = sum(len(each.lines) for each in stages.costly(report))
    if review:
        lines.append(f"Settings to review: {review} (--section settings).")
    for index, each in enumerate(lines):
        yield Text(safe(each, LONGEST_LINE), apart=not index)


def _in_brackets(why: str) -> str:
    """Returns a reason in brackets: ` (out of time: use a larger --budget)`."""
    if why.endswith(")"):
        reason, _, remedy = why[:-1].rpartition(" (")
        why = f"{reason}: {remedy}"
    return why and f" ({why})"


def _unmeasured_by_reason(report: Report, copy: CopyDiagnosis | None) -> dict[str, str]:
    """Returns the unmeasured parts of the main copy's path, by the reason."""
    copy_only = bool(report.target.get("copy_alone") or report.target.get("capture"))
    return stages.join_names(() if copy is None or copy_only else _missing_parts(report, copy))


def _missing_parts(report: Report, copy: CopyDiagnosis) -> Iterator[tuple[str, str]]:
    """Yields reason and name of each part that every byte passes and no test measured."""
    if not copy.bytes_per_second:
        return
    if any(each.on_one_host for each in steps.copies(report)):
        return
    sender, receiver = copies.ends(copy)
    limits = [each.part for each in copy.ceilings]
    ceiling_parts = {part if part[0] != "network" else ("network", None) for part in limits}
    parts: list[Part] = [("network", None), ("disk", receiver)]
    if steps.verb_and_cache(copy.copy)[1] == "uncached":
        parts.insert(0, ("disk", sender))
    for component, side in parts:
        name = "raw TCP" if side is None else f"{side} {component}"
        reason = _reason(report, component, side, "read" if side == sender else "write")
        if reason or (reason is not None and (component, side) not in ceiling_parts):
            yield reason, name


def _reason(report: Report, component: str, side: str | None, access: str) -> str | None:
    """Returns why no step measured a part, with a remedy; empty: unknown; None: one did."""
    if report.server is None and side != "client" and not is_supplied(report):
        return f"no agent; use {steps.agent_option(report)}"
    stage, by = ("tcp", "client") if component == "network" else (component, side)
    text = ""
    for step, outcome in report.entries:
        of_disk = component == "disk" and step.setting.get("verb", access) != access
        if step.stage == stage and step.initiator == by and not of_disk:
            match outcome:
                case Skipped(reason):
                    text = text or reason
                case Failed(error):
                    text = text or error
                case _:
                    return None
    return text
