"""The reserve on real file systems from 16 MiB up: whoever writes, so much stays free."""

import os
import subprocess
import threading
import time
from contextlib import closing, contextmanager

import pytest

from probes.core.records import Access, Endpoint
from probes.core.stage import Refused, Unavailable
from probes.files import created_folder, free_space, payload, source_file
from probes.programs.samba import private_samba
from probes.smb import run_folder
from probes.smb.client_end import FolderSink
from probes.stages import disk, native_copy, smb_copy
from tests.living import until

GIB, MIB = 1 << 30, 1 << 20
SEED = "00ff11"
SPARE_BYTES = 24 * MIB
"""Room beyond the reserve, where a file system is that large."""
WANTED_BYTES = 48 * MIB

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting needs root")


@contextmanager
def file_system(tmp_path, kind, size):
    point = tmp_path / "mounted"
    point.mkdir()
    if kind == "tmpfs":
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", point], check=True)
    else:
        image = tmp_path / "image"
        with image.open("wb") as file:
            file.truncate(size)
        # few inodes: what is not tested need not be laid out
        command = ["mke2fs", "-q", "-F", "-t", kind, "-N", "256", "-E", "nodiscard", image]
        subprocess.run(command, check=True, capture_output=True)
        subprocess.run(["mount", "-o", "loop", image, point], check=True)
    try:
        yield point
    finally:
        unmount(point)


def unmount(point):
    """Unmounts it as soon as a server that has just ended lets go of it."""
    command = ["umount", point]
    assert until(lambda: not subprocess.run(command, capture_output=True).returncode), "it is busy"


def read_space(folder):
    answer = os.statvfs(folder)
    return answer.f_bavail * answer.f_frsize, answer.f_blocks * answer.f_frsize


def take(folder, leave_bytes, name="taken"):
    """Fills the folder with another user's file until leave_bytes are free."""
    free, _ = read_space(folder)
    if free > leave_bytes:
        with (folder / name).open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free - leave_bytes)
            # what the file's own blocks of pointers took
            os.ftruncate(
                file.fileno(),
                max(0, os.fstat(file.fileno()).st_size - leave_bytes + read_space(folder)[0]),
            )


@contextmanager
def least_free(folder):
    """Yields the list of free bytes, to which it adds a look each 0.5 ms."""
    free_bytes, ended = [read_space(folder)[0]], threading.Event()

    def look():
        while not ended.is_set():
            free_bytes.append(read_space(folder)[0])
            time.sleep(0.0005)

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield free_bytes
    finally:
        ended.set()
        thread.join()
        free_bytes.append(read_space(folder)[0])


def bytes_moved(running):
    moved_bytes = 0
    for sample in running:
        moved_bytes = sample.moved_bytes
    return moved_bytes


def source(folder, tmp_path):
    setting = source_file.Setting(str(folder), WANTED_BYTES, 10.0, SEED)
    with source_file.hold(setting, Endpoint()) as endpoint:
        return endpoint.facts["size_bytes"]


def written_by_fio(folder, tmp_path):
    setting = disk.Setting("write", "uncached", str(folder), "client", WANTED_BYTES, 2.0)
    return bytes_moved(disk.initiate(setting, Endpoint()))


def mounted_source(folder, tmp_path):
    setting = created_folder.Setting(str(folder), "0123abcd", WANTED_BYTES, 10.0, SEED)
    with created_folder.hold(setting, Endpoint()) as endpoint:
        return endpoint.facts["size_bytes"]


def copied_by_the_system(folder, tmp_path):
    """Pulls a file into the folder, as large as the agent allows; returns the bytes moved."""
    size = free_space.fitting_size(WANTED_BYTES, str(folder))
    other = tmp_path / "other"
    other.mkdir()
    setting = created_folder.Setting(str(other), "0123abcd", size, 10.0, SEED)
    with created_folder.hold(setting, Endpoint()) as peer:
        copy_setting = native_copy.Setting("pull.cached", str(folder), str(other), size, 30.0, SEED)
        return bytes_moved(native_copy.initiate(copy_setting, peer))


WRITERS = (source, written_by_fio, mounted_source, copied_by_the_system)


