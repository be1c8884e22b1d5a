"""Rates that a report itself shows of a copy without a cause."""

import pytest

from bottleneck.analysis import steps
from bottleneck.analysis.facts.removed_causes import without


def rates(world, name, dialect="3.1.1", engine="own"):
    """Returns what the copies without each cause ran at, MB/s, by the cause."""
    report = world.report()
    key = (name, dialect, engine)
    copies = steps.copies(report)
    copy = next(each for each in copies if (each.name, each.dialect, each.engine) == key)
    return {each.cause: each.level.median / 1e6 for each in without(report, copy)}


@pytest.fixture
def copies(empty_world):
    world = empty_world()
    world.copy("pull.cached", 112, memory=116)
    world.copy("pull.uncached", 24)
    world.copy("file.pull.uncached", 12)
    world.copy("pull.cached", 30, dialect="smb1")
    world.tax("pull", "plain", 300)
    world.tax("push", "signed", 90)
    world.tax("pull", "signed", 190)
    return world


def test_security_is_taxed_in_the_copys_direction_and_dialect(copies):
    assert rates(copies, "pull.cached") == {"disk": 116, "signing": 300, "encryption": 190}


def test_an_old_dialect_has_the_fastest_copy_in_a_newer_one(copies):
    assert rates(copies, "pull.cached", "smb1") == {"dialect": 112}


def test_a_users_file_has_this_runs_own_which_lies_in_one_piece(copies, empty_world):
    causes = rates(copies, "file.pull.uncached")
    assert causes["seek"] == causes["zone"] == 24
    bare = empty_world()
    bare.copy("file.pull.uncached", 12)
    assert rates(bare, "file.pull.uncached") == {}


def test_a_mount_has_this_tools_own_copy(copies):
    copies.native("pull.cached", 60)
    native = [each for each in steps.copies(copies.report()) if each.is_native]
    others = [each for copy in native for each in without(copies.report(), copy)]
    assert ("round-trips", "client", 112e6) in [
        (each.cause, each.side, each.level.median) for each in others
    ]


def test_bytes_that_were_altered_show_nothing(empty_world):
    world = empty_world()
    world.copy("pull.cached", 30, dialect="smb1")
    world.copy("pull.cached", 112, details={"hash_ok": False})
    world.tax("pull", "plain", 300, hash_ok=False)
    assert rates(world, "pull.cached", "smb1") == rates(world, "pull.cached") == {}
