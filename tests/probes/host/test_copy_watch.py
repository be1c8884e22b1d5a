"""A running copy is watched from beside it, and only the time that counts is told."""

import math
import os
import socket
import subprocess
import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from probes.host import copy_watch, tcp_info
from probes.host.copy_watch import Setting, Watch, observe
from tests.living import FakeClock, until


@pytest.fixture
def watched(monkeypatch) -> Any:
    """What a watch tells of all of its time, in which work is done between some of its looks."""
    looks: list[float] = []
    look = Watch._look
    monkeypatch.setattr(Watch, "_look", lambda of, now: (look(of, now), looks.append(now)))
    monkeypatch.setattr(copy_watch, "COUNT_SECONDS", 0.0)

    def watching(setting: Setting, work: Any) -> Any:
        reading, writing = os.pipe()

        def beside() -> None:
            until(lambda: len(looks) > 2)
            work()
            os.close(writing)

        working = threading.Thread(target=beside)
        working.start()
        try:
            return observe(setting, reading, lambda: (0.0, math.inf))
        finally:
            working.join()
            os.close(reading)

    return watching


def test_a_connection_and_its_process_are_watched(watched):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
    with client, server:
        own, peer = client.getsockname(), client.getpeername()
        setting = Setting(own[0], own[1], peer[0], peer[1], (os.getpid(),))

        def work():
            client.sendall(bytes(100_000))
            until(lambda: not tcp_info.unacknowledged_bytes(client))

        told = watched(setting, work)
    assert [each.own for each in told["observed"].connections] == ["{} {}".format(*own)]
    assert told["counts"][-1][1] >= 100_000 > told["counts"][0][1] == 0
    assert told["processes"]["written_bytes"] >= 0
    assert len(told["observed"].threads) > 2 and len(told["observed"].counts) > 2


def test_a_process_without_a_connection_is_watched(watched, tmp_path):
    setting = Setting(pids=(os.getpid(),))
    told = watched(setting, lambda: (tmp_path / "file").write_bytes(bytes(1 << 20)))
    assert told["observed"].connections == () and told["counts"][-1][4] >= 1 << 20


def test_nobody_who_wants_to_know_is_told_nothing():
    reading, writing = os.pipe()
    os.close(writing)
    assert observe(Setting(), reading, lambda: None) == {}
    os.close(reading)


def test_a_long_watch_is_kept_in_bounded_memory(monkeypatch):
    monkeypatch.setattr(copy_watch, "MOST_COUNTS", 10)
    watch = Watch(Setting(), None)
    for at in range(40):
        watch._count(float(at))
    assert len(watch.counts) <= 10 and watch.every > 1
    told = watch.told(0.0, 99.0, 0.0)
    assert told["counts"][-1][0] == watch.counts[-1].clock_seconds


@pytest.mark.long
def test_many_counts_are_thinned_and_keep_their_ends(monkeypatch):
    monkeypatch.setattr(copy_watch, "MOST_TOLD", 7)
    watch = Watch(Setting(pids=(os.getpid(),)), None)
    for at in range(20):
        watch._count(float(at))
    rows = watch.told(0.0, 99.0, 0.0)["counts"]
    assert len(rows) <= 7 and rows[-1][0] == 19.0


def test_rows_do_not_fall_when_one_of_the_processes_ends(tmp_path):
    code = f"open({str(tmp_path / 'file')!r}, 'wb').write(bytes(1 << 20)); input()"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
    other = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    watch = Watch(Setting(pids=(child.pid, other.pid)), None)
    assert until((tmp_path / "file").exists)
    watch._count(1.0)
    child.communicate(b"\n")
    watch._count(2.0)
    other.communicate(b"\n")
    watch._count(3.0)
    rows = watch.told(0.0, 9.0, 0.0)["counts"]
    for column in (3, 4):
        told = [row[column] for row in rows]
        assert told == sorted(told) and told[0] == 0


def test_a_look_that_costs_much_is_rested_after(monkeypatch):
    """50 times the CPU time that it took: at most ten looks of 2 ms in a second."""
    looks: list[float] = []
    clock = FakeClock()

    def look(watch: Watch, now: float) -> None:
        looks.append(now)
        clock.time += 0.002

    def wait(reading: Any, writing: Any, broken: Any, seconds: float) -> Any:
        clock.time += seconds
        return [], [], []

    monkeypatch.setattr(copy_watch, "time", clock)
    monkeypatch.setattr(copy_watch, "select", SimpleNamespace(select=wait))
    monkeypatch.setattr(Watch, "_look", look)
    observe(Setting(pids=(os.getpid(),), seconds=1.0), 0, lambda: None)
    gaps = [after - before for before, after in zip(looks, looks[1:], strict=False)]
    assert len(gaps) > 5 and min(gaps) >= 50 * 0.002
