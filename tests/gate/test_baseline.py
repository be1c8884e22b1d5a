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


def test_the_same_again_is_ok(build, keep):
    keep(build(usual=(1.01, 0.985, 1.0)), baseline=build())


def test_a_disk_that_is_15_percent_slower_alarms_and_is_named(build, keep):
    slower = build({"disk.server.read": SLOWER, "pull.uncached": SLOWER})
    keep(slower, baseline=build())


def test_without_a_slower_stage_the_cap_is_told(build, keep):
    keep(build({"pull.uncached": SLOWER}), baseline=build())
    half = (0.5, 0.49, 0.51)
    network = {name: half for name in ("tcp.push", "push.cached", "push.uncached", "push.memory")}
    keep(build({**network, "tcp.push.many": half}), baseline=build())


def test_a_third_less_is_critical(build, keep):
    keep(build({"pull.uncached": (0.6, 0.61, 0.59)}), baseline=build())


def test_what_is_tolerated_is_no_alarm(build, keep):
    slower = build({"pull.uncached": SLOWER})
    keep(slower, baseline=build(), tolerance=0.2)
    keep(slower, baseline=build(), tolerance=0.1)


def test_runs_that_meet_are_no_alarm(build, keep):
    wide = build({"pull.uncached": (0.80, 1.0, 1.05)})
    keep(build({"pull.uncached": SLOWER}), baseline=wide)


def test_of_a_single_run_a_fifth_less_is_asked_for(gate, build, ruling):
    for base, now in (((1.0,), SLOWER), ((1.0, 1.01, 0.99), (0.85,))):
        judgement = gate(build({"pull.uncached": now}), baseline=build({"pull.uncached": base}))
        comparison = ruling(judgement, "pull.uncached")
        assert comparison.state == "ok" and "not significant for a single run" in comparison.message
    judgement = gate(build({"pull.uncached": (0.75,)}), baseline=build({"pull.uncached": (1.0,)}))
    assert ruling(judgement, "pull.uncached").state == "warning"


def test_two_percent_less_a_night_are_one_change_and_a_bad_night_is_none(build, gate):

    def nights(factors):
        reports = [build(usual=(factor,)) for factor in factors]
        return [
            replace(each, started=f"2026-11-{day:02d}T02:00:00+00:00")
            for day, each in enumerate(reports, 1)
        ]

    *earlier, last = nights([1 - 0.02 * night for night in range(12)])
    judgement = gate(last, baselines=earlier)
    assert {each.metric for each in judgement.judged if each.state == "warning"} == {*OWN_COPIES}
    assert "moves 22% less since 2026-11-01" in judgement.sentence
    assert gate(last, baselines=earlier, tolerance=0.25).state == "ok"
    *earlier, last = nights([1, 1.01, 0.6, 0.99, 1, 1, 1.01, 0.99, 1])
    assert gate(last, baselines=earlier).state == "ok"


def test_a_stage_far_above_its_copies_is_not_compared(build, keep):
    """The server's disk writes 3 GB/s, and the link is one of 1 Gbit/s."""
    slower = build({"disk.server.write": (0.3, 0.3, 0.3), "loopback.client": (0.1, 0.1)})
    keep(slower, baseline=build())
    into_reach = build({"disk.server.write": (0.04, 0.041, 0.039)})
    keep(into_reach, baseline=build())


@pytest.mark.parametrize("metric", ["pull.uncached", "push.cached", "tcp.pull", "disk.server.read"])
def test_what_is_missing_is_unknown_with_the_reason(build, metric, keep):
    keep(build(skipped=(metric,)), baseline=build())


def test_what_was_never_tried_is_missing_too(build, keep):
    report = build()
    entries = tuple(e for e in report.entries if e[0].setting.get("copy") != "pull.uncached")
    keep(replace(report, entries=entries), baseline=report)


def test_another_path_is_unknown(gate, build):
    report = build()
    for other, what in (
        (build(target={**report.target, "share": "//nas/other"}), "share"),
        (build(client=replace(report.client, name="elsewhere")), "client"),
        (build(server=replace(report.server, name="elsewhere")), "server"),
    ):
        judgement = gate(other, baseline=report)
        assert (judgement.state, len(judgement.judged)) == ("unknown", 1)
        assert f"another {what}" in judgement.sentence
        assert suspects(other, diagnose(other), report) == ()


def test_another_dialect_is_unknown(build, alter, keep):
    report = build()
    (dialect,) = {
        step.setting["dialect"] for step, _ in report.entries if "dialect" in step.setting
    }
    keep(alter(report, setting={"dialect": "2.1"}, dialect=dialect), baseline=report)


