"""An agent that listens serves whoever knows its token, and nobody else, whatever they send."""

import contextlib
import os
import re
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from bottleneck import agent_token, dialling, guesses, hosts, listening, seals
from bottleneck.agent_token import VARIABLE
from bottleneck.sealed_stream import SIGN, Lines, send_line, take_lines
from probes import loopback
from probes.records import Access, Endpoint
from probes.stage import Refused, Unavailable

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = 15.0


@dataclass
class Listener:
    """`bottleneck agent --listen` at work."""

    process: subprocess.Popen
    port: int
    token: str
    said: Path

    @property
    def spec(self):
        return f"tcp://127.0.0.1:{self.port}"

    def says(self, words):
        return until(lambda: words in self.said.read_text())

    def children(self):
        found = []
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                if fields[0] not in "ZX":
                    found.append((int(stat.parent.name), int(fields[1])))
        family = {self.process.pid}
        for _ in range(4):
            family |= {pid for pid, parent in found if parent in family}
        return family - {self.process.pid}


def until(holds):
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        if holds():
            return True
        time.sleep(0.05)
    return False


def gone(pids):
    return until(lambda: not any(alive(pid) for pid in pids))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@contextlib.contextmanager
def started(folder, *options):
    said = folder / "said"
    with said.open("w") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bottleneck", "agent", "--listen", "127.0.0.1:0", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            cwd=ROOT,
        )
    try:
        first = process.stdout.readline()
        token = process.stdout.readline().removeprefix("token: ").strip()
        port = int(re.search(r":(\d+) until", first)[1])
        yield Listener(process, port, token, said)
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stdout.close()


@pytest.fixture
def listener(tmp_path):
    """One that nobody has come to yet."""
    with started(tmp_path, "--idle", "60") as made:
        yield made


@pytest.fixture
def reached(listener, monkeypatch):
    """A host behind it, as the coordinator has it."""
    monkeypatch.setattr("bottleneck.agent_token._taken", [listener.token])
    with hosts.start_there(listener.spec) as host:
        yield host


class Middle:
    """Stands between a coordinator and a listener, keeps all that passes, and may add to it."""

    def __init__(self, port):
        self.seen = bytearray()
        self.waiting = socket.create_server(("127.0.0.1", 0))
        self.spec = f"tcp://127.0.0.1:{self.waiting.getsockname()[1]}"
        self.port = port
        self.pair = ()
        threading.Thread(target=self._relay, daemon=True).start()

    def _relay(self):
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            caller = self.waiting.accept()[0]
            there = socket.create_connection(("127.0.0.1", self.port))
            self.pair = caller, there
            stack.enter_context(caller)
            stack.enter_context(there)
            ways = {caller: there, there: caller}
            while ways:
                for each in select.select(list(ways), [], [], 1)[0]:
                    chunk = each.recv(1 << 16)
                    if not chunk:
                        ways.pop(each).shutdown(socket.SHUT_WR)
                        continue
                    self.seen += chunk
                    ways[each].sendall(chunk)

    def close(self):
        for each in (self.waiting, *self.pair):
            each.close()


@pytest.fixture
def middle(listener):
    """One in front of the listener."""
    made = Middle(listener.port)
    yield made
    made.close()


def test_a_stage_is_measured_from_both_ends(bottleneck, listener, load_report, tmp_path):
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec, "--budget", "6"),
        *("--json", tmp_path / "report"),
        environment={VARIABLE: f" {listener.token.upper()} "},
    )
    assert done.code in (0, 3), done.err
    steps = load_report(tmp_path / "report")["steps"]
    measured = [each["outcome"] for each in steps if each["outcome"]["kind"] == "measured"]
    assert measured
    assert all(each["usage"]["server"] for each in measured)
    assert listener.token not in (tmp_path / "report").read_text() + done.out + done.err


def test_a_diagnosis_sends_no_login_through_it(
    bottleneck, listener, middle, samba, target, auth_file, load_report, tmp_path
):
    server, shared = samba
    (tmp_path / "own").mkdir()
    done = bottleneck(
        *("diagnose", target, "--auth-file", auth_file, "--agent", middle.spec, "--yes"),
        *("--folder", tmp_path / "own", "--server-folder", shared, "--budget", "25"),
        *("--size", "4MiB", "--dialects", "3.1.1", "--json", tmp_path / "report"),
        environment={VARIABLE: listener.token},
    )
    assert done.code in (0, 3), done.err
    report = load_report(tmp_path / "report")
    assert report["hosts"]["server"]
    ours = {
        each["setting"]["copy"]: each["outcome"]
        for each in report["steps"]
        if each["stage"] == "smb-copy"
    }
    assert ours["pull.cached"]["kind"] == "measured"
    from_there = [each for name, each in ours.items() if name.startswith("server.")]
    assert all(each["kind"] == "skipped" and "tcp://" in each["reason"] for each in from_there)
    assert from_there or "copies that the server starts: left out" in str(report["notes"])
    assert len(middle.seen) > 10_000
    for secret in (server.password, listener.token):
        assert secret.encode() not in middle.seen
    assert listener.says("it left")


