"""A removal takes the very folder that the run made and nothing else, whoever renames meanwhile."""

import os
import subprocess

import pytest

from probes.files import removal
from tests.living import STAYS

NAME = "bottleneck-0123456789abcdef"
FILES = ("source-0123456789abcdef", "pushed-0123456789abcdef-0123456789abcdef")


class InterruptedOs:
    """The module os, with work of somebody else before some of its calls, by their numbers."""

    def __init__(self, works):
        self.works, self.calls = works, 0

    def __getattr__(self, name):
        attribute = getattr(os, name)

        def call(*arguments, **options):
            self.calls += 1
            self.works.pop(self.calls, lambda: None)()
            return attribute(*arguments, **options)

        return call if callable(attribute) else attribute


def make_folder(folder, name=NAME, files=FILES):
    path = folder / name
    path.mkdir()
    for each in files:
        (path / each).write_text("x")
    status = path.stat()
    return {"kind": removal.RUN, "name": name, "dev": status.st_dev, "ino": status.st_ino}


@pytest.fixture
def parent(tmp_path):
    fd = os.open(tmp_path, os.O_RDONLY)
    yield fd
    os.close(fd)


def remove(place, other, first, second, monkeypatch):
    """Returns the outcome of a removal while somebody puts `other` in the folder's place before
    call `first` and the folder back before call `second`, and those of the calls never made."""
    place.mkdir()
    users, facts = make_folder(place, "users")["ino"], make_folder(place)
    # Its file cannot be removed: each removal goes all the way.
    (place / NAME / "stays").touch()

    def away():
        (place / NAME).rename(place / "away")
        if other == "folder":
            (place / "users").rename(place / NAME)
        elif other == "link":
            (place / NAME).symlink_to("users")

    def back():
        if other == "folder":
            (place / NAME).rename(place / "users")
        elif other == "link":
            (place / NAME).unlink()
        (place / "away").rename(place / NAME)

    between, fd = InterruptedOs({first: away, second: back}), os.open(place, os.O_RDONLY)
    with monkeypatch.context() as patched:
        patched.setattr(removal, "os", between)
        try:
            became = removal.remove(fd, facts)
        except OSError:
            became = "stays"
    os.close(fd)
    (folder,) = (each for each in place.iterdir() if each.lstat().st_ino == users)
    assert sorted(os.listdir(folder)) == sorted(FILES)
    return became, set(between.works)


@pytest.mark.parametrize(
    ("other", "outcome"),
    [("folder", removal.OTHER), ("link", removal.OTHER), ("nothing", removal.MISSING)],
)
def test_a_folder_renamed_into_the_place_keeps_its_files(tmp_path, monkeypatch, other, outcome):
    """Somebody who may write to the share swaps them before any call, and back before any later."""
    outcomes, first, second, uncalled = [], 0, 0, set()
    while first not in uncalled:
        first, second = (
            (first + 1, first + 2) if second in uncalled or not first else (first, second + 1)
        )
        place = tmp_path / f"{first} {second}"
        became, uncalled = remove(place, other, first, second, monkeypatch)
        outcomes.append(became)
    assert len(outcomes) > 30 and set(outcomes) == {outcome, "stays"}


@pytest.mark.parametrize("kind", [removal.RUN, removal.TREE])
def test_what_a_link_leads_to_stays(tmp_path, parent, kind):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "source").touch()
    facts = {**make_folder(tmp_path), "kind": kind}
    (tmp_path / NAME / "link").symlink_to(outside)
    if kind == removal.TREE:
        assert removal.remove(parent, facts) == removal.GONE
    else:
        with pytest.raises(OSError, match="not empty"):
            removal.remove(parent, facts)
        assert os.listdir(tmp_path / NAME) == ["link"]
    assert (outside / "source").exists()


def test_before_its_identity_is_known_only_an_empty_folder_goes(tmp_path, parent):
    make_folder(tmp_path)
    with pytest.raises(OSError, match="not empty"):
        removal.remove(parent, {"kind": removal.TREE, "name": NAME})
    (tmp_path / "empty").mkdir()
    outcome = removal.remove(parent, {"kind": removal.TREE, "name": "empty"})
    assert outcome == removal.GONE


def test_a_group_ends_only_while_its_leader_is_that_very_process():
    with subprocess.Popen(STAYS, start_new_session=True) as leader:
        started = removal.started_ticks(leader.pid)
        removal.end_group({"leader": leader.pid, "started": started + 1})
        assert leader.poll() is None
        removal.end_group({"leader": leader.pid, "started": started})
        assert leader.wait() == -9


@pytest.mark.parametrize("levels", [1, pytest.param(3000, marks=pytest.mark.long)])
def test_no_depth_is_too_deep(tmp_path, parent, levels):
    """Whoever holds a share's login nests as he likes; files lie on the way down."""
    facts = {**make_folder(tmp_path, files=()), "kind": removal.TREE}
    fd = os.open(tmp_path / NAME, os.O_RDONLY)
    for _ in range(levels):
        for each in ("inner", "beside"):
            os.mkdir(each, dir_fd=fd)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        inner = os.open("inner", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.close(fd)
    assert removal.remove(parent, facts) == removal.GONE
    assert list(tmp_path.iterdir()) == []