def test_a_dialect_that_is_tried_only_where_there_is_time_may_be_missing(build, alter, keep):
    report = build()
    old = alter(report, setting={"dialect": "smb1"}).entries
    beside = [each for each in old if each[0].stage == "smb-copy"]
    thorough = replace(report, entries=(*report.entries, *beside))
    keep(report, baseline=thorough)
    keep(thorough, baseline=report)
    slow = [(step, times(0.5)(outcome)) for step, outcome in beside]
    keep(replace(report, entries=(*report.entries, *slow)), baseline=thorough)


def times(factor, seconds=1.0):
    """Changes an outcome to one of so many times the bytes and the time."""
    return lambda outcome: replace(
        outcome,
        runs=tuple(
            tuple(Sample(s.elapsed_seconds * seconds, round(s.moved_bytes * factor)) for s in run)
            for run in outcome.runs
        ),
    )


def test_another_file_size_is_unknown_but_not_where_the_copy_took_as_long(build, alter, keep):
    report = build()
    keep(alter(report, times(0.1, 0.1), copy="pull.uncached"), baseline=report)
    # a run makes the file of a slow path so small that the copy takes as long
    keep(alter(report, times(0.3), copy="pull.uncached"), baseline=report)


def test_what_is_faster_asks_for_a_new_baseline(build, keep):
    keep(build({"pull.uncached": (1.5, 1.49, 1.51)}), baseline=build())


def test_an_empty_baseline_is_unknown(build, keep):
    keep(build(), baseline=replace(build(), entries=()))


def test_a_figure_and_its_limits_are_told_for_graphs(gate, build, ruling):
    comparison = ruling(gate(build(), baseline=build()), "pull.uncached")
    warning, critical = (
        float(each.removesuffix(":")) for each in (comparison.warning, comparison.critical)
    )
    assert warning / comparison.value == pytest.approx(1 / 1.1)
    assert critical / comparison.value == pytest.approx(2 / 3)


@pytest.mark.long
def test_what_looks_slower_in_few_runs_is_to_be_measured_again(build):
    def slower_metrics(now):
        report = build(now, usual=(1.0,))
        return suspects(report, diagnose(report), build())

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
    return any(each.is_slower(baseline.USUAL_TOLERANCE) for each in comparisons)


def test_twenty_unchanged_checks_of_seven_metrics_give_no_alarm_and_15_percent_is_seen():
    """With runs that deviate by 2 %, whatever the luck; see the module's reasons."""
    chance = random.Random(20)
    unchanged = [_alarms(chance, 0.02, [0.0] * 7) for _ in range(20 * 20)]
    slower = [_alarms(chance, 0.02, [0.15]) for _ in range(20 * 20)]
    assert sum(unchanged) == 0
    assert sum(slower) >= 0.99 * len(slower)


def test_a_skipped_step_of_the_baseline_is_not_asked_for(build, keep):
    report = build(skipped=("tcp.pull", "pull.uncached", "disk.server.read"))
    keep(build(), baseline=report)


def nights(build, *uncached):
    """Reports of nights in a row, with one run of an uncached pull each."""
    return [
        replace(build({"pull.uncached": (rate,)}), started=f"2026-11-0{night}T02:00:00+00:00")
        for night, rate in enumerate(uncached, 1)
    ]


def test_several_baselines_have_the_noise_of_them_all(gate, build, ruling):
    now = replace(build({"pull.uncached": (0.85,)}), started="2026-11-09T02:00:00+00:00")
    quiet, noisy = nights(build, 1.0, 1.01, 0.99), nights(build, 1.0, 0.8, 1.1)
    assert ruling(gate(now, baselines=quiet), "pull.uncached").state == "ok"  # a single run now
    lower = replace(build({"pull.uncached": (0.7,)}), started=now.started)
    assert ruling(gate(lower, baselines=quiet), "pull.uncached").state == "warning"
    assert ruling(gate(now, baselines=noisy), "pull.uncached").state == "ok"


def test_one_bad_night_of_many_hides_no_other(gate, build, ruling):
    now = replace(build({"pull.uncached": (0.6,)}), started="2026-11-09T02:00:00+00:00")
    for count, state in ((3, "ok"), (4, "critical")):
        bad = nights(build, 0.5, *(1 + index / 100 for index in range(count - 1)))
        assert ruling(gate(now, baselines=bad), "pull.uncached").state == state


def test_of_several_baselines_earlier_ones_of_the_same_path_count(build):
    first, second, third = nights(build, 1.0, 0.5, 0.25)
    elsewhere = replace(first, target={**first.target, "share": "//other/x"})
    combined = baseline.together([third, elsewhere, first, second], third)
    assert combined.started == first.started
    assert len(suspects(third, diagnose(third), combined)) > 0


def test_a_report_is_not_its_own_baseline(gate, build):
    (report,) = nights(build, 1.0)
    for baselines in ([report], [report, report]):
        judgement = gate(report, baselines=baselines)
        assert (judgement.state, judgement.judged[-1].metric) == ("unknown", "baseline")
