"""What comes after the cap, rung by rung, and the rate that is expected on each."""

from pathlib import Path

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report.report import load
from tests.analysis.conftest import World

LINK, READ, TOOL = "network/path/link-rate", "disk/server/read", "instrument/client/ceiling"
QUOTA, CROWD = "cpu/server/quota", "cpu/server/contention"
CORES = "cpu/server/all-cores"
IDLE = {"core_busy_ratios": (0.02,), "busiest_process_ratio": 0.01}
TAKEN = {"softirq_ratio": 0.0, "copy_cpu_seconds": 0.8, "busiest_process_ratio": 0.2}
THROTTLED = {**TAKEN, "quota_cores": 0.2, "throttled_ratio": 0.9, "core_busy_ratios": (0.2,)}
CROWDED = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 3.0}
NEIGHBOUR = {**TAKEN, **CROWDED}
UNCOUNTED = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 0.4, "run_delay_seconds": 2.0}


def path(pull=None, read=None, write=None):
    """Makes idle hosts of a path and disks: `path(117.6, read=25, write=500)`."""
    world = World()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    if pull is not None:
        world.tcp("pull", pull)
    if read is not None:
        world.disk("server", "read", read)
    if write is not None:
        world.disk("client", "write", write)
    return world


@pytest.fixture
def chain():
    """A disk of 25 at the server, a gigabit link, a disk of 190 at the client."""
    world = path(117.6, (24.8, 25, 25.1), (185, 190, 193))
    world.loopback("client", 2100)
    world.loopback("server", 1700)
    return world


# -- the ladder ----------------------------------------------------------------------------------


def test_each_rung_is_the_next_ceiling_with_all_before_it_lifted(chain, says):
    """It never slows the copy down, and ends at this tool itself."""
    chain.copy("pull.cached", (113, 114, 115), memory=116)
    chain.copy("pull.uncached", (23.5, 23.6, 23.8))
    says(chain, LINK, READ)
    for found in diagnose(chain.report()).copies:
        second = found.ladder[1]
        assert found.next.words == second.words
        assert found.next.ceiling_bytes_per_second == second.ceiling_bytes_per_second
        assert found.predicted_bytes_per_second == second.predicted_bytes_per_second


def test_where_this_tools_own_process_is_the_next_nothing_comes_after_it(chain, says):
    busy = {"core_busy_ratios": (0.6, 0.02), "busiest_process_ratio": 0.6}
    chain.copy("pull.cached", (113, 114, 115), client=busy)
    says(chain, LINK)


def test_where_this_tool_is_the_cap_nothing_comes_after_it(says):
    world = path(117.6, write=500)
    world.loopback("client", 120)
    world.copy("pull.cached", (113, 114, 115))
    says(world, TOOL)
    assert world.diagnosed().next is world.diagnosed().predicted_bytes_per_second is None


def test_a_copy_whose_cap_is_not_found_has_no_ladder(chain, says):
    chain.copy("pull.cached", (29, 30, 31))
    says(chain, "unknown/inconclusive")


@pytest.mark.parametrize("load", [{}, {"core_busy_ratios": (0.4, 0.2)}], ids=["idle", "busy"])
def test_a_rung_past_an_unknown_stage_has_no_rate(empty_world, load, says):
    world = empty_world(agent=False)
    world.copy("push.cached", 11.5, memory=11.74, client=load)
    says(world, LINK)


# -- disks and links -----------------------------------------------------------------------------


def test_a_faster_disk_helps_until_the_next_ceiling(says):
    world = path(117.6, 25, 500)
    world.copy("pull.uncached", 23.6, memory=24)
    says(world, READ)


def test_no_disk_is_faster_than_the_ram_of_the_cached_copy(says):
    world = path(117.6, 25, 500)
    world.copy("pull.cached", (89, 90, 91), memory=116)
    world.copy("pull.uncached", (23.4, 23.6, 23.8), memory=24)
    assert world.diagnosed(1).predicted_bytes_per_second.median == 90e6
    says(world)


def test_lifting_the_clients_own_disk_gives_the_copy_to_memory(pulled, says):
    says(pulled(21.5, disk=22, memory=116), "disk/client/write")


def test_a_near_tie_promises_hardly_more(pulled, says):
    """Both that fit are spoken of, and neither is sure."""
    says(pulled(114, disk=119), LINK)


