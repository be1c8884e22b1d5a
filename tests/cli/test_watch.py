"""`bottleneck watch`: a copy that runs is seen, and every other ending is one line and its code."""

import contextlib
import json
import os
import signal
import subprocess
import sys

import psutil
import pytest

from tests import living

pytestmark = pytest.mark.long

INCOMPLETE, USAGE, UNREACHABLE, INTERNAL, INTERRUPTED = 3, 64, 69, 70, 130
NOBODY = 2**22 + 1
RECEIVER = """
import socket, sys, time
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
connection, _ = listener.accept()
connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
while connection.recv(65536):
    time.sleep(float(sys.argv[1]))
"""
SENDER = """
import socket, sys
connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
print("connected", flush=True)
while True:
    connection.sendall(bytes(65536))
"""


LATE = """
import os, signal
from bottleneck.run import watch
from bottleneck import __main__ as program
closing = watch.Watch.__exit__
def close(*arguments):
    os.kill(os.getpid(), signal.SIGINT)
    closing(*arguments)
watch.Watch.__exit__ = close
program.main()
"""
BROKEN = """
from bottleneck import __main__ as program
from bottleneck.cli import documents
real = documents.diagnose
def diagnose(report):
    if report.entries:
        raise ArithmeticError("an odd figure")
    return real(report)
documents.diagnose = diagnose
program.main()
"""


@contextlib.contextmanager
def transfer(reader_seconds=0.0):
    """A sender and a receiver that rests after each 64 KiB; the sender's process."""
    receiver = living.running(RECEIVER, reader_seconds)
    sender = living.running(SENDER, receiver.stdout.readline().strip())
    sender.stdout.readline()
    try:
        yield sender
    finally:
        for each in (sender, receiver):
            each.kill()
            each.communicate()


def agents(process, word):
    with contextlib.suppress(psutil.NoSuchProcess):
        family = [psutil.Process(each) for each in living.below(process.pid)]
        return [
            each.pid for each in family if "python" in each.name() and word in str(each.cmdline())
        ]
    return []


@pytest.fixture
def watch(begin, helpers, tmp_path):
    """Exit code, complaints and the report of a watch, which is interrupted once it runs or not."""

    def of(*arguments, code=None, interrupt=False, kill=""):
        file = tmp_path / "report.json"
        process = begin("watch", *arguments, "--json", file, "--quiet", code=code)
        if interrupt:
            assert helpers.until(lambda: len(helpers.descendants(process.pid)) >= 2)
            process.send_signal(signal.SIGINT)
        if kill:
            # It has greeted where it works: a child of it is there.
            assert helpers.until(lambda: len(agents(process, kill)) > 1)
            os.kill(min(agents(process, kill)), signal.SIGKILL)
        _, complaints = helpers.finish(process)
        return process.returncode, complaints, json.loads(file.read_text())

    return of


@pytest.fixture
def sender():
    """Sends to a receiver that reads slowly; its process's number."""
    with transfer(reader_seconds=0.005) as process:
        yield process.pid


def test_a_receiver_that_reads_slowly_is_where_the_bytes_wait(watch, sender):
    """Its verdict names no component: neither its disk nor its CPU is busy."""
    code, complaints, report = watch(sender, "--seconds", "2", "--agent", "exec:")
    assert (code, complaints) == (INCOMPLETE, [])
    (step,) = report["steps"]
    assert (step["stage"], step["setting"]["copy"]) == ("running-copy", "push")
    assert step["outcome"]["details"]["sockets"]["by"] == "receiver"
    (copy,) = report["diagnosis"]["copies"]
    assert copy["verdict"]["component"] == "unknown" and copy["bytes_per_second"] > 0
    assert "reads the data too slowly" in copy["verdict"]["sentence"]


def test_an_interrupted_watch_is_one_line_and_a_report(watch, sender):
    code, complaints, report = watch(sender, "--seconds", "60", interrupt=True)
    assert code == INTERRUPTED and len(complaints) == 1
    assert report["status"] == "interrupted"


def test_a_watch_that_loses_an_agent_is_partial_and_one_line(watch, sender):
    code, complaints, report = watch(sender, "--seconds", "5", "--agent", "exec:", kill="b64decode")
    assert (code, report["status"]) == (INCOMPLETE, "partial"), complaints
    (line,) = complaints
    assert line in {f"bottleneck: {each}" for each in report["notes"]}


def test_an_interrupt_while_the_agents_close_loses_nothing(watch, sender):
    code, complaints, report = watch(sender, "--seconds", "2", code=LATE)
    assert code == INTERRUPTED and len(complaints) == 1
    assert report["steps"][0]["outcome"]["kind"] == "measured"


def test_where_the_analysis_breaks_what_was_seen_is_kept(watch, sender):
    code, complaints, report = watch(sender, "--seconds", "2", code=BROKEN)
    assert code == INTERNAL and len(complaints) == 1
    assert report["status"] == "failed" and "an odd figure" in report["notes"][-1]
    assert report["steps"][0]["outcome"]["kind"] == "measured"


def test_nothing_that_runs_is_said_in_one_line(watch):
    """A process that rests: this test's own child, which waits for its stdin."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as resting:
        code, complaints, report = watch(resting.pid)
        resting.communicate(b"\n")
    assert code == INCOMPLETE and len(complaints) == 1 and "no running copy" in complaints[0]
    assert report["steps"] == [] and "no running copy" in report["notes"][0]


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ([NOBODY], UNREACHABLE),
        (["no.such.host.invalid"], UNREACHABLE),
        (["0"], USAGE),
        (["9" * 5000], USAGE),
        (["00000000001"], USAGE),
        ([""], USAGE),
        (["--seconds", "0.5"], USAGE),
        (["--seconds", "nan"], USAGE),
        (["--agent", "telnet://nas"], USAGE),
    ],
    ids=["gone", "no-host", "zero", "endless", "long", "empty", "short", "nan", "agent"],
)
def test_what_cannot_be_watched_is_one_line_and_its_code(bottleneck, arguments, code):
    done = bottleneck("watch", *arguments, "--quiet")
    assert (done.code, bool(done.complaint)) == (code, True)
