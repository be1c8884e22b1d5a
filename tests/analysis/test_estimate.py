"""The back of the envelope: each ceiling by its formula, and what is expected below all of them."""

from __future__ import annotations

import pytest

from bottleneck.analysis.estimate import Envelope, estimate, likely
from bottleneck.analysis.estimate.disk_kinds import KINDS, told

GIGABIT = {"link_bits_per_second": 1e9}


def rates(found):
    return {
        (
            each.claim.ceiling.component,
            each.claim.ceiling.cause,
        ): each.claim.ceiling.bytes_per_second
        for each in found.thumbs
    }


def needs(found):
    return {each.needs for each in found.missing}


def words(found):
    return found.verdict.component, found.verdict.side, found.verdict.cause


@pytest.mark.parametrize(
    ("given", "megabytes"),
    [
        ({}, 117.69),
        ({"mtu_bytes": 9000}, 123.76),
        ({"vlan_tags": 1}, 117.38),
        ({"ipv6": True}, 116.06),
        ({"timestamps": False}, 118.66),
        ({"link_bits_per_second": 1e8}, 11.769),
    ],
)
def test_a_link_carries_what_rfc_6349_counts(given, megabytes):
    found = estimate(Envelope(**{**GIGABIT, **given}))
    rate = rates(found)["network", "link-rate"]
    assert rate == pytest.approx(megabytes * 1e6, rel=1e-3)


def test_the_rule_of_a_link_shows_its_figures():
    given = Envelope(**GIGABIT, ipv6=True, vlan_tags=1)
    (rule,) = [e.rule for e in estimate(given).thumbs if e.claim.ceiling.cause == "link-rate"]
    assert "MTU 1500, IPv6, TCP timestamps, a VLAN tag" in rule and "1428/1542" in rule
    plain = estimate(Envelope(**GIGABIT, timestamps=False)).thumbs[0].rule
    assert plain.startswith("1 Gbit/s with MTU 1500 carries 118.7 MB/s of payload: 1460/1538")


def test_a_window_carries_itself_in_each_round_trip():
    given = Envelope(**GIGABIT, rtt_seconds=0.149, window_bytes=65536)
    found = estimate(given)
    assert rates(found)["tcp", "receive-window"] == pytest.approx(65536 / 0.149)
    assert words(found) == ("tcp", "client", "receive-window")
    (rule,) = [e.rule for e in found.thumbs if e.claim.ceiling.component == "tcp"]
    assert "1 Gbit/s needs 16.7 MiB of window" in rule
    four = estimate(Envelope(**GIGABIT, rtt_seconds=0.149, window_bytes=65536, streams=4))
    assert rates(four)["tcp", "receive-window"] == pytest.approx(4 * 65536 / 0.149)


def test_a_window_of_the_bandwidth_delay_product_asks_for_no_larger_one():
    for window, remedy in ((64 << 10, True), (64 << 20, False)):
        found = estimate(Envelope(**GIGABIT, rtt_seconds=0.01, window_bytes=window))
        (claim,) = [e.claim for e in found.thumbs if e.claim.ceiling.component == "tcp"]
        assert bool(claim.remedy) == remedy


def test_a_window_without_a_link_fills_nothing_known():
    found = estimate(Envelope(rtt_seconds=0.01, window_bytes=65536))
    (rule,) = [e.rule for e in found.thumbs if e.claim.ceiling.component == "tcp"]
    assert "needs" not in rule


@pytest.mark.parametrize(
    ("dialect", "in_flight"),
    [("smb1", 60 << 10), ("2.0.2", 512 << 10), ("2.1", 8 << 20), ("3.1.1", 8 << 20)],
)
def test_a_dialect_keeps_its_usual_requests_in_flight(dialect, in_flight):
    found = estimate(Envelope(dialect=dialect, rtt_seconds=0.05))
    assert rates(found)["smb", "round-trips"] == pytest.approx(in_flight / 0.05)
    (rule,) = [e.rule for e in found.thumbs]
    assert "assumed" in rule


def test_requests_as_given_share_no_round_trip_with_their_time_on_the_link():
    given = Envelope(**GIGABIT, rtt_seconds=0.01, request_bytes=65536, depth=1)
    found = estimate(given)
    own = 65536 / (1e9 / 8 * 1448 / 1538)
    assert rates(found)["smb", "round-trips"] == pytest.approx(65536 / (0.01 + own))
    (thumb,) = [e for e in found.thumbs if e.claim.ceiling.component == "smb"]
    assert "assumed" not in thumb.rule
    assert thumb.claim.words.startswith("1 request of 64 KiB at a time carries")


def test_losses_leave_the_bracket_of_mathis():
    given = Envelope(rtt_seconds=0.01, loss_ratio=0.001)
    (thumb,) = [e for e in estimate(given).thumbs if e.claim.ceiling.cause == "loss"]
    ceiling = thumb.claim.ceiling
    assert ceiling.low_bytes_per_second == pytest.approx(0.7 * 144800 / 0.001**0.5)
    assert ceiling.high_bytes_per_second == pytest.approx(1.2247 * 144800 / 0.001**0.5, rel=1e-3)
    assert ceiling.low_bytes_per_second < ceiling.bytes_per_second < ceiling.high_bytes_per_second


