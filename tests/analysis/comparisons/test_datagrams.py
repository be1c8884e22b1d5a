"""Datagrams sent and arrived: the path's loss in words, apart from what this tool itself lost."""

import pytest

from bottleneck.analysis import diagnose

CLEAN = {
    "sent_datagrams": 60_000,
    "received_datagrams": 60_000,
    "lost_datagrams": 0,
    "loss_ratio": 0.0,
    "receiver_dropped_datagrams": 0,
    "reordered_datagrams": 0,
    "reordered_ratio": 0.0,
    "duplicate_datagrams": 0,
    "longest_gap_datagrams": 0,
    "jitter_seconds": 4.5e-5,
    "sent_bytes_per_second": 94e6,
    "pace_ratio": 1.0,
    "payload_bytes": 1448,
}


def compared(world, verb="push", initiator="client", **changes):
    world.add("udp", initiator, {"verb": verb}, 94, {**CLEAN, **changes})
    return [each for each in diagnose(world.report()).comparisons if each.about == "datagrams"]


def test_a_clean_path_lost_none(empty_world):
    (found,) = compared(empty_world())
    assert found.sentence == (
        "Pushing 94 MB/s in datagrams of 1,448 bytes, the path lost none of 60,000; jitter 45 us."
    )
    assert found.ratio == 1
    assert not found.significant


def test_loss_is_told_with_its_longest_gap(empty_world):
    (found,) = compared(
        empty_world(), "pull", lost_datagrams=1200, loss_ratio=0.02, longest_gap_datagrams=4
    )
    assert "Pulling 94 MB/s" in found.sentence
    assert "the path lost 2 % of them, up to 4 in a row" in found.sentence
    assert found.significant
    assert found.ratio == pytest.approx(1 / 0.98)
    assert found.rows[0]["loss_ratio"] == pytest.approx(0.02)


def test_a_little_loss_is_one_in_many(empty_world):
    (found,) = compared(empty_world(), lost_datagrams=30, longest_gap_datagrams=1)
    assert "the path lost 1 in 2,000 of them; jitter" in found.sentence
    assert found.significant


def test_a_single_datagram_is_no_finding(empty_world):
    (found,) = compared(empty_world(), lost_datagrams=1)
    assert not found.significant


@pytest.mark.parametrize(
    ("verb", "initiator", "receiver"),
    [("push", "client", "server"), ("pull", "client", "client"), ("push", "server", "client")],
)
def test_what_our_own_socket_dropped_is_no_loss_of_the_path(empty_world, verb, initiator, receiver):
    (found,) = compared(empty_world(), verb, initiator, receiver_dropped_datagrams=70)
    assert "the path lost none" in found.sentence
    assert f"70 more reached the {receiver} and found no room" in found.sentence
    assert not found.significant


def test_where_drops_are_not_known_the_loss_is_the_paths_or_the_receivers(empty_world):
    (found,) = compared(empty_world(), lost_datagrams=600, receiver_dropped_datagrams=None)
    assert "the path or the receiver lost 1 %" in found.sentence


def test_a_sender_that_fell_behind_is_told_and_not_called_loss(empty_world):
    (found,) = compared(empty_world(), sent_bytes_per_second=60e6, pace_ratio=0.64)
    assert "Pushing 60 MB/s" in found.sentence
    assert "kept 64 % of the pace" in found.sentence


def test_late_and_doubled_ones_are_told(empty_world):
    (found,) = compared(
        empty_world(), reordered_datagrams=600, reordered_ratio=0.01, duplicate_datagrams=3
    )
    assert "1 % came after one that was sent later" in found.sentence
    assert "3 came twice." in found.sentence


@pytest.mark.parametrize(
    "strange",
    [
        {"sent_datagrams": 0},
        {"sent_datagrams": None},
        {"lost_datagrams": "some"},
        {"lost_datagrams": 60_001},
    ],
    ids=str,
)
def test_an_account_that_does_not_add_up_tells_nothing(empty_world, strange):
    assert compared(empty_world(), **strange) == []


def test_all_of_them_lost_is_no_division(empty_world):
    (found,) = compared(empty_world(), lost_datagrams=60_000)
    assert found.ratio is None
    assert found.significant
