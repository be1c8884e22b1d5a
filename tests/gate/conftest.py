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
    """A step by the metric that it measures; a copy's own name."""
    folder = step.stage == "smb-copy" and step.setting.get("end") == "folder"
    return step.setting["copy"] if folder else metrics.stage_metric(step)


def scaled(outcome, factors):
    """As many runs as factors, each the first one times its factor."""
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
def as_if(recorded):
    """The same with three quiet runs of each step; rates={metric: factors} for some of them.

    gone: metrics that were skipped.
    """

    def made(rates=None, gone=(), usual=(1.0, 0.99, 1.01), **fields):
        rates = rates or {}
        entries = []
        for step, outcome in recorded.entries:
            name = name_of(step)
            if name in gone:
                entries.append((step, Skipped("the dog ate it")))
            elif isinstance(outcome, Measured) and outcome.runs[0][-1].moved_bytes:
                entries.append((step, scaled(outcome, rates.get(name, usual))))
            else:
                entries.append((step, outcome))
        return replace(recorded, entries=tuple(entries), **fields)

    return made


@pytest.fixture
def changed():
    """A report whose steps of some setting have another one, or whose outcomes are other ones."""

    def made(known, outcome=lambda made: made, setting=None, **of):
        entries = tuple(
            (replace(step, setting={**step.setting, **(setting or {})}), outcome(made))
            if of.items() <= step.setting.items()
            else (step, made)
            for step, made in known.entries
        )
        return replace(known, entries=entries)

    return made


@pytest.fixture
def judged():
    """Judges a report, with what it means."""

    def made(known, *expectations, baseline=None, baselines=(), **more):
        # Another run, be it the same to the last figure: a report is not its own baseline.
        one = baseline and replace(baseline, elapsed_seconds=baseline.elapsed_seconds + 1)
        before = baselines if one is None else (one,)
        return judge(known, diagnose(known), expectations, before, **more)

    return made


@pytest.fixture
def says(judged, golden):
    """Keeps what is judged of a report: the state with its sentence, and a line an expectation."""

    def kept(known, *expectations, **more):
        found = judged(known, *expectations, **more)
        golden(f"{found.state}: {found.sentence}")
        for each in found.judged:
            golden(f"  {json.dumps(asdict(each), allow_nan=False)}")

    return kept


@pytest.fixture
def line():
    """The only line of a judgement about a metric."""

    def found(judgement, metric):
        (each,) = [each for each in judgement.judged if each.metric == metric]
        return each

    return found
