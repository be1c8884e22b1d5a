"""A user's fio job file: what it may say, and that nothing else of it reaches fio."""

from __future__ import annotations

import pytest

from probes.drivers import fio, fio_jobs

MIB = 1 << 20
JOB = """
; a usual one
[global]
ioengine=libaio
direct=1
bs=4k
runtime=30s
time_based
group_reporting

[first]
rw=randread
iodepth=32
numjobs=4
size=1g
filename=testfile
# and behind it
[second]
stonewall
readwrite=randrw
rwmixread=70
ramp_time=500ms
bs=8k
"""


def test_a_section_is_what_global_and_its_own_lines_say():
    first, second = fio_jobs.read(JOB)
    assert (first.name, first.verb, first.size_bytes, first.copies) == (
        "first",
        "randread",
        1024 * MIB,
        4,
    )
    assert first.options == ("ioengine=libaio", "direct=1", "bs=4k", "iodepth=32")
    assert (first.seconds, first.looping, first.waits, first.writes) == (30.0, True, False, False)
    assert (second.waits, second.writes, second.lead_seconds) == (True, True, 0.5)
    assert "bs=8k" in second.options and "bs=4k" not in second.options
    assert fio_jobs.total_seconds([first, second], 10.0) == 10.0 + 10.5 + 2 * 1.0
    assert fio_jobs.most_seconds([first, second], 1.0) == 30.0


@pytest.mark.parametrize(
    "line",
    [
        *("filename=/dev/sda", "filename=../x", "filename=a:b", "filename=..", "directory=/etc"),
        *("exec_prerun=touch /x", "exec_postrun=touch /x", "include=other.fio", "readonly=0"),
        *("ioengine=external:/tmp/x.so", "ioengine=/tmp/x.so", "ioengine=libaio,external:x"),
        *("ioengine=net", "ioengine=http", "ioengine=filecreate", "ioengine=exec", "ioengine="),
        *("write_bw_log=/x", "write_lat_log=x", "write_iops_log=x", "log_unix_epoch=1"),
        *("write_iolog=x", "read_iolog=x", "replay_redirect=/dev/sda", "aux_path=/", "opendir=/"),
        *("output=/x", "trigger=x", "trigger-file=/x", "verify=md5", "verify_state_save=1"),
        *("allow_file_create=1", "allow_mounted_write=1", "create_only=1", "file_append=1"),
        *("buffer_pattern='/etc/shadow'", "random_distribution=zoned:50/5", "nrfiles=100000"),
        *("uid=0", "gid=0", "cgroup=x", "mem=mmaphuge:/x", "hugepage-size=4m", "cpus_allowed=0"),
        *("rw=trim", "rw=trimwrite", "rw=write --x", "bs=4k --filename=/x", "bs=", "bs=${HOME}"),
        *("numjobs=0", "numjobs=65", "size=100%", "size=-1", "runtime=1d", "runtime=7200"),
        *("iodepth=1\\n", "iodepth=x", "flow_id=1", "startdelay=2", "loops=99999999", "rw=READ "),
    ],
)
def test_what_is_not_on_the_list_is_refused(line):
    if line == "rw=READ ":
        line = "rw=READ"
    with pytest.raises(ValueError, match=r"not allowed|not a time|more than an hour|numjobs"):
        fio_jobs.read(f"[job]\n{line}\n")
    with pytest.raises(ValueError, match=r"not allowed|not a time|more than an hour|numjobs"):
        fio_jobs.read(f"[global]\n{line}\n[job]\nrw=read\n")


@pytest.mark.parametrize(
    "text",
    ["", "[global]\nrw=read\n", "rw=read\n", "[a]b]\nrw=read", "[../x\nrw=read", "[x\x1b[0m]\n"],
)
def test_what_is_no_job_file_is_refused(text):
    with pytest.raises(ValueError, match=r"jobs|before the first|not the name"):
        fio_jobs.read(text)
    with pytest.raises(ValueError, match="longer than"):
        fio_jobs.read("#" * 5000)


def test_a_job_of_a_user_goes_to_fio_as_words_of_one_option_each():
    (first, _) = fio_jobs.read(JOB)
    job = fio.Job(7, first.verb, MIB, 2.0, True, looping=True, options=first.options)
    words = fio.arguments(job, job)
    assert "--readonly" in words and "--allow_file_create=0" in words
    assert words.count("--filename=/proc/self/fd/7") == 2
    assert all(word.startswith("--") and not any(map(str.isspace, word)) for word in words)
    mixed = fio.Job(7, "randrw", MIB, 2.0, True, options=first.options)
    assert "--readonly" not in fio.arguments(job, mixed)
    assert [job.part for job in (job, mixed)] == ["read", "write"]
