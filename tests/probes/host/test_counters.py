"""Counters: one real moment of this host, and who carries the copy."""

import dataclasses
import os
import subprocess
import sys

import pytest

from bottleneck.agents import protocol
from probes.core import typed
from probes.host import counters
from probes.host.cgroup import Quota
from probes.host.counters import CountedObjects, Counters, usage
from probes.host.memory import Pressure
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ThreadTimes
from probes.system.processes import Account, ProcessTimes


def test_a_real_moment_crosses_the_wire():
    now = counters.read_counters(CountedObjects("lo"), os.getpid())
    assert (
        protocol.from_plain(Counters, protocol.decode(protocol.encode(typed.to_plain(now)))) == now
    )


def test_the_cores_are_those_of_the_affinity():
    allowed = os.sched_getaffinity(0)
    one = min(allowed)
    os.sched_setaffinity(0, {one})
    try:
        counts = counters.read_counters(CountedObjects(file_server=False), os.getpid())
    finally:
        os.sched_setaffinity(0, allowed)
    assert [each.core for each in counts.cores] == [one]


def test_children_are_carriers_and_of_the_agent_only_what_it_inherited():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        counts = counters.read_counters(CountedObjects(file_server=False), os.getpid())
        child.communicate(b"\n")
    by_pid = {each.pid: each for each in counts.processes}
    assert child.pid in by_pid
    assert by_pid[os.getpid()].cpu_seconds == 0.0
    assert child.pid in {each.thread for each in counts.threads}
    assert os.getpid() not in {each.thread for each in counts.threads}


def test_a_reading_is_no_longer_on_a_host_with_many_processes(monkeypatch):
    def line():
        return protocol.encode(
            typed.to_plain(counters.read_counters(watched, os.getpid(), Account()))
        )

    watched = CountedObjects(file_server=False)
    few = len(line())
    processes = counters.reader().processes()
    init = processes[os.getpid()]._replace(parent=1, cpu_seconds=123.45)
    crowd = {pid: init._replace(pid=pid, started_ticks=pid) for pid in range(10**6, 10**6 + 40_000)}
    monkeypatch.setattr(counters.reader(), "processes", lambda: {**processes, **crowd})
    assert len(line()) < few + 200


def test_others_grow_by_a_strangers_work_and_not_by_a_childs(monkeypatch):
    account, watched = Account(), CountedObjects(file_server=False)
    processes = counters.reader().processes()
    me = processes[os.getpid()]
    core = min(os.sched_getaffinity(0))
    stranger = me._replace(pid=10**6, parent=1, core=core, cpu_seconds=100.0)
    child = stranger._replace(pid=10**6 + 1, parent=os.getpid())

    def reading(**used):
        now = {
            me.pid: me,
            stranger.pid: stranger._replace(cpu_seconds=used["stranger"]),
            child.pid: child._replace(cpu_seconds=used["child"]),
        }
        monkeypatch.setattr(counters.reader(), "processes", lambda: now)
        return counters.read_counters(watched, os.getpid(), account)

    earlier = reading(stranger=100.0, child=100.0)
    later = reading(stranger=103.5, child=107.0)
    assert later.other_cpu_seconds - earlier.other_cpu_seconds == pytest.approx(3.5)


@pytest.fixture
def two_clients(monkeypatch):
    """A server with two smbds: 71 serves us, 72 another client."""
    processes = counters.reader().processes()
    me = processes[os.getpid()]
    for pid in (70, 71, 72):
        processes[pid] = me._replace(pid=pid, name="smbd", parent=70 if pid > 70 else 1)
    monkeypatch.setattr(counters.reader(), "processes", lambda: processes)
    monkeypatch.setattr(counters.open_files, "servers_of_peer", lambda *_: {71})
    return processes


def test_servers_are_looked_for_anew_only_where_one_began_or_ended(two_clients, monkeypatch):
    looks = []

    def look(*_):
        looks.append(1)
        return {71}

    monkeypatch.setattr(counters.open_files, "servers_of_peer", look)
    account, watched = Account(), CountedObjects(peer_address="192.0.2.7")
    for _ in range(2):
        counters.read_counters(watched, os.getpid(), account)
    assert len(looks) == 1
    two_clients[73] = two_clients[72]._replace(pid=73)
    counters.read_counters(watched, os.getpid(), account)
    assert len(looks) == 2


def test_quotas_are_those_of_the_carriers_groups_and_of_the_agents(two_clients, monkeypatch):
    groups = {70: "/parent", 71: "/ours", 72: "/foreign", os.getpid(): "/agent"}
    quotas = {pid: [Quota(group, 0.5, 10, 0)] for pid, group in groups.items()}
    monkeypatch.setattr(counters.cgroup, "quotas", lambda pid: quotas.get(pid, []))
    counts = counters.read_counters(
        CountedObjects(peer_address="192.0.2.7"), os.getpid(), Account()
    )
    assert [each.file for each in counts.quotas] == ["/agent", "/ours"]


