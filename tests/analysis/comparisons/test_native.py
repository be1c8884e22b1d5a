"""The system's own copy beside this tool's: a gap is the mount's, or this tool's."""

import pytest

from tests.analysis.comparisons.conftest import plan

ABOUT = ("native",)

OWN, SLOW = ("copy", "pull.cached", (109, 112, 113)), (58, 60, 61)
PLANTED = {
    "a slower mount is a finding with its options and advice": plan(
        OWN, ("native", "pull.cached", SLOW, "rw,rsize=65536,cache=none")
    ),
    "a gap that no option explains is told without one": (OWN, ("native", "pull.cached", SLOW)),
    "where this tool is the slower one it is the instrument": (
        ("copy", "pull.cached", SLOW),
        ("native", "pull.cached", (109, 112, 113)),
    ),
    "no gap is no finding": (OWN, ("native", "pull.cached", (108, 110, 113))),
    "the fastest dialect is the measure and the widest gap leads": plan(
        ("copy", "pull.cached", (28, 29, 30), {"dialect": "smb1"}),
        OWN,
        ("copy", "push.cached", (99, 100, 101)),
        ("native", "pull.cached", (88, 90, 91)),
        ("native", "push.cached", (48, 50, 51), "rw,sync"),
    ),
    "altered bytes of ours compare nothing": (
        ("copy", "pull.uncached", 112, {"details": {"hash_ok": False}}),
        ("native", "pull.uncached", 60),
    ),
    "altered bytes of the system's compare nothing": (
        ("copy", "pull.uncached", 112),
        ("native", "pull.uncached", 60, {"hash_ok": False}),
    ),
    "unequal sources compare nothing": (
        ("copy", "pull.uncached", 112, {"proven": False}),
        ("native", "pull.uncached", 60),
    ),
    "one of both alone compares nothing": plan(
        ("native", "pull.cached", 60), ("copy", "push.cached", 60), ("fail", "pull.cached", "reset")
    ),
}


@pytest.mark.parametrize("steps", PLANTED.values(), ids=PLANTED)
def test_the_systems_copy_beside_this_tools(world, plant, steps, store):
    store(plant(world, *steps))
