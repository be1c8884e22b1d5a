"""The page cache: evicted and warmed for real, and told as it is."""

# A None where a state is expected fails the assertion by itself.
# mypy: disable-error-code="attr-defined,union-attr"

import errno
import os
from pathlib import Path

import pytest

from probes.files import folders, page_cache, unnamed_file

SIZE = 4 * 1024 * 1024


def fill_file(folder):
    fd = unnamed_file.create(str(folder))
    os.pwrite(fd, os.urandom(SIZE), 0)
    return fd


@pytest.fixture
def disk_fd(tmp_path):
    places = [tmp_path, Path("/var/tmp")]
    places = [each for each in places if folders.folder_facts(str(each)).filesystem != "tmpfs"]
    if not places:
        pytest.skip("needs a folder that is not on tmpfs")
    fd = fill_file(places[0])
    if page_cache.state(fd, SIZE) is None:
        pytest.skip("this kernel or file system tells nothing of the page cache")
    yield fd
    os.close(fd)


def test_evicting_writes_the_pages_and_drops_them(disk_fd):
    page_cache.evict(disk_fd)
    state = page_cache.state(disk_fd, SIZE)
    assert (state.cached_ratio, state.dirty_bytes) == (0.0, 0)


def test_mincore_of_an_older_kernel_agrees(disk_fd):
    assert page_cache._resident_pages(disk_fd, SIZE) == SIZE // page_cache.PAGE_BYTES
    page_cache.evict(disk_fd)
    assert page_cache._resident_pages(disk_fd, SIZE) == 0


def test_without_cachestat_the_dirty_part_is_unknown(disk_fd, monkeypatch):
    class OldKernel:
        mmap, munmap = page_cache.LIBC.mmap, page_cache.LIBC.munmap
        mincore, fstatfs = page_cache.LIBC.mincore, page_cache.LIBC.fstatfs

        def syscall(self, *arguments):
            page_cache.ctypes.set_errno(errno.ENOSYS)
            return -1

    monkeypatch.setattr(page_cache, "LIBC", OldKernel())
    assert page_cache.state(disk_fd, SIZE) == page_cache.CacheState(1.0, None)


def test_on_tmpfs_nothing_is_dropped_and_that_is_told():
    if not Path("/dev/shm").is_dir():
        pytest.skip("no tmpfs at /dev/shm")
    fd = fill_file("/dev/shm")
    page_cache.evict(fd)
    state = page_cache.state(fd, SIZE)
    assert state is None or state.cached_ratio == 1.0
    os.close(fd)


@pytest.mark.parametrize("number", page_cache.OTHER_CACHES)
def test_a_file_system_that_caches_elsewhere_proves_nothing(disk_fd, monkeypatch, number):
    monkeypatch.setattr(page_cache, "_filesystem_number", lambda fd: number)
    assert page_cache.state(disk_fd, SIZE) is None


def test_an_empty_file_tells_nothing(tmp_path):
    fd = unnamed_file.create(str(tmp_path))
    assert page_cache.state(fd, 0) is None
    os.close(fd)


def test_warming_ends_where_the_file_ends(disk_fd):
    page_cache.warm(disk_fd, 10 * SIZE)


def test_the_first_part_alone_is_evicted(disk_fd):
    """The pages far behind it stay: they need not be read from a slow disk again."""
    size_bytes = 16 << 20
    os.ftruncate(disk_fd, 0)
    for offset in range(0, size_bytes, 1 << 20):
        os.pwrite(disk_fd, os.urandom(1 << 20), offset)
    os.fsync(disk_fd)
    page_cache.warm(disk_fd, size_bytes)
    page_cache.evict(disk_fd, 5 << 20)
    first, all_of_it = page_cache.state(disk_fd, 5 << 20), page_cache.state(disk_fd, size_bytes)
    assert first is not None and all_of_it is not None
    assert first.cached_ratio == 0
    assert all_of_it.cached_ratio >= 0.4
