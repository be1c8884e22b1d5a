"""Swap, dirty limits and waiting: read from text as kernels print it, absent where they do not."""

from __future__ import annotations

import os

import pytest

from probes.host import pressure

PAGE = os.sysconf("SC_PAGE_SIZE")
VMSTAT = "nr_free_pages 81\npswpin 7\npswpout 9\nnr_dirty_threshold 1000\nstrange\n"
PSI = "some avg10=0.00 avg60=1.25 avg300=0.90 total=2500000\nfull avg10=0.00 total=9\n"


@pytest.fixture
def host(tmp_path):
    """A host with a disk of one partition, as its /proc and /sys tell."""
    proc, sys = tmp_path / "proc", tmp_path / "sys"
    (proc / "pressure").mkdir(parents=True)
    (proc / "vmstat").write_text(VMSTAT)
    (proc / "pressure/memory").write_text(PSI)
    (proc / "pressure/io").write_text(PSI.replace("2500000", "4000000"))
    disk = sys / "devices/sda"
    (disk / "sda1").mkdir(parents=True)
    (disk / "bdi").mkdir()
    (sys / "class/block").mkdir(parents=True)
    for name, path in (("sda", disk), ("sda1", disk / "sda1")):
        (sys / "class/block" / name).symlink_to(path)
    return proc, sys


def limit(sys, most, strict):
    (sys / "devices/sda/bdi/max_bytes").write_text(f"{most}\n")
    (sys / "devices/sda/bdi/strict_limit").write_text(f"{strict}\n")


def test_pages_become_bytes_and_microseconds_seconds(host):
    told = pressure.read("sda1", *host)
    assert (told.swapped_in_bytes, told.swapped_out_bytes) == (7 * PAGE, 9 * PAGE)
    assert told.dirty_limit_bytes == 1000 * PAGE
    assert (told.memory_waiting_seconds, told.io_waiting_seconds) == (2.5, 4.0)


@pytest.mark.parametrize("device", ["sda", "sda1"])
def test_a_strict_limit_of_the_disk_counts_for_its_partitions_too(host, device):
    limit(host[1], 65536, 1)
    assert pressure.read(device, *host).dirty_limit_bytes == 65536


def test_a_device_without_a_strict_limit_has_the_hosts(host):
    limit(host[1], 65536, 0)
    assert pressure.read("sda1", *host).dirty_limit_bytes == 1000 * PAGE


@pytest.mark.parametrize("device", [None, "", "../sda", "nvme0n1"])
def test_a_device_that_is_not_known_has_the_hosts_limit(host, device):
    limit(host[1], 65536, 1)
    assert pressure.read(device, *host).dirty_limit_bytes == 1000 * PAGE


def test_what_a_system_does_not_tell_is_not_zero(tmp_path):
    assert pressure.read("sda", tmp_path, tmp_path) == pressure.Pressure()


def test_a_kernel_without_pressure_accounting_tells_none():
    assert pressure.parse_some("") is None
