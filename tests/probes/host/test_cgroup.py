"""Control groups, both versions: the lowest limit on the way up counts."""

from pathlib import Path

import pytest

from probes.host import cgroup
from probes.host.cgroup import Membership, Mount

DOCKER_V1_MOUNT = (
    "719 700 0:30 /docker/4f2a /sys/fs/cgroup/cpu ro,nosuid master:9 - cgroup cgroup rw,cpu\n"
)


def test_a_group_is_found_below_the_mounts_own_root():
    mount = cgroup.parse_mounts(DOCKER_V1_MOUNT)[0]
    inside = Membership(1, frozenset({"cpu"}), "/docker/4f2a/sub")
    outside = Membership(1, frozenset({"cpu"}), "/docker/other")
    assert cgroup.folder_of(mount, inside) == "/sys/fs/cgroup/cpu/sub"
    assert cgroup.folder_of(mount, outside) is None
    above = Membership(2, frozenset(), "/../escaped")
    assert cgroup.folder_of(Mount(2, frozenset(), "/", "/c"), above) is None


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.fixture
def place_in(monkeypatch, tmp_path):
    """Puts this process into the group /outer/inner of a hierarchy that the test lays out."""

    def place(version, controller):
        controllers = frozenset({controller}) if version == 1 else frozenset()
        monkeypatch.setattr(
            cgroup, "_mounts", lambda: (Mount(version, controllers, "/", str(tmp_path)),)
        )
        line = "0::/outer/inner" if version == 2 else f"1:{controller}:/outer/inner"
        real = cgroup.text
        monkeypatch.setattr(
            cgroup, "text", lambda path: line if str(path).startswith("/proc") else real(path)
        )

    return place


def test_the_quota_of_an_ancestor_counts_too_v2(place_in, tmp_path):
    place_in(2, "cpu")
    group(tmp_path / "outer", cpu__max="50000 100000\n", cpu__stat="nr_periods 9\nnr_throttled 4\n")
    group(tmp_path / "outer" / "inner", cpu__max="max 100000\n")
    (quota,) = cgroup.quotas(1)
    assert (quota.quota_cores, quota.periods, quota.throttled_periods) == (0.5, 9, 4)


def test_the_quotas_of_v1_are_read(place_in, tmp_path):
    place_in(1, "cpu")
    stat = "nr_periods 40\nnr_throttled 40\nthrottled_time 3578029131\n"
    for folder, quota in ((tmp_path / "outer", -1), (tmp_path / "outer" / "inner", 15000)):
        files = {"cpu__cfs_quota_us": f"{quota}\n", "cpu__cfs_period_us": "100000\n"}
        group(folder, cpu__stat=stat, **files)
    (limit,) = cgroup.quotas(1)
    assert (limit.quota_cores, limit.throttled_periods) == (0.15, 40)


def test_the_lowest_memory_limit_counts_and_the_page_cache_is_no_use(place_in, tmp_path):
    place_in(2, "memory")
    group(tmp_path / "outer", memory__max="1000000\n", memory__current="900000\n")
    group(
        tmp_path / "outer" / "inner",
        memory__max="500000\n",
        memory__current="400000\n",
        memory__stat="file 300000\nshmem 50000\nfile_dirty 7\nfile_writeback 3\n",
    )
    assert cgroup.memory_limit(1) == cgroup.Memory(500000, 150000, 250000, 10)


THROTTLE = Path("/sys/fs/cgroup/blkio/blkio.throttle.read_bps_device")


@pytest.fixture
def dm_stack(monkeypatch, tmp_path):
    """A /sys with dm-1 on the partition sdx2 of sdx."""
    disk = tmp_path / "devices/sdx"
    for node, number in ((disk, "8:16"), (disk / "sdx2", "8:18"), (tmp_path / "dm-1", "253:1")):
        node.mkdir(parents=True)
        (node / "dev").write_text(number + "\n")
    (disk / "sdx2/partition").write_text("2\n")
    (tmp_path / "dm-1/slaves").mkdir()
    (tmp_path / "dm-1/slaves/sdx2").symlink_to(disk / "sdx2")
    (tmp_path / "class/block").mkdir(parents=True)
    for node in (disk, disk / "sdx2", tmp_path / "dm-1"):
        (tmp_path / "class/block" / node.name).symlink_to(node)
    monkeypatch.setattr(cgroup, "_SYS", tmp_path)


@pytest.mark.usefixtures("dm_stack")
def test_the_lowest_of_all_groups_and_of_all_devices_below_counts_v2(place_in, tmp_path):
    place_in(2, "blkio")
    outer, inner = tmp_path / "outer", tmp_path / "outer/inner"
    group(outer, io__max="8:16 rbps=1000 wbps=700 riops=max wiops=max\n")
    group(inner, io__max="253:1 rbps=2000 wbps=500 riops=30 wiops=120\n")
    assert cgroup.io_limits("dm-1") == {
        "read_bytes_per_second": 1000,
        "write_bytes_per_second": 500,
        "reads_per_second": 30,
        "writes_per_second": 120,
        "group": str(inner),
    }


@pytest.mark.usefixtures("dm_stack")
def test_a_limit_of_an_ancestor_counts_v1(place_in, tmp_path):
    place_in(1, "blkio")
    outer = group(tmp_path / "outer", blkio__throttle__write_bps_device="8:16 700\n8:99 5\n")
    assert cgroup.io_limits("dm-1") == {"write_bytes_per_second": 700, "group": str(outer)}


@pytest.mark.usefixtures("dm_stack")
def test_no_limit_is_none_of_io_limits(place_in, tmp_path):
    place_in(2, "blkio")
    group(tmp_path / "outer", io__max="8:99 rbps=1000 wbps=max riops=max wiops=max\n")
    assert cgroup.io_limits("dm-1") is None
    assert cgroup.io_limits(None) is None


@pytest.mark.skipif(not THROTTLE.exists(), reason="needs the blkio throttle of cgroup v1")
def test_a_real_limit_is_found(ext4_disk):
    _, device, _ = ext4_disk
    assert cgroup.io_limits(device) is None
    number = Path("/sys/class/block", device, "dev").read_text().strip()
    THROTTLE.write_text(f"{number} 25000000\n")
    try:
        limits = cgroup.io_limits(device)
    finally:
        THROTTLE.write_text(f"{number} 0\n")
    assert limits == {"read_bytes_per_second": 25_000_000, "group": str(THROTTLE.parent)}
