"""How a cap is chosen and how sure it is."""

import pytest

from bottleneck.analysis import diagnose


def only(world):
    return diagnose(world.report()).copies[0]


def test_two_ceilings_within_the_noise_are_both_named_with_little_confidence(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 115)
    world.copy("pull.cached", 111, memory=116)
    verdict = only(world).verdict
    assert (verdict.component, verdict.cause) == ("disk", "write")
    assert "the network carries no more than 118 MB/s" in verdict.sentence
    assert verdict.confidence <= 0.6


def test_a_measured_ceiling_goes_before_a_load_that_says_the_same(world):
    busy = {"core_busy_ratios": (0.95, 0.94), "busiest_process_ratio": 0.5, "other_cpu_seconds": 0}
    world.copy("pull.cached", 114, memory=116, client=busy)
    verdict = only(world).verdict
    assert (verdict.component, verdict.cause) == ("network", "link-rate")
    assert "busy" in verdict.sentence
    assert verdict.confidence <= 0.6


@pytest.mark.parametrize(
    ("second", "least", "most"), [(130, 0.5, 0.8), (150, 0.8, 0.92), (500, 0.97, 0.97)]
)
def test_confidence_grows_with_the_margin_to_the_next_ceiling(empty_world, second, least, most):
    world = empty_world()
    world.tcp("pull", (117.5, 117.6, 117.7))
    world.disk("client", "write", second)
    world.copy("pull.cached", (112, 113, 114), memory=116)
    assert least <= only(world).verdict.confidence <= most


def test_scattered_runs_cost_confidence(empty_world):
    def confidence(rates):
        world = empty_world()
        world.tcp("pull", 117.6)
        world.disk("client", "write", 500)
        world.copy("pull.cached", rates)
        return only(world).verdict.confidence

    assert confidence((112, 113, 114)) == 0.97
    assert confidence((98, 113, 116)) == 0.9
    assert confidence((80, 113, 116)) == 0.75


