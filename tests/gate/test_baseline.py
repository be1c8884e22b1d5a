"""Against an earlier report: what is slower alarms, what is noise does not."""

import random
import statistics
from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.gate import baseline
from bottleneck.gate.baseline import Compared, passes, suspects
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
        found = judged(as_if({"pull.uncached": now}), baseline=as_if({"pull.uncached": base}))
        told = line(found, "pull.uncached")
        assert told.state == "ok" and "not significant for a single run" in told.message
    found = judged(as_if({"pull.uncached": (0.75,)}), baseline=as_if({"pull.uncached": (1.0,)}))
    assert line(found, "pull.uncached").state == "warning"


def test_two_percent_less_a_night_are_one_change_and_a_bad_night_is_none(as_if, judged):

    def nights(factors):
        made = [as_if(usual=(factor,)) for factor in factors]
        return [
            replace(each, started=f"2026-11-{day:02d}T02:00:00+00:00")
            for day, each in enumerate(made, 1)
        ]

    *before, last = nights([1 - 0.02 * night for night in range(12)])
    found = judged(last, baselines=before)
    assert {each.metric for each in found.judged if each.state == "warning"} == {*OWN_COPIES}
    assert "moves 22% less since 2026-11-01" in found.sentence
    assert judged(last, baselines=before, tolerance=0.25).state == "ok"
    *before, last = nights([1, 1.01, 0.6, 0.99, 1, 1, 1.01, 0.99, 1])
    assert judged(last, baselines=before).state == "ok"


def test_a_stage_far_above_its_copies_is_not_compared(as_if, says):
    """The server's disk writes 3 GB/s, and the link is one of 1 Gbit/s."""
    slower = as_if({"disk.server.write": (0.3, 0.3, 0.3), "loopback.client": (0.1, 0.1)})
    says(slower, baseline=as_if())
    into_reach = as_if({"disk.server.write": (0.04, 0.041, 0.039)})
    says(into_reach, baseline=as_if())


@pytest.mark.parametrize("metric", ["pull.uncached", "push.cached", "tcp.pull", "disk.server.read"])
def test_what_is_missing_is_unknown_with_the_reason(as_if, metric, says):
    says(as_if(gone=(metric,)), baseline=as_if())


def test_what_was_never_tried_is_missing_too(as_if, says):
    known = as_if()
    entries = tuple(e for e in known.entries if e[0].setting.get("copy") != "pull.uncached")
    says(replace(known, entries=entries), baseline=known)


def test_another_path_is_unknown(judged, as_if):
    known = as_if()
    for other, what in (
        (as_if(target={**known.target, "share": "//nas/other"}), "share"),
        (as_if(client=replace(known.client, name="elsewhere")), "client"),
        (as_if(server=replace(known.server, name="elsewhere")), "server"),
    ):
        found = judged(other, baseline=known)
        assert (found.state, len(found.judged)) == ("unknown", 1)
        assert f"another {what}" in found.sentence
        assert suspects(other, diagnose(other), known) == ()


def test_another_dialect_is_unknown(as_if, changed, says):
    known = as_if()
    (own,) = {step.setting["dialect"] for step, _ in known.entries if "dialect" in step.setting}
    says(changed(known, setting={"dialect": "2.1"}, dialect=own), baseline=known)


def test_a_dialect_that_is_tried_only_where_there_is_time_may_be_missing(as_if, changed, says):
    known = as_if()
    old = changed(known, setting={"dialect": "smb1"}).entries
    beside = [each for each in old if each[0].stage == "smb-copy"]
    more = replace(known, entries=(*known.entries, *beside))
    says(known, baseline=more)
    says(more, baseline=known)
    slow = [(step, times(0.5)(made)) for step, made in beside]
    says(replace(known, entries=(*known.entries, *slow)), baseline=more)


def times(factor, seconds=1.0):
    """Changes an outcome to one of so many times the bytes and the time."""
    return lambda made: replace(
        made,
        runs=tuple(
            tuple(Sample(s.elapsed_seconds * seconds, round(s.moved_bytes * factor)) for s in run)
            for run in made.runs
        ),
    )