def test_where_no_file_server_can_be_told_to_be_ours_no_quota_is_known(two_clients, monkeypatch):
    monkeypatch.setattr(counters.cgroup, "shows_quotas", lambda pid: True)
    watched = CountedObjects(peer_address="192.0.2.7")
    assert counters.read_counters(watched, os.getpid(), Account()).quotas_visible
    monkeypatch.setattr(counters.open_files, "servers_of_peer", lambda *_: set())
    assert not counters.read_counters(watched, os.getpid(), Account()).quotas_visible


@pytest.mark.parametrize("watched", [CountedObjects(), CountedObjects("gone0", "gone0")])
def test_what_is_not_watched_or_gone_is_none(watched):
    counts = counters.read_counters(watched, os.getpid())
    assert counts.traffic is counts.device is None


START = Counters(
    clock_seconds=100.0,
    cores=(CoreTimes(0, 50.0, 5.0, 1.0, 500.0), CoreTimes(1, 60.0, 6.0, 0.0, 500.0)),
    processes=(ProcessTimes(10, 1, 0.0, 3.0), ProcessTimes(11, 2, 2.0, 0.0)),
    threads=(ThreadTimes(11, 2.0, 0.5),),
    other_cpu_seconds=30.0,
    others_complete=True,
)
"""A host with the agent (10), its child (11) and strangers."""


def after_start(seconds=10.0, **changes):
    end = {
        "clock_seconds": START.clock_seconds + seconds,
        "cores": (CoreTimes(0, 58.0, 7.0, 2.0, 510.0), CoreTimes(1, 61.0, 6.0, 0.0, 510.0)),
        **changes,
    }
    return dataclasses.replace(START, **end)


def test_cores_are_busy_with_stolen_and_interrupt_time():
    used = usage(START, after_start())
    assert used.wall_seconds == 10.0
    assert used.core_busy_ratios == pytest.approx((0.8, 0.1))
    assert used.busiest_core_ratio == pytest.approx(0.8)
    assert used.softirq_ratio == pytest.approx(0.1)
    assert used.steal_ratio == pytest.approx(0.05)


def test_a_child_that_lives_counts_by_its_growth():
    end = after_start(
        processes=(ProcessTimes(10, 1, 0.0, 3.0), ProcessTimes(11, 2, 6.0, 0.0)),
        threads=(ThreadTimes(11, 5.0, 1.25), ThreadTimes(12, 1.0, 0.25)),
    )
    used = usage(START, end)
    assert used.copy_cpu_seconds == pytest.approx(4.0)
    assert used.busiest_process_ratio == pytest.approx(0.3)
    assert used.run_delay_seconds == pytest.approx(1.0)


def test_a_child_that_ended_counts_by_what_the_agent_inherited():
    end = after_start(processes=(ProcessTimes(10, 1, 0.0, 3.0 + 6.0),), threads=())
    used = usage(START, end)
    assert used.copy_cpu_seconds == pytest.approx(4.0)
    assert used.busiest_process_ratio == pytest.approx(0.4)
    assert used.run_delay_seconds is None


def test_a_pid_that_was_given_again_is_another_process():
    end = after_start(processes=(ProcessTimes(10, 1, 0.0, 5.0), ProcessTimes(11, 99, 1.0, 0.0)))
    assert usage(START, end).copy_cpu_seconds == pytest.approx(1.0)


def test_others_are_told_by_their_growth():
    assert usage(START, after_start(other_cpu_seconds=34.5)).other_cpu_seconds == pytest.approx(4.5)


def test_where_not_all_are_seen_the_cores_tell_the_rest():
    start = dataclasses.replace(START, others_complete=False)
    end = after_start(
        others_complete=False, processes=(START.processes[0], ProcessTimes(11, 2, 4.0, 0.0))
    )
    # 9 busy seconds, 3 of interrupts and stolen, 2 of the copy
    assert usage(start, end).other_cpu_seconds == pytest.approx(4.0)


def test_the_lowest_quota_counts_and_the_group_that_was_stopped_most():
    start = dataclasses.replace(START, quotas=(Quota("a", 0.5, 10, 0), Quota("b", 2.0, 100, 50)))
    end = after_start(quotas=(Quota("a", 0.5, 50, 30), Quota("b", 2.0, 200, 60)))
    used = usage(start, end)
    assert used.quota_cores == 0.5
    assert used.throttled_ratio == pytest.approx(0.75)


def test_a_quota_that_the_copys_own_figures_contradict_is_another_groups():
    """4 seconds of CPU time in 10 are no work under 0.1 cores."""
    start = dataclasses.replace(
        START, quotas=(Quota("foreign", 0.1, 10, 0), Quota("own", 0.5, 10, 0)), quotas_visible=True
    )
    end = after_start(
        processes=(ProcessTimes(10, 1, 0.0, 3.0), ProcessTimes(11, 2, 6.0, 0.0)),
        quotas=(Quota("foreign", 0.1, 110, 90), Quota("own", 0.5, 110, 30)),
        quotas_visible=True,
    )
    used = usage(start, end)
    assert used.quota_cores == 0.5
    assert used.throttled_ratio == pytest.approx(0.3)
    used_alone = usage(start, dataclasses.replace(end, quotas=end.quotas[:1]))
    assert (used_alone.quota_cores, used_alone.throttled_ratio) == (None, 0.0)


