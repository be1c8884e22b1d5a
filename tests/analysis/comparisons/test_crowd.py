"""Strangers on full cores blur a comparison: it is told with that, and never as significant."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

CROWD = {
    "core_busy_ratios": (0.99, 0.98),
    "other_cpu_seconds": 5.0,
    "run_delay_seconds": 3.0,
}


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


@pytest.mark.parametrize("side", ["client", "server"])
def test_what_was_measured_in_a_crowd_is_not_relied_on(empty_world, side):
    world = empty_world()
    world.tax("pull", "plain", about(100))
    world.tax("pull", "signed", about(50), **{side: CROWD})
    (found,) = diagnose(world.report()).comparisons
    assert found.sentence.startswith(
        f"Unreliable (other processes used 62% of the {side}'s CPU, which was full): Pulling runs "
        "at 100 MB/s plain. Signing reduces throughput by 50%"
    )
    assert not found.significant
    assert found.ratio == pytest.approx(2)


def test_a_crowd_beside_another_step_is_none_of_its_business(empty_world):
    world = empty_world()
    world.tcp("pull", 1000, client=CROWD)
    world.tax("pull", "plain", about(100))
    world.tax("pull", "signed", about(50))
    (found,) = diagnose(world.report()).comparisons
    assert found.significant


def test_small_files_name_it_in_their_verdict(empty_world):
    world = empty_world()
    world.small_files("pull", 0.03, 0.01, server=CROWD)
    (found,) = diagnose(world.report()).comparisons
    assert found.rows[0]["verdict"]["cause"] == "contention"
    assert found.sentence.startswith("Small files are pulled")
