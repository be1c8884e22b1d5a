"""The place of a file on its disk: the arithmetic, and a real file read through its device."""

import os

import pytest

from probes.files import place
from probes.files.place import Extent, FileMap, Volume

MIB, GIB = 1 << 20, 1 << 30
DISK = Volume("sdx", 100 * GIB, "", 0, 0)
ZONES = [
    {"from_ratio": each / 10, "to_ratio": (each + 1) / 10, "bytes_per_second": 100e6 - each * 5e6}
    for each in range(10)
]


def extent_map(*runs):
    """Returns a file's map of extents (address, length), one behind the other."""
    extents, offset_bytes = [], 0
    for physical, length in runs:
        extents.append(Extent(offset_bytes, physical, length, False, True))
        offset_bytes += length
    return FileMap(tuple(extents), True)


def describe(file, volume=DISK, real=True):
    return place.describe(file, sum(each.length_bytes for each in file.extents), volume, real)


def test_a_real_file_is_found_behind_its_device(ext4_disk):
    """The bytes at the place that is told are the file's."""
    folder, device, image = ext4_disk
    content = os.urandom(MIB)
    (folder / "file").write_bytes(content)
    with (folder / "file").open("rb") as file:
        os.fsync(file.fileno())
        layout = place.disk_place(file.fileno())
    assert (layout["device"], layout["device_bytes"], layout["located"]) == (device, 4 * GIB, True)
    assert (layout["bytes"], layout["unwritten_bytes"], layout["complete"]) == (MIB, 0, True)
    content_read = b""
    with image.open("rb") as disk:
        for span in layout["spans"]:
            disk.seek(round(span["from_ratio"] * 4 * GIB))
            content_read += disk.read(span["bytes"])
    assert content_read == content
    assert 0 < layout["from_ratio"] < layout["centre_ratio"] < layout["to_ratio"] < 1
    assert "whole" not in layout


def test_a_file_without_extents_has_no_place():
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123
        assert place.disk_place(file.fileno()) is None


def test_pieces_have_the_span_and_the_mean_of_the_bytes():
    layout = describe(extent_map((90 * GIB, GIB), (10 * GIB, 3 * GIB)))
    assert (layout["fragments"], layout["from_ratio"], layout["to_ratio"]) == (2, 0.10, 0.91)
    assert layout["centre_ratio"] == pytest.approx((0.905 + 3 * 0.115) / 4)
    assert [each["bytes"] for each in layout["spans"]] == [GIB, 3 * GIB]


def test_a_partition_is_placed_on_its_disk_too():
    volume = Volume("sdx2", 100 * GIB, "sdx", 200 * GIB, 50 * GIB)
    layout = describe(extent_map((50 * GIB, GIB)), volume)
    assert (layout["from_ratio"], layout["to_ratio"]) == (0.50, 0.51)
    disk = layout["whole"]
    assert (disk["device"], disk["device_bytes"]) == ("sdx", 200 * GIB)
    assert (disk["from_ratio"], disk["to_ratio"]) == (0.5, 0.505)


@pytest.mark.parametrize(
    ("volume", "real", "address"),
    [(DISK, False, GIB), (None, True, GIB), (DISK, True, 100 * GIB)],
    ids=["an address that is no place", "no device below", "behind the device's end"],
)
def test_what_cannot_be_located_has_no_ratio(volume, real, address):
    layout = describe(extent_map((address, GIB)), volume, real)
    assert (layout["located"], layout["from_ratio"], layout["spans"]) == (False, None, [])
    assert layout["fragments"] == 1