def test_one_run_and_a_gap_below_the_ceiling_cost_confidence(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.copy("pull.cached", 113)
    world.copy("pull.uncached", 101)
    world.disk("server", "read", 500)
    found = diagnose(world.report()).copies
    assert found[0].verdict.confidence == 0.95
    assert found[1].verdict.confidence == 0.85


def test_a_stage_that_nobody_measured_costs_confidence_and_is_said(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.copy("pull.cached", (112, 113, 114))
    found = only(world)
    assert found.verdict.confidence == 0.85
    assert "Not known: what the client's disk would allow." in found.evidence


def test_an_uncached_copy_without_proof_is_less_sure(world):
    world.copy("pull.uncached", (112, 113, 114), memory=116, proven=False)
    found = only(world)
    assert found.verdict.confidence == 0.7
    assert any("could not be proven" in line for line in found.evidence)


def test_spreads_that_meet_reach_a_ceiling(empty_world):
    world = empty_world()
    world.tcp("pull", (100, 117, 118))
    world.disk("client", "write", 500)
    world.copy("pull.cached", (93, 95, 104))
    assert only(world).verdict.component == "network"


def test_a_disk_that_overlaps_in_part_leaves_the_lower_ceiling_named(empty_world):
    """Without the disk it fills the link; with it, it lies between both in turn and at once."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 160)
    world.copy("pull.cached", 84, memory=116)
    verdict = only(world).verdict
    assert (verdict.component, verdict.cause) == ("network", "link-rate")
    assert "overlaps only in part" in verdict.sentence
    assert verdict.confidence <= 0.7


def test_it_is_not_said_where_the_copy_is_slower_than_both_in_turn(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 160)
    world.copy("pull.cached", 40, memory=116)
    assert only(world).verdict.component == "unknown"


def test_it_is_not_said_where_the_copy_without_the_disk_is_unexplained(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 160)
    world.copy("pull.cached", 50, memory=60)
    assert only(world).verdict.component == "unknown"


def test_two_stages_that_take_turns_are_recognised(empty_world):
    verdict = diagnose(turns(empty_world(), cached=112).report()).copies[1].verdict
    assert (verdict.component, verdict.cause) == ("network", "link-rate")
    assert "takes turns with the server's disk (read) (120 MB/s)" in verdict.sentence
    assert verdict.confidence <= 0.75


def turns(world, cached):
    """An uncached pull at half of what the link and the server's disk do; None: no cached one."""
    world.tcp("pull", 117.6)
    world.disk("server", "read", 120)
    world.disk("client", "write", 900)
    if cached is not None:
        world.copy("pull.cached", cached)
    world.copy("pull.uncached", 60)
    return world


@pytest.mark.parametrize("cached", [None, 60, 95], ids=["none", "as slow", "faster, not full"])
def test_arithmetic_alone_takes_no_turns(empty_world, cached):
    """Without the disk it does not reach the link: something else may hold both."""
    report = turns(empty_world(), cached).report()
    assert diagnose(report).copies[-1].verdict.component == "unknown"


def test_stages_that_no_copy_leaves_out_take_no_turns(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", 120)
    world.disk("client", "read", 900)
    world.copy("push.cached", 60, memory=60)
    assert only(world).verdict.component == "unknown"


def test_a_disk_that_makes_no_difference_takes_no_turn(empty_world):
    """Half the link, but no slower with the client's disk than without: it is not the disk."""
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 120)
    world.copy("pull.cached", 60, memory=60)
    assert only(world).verdict.component == "unknown"


BUSY_NEIGHBOUR = {
    "core_busy_ratios": (1.0,),
    "other_cpu_seconds": 2.0,
    "run_delay_seconds": 2.1,
}


def test_scattered_runs_leave_a_cap_that_the_load_itself_shows(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.copy("pull.cached", (20, 40, 60), server=BUSY_NEIGHBOUR)
    verdict = only(world).verdict
    assert verdict.named == ("cpu", "server", "contention")
    assert verdict.confidence <= 0.75


def test_scattered_runs_leave_no_cap_that_a_rate_alone_would_show(world):
    world.copy("pull.cached", (60, 112, 118), memory=116)
    assert only(world).verdict.component == "unknown"


def test_scattered_runs_near_the_tools_ceiling_blame_nobody(empty_world):
    world = empty_world()
    world.loopback("client", 50)
    world.copy("pull.cached", (20, 40, 60))
    assert only(world).verdict.component == "unknown"


PARTLY = {"quota_cores": 0.15, "throttled_ratio": 0.35, "copy_cpu_seconds": 0.4}


def test_a_quota_that_holds_a_part_of_the_time_is_named_where_nothing_is_reached(world):
    world.copy("pull.cached", 70, memory=70, client=PARTLY)
    verdict = only(world).verdict
    assert verdict.named == ("cpu", "client", "quota")
    assert verdict.confidence <= 0.7


def test_it_is_not_where_a_ceiling_is_reached(world):
    world.copy("pull.cached", 116, memory=117, client=PARTLY)
    assert only(world).verdict.component == "network"


def test_it_is_the_rival_of_a_ceiling_that_is_barely_reached(world):
    world.copy("pull.cached", 105, memory=106, client=PARTLY)
    verdict = only(world).verdict
    assert verdict.component == "network"
    assert "the client's CPU quota of 0.15 cores" in verdict.sentence
    assert verdict.confidence <= 0.6


def test_a_quota_and_a_core_that_hold_in_part_are_both_named(world):
    busy = {"core_busy_ratios": (0.85,), "busiest_process_ratio": 0.85, "copy_cpu_seconds": 3.3}
    world.copy("pull.cached", 60, memory=60, client=PARTLY, server=busy)
    verdict = only(world).verdict
    assert (verdict.component, verdict.side) == ("cpu", "client")
    assert "too close to tell" in verdict.sentence
    assert verdict.confidence <= 0.5


def test_a_guest_robbed_of_its_cores_is_less_sure_and_says_so(empty_world):
    sure, robbed = ({}, {"steal_ratio": 0.25})
    found = []
    for load in (sure, robbed):
        world = empty_world()
        world.tcp("pull", 117)
        world.copy("pull.cached", 116, server=load)
        (told,) = diagnose(world.report()).copies
        found.append(told)
    assert found[0].verdict.cause == found[1].verdict.cause == "link-rate"
    assert found[1].verdict.confidence < found[0].verdict.confidence
    assert any("hypervisor" in each for each in found[1].evidence)
    assert not any("hypervisor" in each for each in found[0].evidence)
