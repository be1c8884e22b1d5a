"""A file system's work on its own disks is told while it is done, and not after it."""

import os

import pytest

from probes.files import layers

POOL = "  pool: tank\n state: ONLINE\n  scan: {}\nconfig:\n\n\tNAME  STATE  READ WRITE CKSUM\n"
SCRUB = "scrub status:1\n{uuid}:1|data_extents_scrubbed:9|t_start:1|duration:5|{end}\n"
NOW = 1_796_000_000.0
UUID = "0b7c4ad6-0d5c-4f43-a2b2-9d3c0a6f0a11"


@pytest.mark.parametrize(
    ("scan", "work"),
    [
        ("scrub in progress since Sun Nov 29 00:24:01 2026", "scrub"),
        ("resilver in progress since Sun Nov 29 00:24:01 2026", "resilver"),
        ("resilver (mirror-0) in progress since Sun Nov 29 00:24:01 2026", "resilver"),
        ("scrub paused since Sun Nov 29 00:24:01 2026", None),
        ("scrub repaired 0B in 00:12:01 with 0 errors on Sun Nov 8 00:36:02 2026", None),
        ("none requested", None),
    ],
)
def test_a_pool_works_while_its_status_has_a_scan_in_progress(scan, work):
    assert layers.parse_zpool(POOL.format(scan)) == work


@pytest.mark.parametrize(
    ("operation", "end", "age", "work"),
    [
        ("none", "canceled:0|finished:0", 0, "scrub"),
        ("none", "canceled:0|finished:0", 3600, None),
        ("none", "canceled:1|finished:0", 0, None),
        ("none", "canceled:0|finished:1", 0, None),
        ("balance", "canceled:0|finished:1", 0, "balance"),
        ("balance paused", "canceled:0|finished:1", 0, None),
    ],
)
def test_a_btrfs_works_while_kernel_or_status_file_show_it(tmp_path, operation, end, age, work):
    (tmp_path / UUID).mkdir()
    (tmp_path / UUID / "exclusive_operation").write_text(f"{operation}\n")
    status = tmp_path / f"scrub.status.{UUID}"
    status.write_text(SCRUB.format(uuid=UUID, end=end))
    os.utime(status, (NOW - age, NOW - age))
    assert layers.btrfs_work(tmp_path / UUID, tmp_path, NOW) == work


def test_its_work_is_a_setting_that_costs():
    stack = [{"name": "zfs", "kind": "filesystem", "work": "scrub"}, {"name": "ext4"}]
    assert [(each.option, each.value) for each in layers.costly(stack)] == [
        ("zfs below the folder", "scrub")
    ]
