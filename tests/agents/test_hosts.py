"""An agent is reached by a pipe, a command or ssh; it tolerates noise and ends with its stream."""

import os
import select
import shlex
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest

from bottleneck.agents import bootstrap, hosts, protocol, replies
from probes.core.records import Endpoint, HostFacts
from probes.core.stage import Refused, Unavailable
from probes.files import source_file
from probes.stages import loopback, tcp
from probes.watch import socket_watch
from tests.living import STAYS, below, connected, ended, unacknowledged_bytes, until


def test_the_agent_of_this_host_answers():
    with hosts.start_here() as host:
        facts = protocol.from_plain(HostFacts, host.ask("facts", toward="127.0.0.1", folder="/"))
        assert facts.cores >= 1
        assert host.greeting["protocol"] == protocol.PROTOCOL


def test_the_program_travels_through_any_command():
    with hosts.start_there("exec:env LC_ALL=C") as host:
        assert host.ask("facts", toward="127.0.0.1", folder=None)["python"]


@pytest.mark.long
def test_what_travels_needs_nothing_but_python(tmp_path):
    command = [sys.executable, "-I", "-S", "-c", bootstrap.STARTER]
    host = hosts.Host.start("server", command, bootstrap.program())
    with host:
        setting = loopback.Setting("push", 1, seconds=1.0)
        with host.hold("loopback", setting, Endpoint(), 20) as peer:
            ran = host.initiate("loopback", setting, peer, 20)
        assert ran.samples[-1].moved_bytes > 0
        assert ran.initiator[0]["clock_seconds"] < ran.initiator[1]["clock_seconds"]
    assert list(tmp_path.iterdir()) == []


def test_a_banner_in_front_of_the_stream_is_tolerated_and_shown():
    noisy = 'sh -c \'echo "Welcome to nas!"; echo "2 updates"; exec "$@"\' sh'
    with hosts.start_there(f"exec:{noisy}") as host:
        assert host.banner == ["Welcome to nas!", "2 updates"]
        assert host.tell("counters")["clock_seconds"] > 0


OLDER = shlex.quote(protocol.greeting("0.0.7", "3.9.0", "nas").decode())


@pytest.mark.parametrize(
    ("script", "says"),
    [
        ("while :; do echo noise; done", "noise"),
        ("echo no such container: nas >&2; exit 1", "no such container"),
        (f"printf %s {OLDER}; exec tail -f /dev/null", r"0\.0\.7"),
    ],
)
def test_what_is_no_agent_of_this_version_ends_with_a_sentence(script, says):
    with pytest.raises(hosts.AgentLost, match=says):
        hosts.Host.start("server", ["sh", "-c", script])


def test_a_command_that_does_not_exist_is_named():
    with pytest.raises(hosts.AgentLost, match="surely-no-such-command"):
        hosts.start_there("exec:surely-no-such-command")


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, None])
def test_an_agent_and_its_children_end_with_its_stream(how):
    starter = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import sys\n"
            "from bottleneck.agents import hosts\n"
            "from probes.stages import loopback\n"
            "from probes.core.records import Endpoint\n"
            "host = hosts.start_there('exec:')\n"
            "held = host.hold('loopback', loopback.Setting(), Endpoint(), 60)\n"
            "held.__enter__()\n"
            "print(host.process.pid, flush=True)\n"
            "sys.stdin.read()\n"
            "host.close()\n",
        ],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    agent = int(starter.stdout.readline())
    family = {agent, *below(agent)}
    assert len(family) >= 2
    if how is None:
        starter.stdin.close()
    else:
        os.kill(starter.pid, how)
    starter.wait()
    assert ended(family)


def watch_of(server):
    return socket_watch.Setting((server.getsockname()[1],), True, "127.0.0.1", 120.0)


def looked_at(pids):
    """Whether the watch, in these processes, has waited some times more for its next look."""

    def waits():
        texts = [Path(f"/proc/{pid}/status").read_text() for pid in pids]
        return sum(int(each.split("\nvoluntary_ctxt_switches:")[1].split()[0]) for each in texts)

    baseline = waits()
    return until(lambda: waits() > baseline + 10)


