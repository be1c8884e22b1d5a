"""Counters: recorded texts parsed, and one real moment of this host."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="attr-defined,union-attr"

import os
import subprocess
import sys
from pathlib import Path

import pytest

from bottleneck import wire
from probes.host import cgroup, counters
from probes.host.account import Account
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


def test_a_reading_is_no_longer_on_a_host_with_many_processes(monkeypatch):
    def line():
        return wire.encode(wire.to_plain(counters.read_counters(watched, os.getpid(), Account())))

    watched = Watched(file_server=False)
    few = len(line())
    seen = counters.processes.read_all()
    init = seen[os.getpid()]._replace(parent=1, cpu_seconds=123.45)
    crowd = {pid: init._replace(pid=pid, started_ticks=pid) for pid in range(10**6, 10**6 + 40_000)}
    monkeypatch.setattr(counters.processes, "read_all", lambda: {**seen, **crowd})
    assert len(line()) < few + 200


def test_others_grow_by_a_strangers_work_and_not_by_a_childs(monkeypatch):
    account, watched = Account(), Watched(file_server=False)
    seen = counters.processes.read_all()
    me = seen[os.getpid()]
    core = min(os.sched_getaffinity(0))
    stranger = me._replace(pid=10**6, parent=1, core=core, cpu_seconds=100.0)
    child = stranger._replace(pid=10**6 + 1, parent=os.getpid())

    def reading(**used):
        now = {
            me.pid: me,
            stranger.pid: stranger._replace(cpu_seconds=used["stranger"]),
            child.pid: child._replace(cpu_seconds=used["child"]),
        }
        monkeypatch.setattr(counters.processes, "read_all", lambda: now)
        return counters.read_counters(watched, os.getpid(), account)

    before = reading(stranger=100.0, child=100.0)
    after = reading(stranger=103.5, child=107.0)
    assert after.other_cpu_seconds - before.other_cpu_seconds == pytest.approx(3.5)


@pytest.fixture
def two_clients(monkeypatch):
    """A server with an smbd for us (71) and one for another client (72), by what serves whom."""
    seen = counters.processes.read_all()
    me = seen[os.getpid()]
    for pid in (70, 71, 72):
        seen[pid] = me._replace(pid=pid, name="smbd", parent=70 if pid > 70 else 1)
    monkeypatch.setattr(counters.processes, "read_all", lambda: seen)
    monkeypatch.setattr(counters.file_server, "serving", lambda *_: {71})
    return seen


def quota_of(groups):
    return lambda pid: [cgroup.Quota(groups[pid], 0.5, 10, 0)] if pid in groups else []


def test_of_the_file_servers_the_one_that_serves_us_is_a_carrier(two_clients):
    told = counters.read_counters(Watched(peer_address="192.0.2.7"), os.getpid(), Account())
    assert {each.pid for each in told.processes} & {70, 71, 72} == {71}


def test_servers_are_looked_for_anew_only_where_one_began_or_ended(two_clients, monkeypatch):
    looks = []

    def look(*_):
        looks.append(1)
        return {71}

    monkeypatch.setattr(counters.file_server, "serving", look)
    account, watched = Account(), Watched(peer_address="192.0.2.7")
    for _ in range(2):
        counters.read_counters(watched, os.getpid(), account)
    assert len(looks) == 1
    two_clients[73] = two_clients[72]._replace(pid=73)
    counters.read_counters(watched, os.getpid(), account)
    assert len(looks) == 2


def test_quotas_are_those_of_the_carriers_groups_and_of_the_agents(two_clients, monkeypatch):
    groups = {70: "/parent", 71: "/ours", 72: "/foreign", os.getpid(): "/agent"}
    monkeypatch.setattr(counters.cgroup, "quotas", quota_of(groups))
    told = counters.read_counters(Watched(peer_address="192.0.2.7"), os.getpid(), Account())
    assert [each.group for each in told.quotas] == ["/agent", "/ours"]


def test_the_client_counts_no_file_server_as_its_own(two_clients, monkeypatch):
    monkeypatch.setattr(counters.cgroup, "quotas", quota_of({71: "/ours"}))
    told = counters.read_counters(Watched(file_server=False), os.getpid(), Account())
    assert {each.pid for each in told.processes} & {70, 71, 72} == set()
    assert told.quotas == ()


def test_where_no_file_server_can_be_told_to_be_ours_no_quota_is_known(two_clients, monkeypatch):
    monkeypatch.setattr(counters.cgroup, "shows_quotas", lambda pid: True)
    watched = Watched(peer_address="192.0.2.7")
    assert counters.read_counters(watched, os.getpid(), Account()).quotas_visible
    monkeypatch.setattr(counters.file_server, "serving", lambda *_: set())
    assert not counters.read_counters(watched, os.getpid(), Account()).quotas_visible


def test_what_is_not_watched_is_none():
    told = counters.read_counters(Watched(), os.getpid())
    assert told.interface_sent_bytes is None
    assert told.device_read_bytes is None
    assert told.device_busy_seconds is None


def test_an_interface_and_a_device_that_are_gone_are_none():
    told = counters.read_counters(Watched("gone0", "gone0"), os.getpid())
    assert told.interface_sent_bytes is None
    assert told.device_read_bytes is None
