"""Block devices' files in /sys, in trees that look like it."""

import json
import os
from pathlib import Path

import pytest

from probes.host import block, layers


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


RECORDED = Path(__file__).with_name("recorded")


def recorded(name):
    return (RECORDED / name).read_text()


def test_an_ata_disks_health_is_told_without_its_serial_number():
    assert block.parse_smart(recorded("smartctl_ata.json")) == {
        "passed": True,
        "states": ["errors-logged"],
        "reallocated_sectors": 8,
        "pending_sectors": 3,
        "uncorrectable_sectors": 0,
        "temperature_celsius": 31,
        "power_on_seconds": 53672 * 3600,
        "rotations_per_minute": 5400,
    }


def test_an_nvme_disk_that_is_worn_out_costs():
    told = block.parse_smart(recorded("smartctl_nvme.json"))
    assert (told["passed"], told["states"], told["wear_ratio"]) == (False, ["failing"], 1.04)
    assert (told["media_errors"], told["temperature_celsius"]) == (17, 47)
    layer = {"name": "nvme0n1", "kind": "disk", "smart": told}
    (setting,) = layers.costly([layer])
    assert (setting.option, setting.value) == ("health of nvme0n1", "failing")


@pytest.mark.parametrize(
    ("status", "message", "told"),
    [
        (2, "Device is in STANDBY mode, exit(2)", {"asleep": True}),
        (2, "Device is in STANDBY (OS) mode, exit(2)", {"asleep": True}),
        (2, "Device is in SLEEP mode, exit(2)", {"asleep": True}),
        (2, "Smartctl open device: /dev/sdz failed: No such device", {}),
        (1, "/dev/sdz: Unable to detect device type", {}),
    ],
)
def test_a_disk_that_sleeps_is_told_apart_from_one_that_cannot_be_asked(status, message, told):
    text = {"smartctl": {"exit_status": status, "messages": [{"string": message}]}}
    assert block.parse_smart(json.dumps(text)) == told


def test_high_bits_of_a_raw_value_are_no_sectors():
    told = json.loads(recorded("smartctl_ata.json"))
    told["ata_smart_attributes"]["table"][1]["raw"]["value"] = (7 << 32) + 2
    assert block.parse_smart(json.dumps(told))["reallocated_sectors"] == 2


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "smartctl 6.6 2017-11-05 r4594\n",
        "[" * 100_000,
        '{"smartctl": 1}',
        '{"smartctl": {"exit_status": true}}',
        '{"smartctl": {"exit_status": 0}, "temperature": {"current": "hot"}}',
        '{"smartctl": {"exit_status": 0}, "ata_smart_attributes": {"table": [1, {"id": []}]}}',
        '{"smartctl": {"exit_status": 0}, "nvme_smart_health_information_log": [1]}',
    ],
)
def test_what_is_no_answer_tells_nothing(text):
    assert block.parse_smart(text) == {}


@pytest.fixture
def asked(tmp_path, monkeypatch):
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


def test_smartctl_is_told_to_let_the_disk_sleep_and_its_exit_status_is_no_failure(asked):
    wanted = "--json -a -n standby /dev/sda"
    answer = RECORDED / "smartctl_ata.json"
    found = asked(f'[ "$*" = "{wanted}" ] && cat {answer}\nexit 64')
    assert found["pending_sectors"] == 3


def test_a_smartctl_that_hangs_tells_nothing(asked, monkeypatch):
    monkeypatch.setattr(block, "ANSWER_SECONDS", 0.2)
    assert asked("exec tail -f /dev/null") == {}


def test_what_is_no_block_device_is_not_asked():
    assert block.read_smart("null") == {}
    assert block.read_smart("../etc/passwd") == {}
