"""Several runs of the same measurement as one report, so that figures carry their noise; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bottleneck.analysis import steps
from bottleneck.report.report import STATUSES, Report, Step
from probes.core.records import Details, Failed, Measured, Outcome, rates

_POOLED = ("loopback", "tcp", "smb-copy", "native-copy")
"""Stages that are their rate; of others the first outcome stands, as of a disk's zones."""
_VARYING = ("folder", "path", "seconds", "size_bytes", "address")
"""Of a setting: what is another in each run, and measures the same."""


def pooled(reports: Sequence[Report]) -> Report:
    """The first report with the runs of the later ones beside its own, step by step.

    A step that one of them could not make is as the others made it; one that the first has not is
    added. The status is the worst of all, the time their sum, notes are there once.
    """
    entries: dict[str, tuple[Step, list[Outcome]]] = {}
    for report in reports:
        for step, outcome in report.entries:
            entries.setdefault(_key(step), (step, []))[1].append(outcome)
    made = tuple((step, _together(step, outcomes)) for step, outcomes in entries.values())
    missing = any(not isinstance(outcome, Measured) for _, outcome in made)
    worst = max((each.status for each in reports), key=STATUSES.index)
    if worst == "partial" and not missing:
        worst = "complete"
    return replace(
        reports[0],
        status=worst,
        elapsed_seconds=sum(each.elapsed_seconds for each in reports),
        entries=made,
        notes=tuple(dict.fromkeys(note for each in reports for note in each.notes)),
    )


def _key(step: Step) -> str:
    told = {name: value for name, value in step.setting.items() if value and name not in _VARYING}
    return repr((step.stage, step.initiator, sorted(told.items(), key=lambda item: item[0])))


def _together(step: Step, outcomes: Sequence[Outcome]) -> Outcome:
    measured = [each for each in outcomes if isinstance(each, Measured)]
    broken = [each for each in outcomes if isinstance(each, Failed)]
    if not measured:
        return (broken or outcomes)[0]
    sequential = step.setting.get("pattern", "sequential") == "sequential"
    if len(measured) == 1 or not (step.stage in _POOLED or step.stage == "disk" and sequential):
        return measured[0]
    # What the one saw whose rate is the median, of an even number the lower, stands for all.
    middle = sorted(measured, key=_rate)[(len(measured) - 1) // 2]
    details = {**middle.details, **_proofs([each.details for each in measured])}
    failed = [*steps.texts(middle.details, "failed_runs"), *(each.error for each in broken)]
    if failed:
        details["failed_runs"] = failed
    runs = tuple(run for each in measured for run in each.runs)
    return replace(middle, runs=runs, details=details)


def _rate(measured: Measured) -> float:
    try:
        return rates(measured).median
    except (ValueError, IndexError):
        # A run without duration has none, and the analysis says so of it.
        return 0.0


def _proofs(details: Sequence[Details]) -> Details:
    """What holds only where it held each time: unaltered bytes, a proven cache."""
    found: dict[str, Any] = {}
    if any("hash_ok" in each for each in details):
        told = [each.get("hash_ok") for each in details]
        found["hash_ok"] = False if False in told else None if None in told else True
    caches = [each["cache"] for each in details if isinstance(each.get("cache"), dict)]
    if caches:
        unproven = (each for each in caches if each.get("proven") is not True)
        found["cache"] = next(unproven, caches[0])
    return found
