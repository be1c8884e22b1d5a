"""A copy's file is found among what its process has open."""

import os
import re
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from probes.files import folders, open_files
from probes.files.folders import MountEntry
from probes.files.open_files import (
    OpenFile,
    Tally,
    busiest,
    holders,
    inodes,
    parse_fdinfo,
    regular_files,
    total_io,
)
from probes.system.proc import ProcessIo
from probes.watch import running_copies

FDINFO = "pos:\t1048576\nflags:\t0{}\nmnt_id:\t29\nino:\t131\n"
NOBODY = 2**22 + 1


@pytest.mark.parametrize(
    ("flags", "reads", "writes"),
    [("100000", True, False), ("100001", False, True), ("100002", True, True)],
    ids=["read", "write", "both"],
)
def test_how_a_file_is_open_stands_in_its_flags(flags, reads, writes):
    file = parse_fdinfo(FDINFO.format(flags), "/a", 5)
    assert file == OpenFile("/a", 5, 1 << 20, reads, writes)


def test_what_is_appended_to_is_a_journal_and_no_copy():
    assert parse_fdinfo(FDINFO.format("102001"), "/var/log/smbd", 5) is None


def one(path: str, position: int = 0, size: int = 100, writes: bool = False) -> OpenFile:
    return OpenFile(path, size, position, not writes, writes)


def test_the_file_that_moved_most_is_the_copys():
    earlier = [one("/small", 5), one("/large", 0, 10**9)]
    later = [one("/small", 90), one("/large", 0, 10**9)]
    file = busiest(earlier, later, writes=False)
    assert file is not None and file.path == "/small"


def test_what_this_process_has_open_is_seen(tmp_path):
    path = tmp_path / "film"
    with path.open("wb") as writing, socket.socket() as sock, (tmp_path / "locks.tdb").open("wb"):
        writing.write(bytes(4096))
        writing.flush()
        files = {each.path: each for each in regular_files(os.getpid())}
        inode = os.fstat(sock.fileno()).st_ino
        assert inode in inodes(os.getpid())
        assert holders(inode, [NOBODY, os.getpid()]) == (os.getpid(),)
        assert files[str(path)] == OpenFile(str(path), 4096, 4096, False, True)
        assert str(tmp_path / "locks.tdb") not in files
        place = open_files.place(os.getpid(), files[str(path)])
    assert place is not None and place.folder == str(tmp_path) and place.here
    assert holders(0, [os.getpid()]) == ()


def test_of_a_process_that_is_gone_nothing_is_seen():
    assert regular_files(NOBODY) == []
    assert open_files.place(NOBODY, one("/a")) is None
    with pytest.raises(OSError):
        inodes(NOBODY)


def test_a_mounted_share_tells_its_server_and_dialect():
    options = "rw,relatime,vers=3.1.1,addr=192.168.1.10,port=4450,sec=ntlmssp"
    entry = MountEntry("0:52", "/mnt/nas", "cifs", "//nas/media", options)
    place = open_files._place(entry, "/mnt/nas/films")
    assert (place.remote, place.remote_address, place.remote_port) == (True, "192.168.1.10", 4450)
    assert place.dialect == "3.1.1" and place.device is None and not place.here


def shown_as(patch: pytest.MonkeyPatch, filesystem: str, number: str = r"\g<1>") -> list[str]:
    """Shows every mount with that kind and number; returns the list of paths that stat gets."""
    real, paths = os.stat, []

    def text(path: str) -> str:
        content = Path(path).read_text()
        if not path.endswith("/mountinfo"):
            return content
        content = re.sub(r"(?m)^(\d+)(?= )", number, content)
        return re.sub(r"(?m) - \S+ ", f" - {filesystem} ", content)

    def stat(path: Any, *arguments: Any, **options: Any) -> os.stat_result:
        paths.append(str(path))
        return real(path, *arguments, **options)

    patch.setattr(open_files, "_text", text)
    patch.setattr(folders, "mounts", lambda: folders.parse_mountinfo(text("/proc/self/mountinfo")))
    patch.setattr(os, "stat", stat)
    return paths


