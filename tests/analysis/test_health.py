"""No fault is found only where all four copies fill a link that is as fast as its cards."""

from dataclasses import replace

import pytest

from bottleneck.analysis.diagnosis import diagnose
from probes.core.records import OWN_COPIES

FULL = "all four copies use the full 1 Gbit/s link"


def full_world(world, link, copies=OWN_COPIES, push=None, card=None, **details):
    """Adds four copies that fill a link between fast disks, but for what is changed."""
    for verb in ("pull", "push"):
        world.tcp(verb, link)
    for side in ("client", "server"):
        for verb in ("read", "write"):
            world.disk(side, verb, 900)
    for name in copies:
        rate = push if push and name.startswith("push") else 0.965 * link
        runs = (0.99 * rate, rate, 1.01 * rate)
        world.copy(name, runs, memory=0.99 * link, details=details)
    world.client = replace(world.client, interface=replace(world.client.interface, **card or {}))
    return diagnose(world.report())


FAST = {"rate_bits_per_second": 10_000_000_000}
LINKS = {
    "four copies that fill a gigabit link": (FULL, {"link": 117.6}),
    "a virtual card offers nothing": (FULL, {"link": 117.6, "card": {**FAST, "virtual": True}}),
    "a copy below the link": ("", {"link": 117.6, "push": 40}),
    "a copy that was not made": ("", {"link": 117.6, "copies": OWN_COPIES[:3]}),
    "an altered file": ("", {"link": 117.6, "hash_ok": False}),
    "a card that offers more than the path": ("", {"link": 117.6, "card": FAST}),
    "a card of 2.5 Gbit/s": pytest.param(
        "", {"link": 117.6, "card": {"rate_bits_per_second": 2_500_000_000}}
    ),
    "a full link of 100 Mbit/s is a fault today": ("", {"link": 11.77}),
    "a link of no standard rate": ("", {"link": 200}),
}


@pytest.mark.parametrize(("words", "changes"), LINKS.values(), ids=LINKS)
def test_no_fault_is_found_where_a_usual_link_is_full_and_nowhere_else(empty_world, words, changes):
    diagnosis = full_world(empty_world(), **changes)
    assert diagnosis.healthy == words
    if words:
        assert diagnosis.main_copy.verdict.words == "network/path/link-rate"
