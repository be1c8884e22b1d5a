"""SMART of recorded smartctl output: ATA, NVMe, asleep, absent, and things that are none of it."""

import json
import os
from pathlib import Path

import pytest

from probes.host import block, layers

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
        monkeypatch.setattr(block, "_is_block", lambda path: True)
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
    assert asked("exec sleep 30") == {}


def test_what_is_no_block_device_is_not_asked():
    assert block.read_smart("null") == {}
    assert block.read_smart("../etc/passwd") == {}
