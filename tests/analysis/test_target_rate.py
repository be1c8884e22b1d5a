"""The steps to reach a rate: each ceiling that is too low, and the number it has to reach."""

import pytest

from tests.analysis.conftest import World

MB = 1e6
IDLE = {"core_busy_ratios": (0.02, 0.02), "busiest_process_ratio": 0.01}


@pytest.fixture
def store(golden):
    """Keeps what a rate, in MB/s, takes of a world's last copy."""

    def noted(world, rate):
        world.target_rate = rate * MB
        target = world.diagnosis_of(-1).target
        golden(f"{rate} MB/s: {'reached' if target.reached else 'not reached'}")
        for each in target.needs:
            levels = f"{each.from_bytes_per_second:.4g} to {each.to_bytes_per_second:.4g}"
            golden(f"  {each.component}/{each.side}/{each.cause} {levels}: {each.sentence}")
        for line in target.unknown:
            golden(f"  - {line}")

    return noted


def path(pull, write, **busy):
    """Makes two hosts with idle CPUs, what TCP pulls, and the client's disk."""
    world = World()
    world.busy = {"client": dict(IDLE), "server": dict(IDLE), **busy}
    world.tcp("pull", pull)
    world.disk("client", "write", write)
    return world


@pytest.fixture
def slow_disk():
    world = path(11.77, (58, 60, 61))
    world.loopback("client", 2100)
    world.loopback("server", 1700)
    world.disk("server", "read", (24.8, 25, 25.1))
    world.copy("pull.uncached", (11.5, 11.6, 11.7))
    return world


def test_nothing_is_said_where_nothing_was_asked_or_nothing_was_made(slow_disk):
    assert slow_disk.diagnosis_of().target is None
    slow_disk.skip("push.cached", "needs an agent")
    slow_disk.target_rate = 80 * MB
    assert slow_disk.diagnosis_of("push.cached").target is None


RATES = {
    "the copy has it": 11.6,
    "only what is too low has to change": 20,
    "each ceiling on the way is named with its number": 100,
    "what this tool cannot move it cannot show": 1500,
}


@pytest.mark.parametrize("rate", RATES.values(), ids=RATES)
def test_each_ceiling_below_a_rate_has_to_rise(slow_disk, rate, store):
    """A disk works beside the transfer from some time on, and has to make up for it."""
    store(slow_disk, rate)


def test_what_was_not_measured_cannot_be_told(empty_world, store):
    world = empty_world(agent=False)
    world.tcp("push", 11.77)
    world.copy("push.cached", 11.5, memory=11.6)
    store(world, 100)


def test_a_cap_that_was_not_found_is_no_promise(store):
    world = path(117.6, 500)
    world.copy("pull.cached", (29, 30, 31))
    store(world, 100)


def test_a_cap_has_to_rise_even_where_it_is_nearly_what_is_wanted(store):
    world = path(117.6, 500)
    world.disk("server", "read", 25)
    world.copy("pull.uncached", 23.6)
    store(world, 24.6)


def test_a_window_has_to_let_more_through(sockets, store):
    world = path(117.6, 900)
    window = {"peer_window_bytes_median": 131072, "in_flight_bytes_median": 130000}
    trip = {"min_rtt_seconds": 0.016, "rtt_seconds_median": 0.0163}
    connection = sockets(receive_window_limited_ratio=0.9, **window, **trip)
    world.copy("pull.cached", (7.9, 8, 8.1), details={"sockets": connection})
    store(world, 50)


def test_a_cpu_has_to_do_so_many_times_as_much(store):
    world = path(1170, 900)
    busy = {"core_busy_ratios": (0.99, 0.98), "busiest_process_ratio": 0.7}
    world.copy("pull.cached", 100, server=busy)
    store(world, 200)


def test_forced_writes_are_named_by_their_cause(store):
    world = path(117.6, 900)
    world.tcp("push", 117.6)
    world.disk("server", "write", 180)
    setting = {"side": "server", "verb": "write", "cache": "uncached", "pattern": "synced"}
    world.add("disk", "server", setting, 25, {"request_bytes": 1 << 20})
    world.copy("push.cached", (21, 22, 23))
    world.target["smb_conf"] = [{"option": "sync always", "value": "yes"}]
    store(world, 80)


def test_where_this_tool_is_the_cap_nothing_else_is_asked_to_rise(store):
    world = path(117.6, 500)
    world.loopback("client", 120)
    world.copy("pull.cached", (113, 114, 115))
    store(world, 500)
