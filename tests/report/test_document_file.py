"""A document goes where its path says and nobody else: planted links, pipes and devices."""

from __future__ import annotations

import os
import pty
import socket
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from bottleneck.report import document_file

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: a stranger's file needs root")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder as /tmp is."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


@pytest.mark.parametrize("target", ["victim.json", "none.json"])
@needs_root
def test_a_link_of_somebody_else_in_a_folder_of_everybodys_is_not_followed(
    shared: Path, tmp_path: Path, target: str
) -> None:
    link = shared / "report.json"
    (tmp_path / "victim.json").touch()
    link.symlink_to(tmp_path / target)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(OSError, match="owned by another user"):
        document_file.write(link, "a report")
    assert (tmp_path / "victim.json").read_text() == ""
    assert sorted(each.name for each in tmp_path.iterdir()) == ["shared", "victim.json"]


@needs_root
def test_a_folder_that_another_user_linked_to_is_not_entered(shared: Path, tmp_path: Path) -> None:
    (shared / "folder").symlink_to(tmp_path)
    os.chown(shared / "folder", NOBODY, NOBODY, follow_symlinks=False)
    with pytest.raises(OSError, match="owned by another user"):
        document_file.write(shared / "folder" / "report.json", "a report")
    assert [each.name for each in tmp_path.iterdir()] == ["shared"]


def test_nothing_has_a_name_until_it_is_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sync, seen = os.fsync, []

    def looked(fd: int) -> None:
        seen.append(list(tmp_path.iterdir()))
        sync(fd)

    monkeypatch.setattr(os, "fsync", looked)
    document_file.write(tmp_path / "report.json", "a report")
    assert seen == [[]]
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]


def test_a_link_leads_to_the_file_that_is_written_and_stays(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to("target.json")
    for text in ("a report", "{}"):
        (tmp_path / "target.json").unlink(missing_ok=True)
        document_file.write(link, text)
        assert link.is_symlink()
        assert (tmp_path / "target.json").read_text() == text


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
    assert document_file.check(tmp_path / "b") == (str(tmp_path / "b"), None)
    assert len(os.listdir("/proc/self/fd")) == before
