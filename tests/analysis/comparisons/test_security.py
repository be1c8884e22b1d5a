"""What signing and encryption take of the rate, and whose CPU bears it."""

import pytest

from bottleneck.analysis import diagnose

FULL = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "security"]


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def costing(seconds_per_gigabyte, rate):
    """A window of 4 s at a rate in MB/s, of which each GB cost so much."""
    return {"copy_cpu_seconds": seconds_per_gigabyte * rate * 4 / 1000}


def test_the_sentence_tells_the_cost_and_the_core_that_bears_it(empty_world):
    world = empty_world()
    world.tax("pull", "plain", about(117), server=costing(0.4, 117))
    world.tax("pull", "signed", about(115), server=costing(0.45, 115))
    world.tax("pull", "encrypted", about(84), server={**costing(1.9, 84), **FULL})
    (found,) = compared(world)
    assert found.sentence == (
        "Pulling at 117 MB/s plain: signing costs no throughput that these runs can tell; "
        "encryption takes 28 % of the rate (84 MB/s left), with 1.9 s/GB of the server's CPU "
        "instead of 0.4 s/GB, and the server's core is full (97 %)."
    )
    assert found.significant
    assert found.ratio == pytest.approx(117 / 84)
    row = found.rows[2]
    assert row["encryption"] == "aes-128-gcm"
    assert row["cost_ratio"] == pytest.approx(0.282, abs=0.001)
    assert row["server_cpu_seconds_per_byte"] == pytest.approx(1.9e-9, rel=0.01)
    assert row["server_busiest_core_ratio"] == 0.97
    assert [each["significant"] for each in found.rows] == [False, False, True]


def test_this_tools_own_full_core_is_called_that(empty_world):
    world = empty_world(agent=False)
    world.tax("push", "plain", about(800))
    world.tax("push", "encrypted", about(300), client={**FULL, "copy_cpu_seconds": 3.9})
    (found,) = compared(world)
    assert "this tool's core on the client is full (97 %)" in found.sentence
    assert "of the client's CPU instead" in found.sentence
    assert found.rows[1]["server_cpu_seconds_per_byte"] is None


def test_each_direction_is_told_apart(empty_world):
    world = empty_world()
    for verb in ("push", "pull"):
        world.tax(verb, "plain", about(100))
        world.tax(verb, "signed", about(50))
    assert [each.sentence.split()[0] for each in compared(world)] == ["Pulling", "Pushing"]


def test_where_plain_is_not_allowed_signed_is_the_base(empty_world):
    world = empty_world()
    world.tax("pull", "signed", about(100))
    world.tax("pull", "encrypted", about(70))
    assert compared(world)[0].sentence.startswith("Pulling at 100 MB/s signed: encryption takes")


def test_what_ran_faster_costs_nothing(empty_world):
    world = empty_world()
    world.tax("pull", "plain", about(50))
    world.tax("pull", "signed", about(70))
    assert "signing runs at 70 MB/s, so it costs no throughput" in compared(world)[0].sentence


def test_a_tick_of_cpu_time_is_no_cost(empty_world):
    """A copy of 1 MiB that took no tick of 10 ms, and one that took one."""
    world = empty_world()
    world.tax("pull", "plain", 0.25, server={"copy_cpu_seconds": 0.0})
    world.tax("pull", "signed", 0.25, server={"copy_cpu_seconds": 0.01})
    assert "CPU" not in compared(world)[0].sentence


def test_single_runs_have_to_differ_by_a_quarter(empty_world):
    world = empty_world()
    world.tax("pull", "plain", 100)
    world.tax("pull", "signed", 85)
    (found,) = compared(world)
    assert not found.significant
    assert "no throughput that these runs can tell" in found.sentence


def test_one_kind_alone_altered_bytes_and_strange_words_compare_nothing(empty_world):
    world = empty_world()
    world.tax("pull", "plain", 100)
    world.tax("pull", "encrypted", 50, hash_ok=False)
    world.tax("pull", "obfuscated", 50)
    world.tax("sideways", "signed", 50)
    assert compared(world) == []
