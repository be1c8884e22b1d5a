"""Whose CPU set a rate."""

import pytest

from bottleneck.analysis.load import hindrance, load

FULL, QUOTA = "the server's CPU was fully used", "the server's CPU quota was used up"
CROWDED = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 2.0}
HOSTS = {
    "throttled": (QUOTA, {"throttled_ratio": 0.93, "quota_cores": 0.08}),
    "starved": (QUOTA, {"run_delay_seconds": 3.0}),
    "one thread": (FULL, {"busiest_process_ratio": 0.97}),
    "all cores": (FULL, {"core_busy_ratios": (0.98, 0.96), "copy_cpu_seconds": 7.0}),
    "crowded": (FULL, CROWDED),
    "nobody else": (FULL, {"core_busy_ratios": (0.96,), "copy_cpu_seconds": 1.0}),
    "interrupts on one core": (FULL, {"core_busy_ratios": (0.98, 0.1), "softirq_ratio": 0.48}),
    "idle": (None, {}),
    "seldom throttled": (None, {"throttled_ratio": 0.3, "quota_cores": 0.5}),
    "a quota that is seen and unused": (None, {"throttled_ratio": 0.0, "run_delay_seconds": 3.0}),
    "others in idle time": (None, {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.6}),
    "others": (None, {"run_delay_seconds": 3.0, "other_cpu_seconds": 2.0}),
    "not told how long it waited": (None, {"run_delay_seconds": None}),
    "nor beside others in idle time": pytest.param(
        None, {"core_busy_ratios": (1.0,), "run_delay_seconds": None, "copy_cpu_seconds": 0.05}
    ),
    "full cores that a slow copy did not wait for": pytest.param(
        None, {"core_busy_ratios": (0.97,), "copy_cpu_seconds": 0.05, "other_cpu_seconds": 0.0}
    ),
}


@pytest.mark.parametrize(("why", "fields"), HOSTS.values(), ids=HOSTS)
def test_a_full_or_held_back_host_may_have_set_the_rate_and_no_other(usage, why, fields):
    state = load(usage(**{"copy_cpu_seconds": 0.4, "run_delay_seconds": 0.0, **fields}))
    assert hindrance(state, "server") == why
    assert state.may_limit is (why is not None)


def test_nothing_is_deduced_from_nothing(usage):
    for nothing in (None, usage(core_busy_ratios=()), usage(wall_seconds=0.0)):
        assert load(nothing) is hindrance(None, "client") is None


def test_a_quota_above_the_cores_is_none(usage):
    assert load(usage(quota_cores=4.0)).quota_cores is None
    assert load(usage(quota_cores=0.5, copy_cpu_seconds=0.4)).quota_used_ratio == pytest.approx(0.2)