def test_a_host_tells_afterwards_what_it_saw_beside_a_stage():
    with hosts.start_there("exec:") as host, connected() as (server, _):
        with host.observe("sockets", watch_of(server), 120.0) as watch:
            host.tell("counters")
            watching = below(host.process.pid)
            assert watching and looked_at(watching)
            server.sendall(b"." * 1000)
            assert until(lambda: not unacknowledged_bytes(server))
            assert watch.reply is None
            watch.window = 0.0, 1e12
        assert watch.trouble == ""
        (connection,) = protocol.from_plain(socket_watch.Observations, watch.reply).connections
        assert connection.sent_bytes == 1000
        assert ended(below(host.process.pid))


def test_where_nobody_wants_to_know_a_watch_ends_all_the_same():
    with hosts.start_here() as host, connected() as (server, _):
        with host.observe("sockets", watch_of(server), 120.0) as watch:
            host.tell("counters")
            watching = below(host.process.pid)
            assert watching
        assert (watch.reply, watch.trouble) == (None, "")
        assert ended(watching)
        with pytest.raises(KeyError), host.observe("sockets", watch_of(server), 120.0):
            raise KeyError
        assert host.tell("counters") and not host.unclosed


def test_a_watch_that_dies_tells_why_and_the_agent_goes_on():
    with hosts.start_here() as host, connected() as (server, _):
        with host.observe("sockets", watch_of(server), 120.0) as watch:
            host.tell("counters")
            for pid in below(host.process.pid):
                os.kill(pid, signal.SIGKILL)
            watch.window = 0.0, 1.0
        assert watch.reply is None and "signal 9" in watch.trouble
        assert host.tell("counters") and not host.lost


def test_a_watch_ends_at_its_deadline_whatever_it_does():
    with hosts.start_here() as host, connected() as (server, _):
        with host.observe("sockets", watch_of(server), 0.2) as watch:
            host.tell("counters")
            watching = below(host.process.pid)
            assert ended(watching)
            watch.window = 0.0, 1.0
        assert "time" in watch.trouble
        assert host.tell("counters")


def test_what_a_host_cannot_watch_is_trouble_and_no_end():
    with hosts.start_here() as host:
        for name, setting in (("weather", loopback.Setting()), ("sockets", loopback.Setting())):
            with host.observe(name, setting, 5.0) as watch:
                watch.window = 0.0, 1.0
            assert watch.reply is None and watch.trouble
        assert host.tell("counters")


def test_a_lost_agent_is_trouble_of_its_watch_and_an_error_of_what_comes_next():
    with hosts.start_there("exec:") as host, connected() as (server, _):
        with host.observe("sockets", watch_of(server), 120.0) as watch:
            host.tell("counters")
            host.process.kill()
            host.process.wait()
            watch.window = 0.0, 1.0
        assert watch.reply is None and watch.trouble
        with pytest.raises(hosts.AgentLost):
            host.tell("counters")


@pytest.mark.long
def test_a_probe_that_outlives_its_time_is_stopped():
    with hosts.start_here() as host:
        setting = loopback.Setting("push", 1, seconds=30.0)
        with (
            host.hold("loopback", setting, Endpoint(), 60) as peer,
            pytest.raises(hosts.PartlyRan, match="time") as broke,
        ):
            host.initiate("loopback", setting, peer, 4.0)
        assert broke.value.samples and not broke.value.lost


def test_an_unknown_question_is_an_answer_not_an_end():
    with hosts.start_here() as host:
        with pytest.raises(Refused, match="unknown ask"):
            host.ask("no-such-question")
        with pytest.raises(Refused, match="unknown initiate"):
            host.initiate("no-such-stage", loopback.Setting(), Endpoint(), 5)
        assert host.tell("counters")


