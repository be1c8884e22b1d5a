"""Push against pull: what makes one of them slower is named where it was measured, else nothing."""

from dataclasses import replace

import pytest

from bottleneck.analysis import diagnose
from bottleneck.analysis.comparisons import directions


def compared(world):
    return list(directions.compare(world.report()))


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


def test_the_servers_disk_that_writes_slowly_makes_pushes_slower(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    world.disk("server", "read", 210)
    world.disk("server", "write", (39, 40, 41))
    world.disk("client", "write", 900)
    world.copy("push.cached", about(38))
    world.copy("pull.cached", about(112))
    (found,) = compared(world)
    assert found.sentence == (
        "Cached, pushing is 2.9x slower than pulling (push 38 MB/s, pull 112 MB/s, SMB 3.1.1): the "
        "server's disk writes no faster than 40 MB/s."
    )
    assert found.significant
    assert found.ratio == pytest.approx(112 / 38)
    (row,) = found.rows
    assert (row["component"], row["side"], row["cause"]) == ("disk", "server", "write")
    assert (row["slower"], row["mechanism"]) == ("push", "ceiling")


def test_a_link_that_carries_less_one_way_is_what_makes_that_way_slower(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 11.8)
    world.disk("server", "write", 400)
    world.disk("client", "write", 900)
    world.copy("push.cached", about(112))
    world.copy("pull.cached", about(11.4))
    (found,) = compared(world)
    assert found.rows[0]["component"] == "network"
    assert "the network carries no more than 11.8 MB/s" in found.sentence


def test_the_receivers_window_is_named_where_it_holds_one_direction(empty_world, sockets):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    world.disk("client", "write", 900)
    world.disk("server", "write", 400)
    held = sockets(
        by="receive-window",
        receive_window_limited_ratio=0.9,
        peer_window_bytes_median=65536,
        in_flight_bytes_median=64000,
        rtt_seconds_median=0.0163,
    )
    world.copy("pull.cached", about(4), details={"sockets": held})
    world.copy("push.cached", about(100))
    (found,) = compared(world)
    assert (found.rows[0]["component"], found.rows[0]["side"]) == ("tcp", "client")
    assert "the client's receive window of 64 KiB" in found.sentence


def test_a_full_core_of_the_receiver_is_named(world):
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("push.cached", about(60), server=full)
    world.copy("pull.cached", about(112))
    (found,) = compared(world)
    assert (found.rows[0]["component"], found.rows[0]["side"]) == ("cpu", "server")


def test_a_flush_that_takes_the_whole_difference_explains_it(empty_world):
    """No disk was measured, but the last byte had arrived as fast as the other way."""
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    late = {"acknowledged_bytes_per_second": 113e6, "flush_seconds": 2.5}
    world.copy("push.cached", about(45), details=late)
    world.copy("pull.cached", about(112))
    (found,) = compared(world)
    assert found.rows[0]["mechanism"] == "flush"
    assert found.rows[0]["component"] is None
    assert found.sentence.endswith(
        ": the last byte had arrived at 113 MB/s, and 2.5 s more went into the flush to the "
        "server's disk."
    )


@pytest.mark.parametrize(
    "late",
    [
        {"acknowledged_bytes_per_second": 60e6, "flush_seconds": 1.0},
        {"acknowledged_bytes_per_second": 113e6},
        {"flush_seconds": 2.5},
    ],
    ids=["slow before it", "not told how long", "not told how fast"],
)
def test_a_flush_that_explains_only_a_part_is_not_offered(empty_world, late):
    world = empty_world()
    world.tcp("push", 117.6)
    world.copy("push.cached", about(45), details=late)
    world.copy("pull.cached", about(112))
    assert compared(world)[0].rows[0]["mechanism"] == "unexplained"


def test_a_flush_of_no_account_is_not_offered(empty_world):
    world = empty_world()
    late = {"acknowledged_bytes_per_second": 97e6, "flush_seconds": 0.1}
    world.copy("push.cached", about(95), details=late)
    world.copy("pull.cached", about(112))
    assert compared(world)[0].rows[0]["mechanism"] == "unexplained"


def test_what_nothing_explains_is_told_so_and_the_network_is_cleared(empty_world):
    """96 MB/s pushed, 25 pulled, and TCP carries 117 both ways: a limit that nobody measured."""
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    world.copy("push.uncached", about(96))
    world.copy("pull.uncached", about(25))
    (found,) = compared(world)
    assert found.significant
    assert found.rows[0]["mechanism"] == "unexplained"
    assert found.rows[0]["component"] is None
    assert found.sentence.startswith(
        "Uncached, pulling is 3.8x slower than pushing (push 96 MB/s, pull 25 MB/s, SMB 3.1.1): "
        "nothing that was measured explains it: more would pass through the network (118 MB/s)"
    )
    assert "not known: what the client's disk and the server's disk would allow" in found.sentence


def test_a_ceiling_between_both_rates_that_is_not_reached_is_told_as_such(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 60)
    world.disk("server", "read", 210)
    world.disk("client", "write", 900)
    world.disk("server", "write", 400)
    world.copy("push.uncached", about(96))
    world.copy("pull.uncached", about(25))
    (found,) = compared(world)
    assert found.rows[0]["mechanism"] == "unexplained"
    assert found.sentence.endswith(
        "; the lowest ceiling that is known, the network (60 MB/s), is not reached."
    )


def test_a_ceiling_that_was_itself_hindered_between_both_rates_is_not_called_one(empty_world):
    world = empty_world()
    full = {"core_busy_ratios": (1.0, 1.0), "busiest_process_ratio": 0.99}
    world.tcp("pull", 60, client=full)
    world.copy("push.uncached", about(96))
    world.copy("pull.uncached", about(25))
    assert "is not reached" not in compared(world)[0].sentence


def test_with_nothing_measured_beside_the_copies_nothing_is_said_to_carry_more(empty_world):
    world = empty_world(agent=False)
    idle = {"core_busy_ratios": (), "busiest_process_ratio": 0.0}
    world.copy("push.cached", about(96), client=idle)
    world.copy("pull.cached", about(25), client=idle)
    (found,) = compared(world)
    assert "nothing that was measured explains it; not known: what the network and" in (
        found.sentence
    )


def test_a_cap_that_both_directions_keep_to_explains_no_difference(empty_world):
    """A ceiling above the faster copy's rate cannot be why the other one is slower."""
    world = empty_world()
    world.tcp("push", (117, 117.6, 118))
    world.tcp("pull", (112, 117.5, 118))
    world.disk("server", "write", 400)
    world.disk("client", "write", 900)
    world.copy("push.cached", (99, 100.5, 102))
    world.copy("pull.cached", (112, 113, 114))
    (found,) = compared(world)
    assert found.significant
    assert found.rows[0]["mechanism"] == "unexplained"


def test_a_near_tie_names_both(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", (38, 40, 42))
    world.disk("client", "write", (39, 41, 43))
    world.disk("server", "write", 400)
    world.copy("push.cached", about(112))
    world.copy("pull.cached", about(38.5))
    assert "(or, too close to tell from it: " in compared(world)[0].sentence


def test_a_disk_that_takes_turns_with_the_link_is_named_with_it(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    world.disk("client", "write", 120)
    world.disk("server", "write", 900)
    world.copy("pull.cached", about(60), memory=112)
    world.copy("push.cached", about(112))
    (found,) = compared(world)
    assert ", beside the client's disk (write) (120 MB/s)." in found.sentence


def test_a_cap_of_unstable_runs_is_not_offered(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.disk("server", "write", (39, 40, 41))
    world.copy("push.cached", (24, 38, 45))
    world.copy("pull.cached", about(112))
    assert compared(world)[0].rows[0]["mechanism"] == "unexplained"


def test_differences_within_the_noise_are_none(world):
    world.copy("push.cached", (100, 105, 112))
    world.copy("pull.cached", (99, 108, 111))
    (found,) = compared(world)
    assert not found.significant
    assert found.rows[0]["slower"] is None
    assert found.rows[0]["mechanism"] is None
    assert found.sentence == (
        "Cached, no difference that these runs can tell (push 105 MB/s, pull 108 MB/s, SMB 3.1.1)."
    )


def test_one_cap_of_cached_and_uncached_is_written_once(empty_world):
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    world.disk("server", "write", (39, 40, 41))
    world.copy("push.cached", about(38))
    world.copy("pull.cached", about(112))
    world.copy("push.uncached", about(37))
    world.copy("pull.uncached", about(100))
    (found,) = compared(world)
    assert found.sentence.endswith("than 40 MB/s. Uncached the same (37 MB/s, 2.7x).")
    assert len(found.rows) == 2
    assert len(found.steps) == 4


def test_other_dialects_and_initiators_are_in_the_rows_alone(world):
    world.copy("push.cached", about(112))
    world.copy("pull.cached", about(112))
    world.copy("push.cached", about(30), dialect="smb1")
    world.copy("pull.cached", about(100), dialect="smb1")
    for name, rate in (("server.push.cached", 60), ("server.pull.cached", 112)):
        world.copy(name, about(rate), initiator="server")
    (found,) = compared(world)
    assert "SMB1" not in found.sentence
    assert not found.significant
    rows = [(row["initiator"], row["dialect"], row["slower"]) for row in found.rows]
    assert rows == [
        ("client", "3.1.1", None),
        ("server", "3.1.1", "push"),
        ("client", "smb1", "push"),
    ]


def test_where_only_the_server_started_both_that_is_told(world):
    for name, rate in (("server.push.cached", 60), ("server.pull.cached", 112)):
        world.copy(name, about(rate), initiator="server", engine="tool")
    assert "SMB 3.1.1 with tool, started by the server)" in compared(world)[0].sentence


def test_the_systems_own_copies_lead(world):
    world.native("push.cached", about(112))
    world.native("pull.cached", about(60))
    assert "by the system's own copy)" in compared(world)[0].sentence


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
def test_what_is_not_the_same_copy_the_other_way_is_not_compared(world, make):
    world.copy("push.cached", about(112))
    make(world)
    assert compared(world) == []


def test_a_rate_beyond_physics_compares_nothing(world):
    world.copy("push.cached", about(100))
    world.copy("pull.cached", about(900))
    slow = replace(world.client.interface, rate_bits_per_second=1_000_000_000)
    world.client = replace(world.client, interface=slow)
    assert compared(world) == []


def test_a_diagnosis_has_it(world):
    world.copy("push.cached", about(100))
    world.copy("pull.cached", about(60))
    assert "direction" in {each.about for each in diagnose(world.report()).comparisons}