def test_a_link_is_exchanged_for_the_standard_one_that_the_next_ceiling_takes(says):
    """Write-back begins when a third has arrived: the 60 MB/s of the disk are not reached."""
    world = path(11.77, write=60)
    world.copy("pull.cached", (11.5, 11.6, 11.7))
    says(world, LINK)
    link = world.diagnosed().ladder[1].assumed_link_bytes_per_second
    assert link == pytest.approx(117.69e6, rel=0.001)


def test_a_slow_direction_is_exchanged_for_the_next_kind_of_link(says):
    """However much its disks and its other direction carry."""
    world = path(11.77, 3000, 1900)
    world.tcp("push", 1170)
    world.copy("pull.cached", 11.6)
    world.copy("pull.uncached", 11.5)
    says(world, LINK, LINK)


# -- processors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("side", ["client", "server"])
def test_a_busy_core_bounds_the_prediction(empty_world, side, says):
    """The server's, or this tool's own at the client."""
    world = empty_world()
    world.tcp("pull", 1170)
    world.disk("server", "read", 200)
    world.disk("client", "write", 900)
    busy = {"core_busy_ratios": (0.6, 0.1), "busiest_process_ratio": 0.6}
    world.copy("pull.uncached", 195, memory=196, **{side: busy})
    says(world, READ)


@pytest.mark.parametrize("load", [THROTTLED, NEIGHBOUR], ids=["quota", "neighbour"])
@pytest.mark.parametrize("link", [1170, 117.6])
def test_a_cpu_that_is_freed_gives_what_its_time_for_each_byte_allows(load, link, says):
    """A fifth of a core moved 60 MB/s; the rest of the path carries all of it, or its link less."""
    world = path(link, write=2000)
    world.copy("pull.cached", 60, server=load)
    says(world, QUOTA if load is THROTTLED else CROWD)


def test_a_full_cpu_has_to_be_so_many_times_as_fast(pulled, says):
    says(pulled(60, server={"core_busy_ratios": (0.99,), "busiest_process_ratio": 0.9}), CORES)


def test_a_full_link_beside_a_full_core_is_named_as_well(says):
    """Beside the same neighbour TCP had a fifth of the core: a twentieth is not what is left."""
    world = path(write=500)
    world.tcp("pull", 11.77, server=NEIGHBOUR)
    world.copy("pull.cached", 11.5, server={**NEIGHBOUR, "copy_cpu_seconds": 0.2})
    says(world, "cpu/server/contention")
    assert "Equally likely: the network" in world.diagnosed().verdict.sentence


@pytest.mark.parametrize("own_seconds", [3.6, 0.8])
def test_a_core_that_is_full_of_what_nobody_counted_is_named_with_doubt(pulled, own_seconds, says):
    """The copy waits for it, which is sure; whose work fills it is not."""
    load = {**UNCOUNTED, "copy_cpu_seconds": own_seconds}
    says(pulled(60, link=1170, server=load, client=IDLE), CORES)


def test_what_ran_under_the_same_quota_bounds_the_prediction_from_below(empty_world, says):
    """Neither TCP nor the disk is known without it: they do so much at least."""
    world = empty_world()
    world.busy["server"] = THROTTLED
    world.tcp("pull", 90)
    world.disk("server", "read", 155)
    world.disk("client", "write", 900)
    world.copy("pull.uncached", 33, client=IDLE)
    says(world, QUOTA)


def test_without_the_stage_that_decides_the_advice_says_which_it_is(says):
    world = path(1170)
    world.copy("pull.cached", 60, server=THROTTLED)
    says(world, QUOTA)


def test_a_copy_over_a_slow_link_tells_little_of_what_the_cpu_allows(empty_world, says):
    """From 12 MB/s and 19 % of a core: a copy over a gigabit ran at 116 MB/s on that machine."""
    world = empty_world()
    world.tcp("push", 11.8)
    world.disk("server", "write", 1890)
    busy = {"core_busy_ratios": (0.19,), "busiest_process_ratio": 0.1, "other_cpu_seconds": 0.0}
    world.copy("push.cached", 11.8, memory=11.9, server=busy)
    says(world, LINK)


def test_a_cpu_is_known_to_carry_what_it_has_carried(empty_world, says):
    """A slow disk leaves the CPU's cost in the noise; the copy to memory shows what it can do."""
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", 18)
    busy = {"core_busy_ratios": (0.25,), "busiest_process_ratio": 0.1, "other_cpu_seconds": 0.0}
    world.tax("push", "signed", 117)
    session = {"signing": "hmac", "encryption": None}
    world.copy("push.cached", (16.8, 17, 17.2), details=session, server=busy)
    says(world, "disk/server/write")


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