def test_a_partition_and_a_thin_volume_are_known_by_sysfs(tmp_path, monkeypatch):
    monkeypatch.setattr(place, "_SYS", tmp_path)
    disk = tmp_path / "devices/sdx"
    for node, files in (
        (disk, {"size": "2048"}),
        (disk / "sdx2", {"size": "1024", "start": "512", "partition": "2"}),
        (disk / "dm-3", {"size": "64", "dm/uuid": "LVM-abc"}),
        (disk / "dm-3/slaves/dm-2", {"dm/uuid": "LVM-abc-tpool"}),
    ):
        for name, text in files.items():
            (node / name).parent.mkdir(parents=True, exist_ok=True)
            (node / name).write_text(text + "\n")
    (tmp_path / "class/block").mkdir(parents=True)
    for name, node in (("sdx", disk), ("sdx2", disk / "sdx2"), ("dm-3", disk / "dm-3")):
        (tmp_path / "class/block" / name).symlink_to(node)
    assert place._volume("sdx") == Volume("sdx", MIB, "", 0, 0)
    assert place._volume("sdx2") == Volume("sdx2", MIB // 2, "sdx", MIB, MIB // 4)
    assert place._volume("sdy") is None
    assert place._is_scattered("dm-3")
    assert not place._is_scattered("sdx")


def test_gaps_that_pass_under_the_head_are_told_apart():
    layout = describe(extent_map(*((5 * GIB + each * MIB, MIB // 2) for each in range(101))))
    assert (layout["fragments"], layout["short_gaps"]) == (101, 100)
    assert layout["short_gaps_bytes"] == 50 * MIB
    runs = [((5 + 90 * (each % 2)) * GIB + each * 4 * MIB, MIB) for each in range(500)]
    assert describe(extent_map(*runs))["short_gaps"] == 0


KIB, EXTENTS_MIB = 1024, 1024 * 1024
CONTIGUOUS = bytes.fromhex(
    "000000000000000000008000000000000000000001000000000400000000000000000000000000000000c084"
    "1000000000008000000000000000000000000000000000000000000001000000" + "00" * 12
)
"""ext4's answer for a file of 8 MiB in one piece; the buffer's unused rest is cut off."""


@pytest.mark.parametrize("length", [0, 31, 32 + 55])
def test_an_answer_that_is_cut_off_is_refused(length):
    with pytest.raises(ValueError, match="cut off"):
        place.parse_extents(CONTIGUOUS[:length])


def test_pieces_are_what_a_reader_takes_from_the_disk():
    """Side by side is one piece, also across a hole; reserved, inline and waiting data are none."""
    extents = [
        Extent(0, 1000 * EXTENTS_MIB, EXTENTS_MIB, False, True),
        Extent(EXTENTS_MIB, 1001 * EXTENTS_MIB, EXTENTS_MIB, False, True),
        Extent(3 * EXTENTS_MIB, 1002 * EXTENTS_MIB, EXTENTS_MIB, False, True),
        Extent(4 * EXTENTS_MIB, 1003 * EXTENTS_MIB, EXTENTS_MIB, True, True),
        Extent(5 * EXTENTS_MIB, 0, EXTENTS_MIB, False, False),
        Extent(6 * EXTENTS_MIB, 1005 * EXTENTS_MIB, 4 * EXTENTS_MIB, False, True),
    ]
    pieces = place.pieces(extents, 7 * EXTENTS_MIB)
    assert [(each.physical_bytes, each.length_bytes) for each in pieces] == [
        (1000 * EXTENTS_MIB, 3 * EXTENTS_MIB),
        (1005 * EXTENTS_MIB, EXTENTS_MIB),
    ]
    assert len(place.pieces(extents, 7 * EXTENTS_MIB)) == 2
    assert place.unwritten_bytes(extents, 7 * EXTENTS_MIB) == 2 * EXTENTS_MIB


def _create(folder, name):
    return os.open(folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)


def test_the_files_of_a_real_ext4_are_what_they_were_made(ext4_disk):
    folder, _, _ = ext4_disk

    written_fd = _create(folder, "whole")
    os.pwrite(written_fd, b"w" * 4 * EXTENTS_MIB, 0)
    assert not place.read_extents(written_fd).extents[0].placed
    file_map = place.read_extents(written_fd, flush=True)
    assert (file_map.complete, len(place.pieces(file_map.extents, 4 * EXTENTS_MIB))) == (True, 1)
    assert place.unwritten_bytes(file_map.extents, 4 * EXTENTS_MIB) == 0

    reserved = _create(folder, "reserved")
    os.posix_fallocate(reserved, 0, 4 * EXTENTS_MIB)
    file_map = place.read_extents(reserved, flush=True)
    assert len(place.pieces(file_map.extents, 4 * EXTENTS_MIB)) == 0
    assert place.unwritten_bytes(file_map.extents, 4 * EXTENTS_MIB) == 4 * EXTENTS_MIB

    sparse = _create(folder, "sparse")
    for number in range(3):
        os.pwrite(sparse, b"s" * EXTENTS_MIB, number * 2 * EXTENTS_MIB)
    file_map = place.read_extents(sparse, flush=True)
    assert place.unwritten_bytes(file_map.extents, 5 * EXTENTS_MIB) == 2 * EXTENTS_MIB

    one, other = _create(folder, "one"), _create(folder, "other")
    for number in range(20):
        for each in (one, other):
            os.posix_fallocate(each, number * 64 * KIB, 64 * KIB)
    os.pwrite(one, b"1" * 20 * 64 * KIB, 0)
    file_map = place.read_extents(one, flush=True)
    assert len(place.pieces(file_map.extents, 20 * 64 * KIB)) == 20

    empty = _create(folder, "empty")
    assert place.read_extents(empty) == FileMap((), True)
    for each in (written_fd, reserved, sparse, one, other, empty):
        os.close(each)


def test_a_map_of_many_pages_is_whole_or_says_that_it_is_not(ext4_disk, monkeypatch):
    folder, _, _ = ext4_disk
    monkeypatch.setattr(place, "PAGE_EXTENTS", 7)
    fd = _create(folder, "many")
    for number in range(50):
        os.pwrite(fd, b"m" * 4096, number * 8192)
    file_map = place.read_extents(fd, flush=True)
    assert (len(file_map.extents), file_map.complete) == (50, True)
    assert [each.logical_bytes for each in file_map.extents] == list(range(0, 50 * 8192, 8192))
    file_map = place.read_extents(fd, limit=20)
    assert (len(file_map.extents), file_map.complete) == (20, False)
    os.close(fd)
