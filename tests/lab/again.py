"""Saved reports of the worlds, diagnosed and judged again with today's analysis: no measuring."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from experiment import Ran, Terms
from judge import rates, verdicts
from truth import LabWorld

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import ReportError, load, to_json


def judged_again(folder: Path, worlds: Sequence[LabWorld], terms: Terms) -> Iterator[Ran]:
    """What each world's report in a folder (WORLD.json) says today; without one it is left out.

    A file that is no report counts as a run that broke.
    """
    for chosen in worlds:
        file = folder / f"{chosen.name}.json"
        if file.exists():
            yield _judged(file, chosen, terms)


def diagnosed(file: Path) -> dict[str, Any]:
    """CONTRACT's document of a saved report, its diagnosis anew. Errors: ReportError."""
    report = load(file)
    return to_json(report, diagnose(report))


def _judged(file: Path, chosen: LabWorld, terms: Terms) -> Ran:
    told: dict[str, Any] | None
    try:
        told, message = diagnosed(file), ""
    except ReportError as error:
        told, message = None, str(error)
    return Ran(
        world=chosen.name,
        planted=chosen.planted,
        clear=chosen.clear,
        exit_code=None,
        elapsed_seconds=told["elapsed_seconds"] if told else 0.0,
        allowed_seconds=terms.budget_of(chosen),
        iperf3_bytes_per_second={},
        verdicts=tuple(verdicts(chosen, told, agent=terms.agent)) if told else (),
        rates=tuple(rates(chosen, told, {})) if told else (),
        headline=told["diagnosis"]["headline"] if told else None,
        left_behind=(),
        foreign_peak_cores=0.0,
        disturbed=False,
        message=message,
    )
