"""Dialects side by side: what differs, why, and when nothing can be told."""

import re

import pytest

from bottleneck.analysis import diagnose

MIB = 1 << 20


def compared(world, **changes):
    found = diagnose(world.report(**changes)).comparisons
    return [each for each in found if each.about == "dialect"]


def flight(request_bytes, depth, **more):
    return {
        "request_bytes": request_bytes,
        "depth": depth,
        "in_flight_bytes": request_bytes * depth,
        **more,
    }


SMB1, SMB3 = flight(60 << 10, 16), flight(MIB, 8)


def test_the_sentence_says_what_each_kept_in_flight_and_what_that_allows(world):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 6, (MIB, 8): 112}, 0.010)
    (found,) = compared(world)
    assert found.sentence == (
        "SMB1 29 MB/s, SMB 3.1.1 112 MB/s on this path (pull.cached): 16 requests of 60 KiB in "
        "flight (960 KiB) against 8 requests of 1 MiB in flight (8 MiB); at an RTT of 10 ms SMB1 "
        "cannot pass 98.3 MB/s."
    )
    assert found.ratio == pytest.approx(112 / 29)
    assert found.significant
    assert set(found.steps) == {8, 9}
    row = next(each for each in found.rows if each["dialect"] == "smb1")
    assert row["in_flight_bytes"] == 983040
    assert row["in_flight_per_rtt_bytes_per_second"] == pytest.approx(98.304e6)


def test_a_round_trip_that_holds_neither_is_not_offered_as_the_reason(world):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 60, (MIB, 8): 112}, 0.0003)
    assert "RTT" not in compared(world)[0].sentence


def test_a_round_trip_by_one_connect_is_told_as_about(world):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    found = compared(world, target={"connect_seconds": 0.02})[0]
    assert "at an RTT of about 20 ms SMB1 cannot pass 49.2 MB/s" in found.sentence


def test_a_round_trip_that_the_copy_itself_refutes_is_not_told(world):
    """One connect that was repeated takes a second: the copy was faster than that allows."""
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    assert "RTT" not in compared(world, target={"connect_seconds": 1.02})[0].sentence


def test_what_is_within_the_noise_is_no_difference(world):
    world.copy("pull.cached", (105, 110, 114), dialect="2.1")
    world.copy("pull.cached", (107, 112, 116))
    (found,) = compared(world)
    assert found.sentence.endswith("(pull.cached): no difference that these runs can tell.")
    assert "SMB 2.1 110 MB/s, SMB 3.1.1 112 MB/s" in found.sentence
    assert not found.significant


def test_the_copy_that_differs_most_leads_and_all_are_in_the_rows(world):
    for name, old in (("push.cached", 100), ("pull.uncached", 50), ("pull.cached", 90)):
        world.copy(name, (old - 1, old, old + 1), dialect="smb1")
        world.copy(name, (109, 110, 111))
    (found,) = compared(world)
    assert "(pull.uncached)" in found.sentence
    assert len(found.rows) == 6
    assert {each["copy"] for each in found.rows[:2]} == {"pull.uncached"}


def test_one_that_was_signed_and_one_that_was_not_are_told_apart(world):
    plain = {"signing": None, "encryption": None}
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=plain)
    signed = {**plain, "signing": "aes-gmac"}
    world.copy("pull.cached", (110, 112, 113), details=signed)
    assert compared(world)[0].sentence.endswith("; SMB1 was plain, SMB 3.1.1 signed.")
    encrypted = {**plain, "encryption": "aes-128-ccm"}
    world.copy("pull.cached", (9, 10, 11), dialect="3.0", details=encrypted)
    assert "SMB 3.0 was encrypted, SMB 3.1.1 signed" in compared(world)[0].sentence


def test_a_single_request_in_flight_reads_so(world):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=flight(61440, 1))
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    assert "1 request of 60 KiB in flight (60 KiB) against" in compared(world)[0].sentence


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
def test_what_is_not_the_same_copy_is_not_compared(world, make):
    world.copy("pull.cached", 112)
    make(world)
    assert compared(world) == []


def test_where_no_round_trip_holds_the_slower_one_its_own_cap_is_named(world):
    full = {"core_busy_ratios": (0.99, 0.3), "busiest_process_ratio": 0.98}
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1, server=full)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    assert re.search("; SMB1: .*core of the server's", compared(world)[0].sentence)


def test_where_nothing_holds_the_slower_one_that_is_said(world):
    world.copy("pull.cached", (28, 29, 29.5), dialect="smb1", details=SMB1)
    world.copy("pull.cached", (110, 112, 113), details=SMB3)
    world.matrix("pull", {(65536, 1): 60, (MIB, 8): 112}, 0.0003)
    assert "; SMB1: nothing that was measured explains it" in compared(world)[0].sentence
