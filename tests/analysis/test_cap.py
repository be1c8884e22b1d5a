"""How a cap is chosen and how sure it is."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

LINK, NOBODY = ("network", "path", "link-rate"), ("unknown", None, "inconclusive")
BUSY_NEIGHBOUR = {"core_busy_ratios": (1.0,), "other_cpu_seconds": 2.0, "run_delay_seconds": 2.1}


def test_two_ceilings_within_the_noise_are_both_named_with_little_confidence(pulled):
    verdict = pulled(111, disk=115, memory=116).verdict
    assert verdict.named == ("disk", "client", "write")
    assert "the network carries at most 118 MB/s" in verdict.sentence
    assert verdict.confidence <= 0.6


def test_a_measured_ceiling_goes_before_a_load_that_says_the_same(world):
    busy = {"core_busy_ratios": (0.95, 0.94), "busiest_process_ratio": 0.5, "other_cpu_seconds": 0}
    world.copy("pull.cached", 114, memory=116, client=busy)
    verdict = world.diagnosed().verdict
    assert verdict.named == LINK
    assert "busy" in verdict.sentence
    assert verdict.confidence <= 0.6


@pytest.mark.parametrize(
    ("second", "least", "most"), [(130, 0.5, 0.8), (150, 0.8, 0.92), (500, 0.99, 0.99)]
)
def test_confidence_grows_with_the_margin_to_the_next_ceiling(pulled, second, least, most):
    found = pulled((112, 113, 114), link=(117.5, 117.6, 117.7), disk=second, memory=116)
    assert least <= found.verdict.confidence <= most


@pytest.mark.parametrize(
    ("rates", "confidence"),
    [((112, 113, 114), 0.99), ((98, 113, 116), 0.96), ((80, 113, 116), 0.75), (113, 0.98)],
)
def test_scattered_runs_and_one_alone_cost_confidence(pulled, rates, confidence):
    assert pulled(rates).verdict.confidence == confidence


def test_a_gap_below_the_ceiling_costs_confidence(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.copy("pull.uncached", 101)
    world.disk("server", "read", 500)
    assert world.diagnosed().verdict.confidence == 0.95


def test_a_stage_that_nobody_measured_costs_confidence_and_is_said(pulled):
    found = pulled((112, 113, 114), disk=None)
    assert found.verdict.confidence == 0.85
    assert "Not measured: the limit of the client's disk." in found.evidence


def test_an_uncached_copy_without_proof_is_less_sure(world):
    world.copy("pull.uncached", (112, 113, 114), memory=116, proven=False)
    found = world.diagnosed()
    assert found.verdict.confidence == 0.7
    assert any(line.startswith("Not verified") for line in found.evidence)


def test_spreads_that_meet_reach_a_ceiling(pulled):
    assert pulled((93, 95, 104), link=(100, 117, 118)).verdict.named == LINK


def test_a_disk_that_overlaps_in_part_leaves_the_lower_ceiling_named(pulled):
    """Without the disk it fills the link; with it, it lies between both in turn and at once."""
    verdict = pulled(84, disk=160, memory=116).verdict
    assert verdict.named == LINK
    assert "overlaps only in part" in verdict.sentence
    assert verdict.confidence <= 0.7


@pytest.mark.parametrize(
    ("rate", "disk", "memory"),
    [(40, 160, 116), (50, 160, 60), (60, 120, 60)],
    ids=[
        "slower than both in turn: no overlap",
        "what it is without the disk is not explained: no overlap",
        "no slower with the disk than without: it takes no turn",
    ],
)
def test_arithmetic_that_the_copy_without_the_disk_refutes_names_nobody(pulled, rate, disk, memory):
    assert pulled(rate, disk=disk, memory=memory).verdict.named == NOBODY


def turns(world, cached):
    """An uncached pull at half of what the link and the server's disk do; None: no cached one."""
    world.tcp("pull", 117.6)
    world.disk("server", "read", 120)
    world.disk("client", "write", 900)
    if cached is not None:
        world.copy("pull.cached", cached)
    world.copy("pull.uncached", 60)
    return diagnose(world.report()).copies[-1].verdict


def test_two_stages_that_take_turns_are_recognised(empty_world):
    verdict = turns(empty_world(), cached=112)
    assert verdict.named == LINK
    assert "takes turns with the server's disk (read), 120 MB/s" in verdict.sentence
    assert verdict.confidence <= 0.75


@pytest.mark.parametrize("cached", [None, 60, 95], ids=["none", "as slow", "faster, not full"])
def test_arithmetic_alone_takes_no_turns(empty_world, cached):
    """Without the disk it does not reach the link: something else may hold both."""
    assert turns(empty_world(), cached).named == NOBODY


def test_stages_that_no_copy_leaves_out_take_no_turns(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", 120)
    world.disk("client", "read", 900)
    world.copy("push.cached", 60, memory=60)
    assert world.named() == NOBODY


def test_scattered_runs_leave_a_cap_that_the_load_itself_shows(pulled):
    verdict = pulled((20, 40, 60), disk=None, server=BUSY_NEIGHBOUR).verdict
    assert verdict.named == ("cpu", "server", "contention")
    assert verdict.confidence <= 0.75


def test_scattered_runs_leave_no_cap_that_a_rate_alone_would_show(world):
    world.copy("pull.cached", (60, 112, 118), memory=116)
    assert world.named() == NOBODY


PARTLY = {"quota_cores": 0.15, "throttled_ratio": 0.35, "copy_cpu_seconds": 0.4}


@pytest.mark.parametrize(("cores", "named"), [(0.15, "quota"), (4.0, "ceiling")])
def test_a_loopback_under_a_quota_is_not_the_tools_ceiling(empty_world, cores, named):
    """It ended before the quota's first stop was counted."""
    alone = empty_world(agent=False)
    alone.loopback("client", 77, client={"quota_cores": cores, "throttled_ratio": 0.0})
    stopped = {"quota_cores": cores, "throttled_ratio": 0.9, "copy_cpu_seconds": 0.6}
    alone.copy("pull.cached", 73, memory=74, client=stopped)
    assert alone.named()[2] == named


def test_a_quota_and_a_core_that_hold_in_part_are_both_named(world):
    busy = {"core_busy_ratios": (0.85,), "busiest_process_ratio": 0.85, "copy_cpu_seconds": 3.3}
    world.copy("pull.cached", 60, memory=60, client=PARTLY, server=busy)
    verdict = world.diagnosed().verdict
    assert (verdict.component, verdict.side) == ("cpu", "client")
    assert "Equally likely" in verdict.sentence
    assert verdict.confidence <= 0.5


def test_a_guest_robbed_of_its_cores_is_less_sure_and_says_so(pulled):
    quiet, robbed = (
        pulled(116, link=117, disk=None, server=load) for load in ({}, {"steal_ratio": 0.25})
    )
    assert quiet.verdict.cause == robbed.verdict.cause == "link-rate"
    assert robbed.verdict.confidence < quiet.verdict.confidence
    assert any("hypervisor" in each for each in robbed.evidence)
    assert not any("hypervisor" in each for each in quiet.evidence)
