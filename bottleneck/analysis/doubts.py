"""Which copies are not clear yet, and which look would tell what is suspected of them apart.

Pure: a session asks it between its steps and spends its time where it decides.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.cap import bounded, scattered
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.sentences import part_name
from bottleneck.report.report import Report
from probes.core.records import SIDES, Measured

CLEAR_CONFIDENCE, CLEAR_BY_LIMITS = 0.8, 0.6
"""From here on a verdict is clear; and that of a copy whose time was not looked at."""
KNOWN = 0.5
"""Sum of the likelihoods of all that has a name, below which the limit is something else."""
Words = tuple[str, str | None]
"""A component and a cause; None: any cause."""

INFERRED_LINK: Words = ("network", "inferred")
"""A link that nobody measured alone, told from one that was."""
Speaking = Mapping[str, Iterable[str]]
"""By the name of a stage the verdicts that it speaks of: COMPONENT/CAUSE, or COMPONENT."""


@dataclass(frozen=True)
class Doubt:
    """A copy whose cap is not clear."""

    copy: str
    dialect: str
    suspects: frozenset[Words]
    """Empty: nothing is named, so that everything may be."""
    reason: str
    """Why it is not clear, as the end of a sentence."""
    unstable: bool
    """Whether its runs lie so far apart that nothing can be named: another may help."""


@dataclass(frozen=True)
class Look:
    """A stage to make next, and why."""

    stage: str
    why: str


def doubts(report: Report, diagnosis: Diagnosis, dialects: Collection[str]) -> tuple[Doubt, ...]:
    """The client's own copies in some dialects that are not clear; empty: a clear case.

    A copy that could not be made at all is none: no look would make it.
    """
    made = (each for each in steps.copies(report) if each.step and scattered(each.step.rate))
    apart, settled = {(e.name, e.dialect, e.initiator) for e in made}, _settled(report)
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


def _settled(report: Report) -> Callable[[CopyDiagnosis], bool]:
    """Tells whether no look would change what is named of a copy.

    That nobody can prove its source to be cold, or that a hypervisor took cores away, is another
    question than what limits it, and no look answers it. Runs that lie apart may be told by more;
    what was read past the cache once would be cached the next time.
    """
    made = {(e.name, e.dialect, e.initiator): e for e in steps.copies(report) if e.step is not None}

    def settled(copy: CopyDiagnosis) -> bool:
        found, sure = made.get((copy.copy, copy.dialect, copy.initiator)), copy.verdict.confidence
        if found is not None and found.step is not None:
            if found.step.details.cache.cold_source:
                return True
            whole = copy.time and copy.suspects and not scattered(found.step.rate)
            if whole and sure >= bounded(found, found.step, 1.0):
                sure = max(sure, copy.suspects[0].confidence)
        return copy.verdict.component != "unknown" and is_clear(copy, sure)

    return settled


def is_clear(copy: CopyDiagnosis, sure: float | None = None) -> bool:
    """Whether a verdict is sure enough to act on; sure: where that is not its own confidence."""
    least = CLEAR_CONFIDENCE if copy.time else CLEAR_BY_LIMITS
    return (copy.verdict.confidence if sure is None else sure) >= least


DiskUse = tuple[str, str]
"""A side, and what its disk does there: read, write."""


def disks_to_measure(
    report: Report, diagnosis: Diagnosis, dialects: Collection[str]
) -> frozenset[DiskUse] | None:
    """What of the disks is worth a look alone, where the copies' own time says what holds them.

    The disk that holds a copy, whose limit alone tells the cause behind it, the one that comes
    next, and all on the way of the headline's copy, to predict its gain. None: a copy is in doubt,
    or its time is unknown, so that each limit may decide; or a CPU holds one, which may be this
    tool's own work.
    """
    found, settled = set[DiskUse](), _settled(report)
    own = [e for e in diagnosis.copies if e.initiator == "client" and e.dialect in dialects]
    made = [each for each in own if each.bytes_per_second]
    for each in made:
        if not each.time or not settled(each) or each.verdict.component in ("cpu", "unknown"):
            return None
        sender, receiver = SIDES if "push" in each.copy else SIDES[::-1]
        if each.copy == diagnosis.headline:
            found |= {(receiver, "write"), *([] if ".cached" in each.copy else [(sender, "read")])}
        named = [share for share in each.time if share.component != "unknown"][:2]
        disks = [share.side for share in named if share.component == "disk"]
        disks += [each.verdict.side] if each.verdict.component == "disk" else []
        found |= {(side, "read" if side == sender else "write") for side in disks if side}
    return frozenset(found) if made else None


def refining(
    report: Report, diagnosis: Diagnosis, dialects: Collection[str], refines: Speaking
) -> Look | None:
    """The first of the stages left that may find a cause behind one that is named; None: none.

    refines: what each is asked to look behind: a place, pieces or others' I/O behind a slow disk,
    signing or encryption behind a full core.

    However sure a component is: what helps depends on the cause.
    """
    alone = any(step.stage == "tcp" for step, out in report.entries if isinstance(out, Measured))
    named = {
        _named(each, alone): each
        for each in reversed(diagnosis.copies)
        if each.initiator == "client" and each.dialect in dialects
    }
    for stage, behind in refines.items():
        found = [named[words] for words in map(_words, behind) if words in named]
        if found:
            what = f"{found[0].verdict.component}/{found[0].verdict.cause}"
            return Look(stage, f"what is behind {what}, the bottleneck of {found[0].copy}")
    return None


def _named(copy: CopyDiagnosis, alone: bool) -> Words:
    """What a verdict names; a link that was not measured alone is told from one that was."""
    words = (copy.verdict.component, copy.verdict.cause)
    guessed = not alone and any(
        (each.component, each.cause) == words and each.standing == "inferred"
        for each in copy.ceilings
    )
    return INFERRED_LINK if guessed and words == ("network", "link-rate") else words


def _suspects(copy: CopyDiagnosis) -> frozenset[Words]:
    """Returns the two likeliest limits of a copy; empty: any may be, known or not."""
    if copy.verdict.component == "unknown" and sum(e.confidence for e in copy.suspects) < KNOWN:
        return frozenset()
    return frozenset((each.component, each.cause) for each in copy.suspects[:2])


def _reason(copy: CopyDiagnosis) -> str:
    suspects = copy.suspects[:2]
    if not suspects or not _suspects(copy):
        return f"the bottleneck of {copy.copy} is not clear"
    named = dict.fromkeys(part_name(each.part) for each in suspects)
    return f"{copy.copy} may be limited by {' or '.join(named)}"


def next_look(found: Iterable[Doubt], speaking: Speaking) -> Look | None:
    """The stage of those left that speaks of the most doubts; None: none speaks of any."""
    found = tuple(found)
    spoken = {
        stage: [each for each in found if _speaks(tuple(map(_words, words)), each)]
        for stage, words in speaking.items()
    }
    most = max(spoken, key=lambda stage: len(spoken[stage]), default=None)
    if most is None or not spoken[most]:
        return None
    return Look(most, f"to decide: {spoken[most][0].reason}")


def _words(verdict: str) -> Words:
    component, _, cause = verdict.partition("/")
    return component, cause or None


def _speaks(words: tuple[Words, ...], doubt: Doubt) -> bool:
    """Where everything is suspected, whatever speaks of anything does."""
    suspects = doubt.suspects | {(component, None) for component, _ in doubt.suspects}
    return bool(words) and not (suspects and suspects.isdisjoint(words))
