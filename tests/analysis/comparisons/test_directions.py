"""Push against pull: what makes one of them slower is named where it was measured, else nothing."""

from dataclasses import replace

import pytest

ABOUT = ("direction",)
FULL = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def both(world, pushed, pulled, cache="cached", **more):
    """The two copies; details and loads of either by its verb."""
    for verb, rate in (("push", pushed), ("pull", pulled)):
        rates = rate if isinstance(rate, tuple) else about(rate)
        world.copy(f"{verb}.{cache}", rates, **more.get(verb, {}))


def disks(world, **rates):
    """Each by its side and verb: `server_write=40`."""
    for name, rate in rates.items():
        world.disk(*name.split("_"), rate)


@pytest.mark.parametrize(
    ("rates", "push", "pull"),
    [
        pytest.param(
            {"server_read": 210, "server_write": (39, 40, 41), "client_write": 900},
            *(38, 112),
            id="the server's disk that writes slowly makes pushes slower",
        ),
        pytest.param(
            {},
            *(96, 25),
            id="what nothing explains is told so, and the network is cleared",
        ),
        pytest.param(
            {"server_write": (39, 40, 41)},
            *((24, 38, 45), 112),
            id="a cap of unstable runs is not offered",
        ),
    ],
)
def test_over_a_path_that_carries_117_both_ways(path, rates, push, pull, says):
    disks(path, **rates)
    both(path, push, pull)
    says(path)


FAST = {"server_write": 400, "client_write": 900}


@pytest.mark.parametrize(
    ("tcp", "rates", "push", "pull"),
    [
        pytest.param(
            *((117.6, 11.8), FAST, 112, 11.4),
            id="a link that carries less one way makes that way slower",
        ),
        pytest.param(
            *((117.6, 60), {"server_read": 210, **FAST}, 96, 25),
            id="a ceiling between both rates that is not reached is told as such",
        ),
        pytest.param(
            *(((117, 117.6, 118), (112, 117.5, 118)), FAST),
            *((99, 100.5, 102), (112, 113, 114)),
            id="a cap that both keep to explains none: it is above the faster one",
        ),
        pytest.param(
            *((117.6, (38, 40, 42)), {"client_write": (39, 41, 43), "server_write": 400}),
            *(112, 38.5),
            id="a near tie names both",
        ),
    ],
)
def test_over_a_path_of_its_own(bare, tcp, rates, push, pull, says):
    for verb, rate in zip(("push", "pull"), tcp, strict=True):
        bare.tcp(verb, rate)
    disks(bare, **rates)
    both(bare, push, pull)
    says(bare)


def test_the_receivers_window_is_named_where_it_holds_one_direction(path, sockets, says):
    disks(path, **FAST)
    held = sockets(
        by="receive-window",
        receive_window_limited_ratio=0.9,
        peer_window_bytes_median=65536,
        in_flight_bytes_median=64000,
        rtt_seconds_median=0.0163,
    )
    both(path, 100, 4, pull={"details": {"sockets": held}})
    says(path)


def test_a_full_core_of_the_receiver_is_named(world, says):
    both(world, 60, 112, push={"server": FULL})
    says(world)


def late(acknowledged=None, flush_seconds=None):
    told = {"acknowledged_bytes_per_second": acknowledged, "flush_seconds": flush_seconds}
    return {"details": {name: value for name, value in told.items() if value is not None}}


@pytest.mark.parametrize("verb", ["push", "pull"])
def test_a_flush_that_takes_the_whole_difference_explains_it(path, verb, says):
    """No disk was measured, but the last byte had arrived as fast as the other way."""
    rates = {"push": 112, "pull": 112, verb: 45}
    both(path, *rates.values(), **{verb: late(113e6, 2.5)})
    says(path)


@pytest.mark.parametrize(
    ("push", "flush"),
    [(45, (60e6, 1.0)), (45, (113e6,)), (45, (None, 2.5)), (95, (97e6, 0.1))],
    ids=["slow before it", "not told how long", "not told how fast", "of no account"],
)
def test_a_flush_that_explains_only_a_part_is_not_offered(bare, push, flush, says):
    bare.tcp("push", 117.6)
    both(bare, push, 112, push=late(*flush))
    says(bare)


def test_a_ceiling_that_was_itself_hindered_between_both_rates_is_not_called_one(bare, says):
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}
    bare.tcp("pull", 60, client=full)
    both(bare, 96, 25, "uncached")
    says(bare)


def test_with_nothing_measured_beside_the_copies_nothing_is_said_to_carry_more(empty_world, says):
    world = empty_world(agent=False)
    idle = {"client": {"core_busy_ratios": (), "busiest_process_ratio": 0.0}}
    both(world, 96, 25, push=idle, pull=idle)
    says(world)


def test_differences_within_the_noise_are_none(world, says):
    both(world, (100, 105, 112), (99, 108, 111))
    says(world)


def test_one_cap_of_cached_and_uncached_is_written_once(path, says):
    disks(path, server_write=(39, 40, 41))
    both(path, 38, 112)
    both(path, 37, 100, "uncached")
    says(path)


def test_other_dialects_and_initiators_are_in_the_rows_alone(world, says):
    both(world, 112, 112)
    both(world, 30, 100, push={"dialect": "smb1"}, pull={"dialect": "smb1"})
    for name, rate in (("server.push.cached", 60), ("server.pull.cached", 112)):
        world.copy(name, about(rate), initiator="server")
    says(world)


def test_where_only_the_server_started_both_that_is_told(world, says):
    for name, rate in (("server.push.cached", 60), ("server.pull.cached", 112)):
        world.copy(name, about(rate), initiator="server", engine="tool")
    says(world)


def test_the_systems_own_copies_lead(world, says):
    world.native("push.cached", about(112))
    world.native("pull.cached", about(60))
    says(world)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.copy("pull.uncached", about(40)),
        lambda w: w.fail("pull.cached", "reset"),
        lambda w: w.copy("pull.cached", about(40), details={"hash_ok": False}),
        lambda w: w.copy("pull.cached", about(40), details={"flushed": False}),
        lambda w: w.copy("pull.cached", about(40), proven=False),
        lambda w: w.copy("server.pull.cached", about(40), initiator="server"),
        lambda w: w.copy("pull.cached", about(40), dialect="2.1"),
    ],
    ids=["uncached", "failed", "altered", "not flushed", "unproven", "the server's", "older"],
)
def test_what_is_not_the_same_copy_the_other_way_is_not_compared(world, make, says):
    world.copy("push.cached", about(112))
    make(world)
    says(world)


def test_a_rate_beyond_physics_compares_nothing(world, says):
    both(world, 100, 900)
    slow = replace(world.client.interface, rate_bits_per_second=1_000_000_000)
    world.client = replace(world.client, interface=slow)
    says(world)
