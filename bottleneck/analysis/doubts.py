"""Finds the copies without a clear verdict, and the next stage that would decide between suspects.

Pure: a session calls it between its steps, to spend its time on the stages that decide.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.cap import bounded_confidence, is_scattered
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.sentences import part_name
from bottleneck.report.report import Report
from probes.core.records import SIDES, Measured

CLEAR_CONFIDENCE, CLEAR_BY_LIMITS = 0.8, 0.6
"""Least confidence of a clear verdict; and where the copy's time was not observed."""
KNOWN = 0.5
"""Least probability of all named suspects; below it, the limit is something else."""
Words = tuple[str, str | None]
"""A component and a cause; None: any cause."""

INFERRED_LINK: Words = ("network", "inferred")
"""A link that was not measured alone, as distinct from one that was."""
Speaking = Mapping[str, Iterable[str]]
"""Verdicts that a stage can decide, by its name: COMPONENT/CAUSE, or COMPONENT."""


@dataclass(frozen=True)
class Doubt:
    """A copy whose cap is not clear."""

    copy: str
    dialect: str
    suspects: frozenset[Words]
    """Empty: nothing is named, so that everything is suspected."""
    reason: str
    """Reason for the doubt, as the end of a sentence."""
    unstable: bool
    """Whether its runs lie so far apart that nothing can be named: another run may help."""


@dataclass(frozen=True)
class Look:
    """Stage to run next, and the reason."""

    stage: str
    why: str


def doubts(report: Report, diagnosis: Diagnosis, dialects: Collection[str]) -> tuple[Doubt, ...]:
    """Returns the client's own copies in some dialects without a clear verdict.

    A copy that could not be made is left out: no stage would change that.
    """
    unsteady = (each for each in steps.copies(report) if each.step and is_scattered(each.step.rate))
    apart, settled = {(e.name, e.dialect, e.initiator) for e in unsteady}, _make_is_settled(report)
    return tuple(
        Doubt(
            each.copy,
            each.dialect,
            _suspects(each),
            _reason(each),
            unstable=(each.copy, each.dialect, each.initiator) in apart,
        )
        for each in diagnosis.copies
        if each.initiator == "client" and each.dialect in dialects and each.bytes_per_second
        if not settled(each)
    )


def _make_is_settled(report: Report) -> Callable[[CopyDiagnosis], bool]:
    """Makes the predicate whether no further stage would change a copy's verdict.

    An unproven cold source, or cores taken by a hypervisor, lower the confidence, but no stage
    helps. Runs that lie apart may be resolved by more runs; a source read past the cache once would
    be cached the next time.
    """
    copies = (each for each in steps.copies(report) if each.step is not None)
    by_key = {(each.name, each.dialect, each.initiator): each for each in copies}

    def is_settled(copy: CopyDiagnosis) -> bool:
        measured = by_key.get((copy.copy, copy.dialect, copy.initiator))
        sure = copy.verdict.confidence
        if measured is not None and measured.step is not None:
            if measured.step.details.cache.cold_source:
                return True
            is_timed = copy.time and copy.suspects and not is_scattered(measured.step.rate)
            if is_timed and sure >= bounded_confidence(measured, measured.step, 1.0):
                sure = max(sure, copy.suspects[0].confidence)
        return copy.verdict.component != "unknown" and is_clear(copy, sure)

    return is_settled


def is_clear(copy: CopyDiagnosis, sure: float | None = None) -> bool:
    """Whether a verdict is certain enough to act on; sure: replaces its own confidence."""
    threshold = CLEAR_CONFIDENCE if copy.time else CLEAR_BY_LIMITS
    return (copy.verdict.confidence if sure is None else sure) >= threshold


DiskUse = tuple[str, str]
"""A side, and its disk's verb: read, write."""


