"""Against an earlier report: what is slower alarms, what is noise does not."""

import random
import statistics
from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.gate import baseline
from bottleneck.gate.baseline import MetricChange, passes, suspects
from probes.core.records import OWN_COPIES, Sample, Spread

SLOWER = (0.85, 0.84, 0.86)


def test_the_same_again_is_ok(as_if, says):
    says(as_if(usual=(1.01, 0.985, 1.0)), baseline=as_if())


def test_a_disk_that_is_15_percent_slower_alarms_and_is_named(as_if, says):
    slower = as_if({"disk.server.read": SLOWER, "pull.uncached": SLOWER})
    says(slower, baseline=as_if())


def test_without_a_slower_stage_the_cap_is_told(as_if, says):
    says(as_if({"pull.uncached": SLOWER}), baseline=as_if())
    half = (0.5, 0.49, 0.51)
    network = {name: half for name in ("tcp.push", "push.cached", "push.uncached", "push.memory")}
    says(as_if({**network, "tcp.push.many": half}), baseline=as_if())


def test_a_third_less_is_critical(as_if, says):
    says(as_if({"pull.uncached": (0.6, 0.61, 0.59)}), baseline=as_if())


def test_what_is_tolerated_is_no_alarm(as_if, says):
    slower = as_if({"pull.uncached": SLOWER})
    says(slower, baseline=as_if(), tolerance=0.2)
    says(slower, baseline=as_if(), tolerance=0.1)


def test_runs_that_meet_are_no_alarm(as_if, says):
    wide = as_if({"pull.uncached": (0.80, 1.0, 1.05)})
    says(as_if({"pull.uncached": SLOWER}), baseline=wide)


def test_of_a_single_run_a_fifth_less_is_asked_for(judged, as_if, line):
    for base, now in (((1.0,), SLOWER), ((1.0, 1.01, 0.99), (0.85,))):
        judgement = judged(as_if({"pull.uncached": now}), baseline=as_if({"pull.uncached": base}))
        comparison = line(judgement, "pull.uncached")
        assert comparison.state == "ok" and "not significant for a single run" in comparison.message
    judgement = judged(as_if({"pull.uncached": (0.75,)}), baseline=as_if({"pull.uncached": (1.0,)}))
    assert line(judgement, "pull.uncached").state == "warning"


def test_two_percent_less_a_night_are_one_change_and_a_bad_night_is_none(as_if, judged):

    def nights(factors):
        reports = [as_if(usual=(factor,)) for factor in factors]
        return [
            replace(each, started=f"2026-11-{day:02d}T02:00:00+00:00")
            for day, each in enumerate(reports, 1)
        ]

    *earlier, last = nights([1 - 0.02 * night for night in range(12)])
    judgement = judged(last, baselines=earlier)
    assert {each.metric for each in judgement.judged if each.state == "warning"} == {*OWN_COPIES}
    assert "moves 22% less since 2026-11-01" in judgement.sentence
    assert judged(last, baselines=earlier, tolerance=0.25).state == "ok"
    *earlier, last = nights([1, 1.01, 0.6, 0.99, 1, 1, 1.01, 0.99, 1])
    assert judged(last, baselines=earlier).state == "ok"


def test_a_stage_far_above_its_copies_is_not_compared(as_if, says):
    """The server's disk writes 3 GB/s, and the link is one of 1 Gbit/s."""
    slower = as_if({"disk.server.write": (0.3, 0.3, 0.3), "loopback.client": (0.1, 0.1)})
    says(slower, baseline=as_if())
    into_reach = as_if({"disk.server.write": (0.04, 0.041, 0.039)})
    says(into_reach, baseline=as_if())


@pytest.mark.parametrize("metric", ["pull.uncached", "push.cached", "tcp.pull", "disk.server.read"])
def test_what_is_missing_is_unknown_with_the_reason(as_if, metric, says):
    says(as_if(skipped=(metric,)), baseline=as_if())


