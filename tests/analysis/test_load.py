"""Whose CPU set a rate."""

from types import SimpleNamespace

import pytest

from bottleneck.analysis.load import hindrance, load


def usage(**changes):
    told = {
        "wall_seconds": 4.0,
        "core_busy_ratios": (0.2, 0.1),
        "busiest_core_ratio": 0.2,
        "softirq_ratio": 0.01,
        "busiest_process_ratio": 0.1,
        "copy_cpu_seconds": 0.4,
        "other_cpu_seconds": 0.1,
        "quota_cores": None,
        "throttled_ratio": None,
        "quota_file": None,
        "run_delay_seconds": 0.0,
    }
    return SimpleNamespace(**{**told, **changes})


@pytest.mark.parametrize(
    "changes",
    [
        {"throttled_ratio": 0.93, "quota_cores": 0.08},
        {"run_delay_seconds": 3.0},
        {"busiest_process_ratio": 0.97},
        {"core_busy_ratios": (0.98, 0.96), "copy_cpu_seconds": 7.0},
        {
            "core_busy_ratios": (1.0,),
            "busiest_core_ratio": 1.0,
            "other_cpu_seconds": 3.0,
            "run_delay_seconds": 2.0,
        },
        {"core_busy_ratios": (0.98, 0.1), "busiest_core_ratio": 0.98, "softirq_ratio": 0.48},
    ],
    ids=["throttled", "starved", "one thread", "all cores", "crowded", "interrupts on one core"],
)
def test_a_full_or_held_back_host_may_have_set_the_rate(changes):
    assert load(usage(**changes)).bound
    assert hindrance(load(usage(**changes)), "server")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"throttled_ratio": 0.3, "quota_cores": 0.5},
        {"throttled_ratio": 0.0, "run_delay_seconds": 3.0},
        {"core_busy_ratios": (1.0,), "busiest_core_ratio": 1.0, "other_cpu_seconds": 3.6},
        {"run_delay_seconds": 3.0, "other_cpu_seconds": 2.0},
        {"run_delay_seconds": None},
    ],
    ids=[
        "idle",
        "seldom throttled",
        "quota seen and unused",
        "others in idle time",
        "others",
        "untold",
    ],
)
def test_an_idle_host_did_not(changes):
    assert not load(usage(**changes)).bound
    assert hindrance(load(usage(**changes)), "server") is None


def test_nothing_is_deduced_from_nothing():
    assert load(None) is None
    assert load(usage(core_busy_ratios=())) is None
    assert load(usage(wall_seconds=0.0)) is None
    assert hindrance(None, "client") is None


def test_a_quota_above_the_cores_is_none():
    assert load(usage(quota_cores=4.0)).quota_cores is None
    assert load(usage(quota_cores=0.5)).quota_used_ratio == pytest.approx(0.2)


def test_cores_that_others_fill_are_no_cap_of_a_copy_that_did_not_wait():
    """A slow disk's copy needs a twentieth of a core, whoever uses the rest of it."""
    idle_copy = usage(core_busy_ratios=(0.95,), copy_cpu_seconds=0.05, run_delay_seconds=0.01)
    seen = load(idle_copy)
    assert seen is not None and not seen.full and not seen.bound
