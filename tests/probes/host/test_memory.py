"""Memory, swap, dirty limits and waiting: as kernels tell them, absent where they do not."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="union-attr"

import os

import pytest

from probes.host import cgroup, memory
from probes.system import proc

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


def limit(sys, limit_bytes, strict):
    (sys / "devices/sda/bdi/max_bytes").write_text(f"{limit_bytes}\n")
    (sys / "devices/sda/bdi/strict_limit").write_text(f"{strict}\n")


def test_pages_become_bytes_and_microseconds_seconds(host):
    pressure = memory.read_pressure("sda1", *host)
    assert (pressure.swapped_in_bytes, pressure.swapped_out_bytes) == (7 * PAGE, 9 * PAGE)
    assert pressure.dirty_limit_bytes == 1000 * PAGE
    assert (pressure.memory_waiting_seconds, pressure.io_waiting_seconds) == (2.5, 4.0)


@pytest.mark.parametrize("device", ["sda", "sda1"])
def test_a_strict_limit_of_the_disk_counts_for_its_partitions_too(host, device):
    limit(host[1], 65536, 1)
    assert memory.read_pressure(device, *host).dirty_limit_bytes == 65536


def test_a_device_without_a_strict_limit_has_the_hosts(host):
    limit(host[1], 65536, 0)
    assert memory.read_pressure("sda1", *host).dirty_limit_bytes == 1000 * PAGE


@pytest.mark.parametrize("device", [None, "", "../sda", "nvme0n1"])
def test_a_device_that_is_not_known_has_the_hosts_limit(host, device):
    limit(host[1], 65536, 1)
    assert memory.read_pressure(device, *host).dirty_limit_bytes == 1000 * PAGE


def test_a_containers_limit_replaces_the_hosts_memory(monkeypatch):
    limit = proc.Memory(1 << 20, 1000, 2000, 3000)
    monkeypatch.setattr(cgroup, "memory_limit", lambda pid: limit)
    assert memory.read_memory() == limit


def test_a_limit_above_the_hosts_memory_is_none(monkeypatch):
    limit = proc.Memory(1 << 59, 1000, 2000, 3000)
    monkeypatch.setattr(cgroup, "memory_limit", lambda pid: limit)
    assert memory.read_memory().total_bytes < 1 << 59
