"""A check measures once where nothing looks wrong, again where something does."""

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.cli import check_runs, exits
from bottleneck.cli.check_runs import terms
from bottleneck.cli.documents import Output
from bottleneck.cli.options import Expectations, Time
from bottleneck.login.target import parse
from bottleneck.report import document_file, report
from bottleneck.run.plan import Options
from probes.core.records import Access, Measured, Sample
from probes.core.stage import Refused
from tests import living

RECORDED = Path(__file__).parents[2] / "examples" / "server-disk-read.json"


def like_recorded(factor=1.0, **fields):
    """One run of each step of the recorded report; the uncached pull times a factor."""
    example = report.load(RECORDED)
    entries = []
    for step, outcome in example.entries:
        assert isinstance(outcome, Measured)
        end = outcome.runs[0][-1]
        times = factor if step.setting.get("copy") == "pull.uncached" else 1.0
        run = (Sample(0.0, 0), Sample(end.elapsed_seconds, round(times * end.moved_bytes)))
        entries.append((step, replace(outcome, runs=(run,), details={})))
    return replace(example, entries=tuple(entries), **fields)


@pytest.fixture
def baseline(tmp_path):
    from bottleneck.analysis.diagnosis import diagnose
    from bottleneck.gate.pooled import pooled_report

    three_runs = pooled_report([like_recorded(), like_recorded(0.99), like_recorded(1.01)])
    path = tmp_path / "baseline.json"
    document_file.write(path, report.dumps(three_runs, diagnose(three_runs)))
    return path


@pytest.fixture
def measure(monkeypatch):
    """Runs a check whose runs give these reports, in turn; how many it made, and what they come to.

    An item is a factor of the uncached pull, or a report with the exit code of its run.
    """

    def go(runs, expected, budget=None, repeat=1):
        remaining = list(runs)

        def measured(run_options, access, output):
            reply = remaining.pop(0)
            outcome = reply if isinstance(reply, tuple) else (like_recorded(reply), exits.DONE)
            return outcome[0], None, outcome[1]

        monkeypatch.setattr(check_runs.measuring, "measure", measured)
        planned = check_runs.plan(Time(budget), repeat, expected)
        options = Options(parse("//nas/x"), "/")
        final_report = check_runs.measure_all(options, Access(), Output(), planned, expected)
        return len(runs) - len(remaining), final_report

    return go


def terms_of(*warn, baseline=None):
    return terms(Expectations(warn=list(warn), baseline=baseline and str(baseline)))


def test_what_looks_as_before_is_measured_once(measure, baseline):
    assert measure([0.98, 1, 1, 1], terms_of(baseline=baseline))[0] == 1


def test_what_looks_slower_is_measured_three_times(measure, baseline):
    count, final_report = measure([0.85] * 5, terms_of(baseline=baseline))
    assert count == 3
    copies = [outcome for step, outcome in final_report.entries if step.stage == "smb-copy"]
    assert {len(outcome.runs) for outcome in copies} == {3}


@pytest.mark.long
def test_what_came_and_went_is_outvoted(measure, baseline):
    expected = terms_of(baseline=baseline)
    count, final_report = measure([0.7, 1.0, 0.99, 1, 1], expected)
    assert count == 3
    diagnosis = check_runs.documents.safe_diagnosis(final_report)[0]
    assert expected.judge(final_report, diagnosis, 0.0).state == "ok"


def test_a_limit_that_alarms_is_measured_again(measure):
    limit = "pull.uncached < 20MB/s"
    assert measure([0.7, 0.7, 0.7, 0.7], terms_of(limit), budget=100.0)[0] == 3
    assert measure([1.0, 1.0], terms_of(limit), budget=100.0)[0] == 1


def test_nothing_asked_is_one_run_and_as_many_as_asked_for(measure):
    assert measure([0.5, 0.5, 0.5], terms_of())[0] == 1
    assert measure([1.0] * 5, terms_of(), repeat=4)[0] == 4


def test_no_run_begins_that_has_no_time_left(measure, baseline, monkeypatch):
    monkeypatch.setattr(check_runs, "time", living.FakeClock(step=25.0))
    assert measure([0.85] * 5, terms_of(baseline=baseline))[0] == 1


def test_a_first_run_that_breaks_is_the_report_and_is_not_repeated(measure, baseline):
    broken = like_recorded(status="failed", notes=("the server hung up",))
    count, final_report = measure([(broken, exits.UNREACHABLE), 1], terms_of(baseline=baseline))
    assert (count, final_report.status) == (1, "failed")


def test_a_later_run_that_breaks_leaves_what_was_known(measure, baseline):
    broken = like_recorded(0.1, status="failed")
    count, final_report = measure([0.85, (broken, exits.UNREACHABLE)], terms_of(baseline=baseline))
    assert (count, final_report.status) == (2, "complete")


def test_ctrl_c_in_a_later_run_ends_the_check(measure, baseline):
    stopped = like_recorded(status="interrupted")
    count, final = measure([0.85, (stopped, exits.INTERRUPTED), 1], terms_of(baseline=baseline))
    assert (count, final.status) == (2, "interrupted")


@pytest.mark.parametrize(
    ("budget", "quick", "thorough", "repeat", "total", "each", "most_runs"),
    [
        (None, False, False, 1, 20, 20, 1),
        (None, False, False, 3, 60, 20, 3),
        (60.0, False, False, 1, 60, 60, 1),
        (None, True, False, 1, 20, 20, 1),
        (None, False, True, 1, 300, 300, 1),
        (8.0, False, False, 2, 8, 8, 2),
    ],
)
def test_the_budget_is_that_of_all_runs(budget, quick, thorough, repeat, total, each, most_runs):
    plan = check_runs.plan(Time(budget, quick, thorough), repeat, terms_of())
    assert (plan.total_seconds, plan.each_seconds, plan.most_runs) == (total, each, most_runs)


def test_with_a_baseline_there_is_time_for_three_runs(baseline):
    plan = check_runs.plan(Time(), 1, terms_of(baseline=baseline))
    assert (plan.total_seconds, plan.each_seconds, plan.most_runs) == (60, 20, 3)


@pytest.mark.parametrize("repeat", [0, -1, 1000])
def test_a_number_of_runs_that_cannot_be_is_refused(repeat):
    with pytest.raises(Refused):
        check_runs.plan(Time(), repeat, terms_of())
