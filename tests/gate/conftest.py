"""A recorded report, and reports as it could have been with other rates."""

import json
from dataclasses import asdict, replace
from pathlib import Path

import pytest

from bottleneck.gate import metrics
from bottleneck.gate.judging import judge
from probes.core.records import Measured, Sample, Skipped
from tests import stored_reports
from tests.stored_reports import diagnose

RECORDED = Path(__file__).parents[2] / "examples" / "server-disk-read.json"


def name_of(step):
    """Returns the name of a copy; of another step, its metric."""
    folder = step.stage == "smb-copy" and step.setting.get("end") == "folder"
    return step.setting["copy"] if folder else metrics.stage_metric(step)


def scaled_outcome(outcome, factors):
    """Returns the outcome with one run per factor, each the first run times its factor."""
    first = outcome.runs[0]
    last = first[-1]
    runs = tuple(
        (Sample(0.0, 0), Sample(last.elapsed_seconds, round(last.moved_bytes * factor)))
        for factor in factors
    )
    details = {
        name: value
        for name, value in outcome.details.items()
        if name != "window_rates_bytes_per_second"
    }
    return replace(outcome, runs=runs, details=details)


@pytest.fixture(scope="session")
def recorded():
    """The server's disk reads 25 MB/s, at a link of 1 Gbit/s; all was measured."""
    return stored_reports.load(RECORDED)


@pytest.fixture
def build(recorded):
    """Makes a report with three quiet runs per step; rates: factors by metric; skipped: metrics."""

    def varied(rates=None, skipped=(), usual=(1.0, 0.99, 1.01), **fields):
        rates = rates or {}
        entries = []
        for step, outcome in recorded.entries:
            name = name_of(step)
            if name in skipped:
                entries.append((step, Skipped("the dog ate it")))
            elif isinstance(outcome, Measured) and outcome.runs[0][-1].moved_bytes:
                entries.append((step, scaled_outcome(outcome, rates.get(name, usual))))
            else:
                entries.append((step, outcome))
        return replace(recorded, entries=tuple(entries), **fields)

    return varied


@pytest.fixture
def alter():
    """Returns a report with changed outcomes or settings in the steps that match."""

    def changed_report(report, outcome=lambda measured: measured, setting=None, **matching):
        entries = tuple(
            (replace(step, setting={**step.setting, **(setting or {})}), outcome(measured))
            if matching.items() <= step.setting.items()
            else (step, measured)
            for step, measured in report.entries
        )
        return replace(report, entries=entries)

    return changed_report


@pytest.fixture
def gate():
    def judgement_of(report, *expectations, baseline=None, baselines=(), **options):
        # A report is not its own baseline, so an equal one gets another duration.
        one = baseline and replace(baseline, elapsed_seconds=baseline.elapsed_seconds + 1)
        earlier = baselines if one is None else (one,)
        return judge(report, diagnose(report), expectations, earlier, **options)

    return judgement_of


@pytest.fixture
def keep(gate, golden):
    """Keeps what is judged of a report: the state with its sentence, and a line an expectation."""

    def store(report, *expectations, **options):
        judgement = gate(report, *expectations, **options)
        golden(f"{judgement.state}: {judgement.sentence}")
        for each in judgement.judged:
            golden(f"  {json.dumps(asdict(each), allow_nan=False)}")

    return store


@pytest.fixture
def ruling():
    def only_line(judgement, metric):
        (each,) = [each for each in judgement.judged if each.metric == metric]
        return each

    return only_line