def test_doctor_tells_what_such_an_agent_costs(bottleneck, listener):
    done = bottleneck(
        *("doctor", "//127.0.0.1:1/x", "--agent", listener.spec),
        environment={VARIABLE: listener.token},
    )
    assert done.code == 69
    assert "no login is sent" in done.out and "answers: " in done.out


def test_a_login_is_never_put_on_its_way(reached):
    peer = Endpoint(host="127.0.0.1", access=Access("anna", "secret"))
    with pytest.raises(Unavailable, match="tcp://"):
        reached.initiate("tcp", loopback.Setting(), peer, 5.0)
    with pytest.raises(Unavailable, match="tcp://"), reached.hold("run-folder", None, peer, 5.0):
        pass
    with pytest.raises(Unavailable, match="tcp://"):
        hosts.start_installed("tcp://127.0.0.1:7000")
    assert reached.tell("counters")


@pytest.mark.parametrize("token", ["abcd-efgh-ijkl", "x", "\udcff"])
def test_a_wrong_token_is_77_and_starts_nothing(bottleneck, listener, token):
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec),
        environment={VARIABLE: token},
    )
    assert done.code == 77
    assert "token" in done.complaint
    assert listener.says("a wrong token from 127.0.0.1")
    assert not listener.children()


def test_without_a_token_nobody_is_called(bottleneck, listener):
    done = bottleneck("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec)
    assert done.code == 77
    assert VARIABLE in done.complaint


def test_nobody_there_is_69(bottleneck):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", f"tcp://127.0.0.1:{port}"),
        environment={VARIABLE: "abcd"},
    )
    assert done.code == 69
    assert "bottleneck agent --listen" in done.complaint


@pytest.mark.parametrize(
    "words", [b"SSH-2.0-OpenSSH\r\n", b"", b"\0" * 4096, seals.MARK + b"1" * 64 + b"\nsure\n"]
)
def test_another_service_there_ends_with_a_sentence(monkeypatch, words):
    monkeypatch.setattr("bottleneck.agent_token._taken", ["abcd-efgh"])
    with socket.create_server(("127.0.0.1", 0)) as waiting:

        def answer():
            with waiting.accept()[0] as caller:
                caller.sendall(words)
                caller.shutdown(socket.SHUT_WR)
                while caller.recv(4096):
                    pass

        threading.Thread(target=answer, daemon=True).start()
        with pytest.raises(Refused) as refused:
            hosts.start_there(f"tcp://127.0.0.1:{waiting.getsockname()[1]}")
    assert refused.value.kind in ("unreachable", "login")
    assert "abcd" not in refused.value.text


@pytest.mark.parametrize("direction", [0, 1], ids=["a-reply", "a-request"])
@pytest.mark.parametrize("what", ["bare", "repeated", "endless"])
def test_a_line_put_in_between_ends_the_session_unserved(
    listener, middle, monkeypatch, direction, what
):
    monkeypatch.setattr("bottleneck.agent_token._taken", [listener.token])
    request = b'{"id":1,"do":"ask","name":"facts","arguments":{},"seconds":9}'
    with hosts.start_there(middle.spec) as host:
        assert host.tell("counters")
        lines = bytes(middle.seen).split(b"\n")
        repeated = next(each for each in lines if b'"do":"counters"' in each)
        line = {"bare": request, "repeated": repeated, "endless": b"x" * (3 << 20)}[what]
        with contextlib.suppress(OSError):
            middle.pair[direction].sendall(line + b"\n" * (what != "endless"))
        with pytest.raises(hosts.AgentLost):
            for _ in range(200):
                host.tell("counters")
                time.sleep(0.02)
    assert listener.says("the coordinator at 127.0.0.1:")
    assert gone(listener.children())
    assert listener.process.poll() is None


def test_one_coordinator_at_a_time_and_then_the_next(listener, reached):
    assert reached.tell("counters")
    with pytest.raises(Refused, match="another coordinator"):
        hosts.start_there(listener.spec)
    assert reached.tell("counters")
    reached.close()
    assert listener.says("it left")
    with hosts.start_there(listener.spec) as host:
        assert host.tell("counters")


TOKEN = seals.normal("abcd-efgh")


def in_process():
    """A listener in this process: its port, and what it says."""
    said = []
    waiting = listening.listener("127.0.0.1:0", any_address=False)
    at_work = listening.Listening(TOKEN, said.append)
    threading.Thread(target=at_work.serve, args=(waiting, PATIENCE_SECONDS), daemon=True).start()
    return waiting.getsockname()[1], said