def test_what_was_never_tried_is_missing_too(as_if, says):
    report = as_if()
    entries = tuple(e for e in report.entries if e[0].setting.get("copy") != "pull.uncached")
    says(replace(report, entries=entries), baseline=report)


def test_another_path_is_unknown(judged, as_if):
    report = as_if()
    for other, what in (
        (as_if(target={**report.target, "share": "//nas/other"}), "share"),
        (as_if(client=replace(report.client, name="elsewhere")), "client"),
        (as_if(server=replace(report.server, name="elsewhere")), "server"),
    ):
        judgement = judged(other, baseline=report)
        assert (judgement.state, len(judgement.judged)) == ("unknown", 1)
        assert f"another {what}" in judgement.sentence
        assert suspects(other, diagnose(other), report) == ()


def test_another_dialect_is_unknown(as_if, changed, says):
    report = as_if()
    (dialect,) = {
        step.setting["dialect"] for step, _ in report.entries if "dialect" in step.setting
    }
    says(changed(report, setting={"dialect": "2.1"}, dialect=dialect), baseline=report)


def test_a_dialect_that_is_tried_only_where_there_is_time_may_be_missing(as_if, changed, says):
    report = as_if()
    old = changed(report, setting={"dialect": "smb1"}).entries
    beside = [each for each in old if each[0].stage == "smb-copy"]
    thorough = replace(report, entries=(*report.entries, *beside))
    says(report, baseline=thorough)
    says(thorough, baseline=report)
    slow = [(step, times(0.5)(outcome)) for step, outcome in beside]
    says(replace(report, entries=(*report.entries, *slow)), baseline=thorough)


def times(factor, seconds=1.0):
    """Changes an outcome to one of so many times the bytes and the time."""
    return lambda outcome: replace(
        outcome,
        runs=tuple(
            tuple(Sample(s.elapsed_seconds * seconds, round(s.moved_bytes * factor)) for s in run)
            for run in outcome.runs
        ),
    )


def test_another_file_size_is_unknown_but_not_where_the_copy_took_as_long(as_if, changed, says):
    report = as_if()
    says(changed(report, times(0.1, 0.1), copy="pull.uncached"), baseline=report)
    # a run makes the file of a slow path so small that the copy takes as long
    says(changed(report, times(0.3), copy="pull.uncached"), baseline=report)


def test_what_is_faster_asks_for_a_new_baseline(as_if, says):
    says(as_if({"pull.uncached": (1.5, 1.49, 1.51)}), baseline=as_if())


def test_an_empty_baseline_is_unknown(as_if, says):
    says(as_if(), baseline=replace(as_if(), entries=()))


def test_a_figure_and_its_limits_are_told_for_graphs(judged, as_if, line):
    comparison = line(judged(as_if(), baseline=as_if()), "pull.uncached")
    warning, critical = (
        float(each.removesuffix(":")) for each in (comparison.warning, comparison.critical)
    )
    assert warning / comparison.value == pytest.approx(1 / 1.1)
    assert critical / comparison.value == pytest.approx(2 / 3)


@pytest.mark.long
def test_what_looks_slower_in_few_runs_is_to_be_measured_again(as_if):
    def slower_metrics(now):
        report = as_if(now, usual=(1.0,))
        return suspects(report, diagnose(report), as_if())

    assert slower_metrics({}) == ()
    assert slower_metrics({"pull.uncached": (0.93,)}) == ("pull.uncached",)
    assert slower_metrics({"pull.uncached": (0.97,)}) == ()
    assert slower_metrics({"pull.uncached": (0.93, 0.93, 0.93)}) == ()
    assert slower_metrics({"disk.server.write": (0.5,)}) == ()


@pytest.mark.parametrize(
    ("copy", "stage", "true"),
    [
        ("pull.uncached", "disk.server.read", True),
        ("pull.cached", "disk.server.read", False),
        ("push.uncached", "disk.client.read", True),
        ("pull.cached", "disk.client.write", True),
        ("push.cached", "disk.server.synced", True),
        ("pull.cached", "disk.server.write", False),
        ("pull.cached", "tcp.pull.many", True),
        ("pull.cached", "tcp.push", False),
        ("push.cached", "push.memory", True),
        ("push.cached", "loopback.client", False),
        ("push.cached", "latency", False),
    ],
)
def test_which_stages_a_copy_passes(copy, stage, true):
    assert passes(copy, stage) is true