def test_another_file_size_is_unknown_but_not_where_the_copy_took_as_long(as_if, changed, says):
    known = as_if()
    says(changed(known, times(0.1, 0.1), copy="pull.uncached"), baseline=known)
    # a run makes the file of a slow path so small that the copy takes as long
    says(changed(known, times(0.3), copy="pull.uncached"), baseline=known)


def test_what_is_faster_asks_for_a_new_baseline(as_if, says):
    says(as_if({"pull.uncached": (1.5, 1.49, 1.51)}), baseline=as_if())


def test_an_empty_baseline_is_unknown(as_if, says):
    says(as_if(), baseline=replace(as_if(), entries=()))


def test_a_figure_and_its_limits_are_told_for_graphs(judged, as_if, line):
    told = line(judged(as_if(), baseline=as_if()), "pull.uncached")
    warning, critical = (float(each.removesuffix(":")) for each in (told.warning, told.critical))
    assert warning / told.value == pytest.approx(1 / 1.1)
    assert critical / told.value == pytest.approx(2 / 3)


@pytest.mark.long
def test_what_looks_slower_in_few_runs_is_to_be_measured_again(as_if):
    def named(now):
        known = as_if(now, usual=(1.0,))
        return suspects(known, diagnose(known), as_if())

    assert named({}) == ()
    assert named({"pull.uncached": (0.93,)}) == ("pull.uncached",)
    assert named({"pull.uncached": (0.97,)}) == ()
    assert named({"pull.uncached": (0.93, 0.93, 0.93)}) == ()
    assert named({"disk.server.write": (0.5,)}) == ()


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
    before = [_spread([chance.gauss(1, noise_ratio) for _ in range(3)]) for _ in losses]
    rates = [[] for _ in losses]
    for _ in range(baseline.ENOUGH_RUNS):
        for told, lost in zip(rates, losses, strict=True):
            told.append(chance.gauss(1 - lost, noise_ratio))
        found = [
            Compared("pull.cached", old, _spread(new))
            for old, new in zip(before, rates, strict=True)
        ]
        if not any(each.lost > baseline.SUSPECT_RATIO for each in found):
            break
    return any(each.slower(baseline.USUAL_TOLERANCE) for each in found)


def test_twenty_unchanged_checks_of_seven_metrics_give_no_alarm_and_15_percent_is_seen():
    """With runs that deviate by 2 %, whatever the luck; see the module's reasons."""
    chance = random.Random(20)
    unchanged = [_alarms(chance, 0.02, [0.0] * 7) for _ in range(20 * 20)]
    slower = [_alarms(chance, 0.02, [0.15]) for _ in range(20 * 20)]
    assert sum(unchanged) == 0
    assert sum(slower) >= 0.99 * len(slower)


def test_a_skipped_step_of_the_baseline_is_not_asked_for(as_if, says):
    known = as_if(gone=("tcp.pull", "pull.uncached", "disk.server.read"))
    says(as_if(), baseline=known)


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
        bad = nights(as_if, 0.5, *(1 + at / 100 for at in range(count - 1)))
        assert line(judged(now, baselines=bad), "pull.uncached").state == state


def test_of_several_baselines_earlier_ones_of_the_same_path_count(as_if):
    first, second, third = nights(as_if, 1.0, 0.5, 0.25)
    elsewhere = replace(first, target={**first.target, "share": "//other/x"})
    found = baseline.together([third, elsewhere, first, second], third)
    assert found.started == first.started
    assert len(suspects(third, diagnose(third), found)) > 0


def test_a_report_is_not_its_own_baseline(judged, as_if):
    (known,) = nights(as_if, 1.0)
    for baselines in ([known], [known, known]):
        found = judged(known, baselines=baselines)
        assert (found.state, found.judged[-1].metric) == ("unknown", "baseline")
