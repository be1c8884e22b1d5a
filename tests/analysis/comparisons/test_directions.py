"""Push against pull: what makes one of them slower is named where it was measured, else nothing."""

from dataclasses import replace

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("direction",)
FULL = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
IDLE = {"client": {"core_busy_ratios": (), "busiest_process_ratio": 0.0}}


def both(pushed, pulled, cache="cached", **runs):
    """The two copies; details and loads of either by its verb."""
    rates = {"push": pushed, "pull": pulled}
    return tuple(
        ("copy", f"{verb}.{cache}", rate if isinstance(rate, tuple) else [rate], runs.get(verb, {}))
        for verb, rate in rates.items()
    )


def disks(**rates):
    """Each by its side and verb: `server_write=40`."""
    return tuple(("disk", *name.split("_"), rate) for name, rate in rates.items())


def server_copies(**extra):
    extra = {"initiator": "server", **extra}
    return ("copy", "server.push.cached", [60], extra), ("copy", "server.pull.cached", [112], extra)


def late_details(acknowledged=None, flush_seconds=None):
    figures = {"acknowledged_bytes_per_second": acknowledged, "flush_seconds": flush_seconds}
    return {"details": {name: value for name, value in figures.items() if value is not None}}


SLOW_WRITES = (39, 40, 41)
FAST = disks(server_write=400, client_write=900)
OVER_A_PATH_THAT_CARRIES_117_BOTH_WAYS = {
    "the server's disk that writes slowly makes pushes slower": plan(
        *disks(server_read=210, server_write=SLOW_WRITES, client_write=900), *both(38, 112)
    ),
    "what nothing explains is told so, and the network is cleared": both(96, 25),
    "a cap of unstable runs is not offered": plan(
        *disks(server_write=SLOW_WRITES), *both((24, 38, 45), 112)
    ),
    # No disk was measured, but the last byte had arrived as fast as the other way.
    "a flush that takes the whole difference explains it: push": (
        both(45, 112, push=late_details(113e6, 2.5))
    ),
    "a flush that takes the whole difference explains it: pull": (
        both(112, 45, pull=late_details(113e6, 2.5))
    ),
    "one cap of cached and uncached is written once": plan(
        *disks(server_write=SLOW_WRITES), *both(38, 112), *both(37, 100, "uncached")
    ),
}


@pytest.mark.parametrize(
    "steps",
    OVER_A_PATH_THAT_CARRIES_117_BOTH_WAYS.values(),
    ids=OVER_A_PATH_THAT_CARRIES_117_BOTH_WAYS,
)
def test_over_a_path_that_carries_117_both_ways(path, plant, steps, store):
    store(plant(path, *steps))


OVER_A_PATH_OF_ITS_OWN = {
    "a link that carries less one way makes that way slower": plan(
        ("tcp", "push", 117.6), ("tcp", "pull", 11.8), *FAST, *both(112, 11.4)
    ),
    "a ceiling between both rates that is not reached is told as such": plan(
        ("tcp", "push", 117.6), ("tcp", "pull", 60), *disks(server_read=210), *FAST, *both(96, 25)
    ),
    "a cap that both keep to explains none: it is above the faster one": plan(
        ("tcp", "push", (117, 117.6, 118)),
        ("tcp", "pull", (112, 117.5, 118)),
        *FAST,
        *both((99, 100.5, 102), (112, 113, 114)),
    ),
    "a near tie names both": plan(
        ("tcp", "push", 117.6),
        ("tcp", "pull", (38, 40, 42)),
        *disks(client_write=(39, 41, 43), server_write=400),
        *both(112, 38.5),
    ),
    "a ceiling that was itself hindered between both rates is not called one": (
        (
            "tcp",
            "pull",
            60,
            {"client": {"core_busy_ratios": (1, 1), "busiest_process_ratio": 0.99}},
        ),
        *both(96, 25, "uncached"),
    ),
    **{
        f"a flush that explains only a part is not offered: {name}": plan(
            ("tcp", "push", 117.6), *both(push, 112, push=late_details(*flush))
        )
        for name, push, flush in (
            ("slow before it", 45, (60e6, 1.0)),
            ("not told how long", 45, (113e6,)),
            ("not told how fast", 45, (None, 2.5)),
            ("of no account", 95, (97e6, 0.1)),
        )
    },
}


@pytest.mark.parametrize("steps", OVER_A_PATH_OF_ITS_OWN.values(), ids=OVER_A_PATH_OF_ITS_OWN)
def test_over_a_path_of_its_own(hosts, plant, steps, store):
    store(plant(hosts, *steps))


PUSH = ("copy", "push.cached", [112])
BETWEEN_TWO_KNOWN_HOSTS = {
    "a full core of the receiver is named": both(60, 112, push={"server": FULL}),
    "differences within the noise are none": both((100, 105, 112), (99, 108, 111)),
    "other dialects and initiators are in the rows alone": (
        *both(112, 112),
        *both(30, 100, push={"dialect": "smb1"}, pull={"dialect": "smb1"}),
        *server_copies(),
    ),
    "where only the server started both that is told": server_copies(engine="tool"),
    "the system's own copies lead": plan(
        ("native", "push.cached", [112]), ("native", "pull.cached", [60])
    ),
    **{
        f"what is not the same copy the other way is not compared: {name}": (PUSH, step)
        for name, step in {
            "uncached": ("copy", "pull.uncached", [40]),
            "failed": ("fail", "pull.cached", "reset"),
            "altered": ("copy", "pull.cached", [40], {"details": {"hash_ok": False}}),
            "not flushed": ("copy", "pull.cached", [40], {"details": {"flushed": False}}),
            "unproven": ("copy", "pull.cached", [40], {"proven": False}),
            "the server's": ("copy", "server.pull.cached", [40], {"initiator": "server"}),
            "older": ("copy", "pull.cached", [40], {"dialect": "2.1"}),
        }.items()
    },
}


@pytest.mark.parametrize("steps", BETWEEN_TWO_KNOWN_HOSTS.values(), ids=BETWEEN_TWO_KNOWN_HOSTS)
def test_between_two_known_hosts(world, plant, steps, store):
    store(plant(world, *steps))


def test_the_receivers_window_is_named_where_it_holds_one_direction(path, plant, sockets, store):
    connection = sockets(
        by="receive-window",
        receive_window_limited_ratio=0.9,
        peer_window_bytes_median=65536,
        in_flight_bytes_median=64000,
        rtt_seconds_median=0.0163,
    )
    store(plant(path, *FAST, *both(100, 4, pull={"details": {"sockets": connection}})))


def test_with_nothing_measured_beside_the_copies_nothing_is_said_to_carry_more(
    empty_world, plant, store
):
    store(plant(empty_world(agent=False), *both(96, 25, push=IDLE, pull=IDLE)))


def test_a_rate_beyond_physics_compares_nothing(world, plant, store):
    plant(world, *both(100, 900))
    slow = replace(world.client.interface, rate_bits_per_second=1_000_000_000)
    world.client = replace(world.client, interface=slow)
    store(world)
