"""The door to fio: what it is told, and what its reports are taken for."""

# A None that should not be there fails the claim by itself.
# mypy: disable-error-code="operator,union-attr"

import json
import os
from pathlib import Path

import pytest

from probes.core.stage import Unavailable
from probes.files import unnamed_file
from probes.programs import fio
from probes.system import tools
from tests.living import alive, deadline_in, ended, running

REPORTS = Path(__file__).parent / "fio_reports"
MIB = 1024 * 1024


READ, WRITE = (fio.Job(5, verb, 64 * MIB, 10.0, True) for verb in ("read", "write"))


def report(name):
    return (REPORTS / name).read_text()


def parse_one(text, job=READ, return_code=0, notes=""):
    (only,) = fio.parse(text, [job], return_code, notes)
    return only


def test_a_report_gives_bytes_and_seconds():
    result = parse_one(report("write_direct.json"), WRITE)
    assert result.moved_bytes == 64 * MIB
    assert result.elapsed_seconds == 0.486
    assert result.latency_median_seconds == 0.039059456
    assert result.latency_p99_seconds == 0.046399488


def test_text_around_the_report_is_left_aside():
    text = "fio: a note {in front}\n" + report("read_direct.json") + "\nfio: and one behind\n"
    assert parse_one(text).moved_bytes == 64 * MIB


def test_of_two_reports_the_last_complete_one_counts():
    first = report("read_direct.json").replace('"io_bytes" : 67108864', '"io_bytes" : 1')
    text = first + report("read_direct.json") + report("read_direct.json")[:3000]
    assert parse_one(text).moved_bytes == 64 * MIB


@pytest.mark.parametrize("name", ["file_too_small.txt", "descriptor_closed.txt", "no_space.txt"])
@pytest.mark.parametrize("job", [READ, WRITE])
def test_a_failed_job_is_never_a_rate(name, job):
    with pytest.raises(fio.FioFailed):
        parse_one(report(name), job, 1)


def test_a_full_disk_is_named():
    with pytest.raises(fio.FioFailed, match="No space left on device"):
        parse_one(report("no_space.txt"), WRITE, 1)


def test_a_job_that_moved_nothing_and_ended_well_is_a_failure():
    text = report("read_direct.json").replace('"io_bytes" : 67108864', '"io_bytes" : 0')
    with pytest.raises(fio.FioFailed, match="moved nothing"):
        parse_one(text)


def test_a_truncated_report_is_a_failure_with_what_fio_said():
    with pytest.raises(fio.FioFailed, match="no complete report: fio: out of cheese"):
        parse_one(report("read_direct.json")[:4000], READ, 1, "fio: out of cheese\n")


def job_text(inside):
    return '{"jobs": [{"jobname": "bottleneck", ' + inside + "}]}"


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
        '{"jobs": [{"jobname": "other", "error": 0, "read": {"io_bytes": 5, "runtime": 5}}]}',
        job_text('"error": 0'),
        job_text('"error": true, "read": {}'),
        job_text('"error": false, "read": {"io_bytes": 5, "runtime": 5}'),
        job_text('"error": 0, "read": []'),
        job_text('"error": 0, "read": {"io_bytes": NaN, "runtime": 1}'),
        job_text('"error": 0, "read": {"io_bytes": -5, "runtime": 1}'),
        job_text('"error": 0, "read": {"io_bytes": 0, "runtime": 0}'),
        job_text('"error": 0, "read": {"io_bytes": 5, "runtime": 0}'),
        job_text('"error": 0, "read": {"io_bytes": "5", "runtime": "1"}'),
        '{"jobs": ' + "[" * 100000,
    ],
)
def test_no_text_gets_more_than_a_failure(text):
    with pytest.raises(fio.FioFailed):
        parse_one(text)


def zones_report(bytes_of_each):
    document = json.loads(report("read_direct.json"))
    (only,) = document["jobs"]
    document["jobs"] = [
        {
            **only,
            "jobname": f"bottleneck-{number}" if number else "bottleneck",
            "read": {**only["read"], "io_bytes": io_bytes},
        }
        for number, io_bytes in enumerate(bytes_of_each)
    ]
    return json.dumps(document)


def test_each_job_has_a_result_of_its_own_in_the_order_given():
    results = fio.parse(zones_report([5, 6, 7]), [READ] * 3, 0)
    assert [each.moved_bytes for each in results] == [5, 6, 7]


@pytest.mark.parametrize("bytes_of_each", [[5, 6], [5, 6, 7, 8], []])
def test_a_report_of_more_or_fewer_jobs_is_a_failure(bytes_of_each):
    with pytest.raises(fio.FioFailed, match="other jobs"):
        fio.parse(zones_report(bytes_of_each), [READ] * 3, 0)


