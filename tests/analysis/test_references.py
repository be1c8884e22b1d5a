"""What a report itself shows of a copy without a stage is believed before any arithmetic."""

import pytest

from bottleneck.analysis import references, steps
from bottleneck.analysis.finding import Ceiling

MB = 1e6
READ, WRITE = ("disk", "server", "read"), ("disk", "client", "write")
LINK, DIALECT = ("network", "path", "link-rate"), ("smb", "server", "dialect")
SIGNING = ("smb", "server", "signing")


def copy_of(world, name, dialect="3.1.1"):
    found = steps.copies(world.report())
    return next(each for each in found if (each.name, each.dialect) == (name, dialect))


def shown(world, name, gone, dialect="3.1.1"):
    lifted = [Ceiling(*each, 10 * MB, 10 * MB, 10 * MB, (), "measured") for each in gone]
    return references.shown_without(world.report(), copy_of(world, name, dialect), lifted)


@pytest.fixture
def copies(empty_world):
    world = empty_world()
    world.tcp("pull", 117.6)
    world.copy("pull.cached", 112, memory=116)
    world.copy("pull.uncached", 24)
    world.copy("push.uncached", 50)
    world.copy("file.pull.uncached", 12)
    world.copy("pull.cached", 30, dialect="smb1")
    world.native("pull.cached", 200)
    world.tax("pull", "plain", 300)
    world.tax("push", "signed", 90)
    world.tax("pull", "signed", 190)
    return world


SHOWN = {
    "the sender's disk: the cached copy": (112, "pull.uncached", [READ]),
    "the initiator's disk: the copy to memory": (116, "pull.cached", [WRITE]),
    "both disks: the cached copy to memory": (116, "pull.uncached", [READ, WRITE]),
    "the server's disk of a push: nothing": (None, "push.uncached", [("disk", "server", "write")]),
    "a disk and the link: nothing": (None, "pull.uncached", [READ, LINK]),
    "its pieces: this run's own file": (24, "file.pull.uncached", [("disk", "server", "seek")]),
    "its place: this run's own file": (24, "file.pull.uncached", [("disk", "server", "zone")]),
    "the disk of a user's file: nothing": (None, "file.pull.uncached", [READ]),
    "the mount: this tool's own copy": (
        *(112, "pull.cached", [("smb", "client", "round-trips")], "native"),
    ),
    "an old dialect: the fastest in a newer one": (112, "pull.cached", [DIALECT], "smb1"),
    "the newest dialect: nothing": (None, "pull.cached", [DIALECT]),
    "encryption: the signed one": (190, "pull.cached", [("smb", "server", "encryption")]),
    "signing: the plain one": (300, "pull.cached", [SIGNING]),
    "round trips: nothing": (None, "pull.cached", [("smb", "path", "round-trips")]),
}


@pytest.mark.parametrize("case", SHOWN.values(), ids=SHOWN)
def test_a_copy_without_a_stage_is_what_was_measured_without_it(copies, case):
    rate, *asked = case
    found = shown(copies, *asked)
    assert (found and found.rate.median / MB) == rate


def test_it_is_told_which_stages_that_lacks(copies):
    found = shown(copies, "pull.uncached", [WRITE])
    assert found.lacks == {("disk", "server"), ("disk", "client")}


def test_a_users_file_alone_shows_no_better_place(empty_world):
    world = empty_world()
    world.copy("file.pull.uncached", 12)
    assert shown(world, "file.pull.uncached", [("disk", "server", "seek")]) is None


def test_bytes_that_were_altered_show_nothing(empty_world):
    world = empty_world()
    world.copy("pull.cached", 30, dialect="smb1")
    world.copy("pull.cached", 112, details={"hash_ok": False})
    world.tax("pull", "plain", 300, hash_ok=False)
    assert shown(world, "pull.cached", [DIALECT], "smb1") is None
    assert shown(world, "pull.cached", [SIGNING]) is None
    assert references.demonstrated(world.report(), copy_of(world, "pull.cached")) == 0


def test_what_was_moved_the_same_way_is_shown_to_be_possible(copies):
    copies.forget("smb-tax")
    report = copies.report()
    assert references.demonstrated(report, copy_of(copies, "pull.uncached")) == 116 * MB


def share(world, name, link=117.6 * MB):
    return references.efficiency(world.report(), copy_of(world, name), link)


def test_the_share_of_the_link_is_that_of_a_copy_the_same_way_or_the_other(copies):
    for name in ("pull.cached", "pull.uncached"):
        assert share(copies, name) == pytest.approx(112 / 117.6)
    copies.tcp("push", 117)
    assert share(copies, "push.uncached") == pytest.approx(112 / 117.6)


def test_the_share_of_another_link_is_the_usual_one(copies):
    assert share(copies, "pull.cached", 1176 * MB) == references.USUAL_RATIO
    assert share(copies, "pull.cached", 11.8 * MB) == references.USUAL_SLOW_RATIO


ALONE = {
    "others' programs usually get less": (
        *(references.USUAL_OTHERS_RATIO, {"engine": "smbclient"}),
    ),
    "a long round trip costs a copy its beginning and end": (
        *(references.USUAL_RATIO - 0.03, {"details": {"rtt_seconds": 0.04}}),
    ),
}


@pytest.mark.parametrize(("usual", "more"), ALONE.values(), ids=ALONE)
def test_a_copy_beside_no_other_has_the_usual_share(empty_world, usual, more):
    world = empty_world()
    world.copy("pull.cached", 30, **more)
    assert share(world, "pull.cached") == pytest.approx(usual)


def test_a_copy_that_could_not_be_made_has_the_usual_share(empty_world):
    world = empty_world()
    world.skip("pull.cached", "no share")
    assert share(world, "pull.cached") == references.USUAL_RATIO
