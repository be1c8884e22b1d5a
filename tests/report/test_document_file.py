"""A document goes where its path says and nobody else: planted links, pipes and devices."""

from __future__ import annotations

import os
import pty
import socket
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from bottleneck.report import document_file

NOBODY, ATTACKER = 65534, 64321
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a stranger's file needs root")


EARLIER = '{"schema": "copy-bottleneck/report/1"}'


class Planted:
    """A world with a victim's earlier report, and what an attacker put where a document goes."""

    def __init__(self, folder: Path, writer: int) -> None:
        self.folder, self.writer = folder, writer
        self.shared = self.make_folder(folder / "shared", 0o1777)
        self.private = self.make_folder(folder / "private", 0o755)
        self.victim = self.private / "victim.json"
        self.victim.write_text(EARLIER)
        os.chown(self.victim, writer, writer)

    def make_folder(self, path: Path, mode: int, owner: int | None = None) -> Path:
        path.mkdir()
        path.chmod(mode)
        who = self.writer if owner is None else owner
        os.chown(path, who, who)
        return path

    def linked(self, path: Path, target: Path, owner: int) -> Path:
        path.symlink_to(target)
        os.chown(path, owner, owner, follow_symlinks=False)
        return path

    def link(self) -> Path:
        return self.linked(self.shared / "r.json", self.victim, ATTACKER)

    def own_link(self) -> Path:
        return self.linked(self.private / "r.json", self.victim, self.writer)

    def link_to_nothing(self) -> Path:
        return self.linked(self.shared / "r.json", self.private / "new.json", ATTACKER)

    def own_link_to_nothing(self) -> Path:
        return self.linked(self.private / "r.json", Path("new.json"), self.writer)

    def chain(self) -> Path:
        self.linked(self.private / "b.json", self.victim, self.writer)
        return self.linked(self.private / "r.json", Path("b.json"), self.writer)

    def parent_link(self) -> Path:
        return self.linked(self.shared / "folder", self.private, ATTACKER) / "victim.json"

    def parent_link_in_a_strangers_folder(self) -> Path:
        theirs = self.make_folder(self.folder / "theirs", 0o755, ATTACKER)
        return self.linked(theirs / "folder", self.private, ATTACKER) / "victim.json"

    def strangers_folder(self) -> Path:
        return self.make_folder(self.folder / "theirs", 0o777, ATTACKER) / "r.json"

    def folder_below_a_strangers(self) -> Path:
        theirs = self.make_folder(self.folder / "theirs", 0o755, ATTACKER)
        return self.make_folder(theirs / "mine", 0o755) / "r.json"

    def folder_of_a_group(self) -> Path:
        group = self.make_folder(self.folder / "group", 0o755)
        os.chown(group, self.writer, ATTACKER)
        group.chmod(0o775)
        return group / "r.json"

    def folder_of_everybody(self) -> Path:
        return self.make_folder(self.folder / "open", 0o777) / "r.json"

    def pipe(self) -> Path:
        os.mkfifo(self.shared / "r.json")
        os.chown(self.shared / "r.json", ATTACKER, ATTACKER)
        return self.shared / "r.json"

    def strangers_report(self) -> Path:
        (self.shared / "r.json").write_text(EARLIER)
        os.chown(self.shared / "r.json", ATTACKER, ATTACKER)
        return self.shared / "r.json"

    def descriptors_link(self) -> Path:
        self.linked(self.private / "r.json", self.victim, self.writer)
        return Path(f"/proc/self/root{self.private}/r.json")

    def hard_link(self) -> Path:
        (self.shared / "r.json").hardlink_to(self.victim)
        return self.shared / "r.json"

    def as_tmp_is(self) -> Path:
        return self.shared / "r.json"


NEVER = ("link", "own_link", "link_to_nothing", "own_link_to_nothing", "chain", "parent_link")
NEVER += ("parent_link_in_a_strangers_folder", "pipe", "strangers_report", "descriptors_link")
OF_OTHERS = ("strangers_folder", "folder_of_a_group", "folder_of_everybody")