def test_a_quota_that_is_used_up_is_not_contradicted_by_the_tick_of_the_accounts():
    start = dataclasses.replace(START, quotas=(Quota("own", 0.1, 10, 0),))
    end = after_start(
        processes=(ProcessTimes(10, 1, 0.0, 3.0), ProcessTimes(11, 2, 3.3, 0.0)),
        quotas=(Quota("own", 0.1, 110, 100),),
    )
    used = usage(start, end)
    assert used.quota_cores == 0.1
    assert used.throttled_ratio == pytest.approx(1.0)


def test_a_quota_without_counts_is_a_quota_all_the_same():
    start = dataclasses.replace(START, quotas=(Quota("a", 0.5, None, None),))
    used = usage(start, after_start(quotas=start.quotas))
    assert (used.quota_cores, used.throttled_ratio) == (0.5, None)


def test_traffic_and_device_are_told_by_their_growth_and_memory_at_the_end():
    start = dataclasses.replace(
        START,
        traffic=(10, 20),
        device=DeviceCounts(1, 30, 1, 40, 1.0),
        memory=Memory(99, 5, 3, None),
    )
    end = after_start(
        traffic=(110, 19), device=DeviceCounts(2, 31, 1, 40, 6.0), memory=Memory(99, 77, 10, None)
    )
    used = usage(start, end)
    assert used.interface_sent_bytes == 100
    assert used.interface_received_bytes is None, "a counter that ran backwards was reset"
    assert (used.device_read_bytes, used.device_written_bytes) == (1, 0)
    assert used.device_busy_ratio == pytest.approx(0.5)
    assert used.memory_used_bytes == 77
    assert used.memory_cached_growth_bytes == 7
    assert usage(start, after_start()).memory_cached_growth_bytes is None
    shrunk = usage(start, after_start(memory=Memory(99, 77, 1, None)))
    assert shrunk.memory_cached_growth_bytes == 0


def test_two_readings_of_one_moment_are_refused():
    with pytest.raises(ValueError, match="one moment"):
        usage(START, START)


def test_swap_and_waiting_are_those_of_the_window_and_the_dirty_limit_that_of_its_end():
    start = dataclasses.replace(
        START, pressure=Pressure(100, 200, 5000, memory_waiting_seconds=1.0, io_waiting_seconds=3.0)
    )
    end = after_start(
        pressure=Pressure(150, 260, 4000, memory_waiting_seconds=2.0, io_waiting_seconds=8.0)
    )
    used = usage(start, end)
    assert (used.swapped_in_bytes, used.swapped_out_bytes) == (50, 60)
    assert used.memory_dirty_limit_bytes == 4000
    assert (used.memory_waiting_ratio, used.io_waiting_ratio) == pytest.approx((0.1, 0.5))


def test_what_the_system_does_not_tell_stays_none():
    used = usage(START, after_start())
    assert used.device_busy_ratio is used.interface_sent_bytes is used.memory_total_bytes is None
    assert (used.swapped_in_bytes, used.memory_waiting_ratio, used.io_waiting_ratio) == (None,) * 3


def test_a_core_that_came_online_in_between_is_left_aside():
    cores = (*after_start().cores, CoreTimes(2, 9.0, 0.0, 0.0, 9.0))
    assert len(usage(START, after_start(cores=cores)).core_busy_ratios) == 2


def core(number, busy_seconds, total_seconds, stolen_seconds=0.0):
    return CoreTimes(number, busy_seconds, 0.0, stolen_seconds, total_seconds)


def test_a_cores_share_is_of_its_own_ticks():
    earlier = {0: core(0, 10.0, 20.0), 1: core(1, 5.0, 20.0)}
    later = {0: core(0, 10.5, 21.0), 1: core(1, 6.0, 21.0)}
    assert counters.busy_cores(earlier, later) == 1.5


def test_no_core_is_busier_than_it_can_be():
    assert counters.busy_cores({0: core(0, 0.0, 1.0)}, {0: core(0, 1.01, 2.0)}) == 1.0
    assert counters.busy_cores({0: core(0, 1.0, 1.0)}, {0: core(0, 0.99, 2.0)}) == 0.0


def test_time_given_to_another_machine_is_not_ours():
    later = {0: core(0, 1.0, 1.0, stolen_seconds=0.75)}
    assert counters.busy_cores({0: core(0, 0.0, 0.0)}, later) == 0.25


def test_what_is_not_known_is_not_zero():
    one = {0: core(0, 1.0, 1.0)}
    assert counters.busy_cores(None, one) is None
    assert counters.busy_cores(one, None) is None
    assert counters.busy_cores(one, one) is None  # no tick in between
    assert counters.busy_cores({1: core(1, 0.0, 0.0)}, one) is None


def test_this_hosts_cores_are_those_that_we_may_use():
    assert counters.read_cores()