def line_of(lines):
    return lines.line(200, time.monotonic() + PATIENCE_SECONDS)


def test_an_address_with_five_wrong_tokens_is_not_heard_and_others_are(monkeypatch):
    monkeypatch.setattr(guesses, "FIRST_SECONDS", 60.0)
    port, said = in_process()
    answers = []
    for _ in range(guesses.FREE + 3):
        there = ("127.0.0.1", port)
        with socket.create_connection(there, source_address=("127.0.0.2", 0)) as caller:
            lines = Lines(caller)
            answers.append(line_of(lines))
            if answers[-1] is not None:
                caller.sendall(b"1" * 64 + b" " + b"2" * 64 + b"\n")
                assert line_of(lines) == seals.WRONG
    assert [each is None for each in answers] == [False] * guesses.FREE + [True] * 3
    assert sum("not heard" in each for each in said) == 1
    dialling.meet("127.0.0.1", port, TOKEN)[0].connection.close()


def test_who_fills_the_line_makes_room_out_of_his_own_callers(monkeypatch):
    monkeypatch.setattr(listening, "PROVING_SECONDS", PATIENCE_SECONDS)
    port, _ = in_process()
    with contextlib.ExitStack() as stack:

        def called(address):
            caller = socket.create_connection(("127.0.0.1", port), source_address=(address, 0))
            return Lines(stack.enter_context(caller))

        honest = called("127.0.0.2")
        listeners = seals.read_hello(line_of(honest))
        strangers = [called("127.0.0.1") for _ in range(listening.MOST_PROVING + 4)]
        assert line_of(strangers[0]).startswith(seals.MARK) and line_of(strangers[0]) is None
        meeting = seals.Meeting(TOKEN, listeners, seals.nonce())
        answer = meeting.caller_nonce + b" " + meeting.proof("caller") + b"\n"
        honest.connection.sendall(answer)
        assert line_of(honest) == meeting.proof("listener")


def test_a_coordinator_that_shows_no_life_is_given_up(monkeypatch):
    monkeypatch.setattr(listening, "SILENT_SECONDS", 0.3)
    port, said = in_process()
    with dialling.meet("127.0.0.1", port, TOKEN)[0].connection:
        assert until(lambda: any("no whole line in time" in each for each in said))

    def next_one():
        with contextlib.suppress(Refused):
            dialling.meet("127.0.0.1", port, TOKEN)[0].connection.close()
            return True

    assert until(next_one)


def test_a_sign_of_life_is_handed_to_nobody():
    ours, theirs = socket.socketpair()
    meeting = seals.Meeting(TOKEN, seals.nonce(), seals.nonce())
    seal, taken = meeting.seal("requests"), []
    with theirs, ours:
        for line in (SIGN, b"asked\n", SIGN):
            send_line(ours, seal, line)
        ours.shutdown(socket.SHUT_WR)
        take_lines(Lines(theirs), meeting.seal("requests"), taken.append, PATIENCE_SECONDS)
    assert taken == [b"asked\n"]


def test_a_relay_shows_life_by_its_own_timer(monkeypatch):
    monkeypatch.setattr(dialling, "SIGN_SECONDS", 0.05)
    monkeypatch.setattr(dialling.os, "_exit", lambda code: None)
    ours, theirs = socket.socketpair()
    meeting = seals.Meeting(TOKEN, seals.nonce(), seals.nonce())
    seal, lines, told = meeting.seal("requests"), Lines(theirs), []
    reader, writer = os.pipe()
    with os.fdopen(reader, "rb") as requests, theirs, ours:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=requests))
        relay = threading.Thread(target=lambda: told.append(dialling.relay(Lines(ours), meeting)))
        relay.start()
        assert [seal.opened(line_of(lines)) for _ in range(3)] == [b""] * 3
        os.write(writer, b"asked\n")
        while not (line := seal.opened(line_of(lines))):
            pass
        assert line == b"asked"
        os.close(writer)
        while line_of(lines) is not None:
            pass
        theirs.shutdown(socket.SHUT_WR)
        relay.join(PATIENCE_SECONDS)
    assert told == [""]


def test_a_relay_shows_no_life_of_a_coordinator_that_stands_still():
    with subprocess.Popen(["sleep", "60"]) as process:
        assert not dialling._is_stopped(process.pid)
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: dialling._is_stopped(process.pid))
        process.kill()
    assert not dialling._is_stopped(1 << 30)


def test_what_is_shown_for_all_addresses_is_one_that_a_client_can_call(tmp_path):
    with started(tmp_path, "--listen", "0.0.0.0:0", "--any-address") as listener:
        shown = listener.process.stdout.readline()
        assert f"tcp://{socket.gethostname()}:{listener.port}" in shown


