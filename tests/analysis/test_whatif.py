"""The ladder: cap, next, next; and the rate of the copy on each rung."""

import pytest

from bottleneck.analysis.diagnosis import diagnose

MB = 1e6
IDLE = {"core_busy_ratios": (0.02, 0.02), "busiest_process_ratio": 0.01}


def rungs(found):
    return [(each.component, each.cause) for each in found.ladder]


def medians(found):
    return [
        each.predicted_bytes_per_second and each.predicted_bytes_per_second.median / MB
        for each in found.ladder
    ]


@pytest.fixture
def chain(empty_world):
    """A disk of 25 at the server, a gigabit link, a disk of 190 at the client; CPUs idle."""
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.loopback("client", 2100)
    world.loopback("server", 1700)
    world.tcp("pull", 117.6)
    world.disk("server", "read", (24.8, 25, 25.1))
    world.disk("client", "write", (185, 190, 193))
    return world


def test_each_rung_is_the_next_ceiling_with_all_before_it_lifted(chain):
    chain.copy("pull.cached", (113, 114, 115), memory=116)
    chain.copy("pull.uncached", (23.5, 23.6, 23.8))
    found = chain.diagnosed("pull.uncached")
    assert rungs(found)[:3] == [("disk", "read"), ("network", "link-rate"), ("disk", "write")]
    assert medians(found)[0] == pytest.approx(23.6)
    assert medians(found)[1] == pytest.approx(114)
    assert medians(found)[2] == pytest.approx(190, rel=0.2)


def test_next_and_predicted_are_the_second_rung(chain):
    chain.copy("pull.cached", (113, 114, 115), memory=116)
    chain.copy("pull.uncached", (23.5, 23.6, 23.8))
    for found in diagnose(chain.report()).copies:
        second = found.ladder[1]
        assert second.component == found.next.component
        assert second.ceiling_bytes_per_second == found.next.ceiling_bytes_per_second
        assert second.predicted_bytes_per_second == found.predicted_bytes_per_second


def test_lifting_more_never_slows_the_copy_down(chain):
    chain.copy("pull.cached", (113, 114, 115), memory=116)
    chain.copy("pull.uncached", (23.5, 23.6, 23.8))
    for found in diagnose(chain.report()).copies:
        assert medians(found) == sorted(medians(found))


def test_the_ladder_ends_at_this_tool_itself(chain):
    chain.copy("pull.cached", (113, 114, 115))
    assert all(each.component != "instrument" for each in chain.diagnosed("pull.cached").ladder)


def test_where_this_tools_own_process_is_the_next_nothing_comes_after_it(chain):
    busy = {"core_busy_ratios": (0.6, 0.02), "busiest_process_ratio": 0.6}
    chain.copy("pull.cached", (113, 114, 115), client=busy)
    assert rungs(chain.diagnosed("pull.cached"))[-1] == ("instrument", "ceiling")


def test_where_this_tool_is_the_cap_nothing_comes_after_it(empty_world):
    world = empty_world()
    world.loopback("client", 120)
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.copy("pull.cached", (113, 114, 115))
    found = world.diagnosed("pull.cached")
    assert rungs(found) == [("instrument", "ceiling")]
    assert found.next is None
    assert found.predicted_bytes_per_second is None


def test_a_copy_whose_cap_is_not_found_has_no_ladder(chain):
    chain.copy("pull.cached", (29, 30, 31))
    found = chain.diagnosed("pull.cached")
    assert found.verdict.component == "unknown"
    assert found.ladder == ()


def test_a_rung_past_an_unknown_stage_has_no_rate(empty_world):
    world = empty_world(agent=False)
    busy = {"core_busy_ratios": (0.4, 0.2), "busiest_process_ratio": 0.2}
    world.copy("push.cached", 11.5, memory=11.74, client=busy)
    found = world.diagnosed("push.cached")
    assert len(found.ladder) > 1
    assert medians(found)[1:] == [None] * (len(found.ladder) - 1)


def test_a_link_is_exchanged_for_the_standard_one_that_the_next_ceiling_takes(empty_world):
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", 11.77)
    world.disk("client", "write", 60)
    world.copy("pull.cached", (11.5, 11.6, 11.7))
    found = world.diagnosed("pull.cached")
    assert found.ladder[1].assumed_link_bytes_per_second == pytest.approx(117.69e6, rel=0.001)
    assert "Use a 1 Gbit/s link." in found.advice[0]
    assert found.advice[1].startswith("Expected: ")
    # Write-back begins when a third has arrived: 60 MB/s are not reached.
    assert found.predicted_bytes_per_second.median == pytest.approx(51e6, rel=0.03)


def test_a_copy_over_a_slow_link_tells_little_of_what_the_cpu_allows(empty_world):
    """From 12 MB/s and 19 % of a core: a copy over a gigabit ran at 116 MB/s on that machine."""
    world = empty_world()
    world.tcp("push", 11.8)
    world.disk("server", "write", 1890)
    busy = {"core_busy_ratios": (0.19,), "busiest_process_ratio": 0.1, "other_cpu_seconds": 0.0}
    world.copy("push.cached", 11.8, memory=11.9, server=busy)
    found = world.diagnosed("push.cached")
    cpu = next(each for each in found.ceilings if (each.component, each.side) == ("cpu", "server"))
    assert cpu.low_bytes_per_second == pytest.approx(11.8e6 / 0.19, rel=0.01)
    assert cpu.bytes_per_second > 116e6
    assert found.predicted_bytes_per_second.median == pytest.approx(115e6, rel=0.03)
    assert found.predicted_bytes_per_second.low < 65e6


def test_a_cpu_is_known_to_carry_what_it_has_carried(empty_world):
    """A slow disk leaves the CPU's cost in the noise; the copy to memory shows what it can do."""
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", 18)
    busy = {"core_busy_ratios": (0.25,), "busiest_process_ratio": 0.1, "other_cpu_seconds": 0.0}
    world.tax("push", "signed", 117)
    world.copy(
        "push.cached",
        (16.8, 17, 17.2),
        details={"signing": "hmac", "encryption": None},
        server=busy,
    )
    found = world.diagnosed("push.cached")
    assert found.verdict.component == "disk"
    assert found.predicted_bytes_per_second.median == pytest.approx(115e6, rel=0.03)
