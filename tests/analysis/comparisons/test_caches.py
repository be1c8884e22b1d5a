"""Cached against uncached: the sender's disk is named where it was measured to be what it is."""

import pytest

from bottleneck.analysis.comparisons import caches


def compared(world):
    return list(caches.compare(world.report()))


def about(rate):
    return (0.99 * rate, rate, 1.01 * rate)


@pytest.fixture
def path(empty_world):
    """A gigabit path without disks yet."""
    world = empty_world()
    world.tcp("push", 117.6)
    world.tcp("pull", 117.5)
    return world


@pytest.mark.parametrize(("verb", "sender"), [("pull", "server"), ("push", "client")])
def test_the_senders_disk_is_named_where_the_uncached_copy_reaches_it(path, verb, sender):
    path.disk(sender, "read", (24, 25, 26))
    path.copy(f"{verb}.cached", about(112))
    path.copy(f"{verb}.uncached", about(24))
    (found,) = compared(path)
    assert found.sentence == (
        f"{verb.capitalize()}ing a file is 4.7x slower from the {sender}'s disk than from its RAM "
        f"(cached 112 MB/s, uncached 24 MB/s, SMB 3.1.1): the {sender}'s disk reads no faster than "
        "25 MB/s."
    )
    (row,) = found.rows
    assert (row["component"], row["side"], row["cause"]) == ("disk", sender, "read")
    assert row["slower"] == "uncached"


def test_a_disk_that_nobody_measured_is_what_both_copies_differ_in(path):
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    (found,) = compared(path)
    assert (found.rows[0]["component"], found.rows[0]["side"]) == ("disk", "server")
    assert "reads no faster than" not in found.sentence


def test_a_fast_disk_is_not_blamed(path):
    path.disk("server", "read", 800)
    path.disk("client", "write", 900)
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    (found,) = compared(path)
    assert found.rows[0]["component"] is None
    assert ": they differ in the server's disk alone, but nothing that was measured" in (
        found.sentence
    )
    assert "the server's disk (read) (800 MB/s)" in found.sentence


def test_an_uncached_copy_that_is_the_faster_one_is_told_without_a_word_of_its_disk(path):
    path.copy("pull.cached", about(60))
    path.copy("pull.uncached", about(100))
    (found,) = compared(path)
    assert found.rows[0]["slower"] == "cached"
    assert "slower from the server's RAM than from its disk" in found.sentence
    assert "alone" not in found.sentence


def test_differences_within_the_noise_are_none(path):
    path.copy("push.cached", (100, 105, 112))
    path.copy("push.uncached", (99, 108, 111))
    (found,) = compared(path)
    assert not found.significant
    assert found.sentence == (
        "Pushing a file, no difference that these runs can tell (cached 105 MB/s, uncached "
        "108 MB/s, SMB 3.1.1)."
    )


def test_both_directions_are_told_the_one_that_differs_first(path):
    path.disk("server", "read", 25)
    path.copy("push.cached", about(112))
    path.copy("push.uncached", about(111))
    path.copy("pull.cached", about(112))
    path.copy("pull.uncached", about(24))
    (found,) = compared(path)
    assert found.sentence.startswith("Pulling a file is 4.7x slower")
    assert "Pushing a file, no difference" in found.sentence
    assert [row["copy"] for row in found.rows] == ["push.uncached", "pull.uncached"]


def test_the_users_own_file_is_compared_with_itself_alone(path):
    path.copy("file.pull.cached", about(112))
    path.copy("file.pull.uncached", about(12))
    path.copy("pull.uncached", about(60))
    (found,) = compared(path)
    assert found.sentence.startswith("Pulling the file is 9.3x slower")
    assert len(found.rows) == 1


@pytest.mark.parametrize("which", ["cached", "uncached"])
def test_what_may_have_been_the_other_one_is_not_compared(path, which):
    for cache in ("cached", "uncached"):
        path.copy(f"pull.{cache}", about(100), proven=cache != which)
    assert compared(path) == []