@pytest.mark.parametrize(
    "spec",
    [
        "nas",
        "ssh://",
        "ssh://-oProxyCommand=touch${IFS}x/",
        "ssh://u@-oProxyCommand=x",
        "ssh://-l@nas",
        "ssh://u:secret@nas",
        "ssh://nas:99999",
        "exec:'unclosed",
        "tcp-//nas",
    ],
)
def test_a_spec_that_is_none_is_refused(spec):
    with pytest.raises(Refused) as refused:
        bootstrap.command_for(spec)
    assert refused.value.kind == "usage"


def test_ssh_gets_its_host_behind_a_double_dash_and_asks_nothing():
    command = bootstrap.command_for("ssh://anna@nas.example:2222")
    assert Path(command[0]).is_absolute() and Path(command[0]).name == "ssh"
    assert "BatchMode=yes" in command
    assert command[command.index("--") + 1] == "nas.example"
    assert command[command.index("-p") + 1] == "2222"
    assert command[command.index("-l") + 1] == "anna"
    assert shlex.split(command[-1]) == ["python3", "-I", "-c", bootstrap.STARTER]
    assert "NAS" in bootstrap.command_for("ssh://NAS")  # an alias minds its capitals
    assert bootstrap.command_for("ssh://[fe80::1]:2222")[-2] == "fe80::1"


def test_a_command_that_anybody_could_have_put_into_path_is_not_run(tmp_path, monkeypatch):
    program = tmp_path / "way-to-the-nas"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    tmp_path.chmod(0o777)
    monkeypatch.setenv("PATH", f"{tmp_path}:.:/usr/bin")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(hosts.AgentLost, match="way-to-the-nas: not found .* use its full path"):
        hosts.start_there("exec:way-to-the-nas --fast")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("shell", ["sh", "dash", "bash"])
def test_the_starter_is_one_line_that_shells_leave_alone(shell):
    assert not set("\n'!`$\\") & set(bootstrap.STARTER)
    command = [shell, "-c", shlex.join(["python3", "-c", bootstrap.STARTER])]
    with hosts.Host.start("server", command, bootstrap.program()) as host:
        assert host.tell("counters")


def test_a_command_that_says_nothing_is_ended_with_all_that_it_started(monkeypatch, tmp_path):
    monkeypatch.setattr(hosts, "GREETING_SECONDS", 0.5)
    marker = tmp_path / "marker"
    marker.touch()
    with pytest.raises(hosts.AgentLost, match="sent nothing"):
        hosts.Host.start("server", ["sh", "-c", f"tail -f {marker}; true"])
    assert ended(pids_with(str(marker)))


def pids_with(word):
    pids = []
    for line in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if word.encode() in line.read_bytes().split(b"\0"):
                pids.append(int(line.parent.name))
        except OSError:
            continue
    return pids


def test_a_command_that_never_reads_does_not_hold_up_its_own_end(monkeypatch):
    monkeypatch.setattr(hosts, "GREETING_SECONDS", 0.5)
    real, started, wrote = subprocess.Popen, [], []

    def starts(*arguments, **options):
        started.append(real(*arguments, **options))
        return started[-1]

    def write(fd, data):
        wrote.append(started[0].stdin.closed)
        return os.write(fd, data)

    monkeypatch.setattr(hosts.subprocess, "Popen", starts)
    monkeypatch.setattr(replies, "os", SimpleNamespace(write=write, set_blocking=os.set_blocking))
    with pytest.raises(hosts.AgentLost, match="sent nothing"):
        hosts.Host.start("server", list(STAYS), bytes(1 << 20))
    assert until(lambda: not any("(_read)" in each.name for each in threading.enumerate()))
    assert wrote and not any(wrote)  # its number may be another file's then


GREETED = protocol.greeting(hosts.__version__, "3.9.0", "nas").decode()


def test_a_client_shows_that_it_lives_whatever_it_does(monkeypatch, tmp_path):
    monkeypatch.setattr(replies, "SIGN_SECONDS", 0.01)
    heard = tmp_path / "heard"
    script = f"printf %s {shlex.quote(GREETED)}; exec cat >{heard}"
    with hosts.Host.start("server", ["sh", "-c", script]):
        assert until(lambda: heard.exists() and heard.read_bytes().startswith(b"\n\n"))


