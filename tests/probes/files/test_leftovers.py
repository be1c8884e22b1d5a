"""Only what a run left is removed: by name, owner and content; links and strangers stay."""

import os
import socket
import subprocess
from pathlib import Path

import pytest

from probes.files import folders, journal, leftovers, payload, removal
from probes.files.created_folder import own_folder
from probes.system.proc import ProcessStat
from probes.system.reader import reader
from tests.living import STAYS

ID = os.urandom(16).hex()
RUN = f"bottleneck-{ID}"  # whoever has one of that name open is its user
SOURCE = f"source-{ID}"
PUSHED = f"pushed-{ID}-0123456789abcdef"
ALL_ARE_SEEN = leftovers._Users.all_are_seen


@pytest.fixture(autouse=True)
def nobody_is_hidden(tmp_path_factory, monkeypatch):
    """Makes all processes visible, without root and in a container; with a journal of its own."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
    monkeypatch.setattr(leftovers._Users, "all_are_seen", True)


def make_folder(folder, name=RUN, files=(SOURCE,)):
    path = folder / name
    path.mkdir()
    for each in files:
        (path / each).write_bytes(payload.make_ring(b"seed")[:100])
    return path


def find(folder, older=0.0):
    return {Path(each.path).name: each for each in leftovers.find([str(folder)], older)}


def test_a_run_folder_with_its_files_is_found_and_removed(tmp_path):
    files = (SOURCE, PUSHED, f"small-12-01234567-{ID}")
    path = make_folder(tmp_path, files=files)
    (tmp_path / "mine").write_text("stays")
    (only,) = find(tmp_path).values()
    assert (only.path, only.files, only.size_bytes) == (str(path), 3, 300)
    assert only.why_left == ""
    assert leftovers.remove(only.path, 0) == ""
    assert os.listdir(tmp_path) == ["mine"]
    assert leftovers.remove(only.path, 0) == ""


@pytest.mark.parametrize(
    "name",
    [
        "bottleneck-",
        "bottleneck-0123456789abcde",
        "bottleneck-0123456789ABCDEF",
        "bottleneck-0123456789abcdef.old",
        "bottleneck-0123456789abcdef\n",
        "bottleneck",
        "xbottleneck-0123456789abcdef",
        "bottleneck-share-Ab_-9xyz",
    ],
)
def test_another_name_is_not_looked_at(tmp_path, name):
    path = make_folder(tmp_path, name)
    assert find(tmp_path) == {}
    assert "name" in leftovers.remove(str(path), 0)
    assert (path / SOURCE).exists()


def bind(path):
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(path))


PLANTS = {
    "a link": lambda path: (path / "evil").symlink_to("/etc/passwd"),
    "a link as source": lambda path: (
        (path / SOURCE).unlink() or (path / SOURCE).symlink_to("/etc/passwd")
    ),
    "a folder": lambda path: (path / PUSHED).mkdir(),
    "a strange name": lambda path: (path / "x\x1b[2Jy").touch(),
    "a name of bytes": lambda path: Path(os.fsdecode(os.fsencode(path) + b"/\xff\xfe")).touch(),
    "a pipe": lambda path: os.mkfifo(path / PUSHED),
    "another hard link": lambda path: os.link(path / SOURCE, path.parent / "kept"),
    "a socket": lambda path: bind(path / PUSHED),
}


def test_a_folder_that_cannot_be_read_is_told_and_one_that_is_not_there_holds_nothing(tmp_path):
    (tmp_path / "file").touch()
    (leftover,) = leftovers.find([str(tmp_path / "file")], 0)
    assert (leftover.path, leftover.why_left) == (str(tmp_path / "file"), "not a directory")
    assert leftovers.find([str(tmp_path / "none")], 0) == []


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_a_folder_with_anything_else_in_it_stays_whole(tmp_path, monkeypatch, plant):
    monkeypatch.chdir(tmp_path)
    path = make_folder(Path())
    plant(path)
    names = sorted(os.listdir(path))
    (only,) = find(tmp_path).values()
    assert only.why_left
    assert leftovers.remove(str(tmp_path / path), 0) == only.why_left
    assert sorted(os.listdir(path)) == names


FOREIGN = [b"a user's own", b"x" * 100, bytes(100), removal.MAGIC[1:] + b"x" * 100]


@pytest.mark.parametrize("content", FOREIGN)
def test_a_file_called_source_that_no_run_wrote_is_not_removed(tmp_path, content):
    """The name of a run's folder and of its file is not enough."""
    path = make_folder(tmp_path)
    (path / SOURCE).write_bytes(content)
    (only,) = find(tmp_path).values()
    assert "delete it by hand" in only.why_left
    assert leftovers.remove(str(path), 0) == only.why_left
    assert (path / SOURCE).read_bytes() == content


