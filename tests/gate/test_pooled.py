"""Several runs of one measurement as one report."""

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.gate.pooled import pooled_report
from bottleneck.report import report
from probes.core.records import Failed, Measured, Skipped, rates


def entry(report, stage, **setting):
    (outcome,) = [
        outcome
        for step, outcome in report.entries
        if step.stage == stage and setting.items() <= step.setting.items()
    ]
    return outcome


def test_the_runs_of_each_step_stand_side_by_side(build, alter):
    """Also of another run's folder and size."""
    one, two = build(usual=(1.0,)), build(usual=(0.9,))
    other = alter(two, setting={"folder": "/other", "size_bytes": 7}, end="folder")
    three = pooled_report([one, other, build(usual=(1.1,))])
    assert len(three.entries) == len(one.entries)
    copy = entry(three, "smb-copy", copy="pull.uncached", end="folder")
    spread = rates(copy)
    assert spread.runs == 3 and spread.low < spread.median < spread.high
    assert three.elapsed_seconds == pytest.approx(3 * one.elapsed_seconds)
    assert three.status == "complete"


def test_what_is_pooled_is_a_report_like_any_other(build):
    combined = pooled_report([build(), build(usual=(0.98,))])
    again = report.loads(report.dumps(combined, diagnose(combined)).encode())
    assert diagnose(again).summary == diagnose(combined).summary


def test_one_report_alone_stays_what_it_is(recorded):
    assert pooled_report([recorded]) == recorded


def test_a_step_that_one_run_could_not_make_is_as_the_others_made_it(build):
    partial = build(skipped=("pull.uncached",), status="partial")
    combined = pooled_report([partial, build()])
    assert isinstance(entry(combined, "smb-copy", copy="pull.uncached", end="folder"), Measured)
    assert combined.status == "complete"
    still = pooled_report([partial, partial])
    assert isinstance(entry(still, "smb-copy", copy="pull.uncached", end="folder"), Skipped)
    assert still.status == "partial"
    assert pooled_report([build(), build(status="failed")]).status == "failed"


def test_a_step_that_broke_once_is_told(build):
    whole_report = build()
    index = next(i for i, (step, _) in enumerate(whole_report.entries) if step.stage == "tcp")
    entries = list(whole_report.entries)
    entries[index] = (entries[index][0], Failed("the cable burnt"))
    broken = replace(whole_report, entries=tuple(entries))
    outcome = pooled_report([whole_report, broken, whole_report]).entries[index][1]
    assert outcome.details["failed_runs"] == ["the cable burnt"] and len(outcome.runs) == 6
    assert isinstance(pooled_report([broken, broken]).entries[index][1], Failed)


@pytest.fixture
def with_details(build, alter):
    def changed_report(**details):
        change = lambda copy: replace(copy, details={**copy.details, **details})  # noqa: E731
        return alter(build(), change, copy="pull.uncached")

    return changed_report


def test_bytes_that_were_altered_once_are_altered(build, with_details):
    assert diagnose(pooled_report([build(), with_details(hash_ok=False), build()])).altered
    unlooked = pooled_report([build(), with_details(hash_ok=None)])
    assert entry(unlooked, "smb-copy", copy="pull.uncached").details["hash_ok"] is None


def test_a_cache_that_was_not_proven_once_is_not_proven(build, with_details):
    proof = {"side": "server", "requested": "uncached", "proven": False}
    combined = pooled_report([build(), with_details(cache=proof), build()])
    assert entry(combined, "smb-copy", copy="pull.uncached").details["cache"]["proven"] is False


def test_notes_are_there_once(build):
    one, two = build(notes=("a", "b")), build(notes=("b", "c"))
    assert pooled_report([one, two]).notes == ("a", "b", "c")


def test_a_stage_that_is_not_its_rate_stays_the_first_one(build):
    whole_report = build()
    step, outcome = whole_report.entries[0]
    zones = replace(step, stage="disk", setting={"side": "server", "pattern": "zones"})
    one = replace(whole_report, entries=((zones, outcome),))
    assert pooled_report([one, one]).entries == one.entries
