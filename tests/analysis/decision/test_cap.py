"""Tests the choice of a cap, its confidence, and what stands of a copy whose runs scatter."""

import pytest

LINK, NOBODY = "network/path/link-rate", "unknown/inconclusive"
WRITE, CORES = "disk/client/write", "cpu/server/all-cores"
QUOTA, CROWD = "cpu/server/quota", "cpu/server/contention"
CROWDED = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 2.1}
FULL = {"core_busy_ratios": (0.98, 0.97), "busiest_process_ratio": 0.6, "copy_cpu_seconds": 7.0}
SCATTERED = (20, 40, 60)
STEADY = (112, 113, 114)


def quota(throttled_ratio, copy_cpu_seconds=1.2):
    """Half a core, 60 % of it used; the copy was stopped in a share of the periods."""
    return {
        "quota_cores": 0.5,
        "throttled_ratio": throttled_ratio,
        "copy_cpu_seconds": copy_cpu_seconds,
    }


def all_cores(busy_ratio):
    return {"core_busy_ratios": (busy_ratio,) * 2, "busiest_process_ratio": 0.5}


def one_core(busy_ratio):
    return {"core_busy_ratios": (busy_ratio, 0.2), "busiest_process_ratio": busy_ratio}


def fast(**loads):
    """A link and a disk far above the copy, whose CPU is busy."""
    return {"link": 1100, "disk": 900, **loads}


STOPPED = quota(0.93, copy_cpu_seconds=2.0)
CONFIDENCE = {
    "two ceilings within the noise": (LINK, 111, {"disk": 115, "memory": 116}),
    "steady runs": (LINK, STEADY, {}),
    "spreads that meet": (LINK, (93, 95, 104), {"link": (100, 117, 118)}),
    "a guest robbed of its cores": pytest.param(
        LINK, 116, {"link": 117, "disk": None, "server": {"steal_ratio": 0.25}}
    ),
}
PART_OF_THE_TIME = {
    "a quota now and then": (NOBODY, 70, {"server": quota(0.1)}),
    "a quota half of the time": ("cpu/client/quota", 70, {"client": quota(0.5)}),
    "a quota hardly ever": (NOBODY, 70, {"server": quota(0.09)}),
    "a quota most of the time": (QUOTA, 70, {"server": STOPPED}),
    "quotas on both hosts": pytest.param(NOBODY, 70, {"client": quota(0.3), "server": quota(0.3)}),
    "cores that are nearly full": (NOBODY, 240, fast(server=all_cores(0.82))),
    "a core that is nearly full": ("cpu/server/one-core", 240, fast(server=one_core(0.82))),
    "a core that this tool nearly fills": pytest.param(
        "instrument/client/ceiling", 240, fast(client=one_core(0.88))
    ),
    "cores with room": (NOBODY, 240, fast(client=all_cores(0.78))),
    "a core with room": ("cpu/client/one-core", 240, fast(client=one_core(0.78))),
    "full cores": (CORES, 240, fast(server=all_cores(0.97))),
    "a full core": ("cpu/server/one-core", 240, fast(server=one_core(0.97))),
    "nearly full cores where a ceiling is reached": pytest.param(
        LINK, 0.87 * 117.6, {"client": all_cores(0.85), "server": all_cores(0.85)}
    ),
    "what other processes use": pytest.param(
        NOBODY, 240, fast(client={**all_cores(0.85), "other_cpu_seconds": 4.8})
    ),
}
SCATTER = {
    "contention": (CROWD, SCATTERED, {"server": CROWDED}),
    "a quota": (QUOTA, SCATTERED, {"server": STOPPED}),
    "full cores": (CORES, SCATTERED, {"server": FULL}),
    "contention of steady runs": pytest.param(
        CROWD, (39.5, 40, 40.5), {"server": {**CROWDED, "run_delay_seconds": 4.0}}
    ),
    "a disk": (NOBODY, SCATTERED, {"disk": 41}),
    "a link": (NOBODY, SCATTERED, {"link": 41}),
    "a quota now and then": (NOBODY, SCATTERED, {"server": quota(0.3)}),
    "a nearly full CPU": (NOBODY, SCATTERED, {"client": all_cores(0.85)}),
    "up to the link": (NOBODY, (60, 112, 118), {"memory": 116}),
    "one run of four that another load spoilt": (WRITE, (40, 39, 12, 41), {"disk": 41}),
    "two of eight": (WRITE, (40, 39, 12, 41, 40, 39, 41, 80), {"disk": 41}),
}


