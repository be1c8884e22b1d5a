"""What comes after the cap."""

import pytest


def test_a_faster_disk_helps_until_the_next_ceiling(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 25)
    world.disk("client", "write", 500)
    world.copy("pull.uncached", 23.6, memory=24)
    found = world.diagnosed()
    predicted = found.predicted_bytes_per_second
    assert 23.6e6 < predicted.low < predicted.median < predicted.high <= 117.6e6 * 1.03
    assert found.next.component == "network"
    assert "118 MB/s or more" in found.advice[0]


def test_no_disk_is_faster_than_the_ram_of_the_cached_copy(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 25)
    world.disk("client", "write", 500)
    world.copy("pull.cached", (89, 90, 91), memory=116)
    world.copy("pull.uncached", (23.4, 23.6, 23.8), memory=24)
    assert world.diagnosed(1).predicted_bytes_per_second.median == 90e6


def test_lifting_the_clients_own_disk_gives_the_copy_to_memory(pulled):
    found = pulled(21.5, disk=22, memory=116)
    assert found.predicted_bytes_per_second.median == 116e6


def test_nothing_is_predicted_past_a_stage_that_nobody_measured(empty_world):
    world = empty_world(agent=False)
    world.copy("push.cached", 11.5, memory=11.74)
    found = world.diagnosed()
    assert found.verdict.component == "network"
    assert found.predicted_bytes_per_second is None


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_busy_core_bounds_the_prediction(empty_world, side):
    """The server's, or this tool's own at the client."""
    world = empty_world()
    world.tcp("pull", 1170)
    world.disk("server", "read", 200)
    world.disk("client", "write", 900)
    busy = {"core_busy_ratios": (0.6, 0.1), "busiest_process_ratio": 0.6}
    world.copy("pull.uncached", 195, memory=196, **{side: busy})
    found = world.diagnosed()
    if side == "client":
        assert (found.next.component, found.next.side) == ("instrument", "client")
        assert "The next limit is this tool on the client, about 325 MB/s" in found.advice[1]
    else:
        assert found.next.component == "cpu"
        assert found.next.ceiling_bytes_per_second == pytest.approx(195e6 / 0.6)
        assert found.predicted_bytes_per_second.median <= 195e6 / 0.6


def test_a_near_tie_promises_hardly_more(pulled):
    assert "Removing this bottleneck alone gains less than 15%" in pulled(114, disk=119).advice[0]


def test_a_larger_quota_is_advised_with_a_factor(pulled):
    quota = {"quota_cores": 0.08, "throttled_ratio": 0.9, "core_busy_ratios": (0.08,)}
    found = pulled(30, server=quota)
    assert "`cpu.max` of its cgroup, now 0.08 cores" in found.advice[0]
    assert found.predicted_bytes_per_second.median > 30e6


@pytest.mark.parametrize(
    ("loads", "words"),
    [
        ({"core_busy_ratios": (0.99,), "busiest_process_ratio": 0.9}, "times as fast"),
        (
            {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 2.0},
            "Find the other processes on the server",
        ),
    ],
)
def test_cpu_advice_says_what_has_to_change(pulled, loads, words):
    assert words in pulled(60, server=loads).advice[0]
