"""Push against pull: what makes one of them slower is named where it was measured, else nothing."""

from dataclasses import replace

import pytest

ABOUT = ("direction",)


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def test_the_servers_disk_that_writes_slowly_makes_pushes_slower(path, says):
    path.disk("server", "read", 210)
    path.disk("server", "write", (39, 40, 41))
    path.disk("client", "write", 900)
    path.copy("push.cached", about(38))
    path.copy("pull.cached", about(112))
    says(path)


def test_a_link_that_carries_less_one_way_is_what_makes_that_way_slower(bare, says):
    bare.tcp("push", 117.6)
    bare.tcp("pull", 11.8)
    bare.disk("server", "write", 400)
    bare.disk("client", "write", 900)
    bare.copy("push.cached", about(112))
    bare.copy("pull.cached", about(11.4))
    says(bare)


def test_the_receivers_window_is_named_where_it_holds_one_direction(path, sockets, says):
    path.disk("client", "write", 900)
    path.disk("server", "write", 400)
    held = sockets(
        by="receive-window",
        receive_window_limited_ratio=0.9,
        peer_window_bytes_median=65536,
        in_flight_bytes_median=64000,
        rtt_seconds_median=0.0163,
    )
    path.copy("pull.cached", about(4), details={"sockets": held})
    path.copy("push.cached", about(100))
    says(path)


def test_a_full_core_of_the_receiver_is_named(world, says):
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("push.cached", about(60), server=full)
    world.copy("pull.cached", about(112))
    says(world)


def test_a_flush_that_takes_the_whole_difference_explains_it(path, says):
    """No disk was measured, but the last byte had arrived as fast as the other way."""
    late = {"acknowledged_bytes_per_second": 113e6, "flush_seconds": 2.5}
    path.copy("push.cached", about(45), details=late)
    path.copy("pull.cached", about(112))
    says(path)


@pytest.mark.parametrize(
    "late",
    [
        {"acknowledged_bytes_per_second": 60e6, "flush_seconds": 1.0},
        {"acknowledged_bytes_per_second": 113e6},
        {"flush_seconds": 2.5},
    ],
    ids=["slow before it", "not told how long", "not told how fast"],
)
def test_a_flush_that_explains_only_a_part_is_not_offered(bare, late, says):
    bare.tcp("push", 117.6)
    bare.copy("push.cached", about(45), details=late)
    bare.copy("pull.cached", about(112))
    says(bare)


def test_a_flush_of_no_account_is_not_offered(bare, says):
    late = {"acknowledged_bytes_per_second": 97e6, "flush_seconds": 0.1}
    bare.copy("push.cached", about(95), details=late)
    bare.copy("pull.cached", about(112))
    says(bare)


def test_what_nothing_explains_is_told_so_and_the_network_is_cleared(path, says):
    """96 MB/s pushed, 25 pulled, and TCP carries 117 both ways: a limit that nobody measured."""
    path.copy("push.uncached", about(96))
    path.copy("pull.uncached", about(25))
    says(path)


def test_a_ceiling_between_both_rates_that_is_not_reached_is_told_as_such(bare, says):
    bare.tcp("push", 117.6)
    bare.tcp("pull", 60)
    bare.disk("server", "read", 210)
    bare.disk("client", "write", 900)
    bare.disk("server", "write", 400)
    bare.copy("push.uncached", about(96))
    bare.copy("pull.uncached", about(25))
    says(bare)


def test_a_ceiling_that_was_itself_hindered_between_both_rates_is_not_called_one(bare, says):
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}
    bare.tcp("pull", 60, client=full)
    bare.copy("push.uncached", about(96))
    bare.copy("pull.uncached", about(25))
    says(bare)


def test_with_nothing_measured_beside_the_copies_nothing_is_said_to_carry_more(empty_world, says):
    world = empty_world(agent=False)
    idle = {"core_busy_ratios": (), "busiest_process_ratio": 0.0}
    world.copy("push.cached", about(96), client=idle)
    world.copy("pull.cached", about(25), client=idle)
    says(world)


def test_a_cap_that_both_directions_keep_to_explains_no_difference(bare, says):
    """A ceiling above the faster copy's rate cannot be why the other one is slower."""
    bare.tcp("push", (117, 117.6, 118))
    bare.tcp("pull", (112, 117.5, 118))
    bare.disk("server", "write", 400)
    bare.disk("client", "write", 900)
    bare.copy("push.cached", (99, 100.5, 102))
    bare.copy("pull.cached", (112, 113, 114))
    says(bare)


def test_a_near_tie_names_both(bare, says):
    bare.tcp("push", 117.6)
    bare.tcp("pull", (38, 40, 42))
    bare.disk("client", "write", (39, 41, 43))
    bare.disk("server", "write", 400)
    bare.copy("push.cached", about(112))
    bare.copy("pull.cached", about(38.5))
    says(bare)


def test_a_disk_that_takes_turns_with_the_link_is_named_with_it(path, says):
    path.disk("client", "write", 120)
    path.disk("server", "write", 900)
    path.copy("pull.cached", about(60), memory=112)
    path.copy("push.cached", about(112))
    says(path)


def test_a_cap_of_unstable_runs_is_not_offered(bare, says):
    bare.tcp("push", 117.6)
    bare.disk("server", "write", (39, 40, 41))
    bare.copy("push.cached", (24, 38, 45))
    bare.copy("pull.cached", about(112))
    says(bare)


def test_differences_within_the_noise_are_none(world, says):
    world.copy("push.cached", (100, 105, 112))
    world.copy("pull.cached", (99, 108, 111))
    says(world)


def test_one_cap_of_cached_and_uncached_is_written_once(path, says):
    path.disk("server", "write", (39, 40, 41))
    path.copy("push.cached", about(38))
    path.copy("pull.cached", about(112))
    path.copy("push.uncached", about(37))
    path.copy("pull.uncached", about(100))
    says(path)


def test_other_dialects_and_initiators_are_in_the_rows_alone(world, says):
    world.copy("push.cached", about(112))
    world.copy("pull.cached", about(112))
    world.copy("push.cached", about(30), dialect="smb1")
    world.copy("pull.cached", about(100), dialect="smb1")
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
    world.copy("push.cached", about(100))
    world.copy("pull.cached", about(900))
    slow = replace(world.client.interface, rate_bits_per_second=1_000_000_000)
    world.client = replace(world.client, interface=slow)
    says(world)