@pytest.mark.parametrize(("cap", "rate", "extra"), CONFIDENCE.values(), ids=CONFIDENCE)
def test_a_verdict_is_as_sure_as_its_weakest_part(pull_of, cap, rate, extra, expect):
    expect(pull_of(rate, **extra), cap)


@pytest.mark.parametrize(("cap", "rate", "extra"), PART_OF_THE_TIME.values(), ids=PART_OF_THE_TIME)
def test_what_held_a_copy_for_a_part_of_the_time_is_named_with_doubt(
    pull_of, cap, rate, extra, expect
):
    expect(pull_of(rate, **extra), cap)


@pytest.mark.parametrize(("cap", "rate", "extra"), SCATTER.values(), ids=SCATTER)
def test_of_scattered_runs_only_what_the_load_itself_shows_stands(
    pull_of, cap, rate, extra, expect
):
    expect(pull_of(rate, **extra), cap)


def test_an_uncached_copy_without_proof_is_less_sure(world, expect):
    world.copy("pull.uncached", STEADY, memory=116, proven=False)
    expect(world, LINK)


@pytest.mark.parametrize(
    ("cores", "cap"), [(0.15, "cpu/client/quota"), (4.0, "instrument/client/ceiling")]
)
def test_a_loopback_under_a_quota_is_not_the_tools_ceiling(empty_world, cores, cap, expect):
    """It ended before the quota's first stop was counted."""
    world = empty_world(agent=False)
    world.loopback("client", 77, client={"quota_cores": cores, "throttled_ratio": 0.0})
    stopped = {"quota_cores": cores, "throttled_ratio": 0.9, "copy_cpu_seconds": 0.6}
    world.copy("pull.cached", 73, memory=74, client=stopped)
    expect(world, cap)


def test_of_a_quota_and_a_core_that_hold_in_part_the_fuller_one_is_named(world, expect):
    busy = {"core_busy_ratios": (0.85,), "busiest_process_ratio": 0.85, "copy_cpu_seconds": 3.3}
    partly = {"quota_cores": 0.15, "throttled_ratio": 0.35, "copy_cpu_seconds": 0.4}
    world.copy("pull.cached", 60, memory=60, client=partly, server=busy)
    expect(world, CORES)


def test_a_host_that_a_transfer_for_comparison_kept_busy_is_no_cpu_cap_of_a_copy(pull_of, expect):
    world, busy = pull_of(60), {**CROWDED, **FULL}
    lossless = {"sent_datagrams": 1000, "received_datagrams": 1000, "lost_datagrams": 0}
    rates = {"sent_bytes_per_second": 9e6, "pace_ratio": 1.0, "payload_bytes": 1448}
    world.add("udp", "client", {"verb": "pull"}, 9, lossless | rates, client=busy, server=busy)
    expect(world, NOBODY)


def test_a_measured_ceiling_goes_before_a_load_that_says_the_same(world, expect):
    busy = {"core_busy_ratios": (0.95, 0.94), "busiest_process_ratio": 0.5, "other_cpu_seconds": 0}
    world.copy("pull.cached", 114, memory=116, client=busy)
    expect(world, LINK)


def test_the_tools_own_ceiling_does_not_stand_in_scattered_runs(empty_world, expect):
    world = empty_world()
    world.loopback("client", 55)
    world.tcp("pull", 117.6)
    world.copy("pull.cached", SCATTERED)
    expect(world, NOBODY)
