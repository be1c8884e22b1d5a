"""Where a file's blocks lie: recorded answers of FIEMAP, and a real ext4."""

import os

import pytest

from probes.host import extents
from probes.host.extents import Extent, FileMap

KIB, MIB = 1024, 1024 * 1024
CONTIGUOUS = bytes.fromhex(
    "000000000000000000008000000000000000000001000000000400000000000000000000000000000000c084"
    "1000000000008000000000000000000000000000000000000000000001000000" + "00" * 12
)
"""ext4's answer for a file of 8 MiB in one piece; the buffer's unused rest is cut off."""


def test_a_recorded_answer_is_one_written_extent():
    found, last = extents.parse(CONTIGUOUS + bytes(1000))
    assert found == [Extent(0, 70946652160, 8 * MIB, unwritten=False, placed=True)]
    assert last


@pytest.mark.parametrize("length", [0, 31, 32 + 55])
def test_an_answer_that_is_cut_off_is_refused(length):
    with pytest.raises(ValueError, match="cut off"):
        extents.parse(CONTIGUOUS[:length])


def test_pieces_are_what_a_reader_takes_from_the_disk():
    """Side by side is one piece, also across a hole; reserved, inline and waiting data are none."""
    told = [
        Extent(0, 1000 * MIB, MIB, False, True),
        Extent(MIB, 1001 * MIB, MIB, False, True),
        Extent(3 * MIB, 1002 * MIB, MIB, False, True),
        Extent(4 * MIB, 1003 * MIB, MIB, True, True),
        Extent(5 * MIB, 0, MIB, False, False),
        Extent(6 * MIB, 1005 * MIB, 4 * MIB, False, True),
    ]
    found = extents.pieces(told, 7 * MIB)
    assert [(each.physical_bytes, each.length_bytes) for each in found] == [
        (1000 * MIB, 3 * MIB),
        (1005 * MIB, MIB),
    ]
    assert extents.fragments(told, 7 * MIB) == 2
    assert extents.unwritten_bytes(told, 7 * MIB) == 2 * MIB


def _open(folder, name):
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def test_the_files_of_a_real_ext4_are_what_they_were_made(ext4_disk):
    folder, _, _ = ext4_disk

    whole = _open(folder, "whole")
    os.pwrite(whole, b"w" * 4 * MIB, 0)
    assert not extents.read(whole).extents[0].placed
    told = extents.read(whole, flush=True)
    assert (told.complete, extents.fragments(told.extents, 4 * MIB)) == (True, 1)
    assert extents.unwritten_bytes(told.extents, 4 * MIB) == 0

    reserved = _open(folder, "reserved")
    os.posix_fallocate(reserved, 0, 4 * MIB)
    told = extents.read(reserved, flush=True)
    assert extents.fragments(told.extents, 4 * MIB) == 0
    assert extents.unwritten_bytes(told.extents, 4 * MIB) == 4 * MIB

    sparse = _open(folder, "sparse")
    for number in range(3):
        os.pwrite(sparse, b"s" * MIB, number * 2 * MIB)
    told = extents.read(sparse, flush=True)
    assert extents.unwritten_bytes(told.extents, 5 * MIB) == 2 * MIB

    one, other = _open(folder, "one"), _open(folder, "other")
    for number in range(20):
        for each in (one, other):
            os.posix_fallocate(each, number * 64 * KIB, 64 * KIB)
    os.pwrite(one, b"1" * 20 * 64 * KIB, 0)
    told = extents.read(one, flush=True)
    assert extents.fragments(told.extents, 20 * 64 * KIB) == 20

    empty = _open(folder, "empty")
    assert extents.read(empty) == FileMap((), True)
    for each in (whole, reserved, sparse, one, other, empty):
        os.close(each)


def test_a_map_of_many_pages_is_whole_or_says_that_it_is_not(ext4_disk, monkeypatch):
    folder, _, _ = ext4_disk
    monkeypatch.setattr(extents, "PAGE_EXTENTS", 7)
    fd = _open(folder, "many")
    for number in range(50):
        os.pwrite(fd, b"m" * 4096, number * 8192)
    told = extents.read(fd, flush=True)
    assert (len(told.extents), told.complete) == (50, True)
    assert [each.logical_bytes for each in told.extents] == [number * 8192 for number in range(50)]
    told = extents.read(fd, most=20)
    assert (len(told.extents), told.complete) == (20, False)
    os.close(fd)


def test_a_file_system_without_extents_tells_none():
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        assert extents.read(file.fileno()) is None
