"""Merges several runs of one measurement into one report, so that figures carry noise; pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bottleneck.analysis import steps
from bottleneck.report.report import STATUSES, Report, Step
from probes.core.records import Details, Failed, Measured, Outcome, rates

_POOLED = ("loopback", "tcp", "smb-copy", "native-copy")
"""Stages whose runs are pooled; of others, such as a disk's zones, the first outcome counts."""
_VARYING = ("folder", "path", "seconds", "size_bytes", "address")
"""Keys of a setting that differ from run to run without changing the measurement."""


def pooled_report(reports: Sequence[Report]) -> Report:
    """Returns the first report with the runs of the later ones added, step by step.

    A step that failed in one report is taken from the others; steps that the first lacks are
    added. The status is the worst of all, the time the sum; each note occurs once.
    """
    entries: dict[str, tuple[Step, list[Outcome]]] = {}
    for report in reports:
        for step, outcome in report.entries:
            entries.setdefault(_key(step), (step, []))[1].append(outcome)
    merged = tuple((step, _together(step, outcomes)) for step, outcomes in entries.values())
    missing = any(not isinstance(outcome, Measured) for _, outcome in merged)
    worst = max((each.status for each in reports), key=STATUSES.index)
    if worst == "partial" and not missing:
        worst = "complete"
    return replace(
        reports[0],
        status=worst,
        elapsed_seconds=sum(each.elapsed_seconds for each in reports),
        entries=merged,
        notes=tuple(dict.fromkeys(note for each in reports for note in each.notes)),
    )


def _key(step: Step) -> str:
    setting = {k: value for k, value in step.setting.items() if value and k not in _VARYING}
    return repr((step.stage, step.initiator, sorted(setting.items(), key=lambda item: item[0])))


def _together(step: Step, outcomes: Sequence[Outcome]) -> Outcome:
    measured = [each for each in outcomes if isinstance(each, Measured)]
    broken = [each for each in outcomes if isinstance(each, Failed)]
    if not measured:
        return (broken or outcomes)[0]
    sequential = step.setting.get("pattern", "sequential") == "sequential"
    if len(measured) == 1 or not (step.stage in _POOLED or step.stage == "disk" and sequential):
        return measured[0]
    # The details of the median outcome, of an even number the lower one, stand for all.
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
        # A run without duration has no rate, which the analysis reports.
        return 0.0


def _proofs(details: Sequence[Details]) -> Details:
    """Returns the proofs that hold only if each run has them: unaltered bytes, a proven cache."""
    proofs: dict[str, Any] = {}
    if any("hash_ok" in each for each in details):
        checks = [each.get("hash_ok") for each in details]
        proofs["hash_ok"] = False if False in checks else None if None in checks else True
    caches = [each["cache"] for each in details if isinstance(each.get("cache"), dict)]
    if caches:
        unproven = (each for each in caches if each.get("proven") is not True)
        proofs["cache"] = next(unproven, caches[0])
    return proofs
