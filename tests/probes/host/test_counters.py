"""Counters: recorded texts parsed, and one real moment of this host."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="attr-defined,union-attr"

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck import wire
from probes.host import counters
from probes.host.counters import Counters, Watched

RECORDED = Path(__file__).parent / "recorded"


def recorded(name):
    return (RECORDED / name).read_text()


def test_cores_are_told_with_waiting_for_io_as_idle():
    cores = counters.parse_cores(recorded("stat.txt"))
    assert sorted(cores) == [0, 1]
    tick = counters.processes.TICK_SECONDS
    first = cores[0]
    assert first.busy_seconds == pytest.approx((13872 + 16384 + 1367 + 77) * tick)
    assert first.interrupt_seconds == pytest.approx(1367 * tick)
    assert first.stolen_seconds == pytest.approx(77 * tick)
    idle = (169063 + 11063) * tick
    assert first.total_seconds == pytest.approx(first.busy_seconds + idle)


def test_an_interface_is_told_sent_first():
    assert counters.parse_interface(recorded("net_dev.txt"), "eth0") == (1602494, 807354374)
    assert counters.parse_interface(recorded("net_dev.txt"), "eth") is None


def test_a_device_is_told_in_bytes_and_seconds():
    told = counters.parse_device(recorded("diskstats.txt"), "vda")
    assert told.read_bytes == 29424322 * 512
    assert told.written_bytes == 97902000 * 512
    assert told.busy_seconds == 54.02
    assert counters.parse_device(recorded("diskstats.txt"), "vd") is None


@pytest.fixture
def now():
    return counters.read_counters(Watched("lo"), os.getpid())


def test_a_real_moment_crosses_the_wire(now):
    assert wire.from_plain(Counters, wire.decode(wire.encode(wire.to_plain(now)))) == now


def test_the_cores_are_those_of_the_affinity():
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    os.sched_setaffinity(0, {one})
    try:
        told = counters.read_counters(Watched(file_server=False), os.getpid())
    finally:
        os.sched_setaffinity(0, allowed)
    assert [each.core for each in told.cores] == [one]


def test_children_are_carriers_and_of_the_agent_only_what_it_inherited():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        told = counters.read_counters(Watched(file_server=False), os.getpid())
        child.communicate(b"\n")
    by_pid = {each.pid: each for each in told.processes}
    assert child.pid in by_pid
    assert by_pid[os.getpid()].cpu_seconds == 0.0
    assert child.pid in {each.thread for each in told.threads}
    assert os.getpid() not in {each.thread for each in told.threads}


def test_neither_this_process_nor_its_parents_are_others(now):
    pids = {name.partition(".")[0] for name in now.others}
    assert str(os.getpid()) not in pids
    assert str(os.getppid()) not in pids


def test_what_is_not_watched_is_none():
    told = counters.read_counters(Watched(), os.getpid())
    assert told.interface_sent_bytes is None
    assert told.device_read_bytes is None
    assert told.device_busy_seconds is None


def test_an_interface_and_a_device_that_are_gone_are_none():
    told = counters.read_counters(Watched("gone0", "gone0"), os.getpid())
    assert told.interface_sent_bytes is None
    assert told.device_read_bytes is None