def disks_to_measure(
    report: Report, diagnosis: Diagnosis, dialects: Collection[str]
) -> frozenset[DiskUse] | None:
    """Returns the disks to measure alone, if the copies' own time shows their limits.

    These are a disk that limits a copy, to find its cause, the next limit if it is a disk, and the
    disks of the headline's copy, to predict its gain. None: a copy is in doubt, or its time is
    unknown, so that each limit may decide; or a CPU limits one, which may be this tool's own work.
    """
    uses, settled = set[DiskUse](), _make_is_settled(report)
    candidates = [e for e in diagnosis.copies if e.initiator == "client" and e.dialect in dialects]
    measured = [each for each in candidates if each.bytes_per_second]
    for each in measured:
        if not each.time or not settled(each) or each.verdict.component in ("cpu", "unknown"):
            return None
        sender, receiver = SIDES if "push" in each.copy else SIDES[::-1]
        if each.copy == diagnosis.headline:
            uses |= {(receiver, "write"), *([] if ".cached" in each.copy else [(sender, "read")])}
        shares = [share for share in each.time if share.component != "unknown"][:2]
        disks = [share.side for share in shares if share.component == "disk"]
        disks += [each.verdict.side] if each.verdict.component == "disk" else []
        uses |= {(side, "read" if side == sender else "write") for side in disks if side}
    return frozenset(uses) if measured else None


def refining_stage(
    report: Report, diagnosis: Diagnosis, dialects: Collection[str], refines: Speaking
) -> Look | None:
    """Returns the first remaining stage that may find the cause behind a verdict; None: none.

    refines: verdicts by stage: a place, fragments or others' I/O behind a slow disk, signing or
    encryption behind a full core. Even for a certain component the remedy depends on the cause.
    """
    has_tcp = any(step.stage == "tcp" for step, out in report.entries if isinstance(out, Measured))
    by_words = {
        _verdict_words(each, has_tcp): each
        for each in reversed(diagnosis.copies)
        if each.initiator == "client" and each.dialect in dialects
    }
    for stage, behind in refines.items():
        matches = [by_words[words] for words in map(_words, behind) if words in by_words]
        if matches:
            what = f"{matches[0].verdict.component}/{matches[0].verdict.cause}"
            return Look(stage, f"what is behind {what}, the bottleneck of {matches[0].copy}")
    return None


def _verdict_words(copy: CopyDiagnosis, has_tcp: bool) -> Words:
    """Returns a verdict's component and cause; INFERRED_LINK for a link not measured alone."""
    words = (copy.verdict.component, copy.verdict.cause)
    guessed = not has_tcp and any(
        (each.component, each.cause) == words and each.standing == "inferred"
        for each in copy.ceilings
    )
    return INFERRED_LINK if guessed and words == ("network", "link-rate") else words


def _suspects(copy: CopyDiagnosis) -> frozenset[Words]:
    """Returns the two likeliest limits of a copy; empty: any limit is possible."""
    if copy.verdict.component == "unknown" and sum(e.confidence for e in copy.suspects) < KNOWN:
        return frozenset()
    return frozenset((each.component, each.cause) for each in copy.suspects[:2])


def _reason(copy: CopyDiagnosis) -> str:
    suspects = copy.suspects[:2]
    if not suspects or not _suspects(copy):
        return f"the bottleneck of {copy.copy} is not clear"
    names = dict.fromkeys(part_name(each.part) for each in suspects)
    return f"{copy.copy} may be limited by {' or '.join(names)}"


def next_look(unclear: Iterable[Doubt], speaking: Speaking) -> Look | None:
    """Returns the remaining stage that decides the most doubts; None: none decides any."""
    unclear = tuple(unclear)
    spoken = {
        stage: [each for each in unclear if _speaks(tuple(map(_words, words)), each)]
        for stage, words in speaking.items()
    }
    stage_name = max(spoken, key=lambda stage: len(spoken[stage]), default=None)
    if stage_name is None or not spoken[stage_name]:
        return None
    return Look(stage_name, f"to decide: {spoken[stage_name][0].reason}")


def _words(verdict: str) -> Words:
    component, _, cause = verdict.partition("/")
    return component, cause or None


def _speaks(words: tuple[Words, ...], doubt: Doubt) -> bool:
    """Whether a stage decides a doubt; any stage does if everything is suspected."""
    suspects = doubt.suspects | {(component, None) for component, _ in doubt.suspects}
    return bool(words) and not (suspects and suspects.isdisjoint(words))