@pytest.mark.parametrize("files", [(), (SOURCE,), (SOURCE, PUSHED)])
@pytest.mark.parametrize("size", [0, 7, len(removal.MAGIC)])
def test_what_was_killed_when_it_had_just_begun_goes(tmp_path, files, size):
    path = make_folder(tmp_path, files=files)
    for each in files:
        (path / each).write_bytes(removal.MAGIC[:size])
    assert leftovers.remove(str(path), 0) == ""
    assert not path.exists()


def test_one_file_that_a_run_wrote_proves_whose_the_folder_is(tmp_path):
    """A push that was killed may leave one of zeros, of which the end was written."""
    path = make_folder(tmp_path, files=(SOURCE, PUSHED))
    (path / PUSHED).write_bytes(bytes(100))
    assert leftovers.remove(str(path), 0) == ""
    assert not path.exists()


@pytest.mark.parametrize("content", [b"mine", b"", removal.MAGIC + b"x"])
def test_a_file_of_an_older_version_s_name_goes_only_where_it_begins_as_a_run_s(tmp_path, content):
    files = ("source", "pushed-0123456789abcdef")
    path = make_folder(tmp_path, "bottleneck-0123456789abcdef", files)
    (path / "pushed-0123456789abcdef").write_bytes(content)
    assert (leftovers.remove(str(path), 0) == "") == content.startswith(removal.MAGIC)
    assert path.exists() != content.startswith(removal.MAGIC)


def test_a_link_with_the_name_of_a_run_is_no_folder_of_one(tmp_path):
    target = make_folder(tmp_path, "elsewhere")
    (tmp_path / RUN).symlink_to(target)
    (only,) = find(tmp_path).values()
    assert "not a folder" in only.why_left
    assert leftovers.remove(str(tmp_path / RUN), 0) == only.why_left
    assert (target / SOURCE).exists()


def test_what_is_young_stays(tmp_path):
    make_folder(tmp_path)
    assert "a run may use it" in find(tmp_path, 3600)[RUN].why_left
    assert "a run may use it" in leftovers.remove(str(tmp_path / RUN), 3600)


def test_what_a_process_has_open_is_in_use(tmp_path):
    path = make_folder(tmp_path)
    with subprocess.Popen(STAYS, cwd=path) as process:
        try:
            assert f"process {process.pid}" in find(tmp_path)[RUN].why_left
        finally:
            process.kill()


def test_a_host_that_shows_no_processes_keeps_everything(tmp_path, monkeypatch):
    def none():
        raise FileNotFoundError(2, "No such file or directory", "/proc")

    path = make_folder(tmp_path)
    monkeypatch.setattr(reader(), "processes", none)
    assert "does not show which process uses it" in find(tmp_path)[RUN].why_left
    assert "does not show which process uses it" in leftovers.remove(str(path), 0)
    assert (path / SOURCE).exists()


def test_a_run_that_lives_is_left_alone(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path)
    with own_folder(removal.RUN, str(tmp_path), RUN) as made_one:
        made_one.create()
        for place in (tmp_path / "link", tmp_path):
            assert "still active" in find(place)[RUN].why_left
            assert "still active" in leftovers.remove(str(place / RUN), 0)
        made_one.remove()


