"""A document goes where its path says and nobody else: planted links, pipes and devices."""

from __future__ import annotations

import os
import pty
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bottleneck import document_file
from bottleneck.history import History, HistoryError

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a stranger's file needs root")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp is."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.parametrize("owner", [0, NOBODY])
@needs_root
def test_a_link_in_a_folder_of_everybodys_is_not_followed(
    shared: Path, tmp_path: Path, owner: int
) -> None:
    victim, link = tmp_path / "victim.json", shared / "report.json"
    link.symlink_to(victim)
    os.chown(link, owner, owner, follow_symlinks=False)
    (shared / "folder").symlink_to(tmp_path)
    for path in (link, shared / "folder" / "report.json"):
        with pytest.raises(OSError, match="a link in a folder that is writable by everyone"):
            document_file.write(path, "a report")
    with pytest.raises(HistoryError, match="a link in a folder that is writable"):
        History(link).runs()
    assert sorted(each.name for each in tmp_path.iterdir()) == ["shared"]


@needs_root
def test_elsewhere_links_of_root_and_of_this_user_alone_are_followed(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target.json")
    document_file.write(link, "a report")
    assert link.is_symlink()
    assert (tmp_path / "target.json").read_text() == "a report"
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    (tmp_path / "target.json").unlink()
    with pytest.raises(OSError, match="a link owned by another user"):
        document_file.write(link, "a report")
    assert not (tmp_path / "target.json").exists()


def test_a_folder_exchanged_for_a_link_meanwhile_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every step is made in the folder that was looked at, wherever its name leads by then."""
    folder, aside, other = tmp_path / "folder", tmp_path / "aside", tmp_path / "other"
    folder.mkdir()
    other.mkdir()
    sync = os.fsync

    def exchanged(fd: int) -> None:
        sync(fd)
        folder.rename(aside)
        folder.symlink_to(other)

    monkeypatch.setattr(os, "fsync", exchanged)
    document_file.write(folder / "report.json", "a report")
    assert [each.name for each in aside.iterdir()] == ["report.json"]
    assert list(other.iterdir()) == []


@needs_root
def test_a_strangers_pipe_or_mode_in_a_folder_of_everybodys_is_not_taken(shared: Path) -> None:
    os.mkfifo(shared / "pipe")
    (shared / "empty").touch()
    (shared / "empty").chmod(0o666)
    for name in ("pipe", "empty"):
        os.chown(shared / name, NOBODY, NOBODY)
    with pytest.raises(OSError, match="owned by another user"):
        document_file.write(shared / "pipe", "a report")
    document_file.write(shared / "empty", "a report")
    about = (shared / "empty").stat()
    assert (about.st_uid, about.st_mode & 0o022) == (0, 0)


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


@pytest.fixture
def terminal() -> Iterator[tuple[int, str]]:
    own, other = pty.openpty()
    yield own, os.ttyname(other)
    os.close(own)
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
    before = len(os.listdir("/proc/self/fd"))
    for path in ("ring", "ring/x", "none/x", "", "x\0y"):
        with pytest.raises((OSError, ValueError)):
            document_file.write(tmp_path / path if path else path, "a report")
    with document_file.found(tmp_path / "b") as place:
        assert place.about is None
    assert len(os.listdir("/proc/self/fd")) == before
