"""Acknowledged against safe: told where both differ, of pushes alone."""

from dataclasses import replace

import pytest

ABOUT = ("durability",)


def flush_details(rate, flush_seconds=2.0):
    return {"acknowledged_bytes_per_second": rate * 1e6, "flush_seconds": flush_seconds}


def test_both_rates_are_told_where_they_differ(world, store):
    world.copy("push.cached", (98, 100, 102), details=flush_details(200))
    world.copy("push.uncached", (98, 100, 102), details=flush_details(150, 1.0))
    store(world)


def test_what_the_system_copied_says_so(world, store):
    n = world.native("push.cached", 100)
    step, outcome = world.entries[n]
    world.entries[n] = (step, replace(outcome, details={**outcome.details, **flush_details(900)}))
    store(world)


@pytest.mark.parametrize(
    ("name", "details"),
    [
        ("push.cached", flush_details(105)),
        ("push.cached", {}),
        ("push.cached", {"acknowledged_bytes_per_second": 2e8}),
        ("push.cached", {**flush_details(200), "hash_ok": False}),
        ("push.cached", {**flush_details(200), "flushed": False}),
        ("pull.cached", flush_details(200)),
    ],
    ids=["the same", "not told", "half told", "altered", "not flushed", "a pull"],
)
def test_what_does_not_differ_or_is_no_flushed_push_is_left_out(world, name, details, store):
    world.copy(name, 100, details=details)
    world.fail("push.uncached", "reset")
    store(world)
