"""A host's counters: recorded texts parsed, and both readers agree on a host that works."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="union-attr"

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from probes.core.stage import Unavailable
from probes.system import proc, psutil_counters, reader
from probes.system.proc import TICK_SECONDS, CoreTimes, DeviceCounts, ProcessIo
from tests.living import until

RECORDED = Path(__file__).parents[1] / "recorded"
NOBODY = 2**22 + 1
"""Above the most that a process can be numbered (pid_max)."""
STAT = (
    "4658 (cat) R 4604 4604 3953 0 -1 4194304 98 0 0 0 150 250 10 20 20 0 1 0 213551 3133440 384 "
    "18446744073709551615 94823946870784 94823946890665 140726622062112 0 0 0 0 0 0 0 0 0 17 1 0 "
    "0 0 0 0 94823946906672 94823946908288 94824497815552 140726622067385 140726622067405 "
    "140726622067405 140726622068715 0\n"
)
IO = "rchar: 94371840\nwchar: 93888048\nsyscr: 190\nread_bytes: 94371841\nwrite_bytes: 4096\n"


def recording(name):
    return (RECORDED / name).read_text()


def test_cores_are_told_with_waiting_for_io_as_idle():
    cores = proc.parse_cores(recording("stat.txt"))
    assert sorted(cores) == [0, 1]
    first = cores[0]
    assert first.busy_seconds == pytest.approx((13872 + 16384 + 1367 + 77) * TICK_SECONDS)
    assert first.interrupt_seconds == pytest.approx(1367 * TICK_SECONDS)
    assert first.stolen_seconds == pytest.approx(77 * TICK_SECONDS)
    idle = (169063 + 11063) * TICK_SECONDS
    assert first.total_seconds == pytest.approx(first.busy_seconds + idle)


def test_the_page_cache_is_told_apart_from_what_is_in_use():
    text = recording("meminfo.txt")
    parsed = proc.parse_memory(proc.parse_meminfo(text))
    free = int(text.partition("MemFree:")[2].split()[0]) * 1024
    assert parsed.total_bytes == parsed.used_bytes + parsed.cached_bytes + free
    assert parsed.dirty_bytes == int(text.partition("Dirty:")[2].split()[0]) * 1024
    assert proc.parse_memory(proc.parse_meminfo("MemTotal: 5 kB\n")) is None


def test_a_device_is_told_in_requests_bytes_and_seconds():
    devices = proc.parse_devices(recording("diskstats.txt") + "   7       1 loop9 bad\n")
    assert devices["vda"].read_bytes == 29424322 * 512
    assert devices["vda"].written_bytes == 97902000 * 512
    assert devices["vda"].busy_seconds == 54.02
    assert "loop9" not in devices
    line = " 254 0 vda 157163 9842 22336398 32518 93190 87120 14373992 254196 0 66976 293011 0\n"
    device = DeviceCounts(157163, 22336398 * 512, 93190, 14373992 * 512, 66.976)
    assert proc.parse_devices(line) == {"vda": device}
    written = 14373992 * 512
    assert proc.parse_written_and_flushed(line, "vda") == (written, None)
    flushed = line.rstrip() + " 0 0 0 8611 2417\n"
    assert proc.parse_written_and_flushed(flushed, "vda") == (written, 8611)
    assert proc.parse_written_and_flushed(flushed, "vdb") is None


def test_a_core_that_idles_while_its_task_waits_for_a_disk_is_told() -> None:
    stat = "cpu  9 9 9 9 9 9 9 9 0 0\ncpu1 100 0 50 700 300 1 2 3 0 0\ncpu2 1 2\n"
    assert proc.parse_waiting_cores(stat) == {
        1: pytest.approx((156 * TICK_SECONDS, 300 * TICK_SECONDS))
    }


@pytest.mark.parametrize("name", ["cat", "a) R (b c"])
def test_a_process_is_told_whatever_its_name_holds(name):
    process = proc.parse_stat(STAT.replace("(cat)", f"({name})"))
    assert (process.pid, process.name, process.parent, process.core) == (4658, name, 4604, 1)
    assert process.cpu_seconds == 400 * TICK_SECONDS
    assert process.reaped_seconds == 30 * TICK_SECONDS
    assert (process.started_ticks, process.kernel) == (213551, False)
    assert proc.parse_stat("") is None


def test_what_a_process_moved_is_told_or_nothing():
    assert proc.parse_io(IO) == ProcessIo(94371840, 93888048, 94371841, 4096)
    assert proc.parse_io("") is None
    assert proc.parse_io("rchar: many\nwchar: 5\n") is None


@contextmanager
def busy_process(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process with two threads that computes, writes a file, and waits for children."""
    code = (
        "import subprocess, threading\n"
        f"with open({str(path)!r}, 'wb', buffering=0) as file:\n"
        "    def work():\n"
        "        while not ended.is_set():\n"
        "            file.write(bytes(1 << 16)); file.seek(0); subprocess.run(['true'])\n"
        "    ended = threading.Event(); work_thread = threading.Thread(target=work)\n"
        "    work_thread.start(); print(flush=True); input(); ended.set(); work_thread.join()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        process.stdout.readline()
        try:
            yield process
        finally:
            process.communicate(b"\n")


def lies_between(low_figures, figures, high_figures, slack=1e-6):
    """Whether each figure lies between the other reader's figures before and after it."""
    return all(
        low - slack <= each <= high + slack
        for low, each, high in zip(low_figures, figures, high_figures, strict=True)
    )


def test_both_readers_tell_the_same_of_a_host_that_works(tmp_path):
    with busy_process(tmp_path / "file") as worker:
        readers = (proc, psutil_counters, proc)
        psutil_counters._processes.clear()
        one, by_psutil, other = ([each.processes() for _ in "12"][-1] for each in readers)
        pids = set(one) & set(other)
        assert pids - set(by_psutil) == set() and {worker.pid, os.getpid(), 1} <= pids
        for pid in pids:
            stats = [each[pid] for each in (one, by_psutil, other)]
            # the kernel's own workers are called by what they do at the moment
            has_name = not stats[0].kernel
            earlier, now, later = (
                (each.parent, each.started_ticks, has_name and each.name) for each in stats
            )
            # others may become another program, or another's child, meanwhile
            assert now == earlier or earlier != later
            assert lies_between(*((each.cpu_seconds, each.reaped_seconds) for each in stats))
        for tell in (
            lambda each: each.process_io(worker.pid),
            lambda each: each.traffic("lo"),
            lambda each: [v for _, k in sorted(each.devices().items()) for v in vars(k).values()],
        ):
            assert lies_between(*(tell(each) for each in readers))
        assert sorted(proc.devices()) == sorted(psutil_counters.devices())
        assert psutil_counters.memory().total_bytes == proc.memory().total_bytes
        assert {each.thread for each in psutil_counters.threads(worker.pid)} == {
            each.thread for each in proc.threads(worker.pid)
        }
        assert len(proc.threads(worker.pid)) == 2


def test_cores_of_macos_and_windows_are_busy_but_for_their_idle_time(monkeypatch):
    mac = SimpleNamespace(user=3.0, nice=1.0, system=2.0, idle=10.0)
    windows = SimpleNamespace(user=3.0, system=2.0, idle=10.0, interrupt=0.5, dpc=0.1)
    monkeypatch.setattr(psutil, "cpu_times", lambda percpu: [mac, windows])
    assert psutil_counters.cores() == {
        0: CoreTimes(0, 6.0, 0.0, 0.0, 16.0),
        1: CoreTimes(1, 5.5, 0.5, 0.0, 15.5),
    }


def test_what_a_process_became_is_told_by_both():
    """It took another name and another parent without a tick of CPU time."""
    code = "echo; read a; exec tail -f /dev/null"
    with subprocess.Popen(
        ["sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        child.stdout.readline()
        assert psutil_counters.processes()[child.pid].name == "sh"
        child.stdin.write(b"\n")
        child.stdin.flush()
        assert until(lambda: proc.processes()[child.pid].name == "tail")
        assert psutil_counters.processes()[child.pid].name == "tail"
        child.kill()


def test_one_whose_parent_ended_is_told_with_its_new_one(monkeypatch):
    monkeypatch.setattr(psutil_counters, "YOUNG_SECONDS", -1.0)
    code = "tail -f /dev/null </dev/null >/dev/null 2>&1 & echo $!; read a"
    with subprocess.Popen(
        ["sh", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as parent:
        orphan = int(parent.stdout.readline())
        try:
            assert [psutil_counters.processes()[orphan].parent for _ in "12"] == [parent.pid] * 2
            parent.communicate(b"\n")
            assert psutil_counters.processes()[orphan].parent != parent.pid
        finally:
            os.kill(orphan, signal.SIGKILL)


def test_a_number_that_was_given_again_is_another_process(monkeypatch):
    class Ended:
        def cpu_times(self):
            return psutil.Process().cpu_times()

        def is_running(self):
            return False

    last = proc.processes()[os.getpid()]._replace(name="ended", started_ticks=1, cpu_seconds=-1.0)
    monkeypatch.setitem(psutil_counters._processes, os.getpid(), (Ended(), last))
    process = psutil_counters.processes()[os.getpid()]
    now = proc.processes()[os.getpid()]
    assert (process.name, process.started_ticks) == (now.name, now.started_ticks)


@pytest.mark.parametrize("each", [proc, psutil_counters])
def test_a_process_that_is_gone_moves_nothing_and_has_no_threads(each):
    with pytest.raises(ProcessLookupError):
        each.process_io(NOBODY)
    assert each.threads(NOBODY) == []
    assert each.traffic("gone0") is None


@pytest.fixture
def choose():
    """The choice of this host's reader, without its cache."""
    reader.reader.cache_clear()
    yield reader.reader
    reader.reader.cache_clear()


@pytest.mark.parametrize("error", [ImportError, ValueError])
def test_linux_is_read_from_proc_and_elsewhere_a_missing_psutil_is_named(
    choose, monkeypatch, error
):
    def missing(name):
        raise error(name)

    monkeypatch.setattr(reader.importlib, "import_module", missing)
    assert choose() is proc
    choose.cache_clear()
    monkeypatch.setattr(reader.sys, "platform", "darwin")
    with pytest.raises(Unavailable, match="install psutil"):
        choose()


def test_processes_that_are_not_shown_make_counters_unavailable(choose, monkeypatch, tmp_path):
    monkeypatch.setattr(reader, "STAT", tmp_path / "stat")
    with pytest.raises(Unavailable, match="/proc"):
        choose()


def test_run_delay_is_seconds():
    assert proc.parse_schedstat("111036402 877991903 14\n") == (0.111036402, 0.877991903)
    assert proc.parse_schedstat("") is None
