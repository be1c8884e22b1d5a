"""Block devices' files in /sys, in trees that look like it."""

import pytest

from probes.host import block


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("none [mq-deadline] bfq", "mq-deadline"),
        ("[none]", "none"),
        ("none", "none"),
        ("writethrough [writeback] writearound none", "writeback"),
        ("lzo zstd", None),
        ("", None),
    ],
)
def test_the_chosen_word_is_in_brackets_or_alone(text, word):
    assert block.chosen(text) == word


@pytest.mark.parametrize(
    ("text", "size"), [("4.0M", 4 << 20), ("512k", 512 << 10), ("0", 0), ("4.0X", None), ("", None)]
)
def test_sizes_of_bcache(text, size):
    assert block.size_bytes(text) == size


@pytest.mark.parametrize(
    ("text", "ratio"), [("25 / 100", 0.25), ("none", None), ("delayed", None), ("1 / 0", None)]
)
def test_how_far_a_resync_is(text, ratio):
    assert block.sync_ratio(text) == ratio


@pytest.mark.parametrize(
    ("name", "file", "text", "kind"),
    [
        ("sda1", "partition", "1", "partition"),
        ("dm-0", "dm/uuid", "LVM-abc", "lvm"),
        ("dm-1", "dm/uuid", "CRYPT-LUKS2-abc", "dm-crypt"),
        ("dm-2", "dm/uuid", "mpath-abc", "dm"),
        ("dm-3", "dm/name", "by-hand", "dm"),
        ("md127", "md/level", "raid1", "md"),
        ("loop7", "size", "0", "loop"),
        ("bcache0", "bcache/state", "clean", "bcache"),
        ("sdb", "bcache/state", "clean", "disk"),
        ("zram0", "comp_algorithm", "lzo [zstd]", "zram"),
        ("ram0", "size", "8192", "memory"),
        ("nvme0n1", "size", "8192", "disk"),
    ],
)
def test_each_device_is_of_one_kind(tmp_path, name, file, text, kind):
    path = tmp_path / "class/block" / name / file
    path.parent.mkdir(parents=True)
    path.write_text(text + "\n")
    assert block.layer(name, tmp_path)["kind"] == kind


def test_a_thin_volume_and_multipath_are_told(tmp_path):
    pool = tmp_path / "class/block/dm-1"
    for folder, uuid in ((pool, "LVM-abc-tpool"), (pool.with_name("dm-2"), "LVM-abc")):
        (folder / "dm").mkdir(parents=True)
        (folder / "dm/uuid").write_text(uuid + "\n")
    (pool.with_name("dm-2") / "slaves").mkdir()
    (pool.with_name("dm-2") / "slaves/dm-1").symlink_to(pool)
    assert block.layer("dm-2", tmp_path)["target"] == "thin"
    assert "target" not in block.layer("dm-1", tmp_path)
    (pool / "dm/uuid").write_text("mpath-360a98000\n")
    assert block.layer("dm-1", tmp_path)["target"] == "multipath"


def test_what_is_not_there_is_no_layer(tmp_path):
    assert block.layer("sda", tmp_path) is None
    assert block.layer("../../etc", tmp_path) is None
    assert block.layer("", tmp_path) is None
    assert block.below("sda", tmp_path) == []


def test_a_disk_of_another_host_is_named(tmp_path):
    (tmp_path / "class/block/nbd0").mkdir(parents=True)
    assert block.layer("nbd0", tmp_path) == {"name": "nbd0", "kind": "disk", "transport": "nbd"}
