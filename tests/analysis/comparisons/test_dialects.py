"""Dialects side by side: what differs, why, and when nothing can be told."""

import pytest

ABOUT = ("dialect",)

MIB = 1 << 20


def flight(request_bytes, depth, **more):
    return {
        "request_bytes": request_bytes,
        "depth": depth,
        "in_flight_bytes": request_bytes * depth,
        **more,
    }


SMB1, SMB3 = flight(60 << 10, 16), flight(MIB, 8)


def test_the_sentence_says_what_each_kept_in_flight_and_what_that_allows(world, says):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 6, (MIB, 8): 112}, 0.010)
    says(world)


def test_a_round_trip_that_holds_neither_is_not_offered_as_the_reason(world, says):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 60, (MIB, 8): 112}, 0.0003)
    says(world)


def test_a_round_trip_by_one_connect_is_told_as_about(world, says):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    says(world, target={"connect_seconds": 0.02})


def test_a_round_trip_that_the_copy_itself_refutes_is_not_told(world, says):
    """One connect that was repeated takes a second: the copy was faster than that allows."""
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    says(world, target={"connect_seconds": 1.02})


def test_what_is_within_the_noise_is_no_difference(world, says):
    world.copy("pull.cached", (105, 110, 114), dialect="2.1")
    world.copy("pull.cached", (107, 112, 116))
    says(world)


def test_the_copy_that_differs_most_leads_and_all_are_in_the_rows(world, says):
    for name, old in (("push.cached", 100), ("pull.uncached", 50), ("pull.cached", 90)):
        world.copy(name, (old - 1, old, old + 1), dialect="smb1")
        world.copy(name, (109, 110, 111))
    says(world)


def test_one_that_was_signed_and_one_that_was_not_are_told_apart(world, says):
    plain = {"signing": None, "encryption": None}
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=plain)
    signed = {**plain, "signing": "aes-gmac"}
    world.copy("pull.cached", (110, 112, 113), details=signed)
    says(world)
    encrypted = {**plain, "encryption": "aes-128-ccm"}
    world.copy("pull.cached", (9, 10, 11), dialect="3.0", details=encrypted)
    says(world)


def test_a_single_request_in_flight_reads_so(world, says):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=flight(61440, 1))
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    says(world)


@pytest.mark.parametrize(
    "make",
    [
        lambda w: w.copy("pull.cached", 29, dialect="smb1", details={"hash_ok": False}),
        lambda w: w.fail("pull.cached", "reset"),
        lambda w: w.copy("server.push.cached", 29, dialect="smb1", initiator="server"),
        lambda w: w.native("pull.cached", 29),
        lambda w: w.copy("push.cached", 29, dialect="smb1"),
    ],
    ids=["altered", "failed", "the server's", "the mount's", "another copy"],
)
def test_what_is_not_the_same_copy_is_not_compared(world, make, says):
    world.copy("pull.cached", 112)
    make(world)
    says(world)


def test_where_no_round_trip_holds_the_slower_one_its_own_cap_is_named(world, says):
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1, server=full)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    says(world)


def test_where_nothing_holds_the_slower_one_that_is_said(world, says):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 60, (MIB, 8): 112}, 0.0003)
    says(world)
