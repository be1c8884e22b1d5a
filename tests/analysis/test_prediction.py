"""The limits after the cap, rung by rung, and the rate that is expected on each."""

import pytest

from bottleneck.analysis.diagnosis import diagnose
from tests.analysis.conftest import World

LINK, READ, CORES = "network/path/link-rate", "disk/server/read", "cpu/server/all-cores"
QUOTA, CROWD = "cpu/server/quota", "cpu/server/contention"
IDLE = {"core_busy_ratios": (0.02,), "busiest_process_ratio": 0.01}
TAKEN = {"softirq_ratio": 0.0, "copy_cpu_seconds": 0.8, "busiest_process_ratio": 0.2}
THROTTLED = {**TAKEN, "quota_cores": 0.2, "throttled_ratio": 0.9, "core_busy_ratios": (0.2,)}
NEIGHBOUR = TAKEN | {"core_busy_ratios": (1.0,), "other_cpu_seconds": 3.0, "run_delay_seconds": 3.0}
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
    world = path(117.6, (24.8, 25, 25.1), (185, 190, 193))
    world.loopback("client", 2100)
    world.loopback("server", 1700)
    return world


# -- the ladder ----------------------------------------------------------------------------------


def test_each_rung_is_the_next_ceiling_with_all_before_it_lifted(chain, expect):
    """It never slows the copy down, and ends at this tool itself."""
    chain.copy("pull.cached", (113, 114, 115), memory=116)
    chain.copy("pull.uncached", (23.5, 23.6, 23.8))
    expect(chain, LINK, READ)
    for copy in diagnose(chain.report()).copies:
        second = copy.ladder[1]
        assert copy.next.words == second.words
        assert copy.next.ceiling_bytes_per_second == second.ceiling_bytes_per_second
        assert copy.predicted_bytes_per_second == second.predicted_bytes_per_second


# -- disks and links -----------------------------------------------------------------------------


# -- processors ----------------------------------------------------------------------------------


@pytest.mark.parametrize("load", [THROTTLED, NEIGHBOUR], ids=["quota", "neighbour"])
@pytest.mark.parametrize("link", [1170, 117.6])
def test_a_cpu_that_is_freed_gives_what_its_time_for_each_byte_allows(load, link, expect):
    """A fifth of a core moved 60 MB/s; the rest of the path carries all of it, or its link less."""
    world = path(link, write=2000)
    world.copy("pull.cached", 60, server=load)
    expect(world, QUOTA if load is THROTTLED else CROWD)


def test_a_full_link_beside_a_full_core_is_named_as_well(expect):
    """Beside the same neighbour TCP had a fifth of the core: a twentieth is not what is left."""
    world = path(write=500)
    world.tcp("pull", 11.77, server=NEIGHBOUR)
    world.copy("pull.cached", 11.5, server={**NEIGHBOUR, "copy_cpu_seconds": 0.2})
    expect(world, "cpu/server/contention")
    assert "Equally likely: the network" in world.diagnosis_of().verdict.sentence


@pytest.mark.parametrize("own_seconds", [3.6, 0.8])
def test_a_core_that_is_full_of_what_nobody_counted_is_named_with_doubt(
    pull_of, own_seconds, expect
):
    """The copy waits for it, which is sure; whose work fills it is not."""
    load = {**UNCOUNTED, "copy_cpu_seconds": own_seconds}
    expect(pull_of(60, link=1170, server=load, client=IDLE), CORES)
