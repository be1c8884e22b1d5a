"""No fault is found only where all four copies fill a link that is as fast as its cards."""

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import OWN_COPIES

FULL = "all four copies use the full 1 Gbit/s link"


@pytest.fixture
def filled(world):
    """Fills the link of two hosts with all four copies: `filled(push=40)` makes pushes slow."""

    def made(push=113, pull=113, copies=OWN_COPIES):
        for name in copies:
            rate = push if name.startswith("push") else pull
            world.copy(name, (rate - 1, rate, rate + 1), memory=116)
        return world

    return made


def healthy(world):
    return diagnose(world.report()).healthy


def test_four_copies_that_fill_a_gigabit_link_are_no_fault(filled):
    assert healthy(filled()) == FULL


def test_a_copy_below_the_link_is_none_of_them(filled):
    assert healthy(filled(push=40)) == ""


def test_a_copy_that_was_not_made_leaves_it_unknown(filled):
    assert healthy(filled(copies=OWN_COPIES[:3])) == ""


def test_an_altered_file_is_never_healthy(filled):
    world = filled(copies=OWN_COPIES[1:])
    world.copy(OWN_COPIES[0], (112, 113, 114), memory=116, details={"hash_ok": False})
    assert healthy(world) == ""


@pytest.mark.parametrize("bits", [2_500_000_000, 10_000_000_000])
def test_cards_that_offer_more_than_the_path_are_a_fault(filled, bits):
    world = filled()
    card = replace(world.client.interface, rate_bits_per_second=bits)
    world.client = replace(world.client, interface=card)
    assert healthy(world) == ""


def test_a_virtual_card_offers_nothing(filled):
    world = filled()
    card = replace(world.client.interface, rate_bits_per_second=10_000_000_000, virtual=True)
    world.client = replace(world.client, interface=card)
    assert healthy(world) == FULL


def test_a_full_link_of_100_megabit_is_a_fault_today(empty_world):
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 11.77)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 500)
    for name in OWN_COPIES:
        world.copy(name, (11.3, 11.4, 11.5), memory=11.6)
    found = diagnose(world.report())
    assert found.chosen.verdict.named == ("network", "path", "link-rate")
    assert found.healthy == ""


def test_a_link_of_no_standard_rate_is_not_called_full(empty_world):
    world = empty_world()
    for verb in ("pull", "push"):
        world.tcp(verb, 200)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 900)
    for name in OWN_COPIES:
        world.copy(name, (193, 195, 197), memory=198)
    assert healthy(world) == ""