def test_a_bad_spot_is_named_by_its_place():
    document = json.loads(zones_report([5, 6]))
    document["jobs"][1]["error"] = 5
    jobs = [READ, fio.Job(5, "read", MIB, 1.0, True, offset_bytes=4096)]
    with pytest.raises(fio.FioFailed, match="from byte 4096 on: Input/output error"):
        fio.parse(json.dumps(document), jobs, 1)


FAKE_FIO = """#!/bin/sh
for each in "$@"; do case "$each" in --output=*) report="${each#--output=}";; esac; done
%s
"""


@pytest.mark.parametrize(
    ("does", "says"),
    [
        ("kill -SEGV $$", "ended by SIGSEGV"),
        ("exit 0", "no complete report"),
        ("echo 'engine libaio not loadable' >&2; exit 1", "engine libaio not loadable"),
        (": > $report; exit 0", "no complete report"),
        ("echo 'note: x' > $report; echo '{\"jobs\": []}' >> $report", "other jobs"),
        ("exec tail -f /dev/null", "did not end in time"),
    ],
)
def test_a_fio_that_does_not_measure_is_a_failure_with_its_reason(
    tmp_path, monkeypatch, does, says
):
    fake = tmp_path / "fio"
    fake.write_text(FAKE_FIO % does)
    fake.chmod(0o755)
    monkeypatch.setattr(tools, "find", lambda name: str(fake))
    fd = unnamed_file.create(str(tmp_path))
    try:
        with (
            pytest.raises(fio.FioFailed, match=says),
            fio.run_jobs(
                [fio.Job(fd, "read", MIB, 0.1, False)],
                deadline=deadline_in(0.5) if "tail" in does else deadline_in(),
            ) as run,
        ):
            run.wait_for_io()
            run.results()
    finally:
        os.close(fd)


def test_what_fio_said_is_passed_on_without_control_codes():
    with pytest.raises(fio.FioFailed) as caught:
        parse_one("", READ, 1, "\x1b]0;title\x07fio: no\n")
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


def test_all_jobs_but_the_first_wait_for_the_one_before():
    arguments = fio.arguments(READ, READ, READ)
    assert arguments.count("--stonewall") == 2
    names = [each for each in arguments if each.startswith("--name=")]
    assert names == ["--name=bottleneck", "--name=bottleneck-1", "--name=bottleneck-2"]
    assert arguments.index(names[0]) < arguments.index("--stonewall")


def test_a_write_is_flushed_and_incompressible():
    write = fio.arguments(fio.Job(5, "write", MIB, 1.0, False))
    assert {"--end_fsync=1", "--refill_buffers", "--fallocate=none"} <= set(write)


def test_a_missing_fio_is_named_with_the_remedy(monkeypatch):
    monkeypatch.setattr(tools, "find", lambda name: None)
    with pytest.raises(Unavailable, match="apt install fio"):
        fio.version()


def test_an_old_fio_is_told(monkeypatch):
    monkeypatch.setattr(tools, "version", lambda name: "2.21")
    with pytest.raises(Unavailable, match=r"3\.0 or newer"):
        fio.version()


def test_the_real_fio_writes_to_an_open_descriptor_and_creates_nothing(tmp_path):
    fd = unnamed_file.create(str(tmp_path))
    os.ftruncate(fd, 8 * MIB)
    job = fio.Job(fd, "write", 8 * MIB, 5.0, False)
    with fio.run_jobs([job], deadline_in()) as run:
        run.wait_for_io()
        (result,) = run.results()
    assert result.moved_bytes == 8 * MIB
    assert os.pread(fd, 64, 5 * MIB) != bytes(64)
    assert list(tmp_path.iterdir()) == []
    os.close(fd)


STARTER = """
import os, sys
from probes.programs import fio
from probes.files import unnamed_file
from tests.living import deadline_in
fd = unnamed_file.create(sys.argv[1])
os.pwrite(fd, os.urandom(1 << 20), 0)
job = fio.Job(fd, "read", 1 << 20, 60.0, False, looping=True)
with fio.run_jobs([job], deadline_in()) as run:
    run.wait_for_io()
    print(run.process.pid, flush=True)
    sys.stdin.read()
"""


def test_fio_and_file_are_gone_when_the_starter_is_killed(tmp_path):
    with running(STARTER, tmp_path) as starter:
        pid = int(starter.stdout.readline())
        assert alive(pid)
        starter.kill()
    assert ended([pid])
    assert list(tmp_path.iterdir()) == []
