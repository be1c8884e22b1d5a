"""The closed set of metrics, and what a report has of each."""

from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.gate import metrics
from bottleneck.report.report import Step
from probes.core.records import Failed, Measured, Skipped
from tests import stored_reports
from tests.stored_reports import diagnose


@pytest.fixture
def readings(recorded):
    return metrics.readings(recorded, diagnose(recorded))


def test_each_copy_and_stage_of_a_report_has_its_rate(readings):
    assert readings["pull.uncached"].value == pytest.approx(24.5e6, rel=0.01)
    assert readings["pull.uncached@3.1.1"].value == readings["headline"].value
    assert readings["headline"].copy.copy == "pull.uncached"
    assert readings["disk.server.read"].value == pytest.approx(25.6e6, rel=0.01)
    assert readings["tcp.pull"].value == pytest.approx(119.5e6, rel=0.01)
    assert 0 < readings["cpu.server"].value < 0.1
    assert 0 < readings["memory.client"].value < 1


@pytest.mark.long
def test_what_no_step_measured_has_no_value_and_says_so(readings):
    latency = metrics.metric_reading(readings, "latency")
    assert latency.value is None and latency.unit == "seconds" and latency.reason
    assert metrics.metric_reading(readings, "pull.uncached@2.1").value is None


def test_a_step_that_was_skipped_or_broke_tells_why(build):
    report = build(skipped=("tcp.pull", "push.cached"))
    step, _ = report.entries[3]
    report = replace(report, entries=(*report.entries, (step, Failed("the cable burnt"))))
    by_metric = metrics.readings(report, diagnose(report))
    assert by_metric["tcp.pull"].value is None and "the dog" in by_metric["tcp.pull"].reason
    assert by_metric["push.cached"].value is None and "the dog" in by_metric["push.cached"].reason


def test_of_two_steps_for_a_metric_the_measured_one_counts(build):
    report = build()
    index = next(i for i, (s, _) in enumerate(report.entries) if s.stage == "tcp")
    step, outcome = report.entries[index]
    twice = ((step, Skipped("no time")), *report.entries)
    by_metric = metrics.readings(replace(report, entries=twice), diagnose(report))
    assert by_metric["tcp.push"].value is not None
    assert isinstance(outcome, Measured)


def test_what_is_no_rate_comes_from_the_steps_that_know_it(recorded):
    usage = recorded.entries[0][1]
    details_of_stage = {
        "latency": {"percentiles": {"p50_seconds": 0.002}},
        "path": {"rtt": {"handshake": {"median_seconds": 0.003}}},
        "small-files": {"seconds_per_file": 0.004},
        "tcp": {"limits": {"loss_ratio": 0.005}},
    }
    entries = tuple(
        (Step(stage, {"verb": "push", "streams": 1}, "client"), replace(usage, details=details))
        for stage, details in details_of_stage.items()
    )
    report = replace(recorded, entries=entries)
    by_metric = metrics.readings(report, diagnose(report))
    values = [by_metric[name].value for name in ("latency", "path.rtt", "small-files.push", "loss")]
    assert values == [0.002, 0.003, 0.004, 0.005]


def test_strange_settings_and_details_raise_nothing(recorded):
    usage = recorded.entries[0][1]
    strange = ({}, {"verb": 7, "streams": "many", "side": None, "pattern": [], "cache": {}})
    stages = ("tcp", "disk", "latency", "path", "small-files", "loopback", "smb-copy", "\x1b[31m")
    entries = tuple(
        (Step(stage, {**setting, "end": "memory"}, "client"), replace(usage, details={"fit": 3}))
        for stage in stages
        for setting in strange
    )
    report = replace(recorded, entries=entries)
    by_metric = metrics.readings(report, diagnose(report))
    assert set(by_metric) <= {*metrics.UNITS} | {f"{c}@3.1.1" for c in metrics.NAMED_COPIES}


@pytest.mark.parametrize("name", [*metrics.UNITS, "pull.cached@smb1", "push.uncached@native"])
def test_every_metric_has_a_unit(name):
    assert metrics.unit(metrics.check(name)) in ("bytes_per_second", "seconds", "ratio")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("pul.uncached", "pull.uncached"),
        ("disk.server.reads", "disk.server.read"),
        ("PATH.RTT", "path.rtt"),
        ("nonsense-beyond-help", "must be one of headline"),
        ("pull.cached@9.9", "3.1.1"),
        ("loss@3.1.1", "cannot have a dialect"),
        ("x" * 10_000, "must be one of"),
    ],
)
def test_an_unknown_metric_is_refused_with_the_near_ones(name, near):
    with pytest.raises(metrics.ExpectationError, match="\\A[^\n]{1,900}\\Z") as caught:
        metrics.check(name)
    assert near in str(caught.value)


def test_older_reports_are_read_too():
    for name in ("report-v1-strange", "report-v1-no-agent", "report-v1-comparisons"):
        report = stored_reports.load(Path(__file__).parents[1] / "data" / f"{name}.json")
        assert metrics.readings(report, diagnose(report))
