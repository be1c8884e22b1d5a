"""The system's own copy beside this tool's: a gap is the mount's, or this tool's."""

import pytest

ABOUT = ("native",)


def test_a_slower_mount_is_a_finding_with_its_options_and_advice(world, says):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (58, 60, 61), "rw,rsize=65536,cache=none")
    says(world)


def test_a_gap_that_no_option_explains_is_told_without_one(world, says):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (58, 60, 61))
    says(world)


def test_where_this_tool_is_the_slower_one_it_is_the_instrument(world, says):
    world.copy("pull.cached", (58, 60, 61))
    world.native("pull.cached", (109, 112, 113))
    says(world)


def test_no_gap_is_no_finding(world, says):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (108, 110, 113))
    says(world)


def test_the_fastest_dialect_is_the_measure_and_the_widest_gap_leads(world, says):
    world.copy("pull.cached", (28, 29, 30), dialect="smb1")
    world.copy("pull.cached", (109, 112, 113))
    world.copy("push.cached", (99, 100, 101))
    world.native("pull.cached", (88, 90, 91))
    world.native("push.cached", (48, 50, 51), "rw,sync")
    says(world)


@pytest.mark.parametrize(
    ("own", "native"),
    [
        ({"details": {"hash_ok": False}}, {}),
        ({}, {"hash_ok": False}),
        ({"proven": False}, {}),
    ],
)
def test_altered_bytes_and_unequal_sources_compare_nothing(world, own, native, says):
    world.copy("pull.uncached", 112, **own)
    world.native("pull.uncached", 60, **native)
    says(world)


def test_one_of_both_alone_compares_nothing(world, says):
    world.native("pull.cached", 60)
    world.copy("push.cached", 60)
    world.fail("pull.cached", "reset")
    says(world)
