"""What a report itself shows of a copy without a stage is believed before any arithmetic."""

import pytest

from bottleneck.analysis import references, steps
from bottleneck.analysis.finding import Ceiling

MB = 1e6


def gone(component, side, cause):
    return [Ceiling(component, side, cause, 10 * MB, 10 * MB, 10 * MB, (), "measured")]


def copy_of(world, name, dialect="3.1.1"):
    found = steps.copies(world.report())
    return next(each for each in found if (each.name, each.dialect) == (name, dialect))


def shown(world, name, lifted, dialect="3.1.1"):
    found = references.shown_without(world.report(), copy_of(world, name, dialect), lifted)
    return found and found.rate.median / MB


@pytest.fixture
def copies(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 112, memory=116)
    world.copy("pull.uncached", 24)
    return world


def test_without_the_senders_disk_an_uncached_copy_is_the_cached_one(copies):
    assert shown(copies, "pull.uncached", gone("disk", "server", "read")) == 112


def test_without_the_initiators_disk_a_copy_is_the_one_to_memory(copies):
    assert shown(copies, "pull.cached", gone("disk", "client", "write")) == 116


def test_without_both_disks_an_uncached_copy_is_the_cached_one_to_memory(copies):
    both = gone("disk", "server", "read") + gone("disk", "client", "write")
    assert shown(copies, "pull.uncached", both) == 116
    found = references.shown_without(
        copies.report(), copy_of(copies, "pull.uncached"), gone("disk", "client", "write")
    )
    assert found.lacks == {("disk", "server"), ("disk", "client")}


def test_nothing_shows_a_push_without_the_servers_disk(empty_world):
    world = empty_world()
    world.copy("push.uncached", 50)
    assert shown(world, "push.uncached", gone("disk", "server", "write")) is None


def test_nothing_shows_a_copy_without_a_disk_and_the_link(copies):
    both = gone("disk", "server", "read") + gone("network", "path", "link-rate")
    assert shown(copies, "pull.uncached", both) is None


@pytest.mark.parametrize("cause", ["seek", "zone"])
def test_a_users_file_in_a_better_place_is_read_as_this_runs_own(copies, cause):
    copies.copy("file.pull.uncached", 12)
    assert shown(copies, "file.pull.uncached", gone("disk", "server", cause)) == 24


def test_a_users_file_alone_shows_no_better_place(empty_world):
    world = empty_world()
    world.copy("file.pull.uncached", 12)
    assert shown(world, "file.pull.uncached", gone("disk", "server", "seek")) is None


def test_a_users_file_on_a_faster_disk_is_another_matter(copies):
    copies.copy("file.pull.uncached", 12)
    assert shown(copies, "file.pull.uncached", gone("disk", "server", "read")) is None


def test_without_the_mount_a_copy_is_this_tools_own(copies):
    copies.native("pull.cached", 40)
    assert shown(copies, "pull.cached", gone("smb", "client", "round-trips"), "native") == 112


def test_without_its_dialect_a_copy_is_the_fastest_in_a_newer_one(copies):
    copies.copy("pull.cached", 30, dialect="smb1")
    copies.native("pull.cached", 200)
    assert shown(copies, "pull.cached", gone("smb", "server", "dialect"), "smb1") == 112
    assert shown(copies, "pull.cached", gone("smb", "server", "dialect")) is None


def test_without_security_a_copy_is_the_plain_one(copies):
    copies.tax("pull", "plain", 300)
    copies.tax("push", "signed", 90)
    copies.tax("pull", "signed", 200)
    assert shown(copies, "pull.cached", gone("smb", "server", "encryption")) == 200
    assert shown(copies, "pull.cached", gone("smb", "server", "signing")) == 300
    assert shown(copies, "pull.cached", gone("smb", "path", "round-trips")) is None


def test_bytes_that_were_altered_show_nothing(empty_world):
    world = empty_world()
    world.copy("pull.cached", 30, dialect="smb1")
    world.copy("pull.cached", 112, details={"hash_ok": False})
    world.tax("pull", "plain", 300, hash_ok=False)
    assert shown(world, "pull.cached", gone("smb", "server", "dialect"), "smb1") is None
    assert shown(world, "pull.cached", gone("smb", "server", "signing")) is None
    assert references.demonstrated(world.report(), copy_of(world, "pull.cached")) == 0


def test_what_was_moved_the_same_way_is_shown_to_be_possible(copies):
    report = copies.report()
    assert references.demonstrated(report, copy_of(copies, "pull.uncached")) == 116 * MB


def share(world, name, link=117.6 * MB):
    return references.efficiency(world.report(), copy_of(world, name), link)


def test_the_share_of_the_link_is_that_of_a_copy_the_same_way(copies):
    assert share(copies, "pull.cached") == pytest.approx(112 / 117.6)
    assert share(copies, "pull.uncached") == pytest.approx(112 / 117.6)


def test_else_it_is_that_of_a_copy_the_other_way(copies):
    copies.tcp("push", 117)
    copies.copy("push.cached", 30)
    assert share(copies, "push.cached") == pytest.approx(112 / 117.6)


def test_the_share_of_another_link_is_the_usual_one(copies):
    assert share(copies, "pull.cached", 1176 * MB) == references.USUAL_RATIO
    assert share(copies, "pull.cached", 11.8 * MB) == references.USUAL_SLOW_RATIO


def test_others_programs_usually_get_less(empty_world):
    world = empty_world()
    world.copy("pull.cached", 30, engine="smbclient")
    assert share(world, "pull.cached") == references.USUAL_OTHERS_RATIO


def test_a_long_round_trip_costs_a_copy_its_beginning_and_end(empty_world):
    world = empty_world()
    world.copy("pull.cached", 30, details={"rtt_seconds": 0.04})
    assert share(world, "pull.cached") == pytest.approx(references.USUAL_RATIO - 0.03)


def test_a_copy_that_could_not_be_made_has_the_usual_share(empty_world):
    world = empty_world()
    world.skip("pull.cached", "no share")
    assert share(world, "pull.cached") == references.USUAL_RATIO