def test_a_path_that_loses_nothing_has_no_such_ceiling_and_asks_for_none():
    found = estimate(Envelope(rtt_seconds=0.01, loss_ratio=0.0))
    assert ("network", "loss") not in rates(found)
    assert not any("loss" in each for each in needs(found))


@pytest.mark.parametrize(
    ("verb", "reads", "writes"), [("pull", "server", "client"), ("push", "client", "server")]
)
def test_the_senders_disk_reads_and_the_receivers_writes(verb, reads, writes):
    found = estimate(Envelope(verb=verb, read=told(60e6), write=KINDS["ssd"]))
    sides = {(e.claim.ceiling.cause, e.claim.ceiling.side) for e in found.thumbs}
    assert sides == {("read", reads), ("write", writes)}


def test_a_disk_behind_usb_is_the_bus():
    found = estimate(Envelope(read=KINDS["usb2"], write=KINDS["nvme"]))
    assert words(found) == ("bus", "server", "usb")


def test_every_kind_of_disk_lies_within_its_rule():
    for kind in KINDS.values():
        assert 0 < kind.low <= kind.usual <= kind.high and kind.why in kind.rule


def test_a_cached_source_needs_no_disk_unless_it_outgrows_the_ram():
    small = {"cached": True, "read": told(60e6), "ram_bytes": 4e9}
    assert rates(estimate(Envelope(**small, size_bytes=2e9))) == {}
    assert rates(estimate(Envelope(**{**small, "ram_bytes": None}, size_bytes=8e9))) == {}
    found = estimate(Envelope(**small, size_bytes=8e9))
    assert words(found) == ("memory", "server", "cache-size")
    over_usb = estimate(Envelope(**{**small, "read": KINDS["usb2"]}, size_bytes=8e9))
    assert words(over_usb) == ("memory", "server", "cache-size")


def test_what_is_not_given_is_asked_for():
    assert needs(estimate(Envelope())) == {
        "--link",
        "--window and --rtt",
        "--rtt",
        "--loss (what losses cost)",
        "--disk-read",
        "--disk-write",
    }
    given = Envelope(window_bytes=65536, loss_ratio=0.01)
    assert {"--rtt", "--rtt (what losses cost)"} <= needs(estimate(given))


def test_without_any_figure_nothing_is_said():
    found = estimate(Envelope())
    assert words(found) == ("unknown", None, "not-measured")
    assert found.seconds is None and found.cold_seconds is None and found.history is None


def test_stages_work_at_once_or_one_after_the_other():
    given = Envelope(**GIGABIT, read=told(100e6), write=told(50e6), size_bytes=1e9)
    found = estimate(given)
    link = 1e9 / 8 * 1448 / 1538
    assert found.overlapped == pytest.approx(50e6)
    assert found.in_turn == pytest.approx(1 / (1 / link + 1 / 100e6 + 1 / 50e6))
    assert found.seconds == pytest.approx((20, 1e9 / found.in_turn))


def test_a_window_takes_no_turn():
    given = Envelope(rtt_seconds=0.1, window_bytes=65536, read=told(100e6), write=told(100e6))
    found = estimate(given)
    assert found.in_turn == found.overlapped == pytest.approx(655_360)


def test_a_path_is_one_stage_though_two_ceilings_are_its():
    given = Envelope(**GIGABIT, rtt_seconds=0.01, loss_ratio=1e-6, cached=True)
    found = estimate(given)
    assert found.in_turn == found.overlapped


@pytest.mark.parametrize(
    ("write", "confidence"), [(told(60e6), 0.6), (told(95e6), 0.5), (told(114e6), 0.4), (None, 0.4)]
)
def test_nothing_measured_is_never_sure_and_less_so_where_the_next_is_near(write, confidence):
    found = estimate(Envelope(**GIGABIT, cached=True, write=write))
    assert found.verdict.confidence == confidence
    assert ("too close" in found.verdict.sentence) == (write == told(114e6))
    assert ("Not all of its way is known" in found.verdict.sentence) == (write is None)
    assert ("can run at no more than" in found.verdict.sentence) == (write is None)


def test_a_lone_ceiling_has_none_after_it():
    assert likely(()) is None
    found = estimate(Envelope(**GIGABIT))
    assert "After it comes" not in found.verdict.sentence


@pytest.mark.parametrize(
    ("given", "trips"),
    [
        ({"verb": "pull"}, 7),
        ({"verb": "push"}, 8),
        ({"verb": "pull", "rtt_seconds": 0.149}, 7 + 11),
        ({"verb": "pull", "rtt_seconds": 0.0001}, 7),
    ],
)
def test_the_start_costs_round_trips(given, trips):
    """Connect, login, open and close; on a far path 10 segments, doubled until it is full."""
    found = estimate(Envelope(**GIGABIT, **given, request_bytes=1 << 20, depth=64))
    assert found.cold_round_trips == trips


@pytest.mark.parametrize(("bits", "past"), [(1e9, 30e6), (1e8, 10e6), (1e7, 1e6), (2.5e9, None)])
def test_what_pcs_of_2005_got_is_history(bits, past):
    assert estimate(Envelope(link_bits_per_second=bits)).history == past