@pytest.mark.long
@pytest.mark.parametrize(
    ("kind", "size"),
    [
        ("tmpfs", MIB),
        ("tmpfs", 16 * MIB),
        ("ext4", 16 * MIB),
        ("ext4", GIB),
        ("tmpfs", 2 * GIB + SPARE_BYTES),
        ("ext2", 3 * GIB),
        ("ext4", 64 * GIB),
    ],
)
def test_sizes_shrink_or_the_stage_is_refused_but_the_reserve_stays(tmp_path, kind, size):
    with file_system(tmp_path, kind, size) as folder:
        reserve = free_space.reserve_bytes(read_space(folder)[1])
        take(folder, reserve + SPARE_BYTES)
        free = read_space(folder)[0]
        for writer in WRITERS:
            with least_free(folder) as free_bytes:
                if free < reserve + MIB:
                    with pytest.raises(Unavailable, match="stay free .* free at least"):
                        writer(folder, tmp_path)
                else:
                    least_bytes = min(16 * MIB, (free - reserve) // 2)
                    assert least_bytes <= writer(folder, tmp_path) < SPARE_BYTES, writer.__name__
            assert min(free_bytes) >= min(reserve, free), writer.__name__


@pytest.fixture
def large(tmp_path):
    with file_system(tmp_path, "ext4", 4 * GIB) as folder:
        yield folder


def below_reserve(folder):
    """Takes the room and a little more, as another program would, at once."""
    take(folder, free_space.reserve_bytes(read_space(folder)[1]) - MIB)


def test_a_source_file_ends_where_somebody_else_takes_the_room(large, monkeypatch):
    looks = []

    def room(fd, look=free_space.room_bytes):
        looks.append(fd)
        if len(looks) == 2:
            below_reserve(large)
        return look(fd)

    monkeypatch.setattr(free_space, "room_bytes", room)
    setting = source_file.Setting(str(large), 256 * MIB, 30.0, SEED)
    with source_file.hold(setting, Endpoint()) as endpoint:
        assert endpoint.facts["size_bytes"] == free_space.LOOK_BYTES


def test_a_pull_into_the_folder_ends_where_somebody_else_takes_the_room(large):
    block = memoryview(bytes(32 * MIB))
    with closing(FolderSink(str(large))) as sink:
        sink.take(0, block)
        below_reserve(large)
        free = read_space(large)[0]
        with pytest.raises(Refused, match=f"{large} .*other processes use it") as caught:
            sink.take(len(block), block)
        assert caught.value.kind == "space" and read_space(large)[0] == free


@pytest.mark.long
def test_fio_is_stopped_where_somebody_else_takes_the_room(large):
    """The file is longer than what fio can write before it is looked at."""
    setting = disk.Setting("write", "uncached", str(large), "client", GIB, 20.0)
    running = disk.initiate(setting, Endpoint())
    assert next(running).moved_bytes == 0
    below_reserve(large)
    with pytest.raises(Refused, match="other processes use it"):
        bytes_moved(running)


@pytest.mark.long
def test_a_push_to_a_share_ends_where_somebody_else_takes_the_room_there(large, monkeypatch):
    def block(ring, offset, size, real=payload.block):
        if offset == 40 * MIB:
            below_reserve(large)
        return real(ring, offset, size)

    with private_samba(str(large), password="x" * 16) as server:
        access = Access(server.username, "x" * 16)
        peer = Endpoint(host=server.host, port=server.port, share=server.share, access=access)
        with run_folder.hold(run_folder.Setting("0abc"), peer) as endpoint:
            monkeypatch.setattr(payload, "block", block)
            setting = smb_copy.Setting("push.cached", "3.1.1", "memory", 512 * MIB, 60.0, seed=SEED)
            running, moved_bytes = smb_copy.initiate(setting, endpoint), 0
            with pytest.raises(Refused, match="//.* free space fell to") as caught:
                for sample in running:
                    moved_bytes = sample.moved_bytes
            assert caught.value.kind == "space" and moved_bytes < 256 * MIB


@pytest.mark.long
def test_a_copy_by_the_system_ends_where_somebody_else_takes_the_room(large, tmp_path, monkeypatch):
    monkeypatch.setattr(free_space, "LOOK_BYTES", 1)
    monkeypatch.setattr(native_copy, "SAMPLE_SECONDS", 0.001)
    size = 512 * MIB
    other = tmp_path / "other"
    other.mkdir()
    setting = created_folder.Setting(str(other), "0123abcd", size, 30.0, SEED)
    with created_folder.hold(setting, Endpoint()) as peer:
        copy_setting = native_copy.Setting("pull.cached", str(large), str(other), size, 30.0, SEED)
        running = native_copy.initiate(copy_setting, peer)
        next(running)
        below_reserve(large)
        with pytest.raises(Refused, match="other processes use it"):
            bytes_moved(running)
