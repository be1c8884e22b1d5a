"""Limits of control groups on a disk: recorded files, a laid-out tree, and a real throttle."""

from pathlib import Path

import pytest

from probes.host import cgroup, io_limits
from probes.host.cgroup import Mount

THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device")


def test_limits_of_v1_are_read_and_none_is_none():
    assert io_limits.parse_v1("8:0 1048576\n253:1 0\nDefault 0\n") == {"8:0": 1048576}
    assert io_limits.parse_v1("") == {}


def test_limits_of_v2_are_read_and_max_is_none():
    text = "8:16 rbps=2097152 wbps=max riops=max wiops=120\n8:0 rbps=max wbps=max\n"
    assert io_limits.parse_v2(text) == {
        "8:16": {"read_bytes_per_second": 2097152, "writes_per_second": 120}
    }


@pytest.fixture
def placed(monkeypatch, tmp_path):
    """Puts this process into the group /outer/inner, and dm-1 on the partition sdx2 of sdx."""

    def place(version):
        controllers = frozenset({"blkio"}) if version == 1 else frozenset()
        groups = tmp_path / "groups"
        (groups / "outer/inner").mkdir(parents=True)
        monkeypatch.setattr(
            cgroup, "_mounts", lambda: (Mount(version, controllers, "/", str(groups)),)
        )
        line = "0::/outer/inner" if version == 2 else "1:blkio:/outer/inner"
        monkeypatch.setattr(cgroup, "_text", lambda path: line)
        return groups

    disk = tmp_path / "devices/sdx"
    for node, number in ((disk, "8:16"), (disk / "sdx2", "8:18"), (tmp_path / "dm-1", "253:1")):
        node.mkdir(parents=True)
        (node / "dev").write_text(number + "\n")
    (disk / "sdx2/partition").write_text("2\n")
    (tmp_path / "dm-1/slaves").mkdir()
    (tmp_path / "dm-1/slaves/sdx2").symlink_to(disk / "sdx2")
    (tmp_path / "class/block").mkdir(parents=True)
    (tmp_path / "class/block/dm-1").symlink_to(tmp_path / "dm-1")
    monkeypatch.setattr(io_limits, "_SYS", tmp_path)
    return place


def test_the_lowest_of_all_groups_and_of_all_devices_below_counts_v2(placed):
    groups = placed(2)
    (groups / "outer/io.max").write_text("8:16 rbps=1000 wbps=700 riops=max wiops=max\n")
    (groups / "outer/inner/io.max").write_text("253:1 rbps=2000 wbps=500 riops=30 wiops=max\n")
    assert io_limits.limits("dm-1") == {
        "read_bytes_per_second": 1000,
        "write_bytes_per_second": 500,
        "reads_per_second": 30,
        "group": str(groups / "outer/inner"),
    }


def test_a_limit_of_an_ancestor_counts_v1(placed):
    groups = placed(1)
    (groups / "outer/blkio.throttle.write_bps_device").write_text("8:16 700\n8:99 5\n")
    assert io_limits.limits("dm-1") == {
        "write_bytes_per_second": 700,
        "group": str(groups / "outer"),
    }


def test_no_limit_is_none(placed):
    groups = placed(2)
    (groups / "outer/io.max").write_text("8:99 rbps=1000 wbps=max riops=max wiops=max\n")
    assert io_limits.limits("dm-1") is None
    assert io_limits.limits(None) is None


@pytest.mark.skipif(not THROTTLE.exists(), reason="needs the blkio throttle of cgroup v1")
def test_a_real_limit_is_found(ext4_disk):
    _, device, _ = ext4_disk
    assert io_limits.limits(device) is None
    number = Path("/sys/class/block", device, "dev").read_text().strip()
    THROTTLE.write_text(f"{number} 25000000\n")
    try:
        found = io_limits.limits(device)
    finally:
        THROTTLE.write_text(f"{number} 0\n")
    assert found == {"read_bytes_per_second": 25_000_000, "group": str(THROTTLE.parent)}