def test_an_agent_that_reads_no_signs_of_life_does_not_hold_up_its_end(monkeypatch):
    looks = []

    def look(*arguments):
        looks.append(arguments)
        return select.select(*arguments)

    monkeypatch.setattr(replies, "SIGN_SECONDS", 0.01)
    monkeypatch.setattr(replies, "select", SimpleNamespace(select=look))
    script = f"printf %s {shlex.quote(GREETED)}; exec tail -f /dev/null"
    with hosts.Host.start("server", ["sh", "-c", script]) as host:
        with pytest.raises(BlockingIOError):
            while True:
                os.write(host.process.stdin.fileno(), bytes(1 << 16))
        baseline = len(looks)
        assert until(lambda: len(looks) > baseline + 2)
    assert ended([host.process.pid])


def test_a_lost_host_may_keep_files_for_a_minute_where_it_had_any(tmp_path):
    file = source_file.Setting(str(tmp_path), 1 << 22, 5.0, "00")
    for name, setting in (("source-file", file), ("tcp", tcp.Setting())):
        with hosts.start_there("exec:") as host:
            with host.hold(name, setting, Endpoint(host="127.0.0.1"), 60):
                os.killpg(host.process.pid, signal.SIGKILL)
                host.process.wait()
            said = ["files of this run may remain on the server for up to 60 s; then its agent"]
            assert [each.rpartition(" removes")[0] for each in host.unclosed] == (
                said if name == "source-file" else []
            )


def test_a_port_without_an_answer_is_a_firewall_only_while_its_host_answers():
    setting = tcp.Setting("push", 1, seconds=1.0, address="127.0.0.1")
    with hosts.start_there("exec:") as server, hosts.start_here() as client:
        with socket.create_server(("127.0.0.1", 0)) as free:
            nowhere = Endpoint(host="127.0.0.1", port=free.getsockname()[1], nonce="0" * 32)
        with pytest.raises(Unavailable, match="a firewall blocks"):
            client.initiate("tcp", setting, nowhere, 20, server)
        os.killpg(server.process.pid, signal.SIGKILL)
        with pytest.raises(hosts.PartlyRan, match="server: the agent") as caught:
            client.initiate("tcp", setting, nowhere, 20, server)
    assert caught.value.lost and "firewall" not in str(caught.value)


def test_nobody_is_sent_to_look_whether_this_host_is_up():
    with hosts.start_here() as here, hosts.start_there("exec:") as there:
        for host, remedy in ((here, "try again with less load here"), (there, "check that the")):
            host.replies.expect(1)
            with pytest.raises(hosts.AgentLost, match=remedy):
                host.next(1, 0.0, "a test")


INTERRUPTED = """
import os, signal
from bottleneck.agents import hosts
from bottleneck.cli import interrupts
interrupts.hold()
os.register_at_fork(after_in_parent=lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    with interrupts.let_through():
        hosts.start_here()
except KeyboardInterrupt:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        print("interrupted", file.read())
"""


def test_an_interrupt_in_the_moment_of_a_fork_is_not_lost():
    done = subprocess.run([sys.executable, "-c", INTERRUPTED], capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("interrupted \n", "")


def test_endless_words_on_stderr_are_not_kept():
    script = f"printf %s {shlex.quote(GREETED)}; head -c 50000000 /dev/zero >&2; echo end >&2; cat"
    with hosts.Host.start("server", ["sh", "-c", script], b"") as host:
        assert until(lambda: any("end" in each for each in host.errors))
        assert sum(map(len, host.errors)) < 100_000


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ('{"kind":"login","text":"wrong\\ttoken"}', Refused),
        ('{"kind":"weather","text":"x"}', hosts.StageError),
        ("7", hosts.StageError),
    ],
)
def test_what_answers_may_refuse_in_place_of_a_greeting(reply, error):
    line = shlex.quote((protocol.MARK + b'{"protocol":1,"refused":%s}\n' % reply.encode()).decode())
    with pytest.raises(error):
        hosts.Host.start("server", ["sh", "-c", f"printf '%s' {line}; cat"])