@pytest.fixture(params=[0, NOBODY], ids=["root", "user"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Planted]:
    """Yields a folder open to everybody; the writer has no other user's rights."""
    with TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Planted(Path(folder), request.param)


@contextmanager
def rights_of(user: int) -> Iterator[None]:
    os.setegid(user)
    os.seteuid(user)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(0)


def everything(folder: Path) -> dict[str, str]:
    files = [each for each in folder.rglob("*") if each.is_file() and not each.is_symlink()]
    return {str(each): each.read_text() for each in files}


@pytest.mark.parametrize("kind", NEVER)
@needs_root
def test_what_is_planted_is_neither_followed_nor_replaced(world: Planted, kind: str) -> None:
    path = getattr(world, kind)()
    earlier = everything(world.folder)
    with rights_of(world.writer), pytest.raises(OSError, match="link|another user"):
        document_file.write(path, "a report")
    assert everything(world.folder) == earlier


@pytest.mark.parametrize("kind", ["hard_link", "as_tmp_is", *OF_OTHERS])
@needs_root
def test_a_name_alone_is_replaced_and_roots_where_nobody_else_can_change_it(
    world: Planted, kind: str
) -> None:
    path = getattr(world, kind)()
    expected = {**everything(world.folder), str(path): "a report"}
    with rights_of(world.writer):
        if world.writer == 0 and kind in OF_OTHERS:
            expected.pop(str(path))
            with pytest.raises(OSError, match="can change .*; use - and redirect"):
                document_file.write(path, "a report")
        else:
            document_file.write(path, "a report")
    assert everything(world.folder) == expected


@pytest.mark.parametrize("world", [0], indirect=True)
@needs_root
def test_roots_own_folder_below_a_strangers_gets_nothing(world: Planted) -> None:
    path = world.folder_below_a_strangers()
    with pytest.raises(OSError, match=f"change {path.parents[1]}; use - and redirect"):
        document_file.write(path, "a report")
    assert not path.exists()


@needs_root
def test_a_folder_that_is_exchanged_meanwhile_gets_nothing(
    world: Planted, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, sync = world.make_folder(world.folder / "mine", 0o755), os.fsync

    def exchange(fd: int) -> None:
        sync(fd)
        os.seteuid(0)
        folder.rename(world.folder / "moved")
        folder.symlink_to(world.private)
        os.seteuid(world.writer)

    monkeypatch.setattr(os, "fsync", exchange)
    with rights_of(world.writer), pytest.raises(OSError, match="replaced during the run"):
        document_file.write(folder / "victim.json", "a report")
    assert everything(world.folder) == {str(world.victim): EARLIER}


def test_nothing_has_a_name_until_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, listings = os.fsync, []

    def looked(fd: int) -> None:
        listings.append(list(tmp_path.iterdir()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", looked)
    document_file.write(tmp_path / "report.json", "a report")
    assert listings == [[]]
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


@pytest.mark.parametrize("device", ["/dev/zero", "/dev/full", "/dev/urandom"])
def test_no_device_but_a_terminal_and_null_is_opened(device: str) -> None:
    assert stat.S_ISCHR(Path(device).stat().st_mode)
    with pytest.raises(OSError, match="a device, not a terminal"):
        document_file.write(device, "a report")


def test_a_socket_takes_no_document(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(tmp_path / "socket"))
        with pytest.raises(OSError, match="a socket"):
            document_file.write(tmp_path / "socket", "a report")


def test_a_pipe_that_no_program_reads_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(OSError, match="start its reader first"):
        document_file.write(tmp_path / "pipe", "a report")
    reader = os.open(tmp_path / "pipe", os.O_RDONLY | os.O_NONBLOCK)
    document_file.write(tmp_path / "pipe", "a report")
    assert os.read(reader, 100) == b"a report"
    os.close(reader)


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    controller, other = pty.openpty()
    yield controller, os.ttyname(other)
    os.close(controller)
    os.close(other)


def test_null_a_terminal_and_what_is_open_already_take_one(
    tmp_path: Path, terminal: tuple[int, str]
) -> None:
    document_file.write("/dev/null", "a report")
    document_file.write(terminal[1], "a report")
    assert os.read(terminal[0], 100) == b"a report"
    reader, writer = os.pipe()
    document_file.write(f"/dev/fd/{writer}", "a report")
    assert os.read(reader, 100) == b"a report"
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    document_file.write(f"/proc/self/fd/{file}", "a report")
    assert (tmp_path / "file").read_text() == "a report"
    with pytest.raises(OSError, match="no longer has a name"):
        document_file.write(f"/proc/self/fd/{file}", "a report")
    for each in (reader, writer, file):
        os.close(each)
    assert [each.name for each in tmp_path.iterdir()] == ["file"]


def test_nothing_stays_open_and_a_ring_of_links_ends(tmp_path: Path) -> None:
    (tmp_path / "ring").symlink_to("ring")
    open_files = len(os.listdir("/proc/self/fd"))
    for path in ("ring", "ring/x", "none/x", "", "x\0y"):
        with pytest.raises((OSError, ValueError)):
            document_file.write(tmp_path / path if path else path, "a report")
    assert document_file.check(tmp_path / "b") == (str(tmp_path / "b"), None)
    assert len(os.listdir("/proc/self/fd")) == open_files