@pytest.mark.parametrize("filesystem", ["cifs", "nfs4", "fuse.sshfs"])
def test_of_a_file_on_another_host_nothing_is_asked(tmp_path, monkeypatch, filesystem):
    """There stat(2) flushes the copy that is watched, or hangs."""
    with (tmp_path / "film").open("wb") as writing:
        writing.write(bytes(4096))
        writing.flush()
        folder = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
        with monkeypatch.context() as patch:
            paths = shown_as(patch, filesystem)
            files = {each.path: each for each in regular_files(os.getpid())}
            place = open_files.place(os.getpid(), files[str(tmp_path / "film")])
            family = running_copies._Family([os.getpid()])
            assert running_copies._place([os.getpid()], family, writes=True) is not None
        os.close(folder)
    assert files[str(tmp_path / "film")] == OpenFile(
        str(tmp_path / "film"), None, 4096, False, True
    )
    assert place is not None and place.remote and not place.here and paths == []
    assert str(tmp_path) not in files


def test_of_a_file_on_a_mount_that_is_not_seen_nothing_is_asked(tmp_path, monkeypatch):
    """A share was unmounted lazily: its path belongs to another mount now."""
    with (tmp_path / "film").open("wb"), monkeypatch.context() as patch:
        paths = shown_as(patch, "ext4", "99999999")
        assert regular_files(os.getpid()) == []
    assert paths == []


def test_a_folder_of_this_host_that_we_see_on_another_one_is_not_asked_for(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        paths = shown_as(patch, "nfs")
        entry = MountEntry("0:99999", "/", "tmpfs", "tmpfs", "rw")
        place = open_files._place(entry, str(tmp_path))
    assert not place.here and not place.remote and str(tmp_path) not in paths


def test_files_of_unknown_size_are_told_apart_by_their_places():
    earlier = [OpenFile("/nas/a", None, 5, True, False), OpenFile("/nas/b", None, 5, True, False)]
    later = [OpenFile("/nas/a", None, 5, True, False), OpenFile("/nas/b", None, 9, True, False)]
    file = busiest(earlier, later, writes=False)
    assert file is not None and file.path == "/nas/b"


def test_of_processes_that_are_gone_nothing_is_known():
    assert total_io([NOBODY]) is None and total_io([]) is None


def write(path: Path) -> subprocess.Popen[bytes]:
    """A process that has written a megabyte, and ends when its stdin does."""
    code = f"open({str(path)!r}, 'wb').write(bytes(1 << 20)); print(flush=True); input()"
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None and process.stdout.readline() == b"\n"
    return process


def test_what_a_process_moved_stays_counted_when_it_ends(tmp_path):
    one, other = write(tmp_path / "one"), write(tmp_path / "other")
    tally = Tally((one.pid, other.pid))
    io = tally.total_io()
    one.communicate()
    assert io is not None and tally.total_io() == io
    other.communicate()
    assert tally.total_io() == io and total_io((one.pid, other.pid)) is None


def test_a_child_that_its_watched_parent_waited_for_is_counted_once(tmp_path):
    """The kernel adds its account to the parent's."""
    child = write(tmp_path / "one")
    tally = Tally((os.getpid(), child.pid))
    earlier = tally.total_io()
    child.communicate()
    later = tally.total_io()
    assert earlier is not None and later is not None
    assert earlier.written_bytes <= later.written_bytes < earlier.written_bytes + (1 << 20)


def test_a_sum_that_falls_is_told_as_it_was(monkeypatch):
    """Another process took an ended one's number."""
    tally = Tally((os.getpid(),))
    io = tally.total_io()
    monkeypatch.setattr(open_files.reader(), "process_io", lambda pid: ProcessIo(0, 0, 0, 0))
    assert io is not None and tally.total_io() == io
