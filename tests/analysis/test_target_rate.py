"""What it takes to reach a rate: each ceiling that is too low, and to what number."""

import pytest

from bottleneck.analysis import diagnose

MB = 1e6
IDLE = {"core_busy_ratios": (0.02, 0.02), "busiest_process_ratio": 0.01}


def asked(world, name, rate):
    report = world.report(target_rate_bytes_per_second=rate * MB)
    return next(each for each in diagnose(report).copies if each.copy == name).target


def needs(target):
    return {(each.component, each.cause): each.to_bytes_per_second / MB for each in target.needs}


@pytest.fixture
def slow(empty_world):
    """A server's disk of 25 behind 100 Mbit/s, a client's disk of 60; idle CPUs."""
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.loopback("client", 2100)
    world.loopback("server", 1700)
    world.tcp("pull", 11.77)
    world.disk("server", "read", (24.8, 25, 25.1))
    world.disk("client", "write", (58, 60, 61))
    world.copy("pull.uncached", (11.5, 11.6, 11.7))
    return world


def test_nothing_is_said_where_nothing_was_asked(slow):
    assert diagnose(slow.report()).copies[0].target is None


def test_a_rate_that_the_copy_has_is_reached(slow):
    target = asked(slow, "pull.uncached", 11.6)
    assert target.reached
    assert target.needs == ()
    assert target.unknown == ()


def test_only_what_is_too_low_has_to_change(slow):
    target = asked(slow, "pull.uncached", 20)
    assert not target.reached
    assert list(needs(target)) == [("network", "link-rate")]
    assert "a 1 Gbit/s link (it carries 11.8 MB/s)" in target.needs[0].sentence


def test_each_ceiling_on_the_way_is_named_with_its_number(slow):
    target = asked(slow, "pull.uncached", 100)
    found = needs(target)
    assert list(found) == [("network", "link-rate"), ("disk", "read"), ("disk", "write")]
    assert 100 < found["network", "link-rate"] < 110
    # A disk works beside the transfer from some time on, and has to make up for it.
    assert 100 < found["disk", "read"] < 110
    assert 130 < found["disk", "write"] < 160
    assert "the server's disk must read" in target.needs[1].sentence
    assert "the client's disk must write" in target.needs[2].sentence
    assert [each.from_bytes_per_second for each in target.needs] == [11.77e6, 25e6, 60e6]


def test_what_was_not_measured_cannot_be_told(empty_world):
    world = empty_world(agent=False)
    world.tcp("push", 11.77)
    world.copy("push.cached", 11.5, memory=11.6)
    target = asked(world, "push.cached", 100)
    assert "the server's disk would allow 100 MB/s" in " ".join(target.unknown)


def test_a_cap_that_was_not_found_is_no_promise(empty_world):
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.copy("pull.cached", (29, 30, 31))
    target = asked(world, "pull.cached", 100)
    assert target.needs == ()
    assert "What holds it at 30 MB/s was not found" in target.unknown[0]


def test_a_cap_has_to_rise_even_where_it_is_nearly_what_is_wanted(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 25)
    world.disk("client", "write", 500)
    world.copy("pull.uncached", 23.6)
    assert needs(asked(world, "pull.uncached", 24.6))["disk", "read"] > 25


def test_a_window_has_to_let_more_through(empty_world, sockets):
    world = empty_world()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    world.tcp("pull", 117.6)
    world.disk("client", "write", 900)
    told = sockets(
        receive_window_limited_ratio=0.9,
        peer_window_bytes_median=131072,
        in_flight_bytes_median=130000,
        min_rtt_seconds=0.016,
        rtt_seconds_median=0.0163,
    )
    world.copy("pull.cached", (7.9, 8, 8.1), details={"sockets": told})
    target = asked(world, "pull.cached", 50)
    assert needs(target)["tcp", "receive-window"] >= 50
    assert "the client's TCP must allow" in target.needs[0].sentence
    assert "(receive-window holds it at" in target.needs[0].sentence


def test_a_cpu_has_to_do_so_many_times_as_much(empty_world):
    world = empty_world()
    world.tcp("pull", 1170)
    world.disk("client", "write", 900)
    busy = {"core_busy_ratios": (0.99, 0.98), "busiest_process_ratio": 0.7}
    world.copy("pull.cached", 100, server=busy)
    target = asked(world, "pull.cached", 200)
    assert "the server's CPU must do 2.0x as much" in target.needs[0].sentence


def test_forced_writes_are_named_by_their_cause(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", 180)
    world.busy = {"client": dict(IDLE), "server": dict(IDLE)}
    setting = {"side": "server", "verb": "write", "cache": "uncached", "pattern": "synced"}
    world.add("disk", "server", setting, 25, {"request_bytes": 1 << 20})
    world.copy("push.cached", (21, 22, 23))
    target = {"share": "//nas/media", "smb_conf": [{"option": "sync always", "value": "yes"}]}
    report = world.report(target=target, target_rate_bytes_per_second=80 * MB)
    found = diagnose(report).copies[0]
    assert found.verdict.cause == "sync"
    assert "must do" in found.target.needs[0].sentence
    assert "for sync" in found.target.needs[0].sentence


def test_what_this_tool_cannot_move_it_cannot_show(slow):
    assert any(
        "it could not show 1.5 GB/s" in e for e in asked(slow, "pull.uncached", 1500).unknown
    )


def test_where_this_tool_is_the_cap_nothing_else_is_asked_to_rise(empty_world):
    world = empty_world()
    world.loopback("client", 120)
    world.tcp("pull", 117.6)
    world.disk("client", "write", 500)
    world.copy("pull.cached", (113, 114, 115))
    target = asked(world, "pull.cached", 500)
    assert target.needs == ()
    assert "This tool itself moves no more than 120 MB/s" in " ".join(target.unknown)


def test_stages_that_take_turns_need_the_more(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.disk("server", "read", 120)
    world.disk("client", "write", 900)
    world.copy("pull.cached", (109, 110, 111), memory=116)
    world.copy("pull.uncached", (58, 59, 60))
    target = asked(world, "pull.uncached", 80)
    assert needs(target)["disk", "read"] > 200


def test_a_copy_that_was_not_made_has_no_target(empty_world):
    world = empty_world()
    world.skip("pull.uncached", "needs an agent")
    assert asked(world, "pull.uncached", 80) is None
