"""The arithmetic against published figures."""

import math

import pytest

from bottleneck.analysis import model


@pytest.mark.parametrize(
    ("settings", "payload", "wire"),
    [
        ({"timestamps": False}, 1460, 1538),
        ({}, 1448, 1538),
        ({"vlan_tags": 1}, 1448, 1542),
        ({"ipv6": True}, 1428, 1538),
        ({"mtu_bytes": 9000}, 8948, 9038),
    ],
)
def test_payload_efficiency_is_that_of_rfc_6349(settings, payload, wire):
    assert model.payload_efficiency(**settings) == pytest.approx(payload / wire)


@pytest.mark.parametrize(
    ("rate", "mtu", "bits"),
    [
        (11.77e6, 1500, 10**8),
        (117.69e6, 1500, 10**9),
        (118.66e6, None, 10**9),  # timestamps off
        (115.76e6, 1500, 10**9),  # IPv6 and a VLAN tag
        (119.7e6, 1500, 10**9),  # a shaper that does not count preamble and gap
        (123.76e6, 9000, 10**9),
        (294e6, 1500, 25 * 10**8),
    ],
)
def test_a_full_link_is_recognised(rate, mtu, bits):
    link = model.looks_like(rate, mtu)
    assert link is not None
    assert link.bits_per_second == bits


@pytest.mark.parametrize(
    ("rate", "mtu"), [(113e6, 1500), (123.76e6, 1500), (80e6, 1500), (117.7e6, 65536), (5, 1500)]
)
def test_other_rates_look_like_no_link(rate, mtu):
    assert model.looks_like(rate, mtu) is None


def test_a_faster_link_carries_the_payload_that_is_asked():
    assert model.faster_link(100e6) == 10**9
    assert model.faster_link(118e6) == 25 * 10**8
    assert model.faster_link(1e12) == model.LINK_BITS_PER_SECOND[-1]


def test_stages_compose_in_turn():
    assert model.in_turn((25, 100)) == pytest.approx(20)


def test_a_disk_that_is_slower_than_the_transfer_ends_so_much_after_it():
    assert model.rate_with_disk(120, 60, 0) == pytest.approx(60)
    assert model.rate_with_disk(120, 60, 0.35) == pytest.approx(1 / (1 / 60 + 0.35 / 120))
    assert model.rate_with_disk(120, 60, 1) == pytest.approx(model.in_turn((120, 60)))


def test_a_disk_that_is_much_faster_catches_up_with_the_transfer():
    assert model.rate_with_disk(120, 3000, 0.35) == 120
    assert model.rate_with_disk(120, 150, 0.35) < 120


def test_of_a_transfer_and_a_disk_that_nobody_knows_nothing_is_known():
    assert math.isinf(model.rate_with_disk(math.inf, math.inf, 0.35))
    assert model.rate_with_disk(math.inf, 60, 0.35) == pytest.approx(60)


@pytest.mark.parametrize(("rate", "transfer", "late"), [(50, 120, 0.35), (100, 117, 0.1)])
def test_what_a_disk_needs_gives_the_rate_that_was_asked(rate, transfer, late):
    disk = model.needed_behind(rate, transfer, late)
    assert model.rate_with_disk(transfer, disk, late) == pytest.approx(rate)


def test_a_disk_needs_to_be_no_more_than_fast_beside_a_transfer_that_is_no_faster():
    assert model.needed_behind(100, 100, 0.35) == pytest.approx(100 / 0.65)
    assert model.needed_behind(100, 100, 1) == pytest.approx(100 / model.LEAST_TIME_RATIO)


def test_a_half_used_core_allows_twice_as_much_or_more_where_the_cost_falls():
    assert model.scaled_by_load(100, 0.5, 1) == pytest.approx(200)
    assert model.scaled_by_load(100, 0.25, 1.5) == pytest.approx(800)


def test_a_band_is_never_narrower_than_a_rate_can_be_known():
    assert model.Band(99, 100, 120).widened_band() == model.Band(97, 100, 120)
    assert model.Band(99, 100, 120).widened_band(0.3) == model.Band(70, 100, 130)
