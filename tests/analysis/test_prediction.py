"""What comes after the cap."""

from pathlib import Path

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import load


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
    """Both that fit are spoken of, and neither is sure."""
    found = pulled(114, disk=119)
    assert "one alone gains less than 15%" in found.advice[0]
    assert found.verdict.confidence <= 0.6
    assert "Equally likely:" in found.verdict.sentence
    assert found.advice[0].startswith("Remove both limits") and found.advice[0].count("Use a ") == 2
    assert "Expected without both:" in found.advice[-1]


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


# -- a CPU that a quota or others took ----------------------------------------------------------

IDLE = {"core_busy_ratios": (0.02,), "busiest_process_ratio": 0.01}
QUOTA = {
    **{"quota_cores": 0.2, "throttled_ratio": 0.9, "core_busy_ratios": (0.2,)},
    **{"softirq_ratio": 0.0, "copy_cpu_seconds": 0.8, "busiest_process_ratio": 0.2},
}
NEIGHBOUR = {
    **{"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 3.0},
    **{"softirq_ratio": 0.0, "copy_cpu_seconds": 0.8, "busiest_process_ratio": 0.2},
}


@pytest.mark.parametrize("load", [QUOTA, NEIGHBOUR], ids=["quota", "neighbour"])
@pytest.mark.parametrize(("link", "expected"), [(1170, 300), (117.6, 114)])
def test_a_cpu_that_is_freed_gives_what_its_time_for_each_byte_allows(
    empty_world, load, link, expected
):
    """A fifth of a core moved 60 MB/s; the rest of the path carries all of it, or its link less."""
    world = empty_world()
    world.tcp("pull", link)
    world.disk("client", "write", 2000)
    world.copy("pull.cached", 60, client=IDLE, server=load)
    found = world.diagnosed()
    assert found.verdict.component == "cpu"
    assert found.predicted_bytes_per_second.median == pytest.approx(expected * 1e6, rel=0.05)


def test_a_copy_that_took_less_of_the_cores_than_others_left_did_not_wait_for_them(empty_world):
    """Beside the same neighbour TCP had a fifth of the core: a twentieth is not what is left."""
    world = empty_world()
    world.tcp("pull", 11.77, server=NEIGHBOUR)
    world.disk("client", "write", 500)
    little = {**NEIGHBOUR, "copy_cpu_seconds": 0.2}
    world.copy("pull.cached", 11.5, client=IDLE, server=little)
    found = world.diagnosed()
    assert found.verdict.words == "network/path/link-rate"
    assert found.verdict.confidence > 0.8
    assert found.next.words == "cpu/server/contention"
    assert found.predicted_bytes_per_second.low > 40e6


@pytest.mark.parametrize(("own_seconds", "most"), [(3.6, 0.98), (0.8, 0.65)])
def test_a_core_that_is_full_of_what_nobody_counted_is_named_with_doubt(pulled, own_seconds, most):
    """The copy waits for it, which is sure; whose work fills it is not."""
    told = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 0.4, "run_delay_seconds": 2.0}
    found = pulled(60, link=1170, server={**told, "copy_cpu_seconds": own_seconds}, client=IDLE)
    assert found.verdict.words == "cpu/server/all-cores"
    assert found.verdict.confidence == most


def test_what_ran_under_the_same_quota_bounds_the_prediction_from_below(empty_world):
    """Neither TCP nor the disk is known without it: they do so much at least."""
    world = empty_world()
    world.busy["server"] = QUOTA
    world.tcp("pull", 90)
    world.disk("server", "read", 155)
    world.disk("client", "write", 900)
    world.copy("pull.uncached", 33, client=IDLE)
    found = world.diagnosed()
    assert found.verdict.words == "cpu/server/quota"
    assert 85e6 < found.predicted_bytes_per_second.low < 95e6
    assert 110e6 < found.predicted_bytes_per_second.median < 120e6


def test_without_the_stage_that_decides_the_advice_says_which_it_is(empty_world):
    world = empty_world()
    world.tcp("pull", 1170)
    world.copy("pull.cached", 60, client=IDLE, server=QUOTA)
    found = world.diagnosed()
    assert found.predicted_bytes_per_second is None
    assert found.advice[1].startswith("Not predicted: the client's disk was not measured.")


# -- links --------------------------------------------------------------------------------------


def test_a_slow_direction_is_exchanged_for_the_next_kind_of_link(empty_world):
    """However much its disks and its other direction carry."""
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", 11.77)
    world.tcp("push", 1170)
    world.disk("server", "read", 3000)
    world.disk("client", "write", 1900)
    world.copy("pull.cached", 11.6)
    world.copy("pull.uncached", 11.5)
    for name in ("pull.cached", "pull.uncached"):
        found = world.diagnosed(name)
        assert found.advice[0] == "Use a 1 Gbit/s link."
        assert found.predicted_bytes_per_second.median == pytest.approx(115e6, rel=0.03)


RECORDED = sorted((Path(__file__).parents[1] / "data").glob("report-v1-*.json"))


@pytest.mark.parametrize("file", RECORDED, ids=lambda each: each.stem)
def test_every_cap_of_a_recorded_run_has_a_prediction_or_the_reason_for_none(file):
    """And the links that its ladder takes for exchanged only get faster."""
    for found in diagnose(load(file)).copies:
        links = [each.assumed_link_bytes_per_second for each in found.ladder]
        assert [each for each in links if each] == sorted(filter(None, links))
        if found.verdict.component not in ("unknown", "instrument"):
            told = any("Not predicted:" in line for line in found.advice)
            assert told is (found.predicted_bytes_per_second is None)