def _spread(rates):
    return Spread(statistics.median(rates), min(rates), max(rates), len(rates))


def _alarms(chance, noise_ratio, losses):
    """Whether a check alarms, as check repeats it; losses: of each metric the share that is lost"""
    earlier = [_spread([chance.gauss(1, noise_ratio) for _ in range(3)]) for _ in losses]
    rates = [[] for _ in losses]
    for _ in range(baseline.ENOUGH_RUNS):
        for rates_of_metric, lost in zip(rates, losses, strict=True):
            rates_of_metric.append(chance.gauss(1 - lost, noise_ratio))
        comparisons = [
            MetricChange("pull.cached", old, _spread(new))
            for old, new in zip(earlier, rates, strict=True)
        ]
        if not any(each.loss > baseline.SUSPECT_RATIO for each in comparisons):
            break
    return any(each.slower(baseline.USUAL_TOLERANCE) for each in comparisons)


def test_twenty_unchanged_checks_of_seven_metrics_give_no_alarm_and_15_percent_is_seen():
    """With runs that deviate by 2 %, whatever the luck; see the module's reasons."""
    chance = random.Random(20)
    unchanged = [_alarms(chance, 0.02, [0.0] * 7) for _ in range(20 * 20)]
    slower = [_alarms(chance, 0.02, [0.15]) for _ in range(20 * 20)]
    assert sum(unchanged) == 0
    assert sum(slower) >= 0.99 * len(slower)


def test_a_skipped_step_of_the_baseline_is_not_asked_for(as_if, says):
    report = as_if(skipped=("tcp.pull", "pull.uncached", "disk.server.read"))
    says(as_if(), baseline=report)


def nights(as_if, *uncached):
    """Reports of nights in a row, with one run of an uncached pull each."""
    return [
        replace(as_if({"pull.uncached": (rate,)}), started=f"2026-11-0{night}T02:00:00+00:00")
        for night, rate in enumerate(uncached, 1)
    ]


def test_several_baselines_have_the_noise_of_them_all(judged, as_if, line):
    now = replace(as_if({"pull.uncached": (0.85,)}), started="2026-11-09T02:00:00+00:00")
    quiet, noisy = nights(as_if, 1.0, 1.01, 0.99), nights(as_if, 1.0, 0.8, 1.1)
    assert line(judged(now, baselines=quiet), "pull.uncached").state == "ok"  # a single run now
    lower = replace(as_if({"pull.uncached": (0.7,)}), started=now.started)
    assert line(judged(lower, baselines=quiet), "pull.uncached").state == "warning"
    assert line(judged(now, baselines=noisy), "pull.uncached").state == "ok"


def test_one_bad_night_of_many_hides_no_other(judged, as_if, line):
    now = replace(as_if({"pull.uncached": (0.6,)}), started="2026-11-09T02:00:00+00:00")
    for count, state in ((3, "ok"), (4, "critical")):
        bad = nights(as_if, 0.5, *(1 + index / 100 for index in range(count - 1)))
        assert line(judged(now, baselines=bad), "pull.uncached").state == state


def test_of_several_baselines_earlier_ones_of_the_same_path_count(as_if):
    first, second, third = nights(as_if, 1.0, 0.5, 0.25)
    elsewhere = replace(first, target={**first.target, "share": "//other/x"})
    combined = baseline.together([third, elsewhere, first, second], third)
    assert combined.started == first.started
    assert len(suspects(third, diagnose(third), combined)) > 0


def test_a_report_is_not_its_own_baseline(judged, as_if):
    (report,) = nights(as_if, 1.0)
    for baselines in ([report], [report, report]):
        judgement = judged(report, baselines=baselines)
        assert (judgement.state, judgement.judged[-1].metric) == ("unknown", "baseline")
