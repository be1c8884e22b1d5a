"""Cached against uncached: the sender's disk is named where it was measured to be what it is."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("cache",)

FAST, SLOW = ("copy", "pull.cached", [112]), ("copy", "pull.uncached", [24])
PLANTED = {
    "the server's disk, where the uncached copy reaches it": plan(
        ("disk", "server", "read", (24, 25, 26)), FAST, SLOW
    ),
    "the client's": plan(
        ("disk", "client", "read", (24, 25, 26)),
        ("copy", "push.cached", [112]),
        ("copy", "push.uncached", [24]),
    ),
    "a disk that nobody measured is what both copies differ in": (FAST, SLOW),
    "a fast disk is not blamed": plan(
        ("disk", "server", "read", 800), ("disk", "client", "write", 900), FAST, SLOW
    ),
    "an uncached copy that is the faster one is told without a word of its disk": plan(
        ("copy", "pull.cached", [60]), ("copy", "pull.uncached", [100])
    ),
    "differences within the noise are none": (
        ("copy", "push.cached", (100, 105, 112)),
        ("copy", "push.uncached", (99, 108, 111)),
    ),
    "of both directions the one that differs comes first": plan(
        ("disk", "server", "read", 25),
        ("copy", "push.cached", [112]),
        ("copy", "push.uncached", [111]),
        FAST,
        SLOW,
    ),
    "the user's own file is compared with itself alone": plan(
        ("copy", "file.pull.cached", [112]),
        ("copy", "file.pull.uncached", [12]),
        ("copy", "pull.uncached", [60]),
    ),
    "what may have been uncached is not compared": (
        ("copy", "pull.cached", [100], {"proven": False}),
        ("copy", "pull.uncached", [100]),
    ),
    "what may have been cached is not compared": (
        ("copy", "pull.cached", [100]),
        ("copy", "pull.uncached", [100], {"proven": False}),
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_cached_and_uncached_copies_side_by_side(path, plant, steps, store):
    store(plant(path, *steps))
