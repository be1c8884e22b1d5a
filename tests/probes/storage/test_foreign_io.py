"""Reads and writes of others on a disk, read off recorded counts."""

from probes.storage import foreign_io
from probes.storage.foreign_io import Look
from probes.system.proc import DeviceCounts

MIB = 1024 * 1024


def window(reads, read_bytes, seconds=2.0, busy=1.0):
    nothing = DeviceCounts(10, 4096, 20, 8192, 5.0)
    counts = DeviceCounts(10 + reads, 4096 + read_bytes, 20, 8192, 5.0 + busy)
    return Look(100.0, nothing, nothing), Look(100.0 + seconds, counts, counts)


def test_what_is_all_ours_leaves_nothing_to_others_however_it_was_cut():
    earlier, later = window(500, 100 * MIB)
    counts = foreign_io.counts("none", earlier, later, read_bytes=100 * MIB)
    assert counts["device_read_bytes"] == 100 * MIB
    assert counts["others"] == {
        **{"read_bytes": 0, "reads": 0, "written_bytes": 0, "writes": 0},
        "busy_ratio": 0.5,
    }


def test_others_small_reads_are_counted():
    earlier, later = window(300, 100 * MIB + 100 * 4096)
    counts = foreign_io.counts("none", earlier, later, read_bytes=100 * MIB)
    assert counts["others"]["read_bytes"] == 100 * 4096
    assert counts["others"]["reads"] == 100


def test_a_buffered_read_that_the_device_counts_less_of_is_no_debt_of_others():
    earlier, later = window(5, 10 * MIB)
    counts = foreign_io.counts("none", earlier, later, read_bytes=100 * MIB)
    assert counts["others"]["read_bytes"] == counts["others"]["reads"] == 0


def test_a_device_that_counts_nothing_has_no_others():
    unseen = Look(1.0, None, None)
    counts = foreign_io.counts("sda", unseen, unseen)
    assert counts == {"device_read_bytes": None, "device_written_bytes": None}
    assert foreign_io.quiet(None, 0.0) is None


def test_a_partition_is_judged_by_its_whole_disk(tmp_path, monkeypatch):
    (tmp_path / "devices/sda/sda1").mkdir(parents=True)
    (tmp_path / "devices/sda/sda1/partition").touch()
    (tmp_path / "devices/sda/queue").mkdir()
    (tmp_path / "devices/sda/queue/max_sectors_kb").write_text("1280\n")
    (tmp_path / "devices/sda/queue/max_segments").write_text("168\n")
    (tmp_path / "block").mkdir()
    for name, where in (("sda", "sda"), ("sda1", "sda/sda1")):
        (tmp_path / "block" / name).symlink_to(tmp_path / "devices" / where)
    monkeypatch.setattr(foreign_io, "SYS_BLOCK", tmp_path / "block")
    assert foreign_io.whole_disk("sda1") == "sda"
    assert foreign_io.whole_disk("sda") == "sda"
    assert foreign_io.largest_request_bytes("sda1") == 168 * 4096
