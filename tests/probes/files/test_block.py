"""Block devices' files in /sys, in trees that look like it."""

import os
from pathlib import Path

import pytest

from probes.files import block, layers


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
    assert block.bracketed_word(text) == word


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
    assert block.devices_below("sda", tmp_path) == []


def test_a_disk_of_another_host_is_named(tmp_path):
    (tmp_path / "class/block/nbd0").mkdir(parents=True)
    assert block.layer("nbd0", tmp_path) == {"name": "nbd0", "kind": "disk", "transport": "nbd"}


RECORDED = Path(__file__).parents[1] / "recorded"


def recording(name):
    return (RECORDED / name).read_text()


def test_a_disks_health_is_told_without_its_serial_number():
    assert block.parse_smart(recording("smartctl_ata.json")) == {"passed": True}


def test_an_nvme_disk_that_is_worn_out_costs():
    smart = block.parse_smart(recording("smartctl_nvme.json"))
    layer = {"name": "nvme0n1", "kind": "disk", "smart": smart}
    (setting,) = layers.costly([layer])
    assert (setting.option, setting.value) == ("health of nvme0n1", "failing")


ATA = '"ata_smart_data": {"self_test": {"status": {"value": %d}}}'
NVME = '"nvme_self_test_log": {"current_self_test_operation": {"value": %d}}'


@pytest.mark.parametrize(
    ("part", "runs"),
    [(ATA % 249, True), (ATA % 0, None), (NVME % 2, True), (NVME % 0, None)],
)
def test_a_disk_that_tests_itself_costs(part, runs):
    answer = f'{{"smartctl": {{"exit_status": 0}}, "smart_status": {{"passed": true}}, {part}}}'
    smart = block.parse_smart(answer)
    assert smart.get("tests_itself") is runs
    settings = layers.costly([{"name": "sda", "kind": "disk", "smart": smart}])
    assert [each.value for each in settings] == ["in progress"] * bool(runs)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "smartctl 6.6 2017-11-05 r4594\n",
        "[" * 100_000,
        '{"smartctl": 1}',
        '{"smartctl": {"exit_status": true}}',
        '{"smartctl": {"exit_status": 0}, "smart_status": [1]}',
        '{"smartctl": {"exit_status": 0}, "smart_status": {"passed": 1}}',
        '{"smartctl": {"exit_status": 2}, "smart_status": {"passed": true}}',
    ],
)
def test_what_is_no_answer_tells_nothing(text):
    assert block.parse_smart(text) == {}


@pytest.fixture
def ask_health(tmp_path, monkeypatch):
    """Has block.read ask a smartctl that runs the given shell lines."""

    def read(lines):
        program = tmp_path / "smartctl"
        program.write_text(f"#!/bin/sh\n{lines}\n")
        program.chmod(0o755)
        monkeypatch.setattr(block.tools, "find", lambda name: str(program))
        monkeypatch.setattr(block.Path, "is_block_device", lambda path: True)
        monkeypatch.setattr(os, "geteuid", lambda: 0)
        return block.read_smart("sda")

    return read


def test_smartctl_is_told_to_let_the_disk_sleep_and_its_exit_status_is_no_failure(ask_health):
    options = "--json -H -c -l selftest -n standby /dev/sda"
    answer = RECORDED / "smartctl_ata.json"
    health = ask_health(f'[ "$*" = "{options}" ] && cat {answer}\nexit 64')
    assert health == {"passed": True}


def test_a_smartctl_that_hangs_tells_nothing(ask_health, monkeypatch):
    monkeypatch.setattr(block, "ANSWER_SECONDS", 0.2)
    assert ask_health("exec tail -f /dev/null") == {}


def test_what_is_no_block_device_is_not_asked():
    assert block.read_smart("null") == {}
    assert block.read_smart("../etc/passwd") == {}