def test_a_link_local_address_is_refused_with_a_sentence():
    with pytest.raises(Refused, match="link-local") as refused:
        listening.listener("[fe80::1]:0", any_address=True)
    assert refused.value.kind == "usage"


def test_strangers_do_no_harm(listener, monkeypatch):
    monkeypatch.setattr("bottleneck.agent_token._taken", [listener.token])
    with contextlib.ExitStack() as stack:
        for at in range(60):
            caller = stack.enter_context(socket.create_connection(("127.0.0.1", listener.port)))
            caller.settimeout(0.2)
            with contextlib.suppress(OSError):
                caller.sendall([b"", b"\n\n", b"GET / HTTP/1.1\r\n", os.urandom(1 << 20)][at % 4])
        with hosts.start_there(listener.spec) as host:
            assert host.tell("counters")
    status = Path(f"/proc/{listener.process.pid}/status").read_text()
    assert int(re.search(r"VmRSS:\s+(\d+)", status)[1]) < 150_000
    assert "Traceback" not in listener.said.read_text()


def test_nobody_for_so_long_ends_it(tmp_path):
    with started(tmp_path, "--idle", "0.3") as listener:
        assert listener.process.wait(PATIENCE_SECONDS) == 0
        assert "nobody came" in listener.said.read_text()


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_listener_takes_its_agent_with_it(tmp_path, monkeypatch, how):
    with started(tmp_path) as listener:
        monkeypatch.setattr("bottleneck.agent_token._taken", [listener.token])
        with hosts.start_there(listener.spec) as host:
            held = host.hold("loopback", loopback.Setting(), Endpoint(), 60)
            held.__enter__()
            family = listener.children()
            assert len(family) >= 2
            listener.process.send_signal(how)
            assert listener.process.wait(30) == (-how if how == signal.SIGKILL else 130)
            assert gone(family)


def test_a_killed_coordinator_leaves_nothing_at_work(listener):
    code = (
        "import sys\nfrom bottleneck import hosts\nfrom probes import loopback\n"
        "from probes.records import Endpoint\n"
        f"host = hosts.start_there({listener.spec!r})\n"
        "host.hold('loopback', loopback.Setting(), Endpoint(), 60).__enter__()\n"
        "print('held', flush=True)\nsys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, VARIABLE: listener.token},
    ) as coordinator:
        assert coordinator.stdout.readline() == b"held\n"
        family = listener.children()
        coordinator.kill()
        assert gone(family)
    assert listener.says("it left")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "0:0", "[::ffff:0.0.0.0]:0"])
def test_all_addresses_are_taken_only_where_that_is_said(address):
    with pytest.raises(Refused, match="any-address") as refused:
        listening.listener(address, any_address=False)
    assert refused.value.kind == "usage"
    with contextlib.suppress(Refused):  # a host without IPv6
        listening.listener(address, any_address=True).close()


@pytest.mark.parametrize(
    "spec", ["", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "192.0.2.1:0"]
)
def test_what_cannot_be_listened_on_is_usage(bottleneck, spec):
    assert bottleneck("agent", "--listen", spec).code == 64


@pytest.mark.parametrize(
    "spec", ["tcp://", "tcp://nas", "tcp://nas:", "tcp://u@nas:1", "tcp://nas:0"]
)
def test_a_spec_without_host_and_port_is_refused(monkeypatch, spec):
    monkeypatch.setattr("bottleneck.agent_token._taken", ["abcd"])
    with pytest.raises(Refused) as refused:
        hosts.command_for(spec)
    assert refused.value.kind == "usage"


def test_an_ipv6_address_is_listened_on_and_called(tmp_path, monkeypatch):
    with listening.listener("[::1]:0", any_address=False) as waiting:
        port = waiting.getsockname()[1]
        at_work = listening.Listening(seals.normal("abcd-efgh"), lambda line: None)
        thread = threading.Thread(target=at_work.serve, args=(waiting, 1.0), daemon=True)
        thread.start()
        monkeypatch.setattr("bottleneck.agent_token._taken", ["ABCD EFGH"])
        with hosts.start_there(f"tcp://[::1]:{port}/") as host:
            assert host.tell("counters")
        thread.join(PATIENCE_SECONDS)
        assert not thread.is_alive()


def test_somebody_at_a_terminal_is_asked_once_for_the_token(monkeypatch):
    asked = []
    monkeypatch.setattr(agent_token, "_taken", [])
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(agent_token.getpass, "getpass", lambda p: asked.append(p) or "abcd-efgh")
    assert agent_token.token() == agent_token.token() == "abcd-efgh"
    assert len(asked) == 1


def test_the_token_is_taken_out_of_the_environment(monkeypatch):
    monkeypatch.setattr(agent_token, "_taken", [])
    monkeypatch.setenv(VARIABLE, "abcd")
    assert agent_token.token() == "abcd"
    assert VARIABLE not in os.environ
