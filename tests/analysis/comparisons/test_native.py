"""The system's own copy beside this tool's: a gap is the mount's, or this tool's."""

import pytest

from bottleneck.analysis import diagnose


def compared(world):
    found = diagnose(world.report()).comparisons
    return [each for each in found if each.about == "native"]


def test_a_slower_mount_is_a_finding_with_its_options_and_advice(world):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (58, 60, 61), "rw,rsize=65536,cache=none")
    (found,) = compared(world)
    assert found.sentence == (
        "pull.cached: cp through the mount 60 MB/s, this tool by SMB 3.1.1 112 MB/s: the path "
        "carries 1.9x what the mount (rsize=65536, cache=none) makes of it. A mount with "
        "rsize=4194304, cache=strict may close the gap."
    )
    verdict = found.rows[0]["verdict"]
    assert (verdict["component"], verdict["side"], verdict["cause"]) == (
        "smb",
        "client",
        "round-trips",
    )
    assert verdict["advice"].endswith("112 MB/s is possible.")
    assert found.ratio == pytest.approx(112 / 60)
    assert found.significant


def test_a_gap_that_no_option_explains_is_told_without_one(world):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (58, 60, 61))
    sentence = compared(world)[0].sentence
    assert "what the mount makes of it. A mount that keeps more in flight" in sentence


def test_where_this_tool_is_the_slower_one_it_is_the_instrument(world):
    world.copy("pull.cached", (58, 60, 61))
    world.native("pull.cached", (109, 112, 113))
    (found,) = compared(world)
    assert found.rows[0]["verdict"]["component"] == "instrument"
    assert "may be the tool itself; blame nobody by it" in found.sentence


def test_no_gap_is_no_finding(world):
    world.copy("pull.cached", (109, 112, 113))
    world.native("pull.cached", (108, 110, 113))
    (found,) = compared(world)
    assert found.rows[0]["verdict"] is None
    assert found.sentence.endswith("no difference that these runs can tell.")
    assert not found.significant


def test_the_fastest_dialect_is_the_measure_and_the_widest_gap_leads(world):
    world.copy("pull.cached", (28, 29, 30), dialect="smb1")
    world.copy("pull.cached", (109, 112, 113))
    world.copy("push.cached", (99, 100, 101))
    world.native("pull.cached", (88, 90, 91))
    world.native("push.cached", (48, 50, 51), "rw,sync")
    (found,) = compared(world)
    assert found.sentence.startswith("push.cached: ")
    assert [row["own_dialect"] for row in found.rows] == ["3.1.1", "3.1.1"]
    assert found.rows[1]["options"] == ["sync"]


@pytest.mark.parametrize(
    ("own", "native"),
    [
        ({"details": {"hash_ok": False}}, {}),
        ({}, {"hash_ok": False}),
        ({"proven": False}, {}),
    ],
)
def test_altered_bytes_and_unequal_sources_compare_nothing(world, own, native):
    world.copy("pull.uncached", 112, **own)
    world.native("pull.uncached", 60, **native)
    assert compared(world) == []


def test_one_of_both_alone_compares_nothing(world):
    world.native("pull.cached", 60)
    world.copy("push.cached", 60)
    world.fail("pull.cached", "reset")
    assert compared(world) == []
