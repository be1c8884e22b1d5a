"""The cost of signing and encryption in rate, and whose CPU bears it."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("security",)

FULL = {"core_busy_ratios": (0.97, 0.2), "busiest_process_ratio": 0.97}


def cpu_load(seconds_per_gigabyte, rate, **extra):
    """A server that needs so much of its CPU for a GB, over 4 s at a rate in MB/s."""
    return {"server": {"copy_cpu_seconds": seconds_per_gigabyte * rate * 4 / 1000, **extra}}


PLANTED = {
    "the cost, and the core that bears it": (
        ("tax", "pull", "plain", [117], cpu_load(0.4, 117)),
        ("tax", "pull", "signed", [115], cpu_load(0.45, 115)),
        ("tax", "pull", "encrypted", [84], cpu_load(1.9, 84, **FULL)),
    ),
    "each direction is told apart": plan(
        ("tax", "push", "plain", [100]),
        ("tax", "push", "signed", [50]),
        ("tax", "pull", "plain", [100]),
        ("tax", "pull", "signed", [50]),
    ),
    "where plain is not allowed signed is the base": plan(
        ("tax", "pull", "signed", [100]), ("tax", "pull", "encrypted", [70])
    ),
    "what ran faster costs nothing": plan(
        ("tax", "pull", "plain", [50]), ("tax", "pull", "signed", [70])
    ),
    "a tick of CPU time is no cost": (
        ("tax", "pull", "plain", 0.25, {"server": {"copy_cpu_seconds": 0.0}}),
        ("tax", "pull", "signed", 0.25, {"server": {"copy_cpu_seconds": 0.01}}),
    ),
    "single runs have to differ by a quarter": plan(
        ("tax", "pull", "plain", 100), ("tax", "pull", "signed", 85)
    ),
    "one kind alone, altered bytes and strange words compare nothing": plan(
        ("tax", "pull", "plain", 100),
        ("tax", "pull", "encrypted", 50, {"hash_ok": False}),
        ("tax", "pull", "obfuscated", 50),
        ("tax", "sideways", "signed", 50),
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_security_costs_what_it_takes_of_the_rate(hosts, plant, steps, store):
    store(plant(hosts, *steps))


def test_this_tools_own_full_core_is_called_that(empty_world, plant, store):
    full = {"client": {**FULL, "copy_cpu_seconds": 3.9}}
    steps = (("tax", "push", "plain", [800]), ("tax", "push", "encrypted", [300], full))
    store(plant(empty_world(agent=False), *steps))
