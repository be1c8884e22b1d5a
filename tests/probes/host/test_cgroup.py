"""Control groups, both versions: the lowest limit on the way up counts."""

import pytest

from probes.host import cgroup
from probes.host.cgroup import Membership, Mount

V1_MOUNTS = """\
31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755
32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct
35 31 0:32 / /sys/fs/cgroup/memory rw,relatime shared:3 - cgroup cgroup rw,memory
41 31 0:38 / /sys/fs/cgroup/unified rw,relatime - cgroup2 cgroup2 rw
"""
DOCKER_V1_MOUNT = (
    "719 700 0:30 /docker/4f2a /sys/fs/cgroup/cpu ro,nosuid master:9 - cgroup cgroup rw,cpu\n"
)


def test_mounts_of_both_versions_are_found():
    found = cgroup.parse_mounts(V1_MOUNTS)
    assert [(each.version, each.point) for each in found] == [
        (1, "/sys/fs/cgroup/cpu,cpuacct"),
        (1, "/sys/fs/cgroup/memory"),
        (2, "/sys/fs/cgroup/unified"),
    ]
    assert {"cpu", "cpuacct"} <= found[0].controllers


def test_memberships_of_both_versions_are_found():
    found = cgroup.parse_memberships("4:cpu,cpuacct:/a:b\n1:name=systemd:/\n0::/user.slice\n")
    assert found[0] == Membership(1, frozenset({"cpu", "cpuacct"}), "/a:b")
    assert (found[2].version, found[2].path) == (2, "/user.slice")


def test_a_group_is_found_below_the_mounts_own_root():
    mount = cgroup.parse_mounts(DOCKER_V1_MOUNT)[0]
    inside = Membership(1, frozenset({"cpu"}), "/docker/4f2a/sub")
    outside = Membership(1, frozenset({"cpu"}), "/docker/other")
    assert cgroup.folder_of(mount, inside) == "/sys/fs/cgroup/cpu/sub"
    assert cgroup.folder_of(mount, outside) is None
    above = Membership(2, frozenset(), "/../escaped")
    assert cgroup.folder_of(Mount(2, frozenset(), "/", "/c"), above) is None


@pytest.mark.parametrize(
    ("text", "cores"),
    [("max 100000", None), ("8000 100000", 0.08), ("", None), ("150000 100000", 1.5)],
)
def test_cpu_max_is_cores(text, cores):
    assert cgroup.parse_cpu_max(text) == cores


def group(folder, **files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("__", ".")).write_text(text)
    return folder


@pytest.fixture
def placed(monkeypatch, tmp_path):
    """Puts this process into the group /outer/inner of a hierarchy that the test lays out."""

    def place(version, controller):
        controllers = frozenset({controller}) if version == 1 else frozenset()
        monkeypatch.setattr(
            cgroup, "_mounts", lambda: (Mount(version, controllers, "/", str(tmp_path)),)
        )
        line = "0::/outer/inner" if version == 2 else f"1:{controller}:/outer/inner"
        real = cgroup._text
        monkeypatch.setattr(
            cgroup, "_text", lambda path: line if str(path).startswith("/proc") else real(path)
        )

    return place


def test_the_quota_of_an_ancestor_counts_too_v2(placed, tmp_path):
    placed(2, "cpu")
    group(tmp_path / "outer", cpu__max="50000 100000\n", cpu__stat="nr_periods 9\nnr_throttled 4\n")
    group(tmp_path / "outer" / "inner", cpu__max="max 100000\n")
    (found,) = cgroup.quotas(1)
    assert (found.quota_cores, found.periods, found.throttled_periods) == (0.5, 9, 4)


def test_the_quotas_of_v1_are_read(placed, tmp_path):
    placed(1, "cpu")
    group(tmp_path / "outer", cpu__cfs_quota_us="-1\n", cpu__cfs_period_us="100000\n")
    group(
        tmp_path / "outer" / "inner",
        cpu__cfs_quota_us="15000\n",
        cpu__cfs_period_us="100000\n",
        cpu__stat="nr_periods 40\nnr_throttled 40\nthrottled_time 3578029131\n",
    )
    (found,) = cgroup.quotas(1)
    assert (found.quota_cores, found.throttled_periods) == (0.15, 40)


def test_no_limit_is_none(placed, tmp_path):
    placed(1, "memory")
    group(
        tmp_path / "outer" / "inner",
        memory__limit_in_bytes="9223372036854771712\n",
        memory__usage_in_bytes="5\n",
    )
    assert cgroup.memory_limit(1) is None
    assert cgroup.quotas(1) == []


def test_the_lowest_memory_limit_counts_and_the_page_cache_is_no_use(placed, tmp_path):
    placed(2, "memory")
    group(tmp_path / "outer", memory__max="1000000\n", memory__current="900000\n")
    group(
        tmp_path / "outer" / "inner",
        memory__max="500000\n",
        memory__current="400000\n",
        memory__stat="file 300000\nshmem 50000\nfile_dirty 7\nfile_writeback 3\n",
    )
    assert cgroup.memory_limit(1) == cgroup.MemoryLimit(500000, 150000, 250000, 10)


def test_a_hierarchy_that_cannot_be_seen_is_no_limit(monkeypatch):
    monkeypatch.setattr(cgroup, "_mounts", tuple)
    assert cgroup.quotas(1) == []
    assert cgroup.memory_limit(1) is None
