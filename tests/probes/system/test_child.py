"""A probe's child is bounded: its memory, its descriptors, its life."""

import ctypes
import json
import os
import resource
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from probes.core.stage import Refused, Unavailable
from probes.system import child
from probes.system.child import NoAnswer, call_until, is_held
from tests.living import deadline_in, ended


def events_of(work):
    process = child.spawn(work)
    with os.fdopen(process.events_fd) as stream:
        events = [json.loads(line) for line in stream]
    os.close(process.control_fd)
    os.waitpid(process.pid, 0)
    return events


def test_what_the_work_tells_arrives():
    assert events_of(lambda tell, control: tell({"a": 1})) == [{"a": 1}]


def raise_error(error):
    def work(tell, control):
        raise error

    return work


def test_each_kind_of_ending_has_its_event():
    assert events_of(raise_error(Unavailable("no fio"))) == [{"skipped": "no fio"}]
    event = {"refused": {"kind": "login", "text": "nas: wrong password"}}
    assert events_of(raise_error(Refused("login", "nas: wrong password"))) == [event]
    assert events_of(raise_error(OSError("two\nlines"))) == [{"failed": "two lines"}]
    assert events_of(raise_error(KeyError("x"))) == [{"failed": "KeyError: 'x'"}]


def test_four_gigabytes_are_refused_by_the_kernel_not_taken():
    def greedy(tell, control):
        tell({"got": len(bytearray(4 << 30))})

    (event,) = events_of(greedy)
    assert "memory" in event["failed"]


def test_a_child_has_no_other_descriptor_of_ours():
    with Path(os.devnull).open() as ours:
        number = ours.fileno()

        def look(tell, control):
            try:
                os.fstat(number)
            except OSError:
                tell({"open": False})
            else:
                tell({"open": True})

        assert events_of(look) == [{"open": False}]


def test_killing_a_child_takes_what_it_started_with_it():
    def start_another(tell, control):
        pid = os.fork()
        if pid == 0:
            signal.pause()
            os._exit(0)
        tell({"pid": pid})
        signal.pause()

    process = child.spawn(start_another)
    with os.fdopen(process.events_fd) as stream:
        grandchild = json.loads(stream.readline())["pid"]
        process.kill()
        os.waitpid(process.pid, 0)
        # Its end of the pipe closes a moment before it is gone.
        assert stream.read() == ""
    os.close(process.control_fd)
    assert ended([grandchild])


PR_GET_DUMPABLE = 3

CODE = """
import os, resource, sys
resource.setrlimit(resource.RLIMIT_CORE, (resource.getrlimit(resource.RLIMIT_CORE)[1],) * 2)
from probes.system.child import keep_private
keep_private()
fd = os.open(os.devnull, os.O_RDONLY)
os.open(f"/proc/self/fd/{fd}", os.O_RDONLY)
print("ready", flush=True)
sys.stdin.read()
"""


def test_it_leaves_no_core_and_shows_nothing_and_still_sees_its_own_files(is_private, unprivileged):
    with subprocess.Popen(
        [sys.executable, "-c", CODE],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        preexec_fn=unprivileged,
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        assert is_private(process.pid)


def test_a_probes_child_is_private():
    def work(tell, control_fd):
        dumpable = ctypes.CDLL(None).prctl(PR_GET_DUMPABLE, 0, 0, 0, 0)
        tell({"dumpable": dumpable, "core": resource.getrlimit(resource.RLIMIT_CORE)})

    process = child.spawn(work)
    with os.fdopen(process.events_fd) as events:
        assert json.loads(events.readline()) == {"dumpable": 0, "core": [0, 0]}
    os.close(process.control_fd)
    os.waitpid(process.pid, 0)


def test_what_a_call_returns_or_raises_comes_through():
    until = deadline_in()
    assert call_until("here", until, lambda: 7) == 7
    assert call_until("here", until, lambda: None) is None
    with pytest.raises(OSError, match="stale"):
        call_until("here", until, lambda: (_ for _ in ()).throw(OSError("stale")).send(None))


def test_a_call_that_does_not_come_back_is_left_behind_and_named():
    release = threading.Event()
    with pytest.raises(NoAnswer, match=r"/mnt/media: no answer within \d+\.\d s\Z"):
        call_until("/mnt/media", deadline_in(0.05), release.wait)
    release.set()


def test_a_deadline_that_is_over_waits_no_longer():
    release = threading.Event()
    with pytest.raises(NoAnswer):
        call_until("here", deadline_in(-5), release.wait)
    release.set()


def test_neither_a_sleeping_process_nor_none_is_held():
    assert not is_held("1")
    assert not is_held("nothing")
