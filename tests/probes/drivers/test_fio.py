"""The door to fio: what it is told, and what its reports are taken for."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator,union-attr"

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from probes.drivers import fio
from probes.host import nameless, tools
from probes.stage import Unavailable

REPORTS = Path(__file__).parent / "fio_reports"
MIB = 1024 * 1024


def report(name):
    return (REPORTS / name).read_text()


def test_a_report_gives_bytes_and_seconds():
    result = fio.parse(report("write_direct.json"), "write", 0)
    assert result.moved_bytes == 64 * MIB
    assert 0 < result.elapsed_seconds < 10
    assert 0 < result.latency_median_seconds <= result.latency_p99_seconds < 1
    assert result.short_ios == 0


def test_the_rate_is_of_bytes_over_runtime():
    result = fio.parse(report("read_direct.json"), "read", 0)
    assert result.bytes_per_second == result.moved_bytes / result.elapsed_seconds


def test_text_around_the_report_is_left_aside():
    text = "fio: a note {in front}\n" + report("read_direct.json") + "\nfio: and one behind\n"
    assert fio.parse(text, "read", 0).moved_bytes == 64 * MIB


def test_of_two_reports_the_last_complete_one_counts():
    first = report("read_direct.json").replace('"io_bytes" : 67108864', '"io_bytes" : 1')
    text = first + report("read_direct.json") + report("read_direct.json")[:3000]
    assert fio.parse(text, "read", 0).moved_bytes == 64 * MIB


@pytest.mark.parametrize("name", ["file_too_small.txt", "descriptor_closed.txt", "no_space.txt"])
@pytest.mark.parametrize("verb", ["read", "write"])
def test_a_failed_job_is_never_a_rate(name, verb):
    with pytest.raises(fio.FioFailed):
        fio.parse(report(name), verb, 1)


def test_a_full_disk_is_named():
    with pytest.raises(fio.FioFailed, match="No space left on device"):
        fio.parse(report("no_space.txt"), "write", 1)


def test_a_job_that_moved_nothing_and_ended_well_is_a_failure():
    text = report("read_direct.json").replace('"io_bytes" : 67108864', '"io_bytes" : 0')
    with pytest.raises(fio.FioFailed, match="moved nothing"):
        fio.parse(text, "read", 0)


def test_the_other_verbs_part_of_a_report_is_not_taken():
    with pytest.raises(fio.FioFailed, match="moved nothing"):
        fio.parse(report("read_direct.json"), "write", 0)


def test_a_crash_is_named_by_its_signal():
    with pytest.raises(fio.FioFailed, match="SIGSEGV"):
        fio.parse("", "read", -signal.SIGSEGV)


def test_a_truncated_report_is_a_failure_with_what_fio_said():
    with pytest.raises(fio.FioFailed, match="no complete report: fio: out of cheese"):
        fio.parse(report("read_direct.json")[:4000], "read", 1, "fio: out of cheese\n")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        "{}",
        '{"jobs": []}',
        '{"jobs": [1]}',
        '{"jobs": [{}, {}]}',
        '{"jobs": [{"error": 0}]}',
        '{"jobs": [{"error": true, "read": {}}]}',
        '{"jobs": [{"error": 0, "read": []}]}',
        '{"jobs": [{"error": 0, "read": {"io_bytes": NaN, "runtime": 1}}]}',
        '{"jobs": [{"error": 0, "read": {"io_bytes": -5, "runtime": 1}}]}',
        '{"jobs": [{"error": 0, "read": {"io_bytes": 5, "runtime": 0}}]}',
        '{"jobs": [{"error": 0, "read": {"io_bytes": "5", "runtime": "1"}}]}',
        '{"jobs": ' + "[" * 100000,
    ],
)
def test_no_text_gets_more_than_a_failure(text):
    with pytest.raises(fio.FioFailed):
        fio.parse(text, "read", 0)


def test_what_fio_said_is_passed_on_without_control_codes():
    with pytest.raises(fio.FioFailed) as caught:
        fio.parse("", "read", 1, "\x1b]0;title\x07fio: no\n")
    assert "\x1b" not in str(caught.value)
    assert "\x07" not in str(caught.value)


def test_a_read_is_read_only_and_no_job_may_create_a_file():
    read = fio.arguments(fio.Job(5, "read", MIB, 1.5, True))
    write = fio.arguments(fio.Job(5, "write", MIB, 1.5, True))
    assert "--readonly" in read
    assert "--readonly" not in write
    assert all("--allow_file_create=0" in each for each in (read, write))
    assert all("--filename=/proc/self/fd/5" in each for each in (read, write))
    assert all("--runtime=1500ms" in each for each in (read, write))


def test_a_write_is_flushed_and_incompressible():
    write = fio.arguments(fio.Job(5, "write", MIB, 1.0, False))
    assert {"--end_fsync=1", "--refill_buffers", "--fallocate=none"} <= set(write)


def test_the_kernels_count_of_a_process_is_read():
    text = "rchar: 62259\nwchar: 0\nread_bytes: 29409280\nwrite_bytes: 37756928\n"
    assert fio.parse_io(text)["write_bytes"] == 37756928


def test_a_missing_fio_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: None)
    with pytest.raises(Unavailable, match="apt install fio"):
        fio.version()


def test_an_old_fio_is_told(monkeypatch):
    monkeypatch.setattr(tools, "version", lambda name: "2.21")
    with pytest.raises(Unavailable, match=r"3\.0 or newer"):
        fio.version()


def test_the_real_fio_writes_to_an_open_descriptor_and_creates_nothing(tmp_path):
    fd = nameless.create(str(tmp_path))
    os.ftruncate(fd, 8 * MIB)
    job = fio.Job(fd, "write", 8 * MIB, 5.0, False)
    with fio.running(job, time.monotonic() + 60) as run:
        run.wait_for_io()
        result = run.result()
    assert result.moved_bytes == 8 * MIB
    assert os.pread(fd, 64, 5 * MIB) != bytes(64)
    assert list(tmp_path.iterdir()) == []
    os.close(fd)


def test_a_fio_that_runs_on_is_stopped_at_the_deadline(tmp_path):
    fd = nameless.create(str(tmp_path))
    os.pwrite(fd, os.urandom(MIB), 0)
    job = fio.Job(fd, "read", MIB, 60.0, False, looping=True)
    with (
        pytest.raises(fio.FioFailed, match="did not end within its time"),
        fio.running(job, time.monotonic() + 1.0) as run,
    ):
        run.result()
    os.close(fd)


STARTER = """
import os, sys, time
from probes.drivers import fio
from probes.host import nameless
fd = nameless.create(sys.argv[1])
os.pwrite(fd, os.urandom(1 << 20), 0)
job = fio.Job(fd, "read", 1 << 20, 60.0, False, looping=True)
with fio.running(job, time.monotonic() + 60) as run:
    run.wait_for_io()
    print(run._process.pid, flush=True)
    time.sleep(60)
"""


def test_fio_and_file_are_gone_when_the_starter_is_killed(tmp_path):
    starter = subprocess.Popen(
        [sys.executable, "-c", STARTER, str(tmp_path)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    pid = int(starter.stdout.readline())
    assert process_is_alive(pid)
    starter.kill()
    starter.wait()
    until = time.monotonic() + 10
    while process_is_alive(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not process_is_alive(pid)
    assert list(tmp_path.iterdir()) == []


def process_is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"