@pytest.mark.parametrize("kind", [removal.RUN, removal.TREE])
def test_what_the_journal_names_is_found_wherever_it_lies(tmp_path, kind):
    """Its folder, its age and its contents are not looked at."""
    path = make_folder(tmp_path, f"any name-{ID}")
    run, around = path.stat(), tmp_path.stat()
    facts = {"folder_dev": around.st_dev, "folder_ino": around.st_ino}
    entry = journal.enter(kind, str(tmp_path), path.name, **facts, dev=run.st_dev, ino=run.st_ino)
    assert leftovers.find([], 3600) == []
    entry.close(is_removed=False)
    (only,) = leftovers.find([], 3600)
    assert (only.path, only.why_left, only.noted) == (str(path), "", True)
    assert leftovers.remove(str(path), 3600) == ""
    assert not path.exists() and leftovers.find([], 3600) == []


def test_what_the_journal_is_not_sure_of_goes_by_its_name(tmp_path):
    """The host was booted since, and a file server made the folder for another user."""
    path, around = make_folder(tmp_path), tmp_path.stat()
    facts = {"folder_dev": around.st_dev, "folder_ino": around.st_ino, "dev": 1, "ino": 1}
    journal.enter(removal.RUN, str(tmp_path), RUN, **facts).close(is_removed=False)
    assert "a run may use it" in leftovers.remove(str(path), 3600)
    assert leftovers.remove(str(path), 0) == ""
    assert not path.exists() and leftovers.find([], 0) == []


@pytest.mark.parametrize("below", ["", "a\\b"])
def test_what_lies_on_a_share_is_named_with_the_share_and_its_folder(below):
    name = f"{below}\\{RUN}" if below else RUN
    journal.enter(journal.SHARE, "//nas:445/media", name).close(is_removed=False)
    (only,) = leftovers.find([], 3600)
    place = "//nas:445/media/a/b" if below else "//nas:445/media"
    assert only.why_left.endswith(f"use bottleneck cleanup {place}")


def test_what_is_young_stays_where_a_process_may_be_hidden(tmp_path, monkeypatch):
    path = make_folder(tmp_path)
    monkeypatch.setattr(leftovers._Users, "all_are_seen", False)
    assert "hidden" in find(tmp_path)[RUN].why_left
    assert "hidden" in leftovers.remove(str(path), 0)
    assert (path / SOURCE).exists()
    monkeypatch.setattr(leftovers, "SURE_SECONDS", 0.0)
    assert leftovers.remove(str(path), 0) == ""


def test_root_alone_sees_them_all_and_not_in_a_container(monkeypatch):
    users = leftovers._Users()
    users._processes = {2: ProcessStat(2, "kthreadd", 0, True, 0, 0, 1, 0)}
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert ALL_ARE_SEEN.fget(users)
    users._processes = {2: ProcessStat(2, "sh", 1, False, 0, 0, 1, 0)}
    assert not ALL_ARE_SEEN.fget(users)
    users._processes = {2: ProcessStat(2, "kthreadd", 0, True, 0, 0, 1, 0)}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert not ALL_ARE_SEEN.fget(users)


@pytest.mark.parametrize(
    ("mounted", "words"),
    [
        ("cifs //nas/media rw,addr=192.0.2.7", "use bottleneck cleanup //nas/media"),
        ("nfs4 nas:/media rw,addr=192.0.2.7", "run this there"),
    ],
)
def test_another_host_s_disk_has_another_clock(tmp_path, monkeypatch, mounted, words):
    path = make_folder(tmp_path)
    line = f"36 25 0:40 / {tmp_path} rw,relatime - {mounted}\n"
    monkeypatch.setattr(folders, "read_mount", lambda folder: folders.parse(line, folder))
    assert words in find(tmp_path)[RUN].why_left
    assert words in leftovers.remove(str(path), 0)
    assert (path / SOURCE).exists()
