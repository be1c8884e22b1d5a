"""Several runs of one measurement as one report."""

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.gate.pooled import pooled
from bottleneck.report import report
from probes.core.records import Failed, Measured, Skipped, rates


def entry(known, stage, **setting):
    (found,) = [
        outcome
        for step, outcome in known.entries
        if step.stage == stage and setting.items() <= step.setting.items()
    ]
    return found


def test_the_runs_of_each_step_stand_side_by_side(as_if, changed):
    """Also of another run's folder and size."""
    one, two = as_if(usual=(1.0,)), as_if(usual=(0.9,))
    other = changed(two, setting={"folder": "/other", "size_bytes": 7}, end="folder")
    three = pooled([one, other, as_if(usual=(1.1,))])
    assert len(three.entries) == len(one.entries)
    copy = entry(three, "smb-copy", copy="pull.uncached", end="folder")
    spread = rates(copy)
    assert spread.runs == 3 and spread.low < spread.median < spread.high
    assert three.elapsed_seconds == pytest.approx(3 * one.elapsed_seconds)
    assert three.status == "complete"


def test_what_is_pooled_is_a_report_like_any_other(as_if):
    known = pooled([as_if(), as_if(usual=(0.98,))])
    again = report.loads(report.dumps(known, diagnose(known)).encode())
    assert diagnose(again).summary == diagnose(known).summary


def test_one_report_alone_stays_what_it_is(recorded):
    assert pooled([recorded]) == recorded


def test_a_step_that_one_run_could_not_make_is_as_the_others_made_it(as_if):
    partial = as_if(gone=("pull.uncached",), status="partial")
    found = pooled([partial, as_if()])
    assert isinstance(entry(found, "smb-copy", copy="pull.uncached", end="folder"), Measured)
    assert found.status == "complete"
    still = pooled([partial, partial])
    assert isinstance(entry(still, "smb-copy", copy="pull.uncached", end="folder"), Skipped)
    assert still.status == "partial"
    assert pooled([as_if(), as_if(status="failed")]).status == "failed"


def test_a_step_that_broke_once_is_told(as_if):
    known = as_if()
    at = next(i for i, (step, _) in enumerate(known.entries) if step.stage == "tcp")
    entries = list(known.entries)
    entries[at] = (entries[at][0], Failed("the cable burnt"))
    broken = replace(known, entries=tuple(entries))
    found = pooled([known, broken, known]).entries[at][1]
    assert found.details["failed_runs"] == ["the cable burnt"] and len(found.runs) == 6
    assert isinstance(pooled([broken, broken]).entries[at][1], Failed)


@pytest.fixture
def told(as_if, changed):
    """The report whose copy tells something besides."""

    def made(**details):
        more = lambda made: replace(made, details={**made.details, **details})  # noqa: E731
        return changed(as_if(), more, copy="pull.uncached")

    return made


def test_bytes_that_were_altered_once_are_altered(as_if, told):
    assert diagnose(pooled([as_if(), told(hash_ok=False), as_if()])).altered
    unlooked = pooled([as_if(), told(hash_ok=None)])
    assert entry(unlooked, "smb-copy", copy="pull.uncached").details["hash_ok"] is None


def test_a_cache_that_was_not_proven_once_is_not_proven(as_if, told):
    proof = {"side": "server", "requested": "uncached", "proven": False}
    found = pooled([as_if(), told(cache=proof), as_if()])
    assert entry(found, "smb-copy", copy="pull.uncached").details["cache"]["proven"] is False


def test_notes_are_there_once(as_if):
    one, two = as_if(notes=("a", "b")), as_if(notes=("b", "c"))
    assert pooled([one, two]).notes == ("a", "b", "c")


def test_a_stage_that_is_not_its_rate_stays_the_first_one(as_if):
    known = as_if()
    step, made = known.entries[0]
    zones = replace(step, stage="disk", setting={"side": "server", "pattern": "zones"})
    one = replace(known, entries=((zones, made),))
    assert pooled([one, one]).entries == one.entries
