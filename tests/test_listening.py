"""An agent that listens serves whoever knows its token, and nobody else, whatever they send."""

import contextlib
import json
import os
import re
import select
import signal
import socket
import ssl
import subprocess
import sys
import threading
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest

from bottleneck import bootstrap, credentials, dialling, hosts, listening, login_throttle, plan, tls
from bottleneck.credentials import (
    PART_BYTES,
    TOKEN_FILE_VARIABLE,
    TOKEN_VARIABLE,
    Token,
)
from probes import loopback
from probes.records import Endpoint
from probes.stage import Refused
from tests.living import GENEROUS_SECONDS, STAYS, below, ended, until

ROOT = Path(__file__).parents[1]
PATIENCE_SECONDS = GENEROUS_SECONDS
MORE = 4
"""Callers beyond those that there is room for."""


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
        return below(self.process.pid)


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
        process.wait()
        process.stdout.close()


@pytest.fixture
def listener(tmp_path):
    """One that nobody has come to yet."""
    with started(tmp_path, "--idle", "60") as made:
        yield made


@pytest.fixture
def reached(listener, monkeypatch):
    """A host behind it, as the coordinator has it."""
    monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: listener.token})
    with hosts.start_there(listener.spec) as host:
        yield host


@contextlib.contextmanager
def answering(answer):
    """What answers one call in a thread; yields where it listens, and what it gave back."""
    given = []
    with socket.create_server(("127.0.0.1", 0)) as waiting:

        def take():
            with contextlib.suppress(OSError), waiting.accept()[0] as caller:
                caller.settimeout(PATIENCE_SECONDS)
                given.append(answer(caller))

        thread = threading.Thread(target=take, daemon=True)
        thread.start()
        yield f"tcp://127.0.0.1:{waiting.getsockname()[1]}", given
        thread.join(PATIENCE_SECONDS)


TOKEN = Token(b"f" * PART_BYTES, b"s" * PART_BYTES)


@pytest.mark.long
def test_a_stage_is_measured_from_both_ends(bottleneck, listener, load_report, tmp_path):
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec, "--budget", "6"),
        *("--json", tmp_path / "report"),
        environment={TOKEN_VARIABLE: f" {listener.token.upper()} "},
    )
    assert done.code in (0, 3), done.err
    steps = load_report(tmp_path / "report")["steps"]
    measured = [each["outcome"] for each in steps if each["outcome"]["kind"] == "measured"]
    assert measured
    assert all(each["usage"]["server"] for each in measured)
    assert listener.token not in (tmp_path / "report").read_text() + done.out + done.err


@pytest.mark.long
def test_a_server_behind_it_starts_copies_with_the_login(listener, samba, target, tmp_path):
    server, shared = samba
    (tmp_path / "own").mkdir()
    options = {"folder": str(tmp_path / "own"), "server_folder": str(shared)}
    options |= {"agent": listener.spec, "size_bytes": 1 << 20}
    asked = {"target": target, "password": server.password, "options": options}
    done = subprocess.run(
        [sys.executable, ROOT / "tests/programs/server_copies.py"],
        input=json.dumps(asked) + "\n",
        env={**os.environ, "PYTHONPATH": str(ROOT), TOKEN_VARIABLE: listener.token},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    steps = json.loads(done.stdout)["steps"]
    assert [(each["kind"], each["initiator"], each["engine"]) for each in steps] == [
        ("Measured", "server", "own")
    ] * len(plan.COPIES), done.stdout
    for secret in (server.password, listener.token):
        assert secret not in done.stdout + done.stderr + listener.said.read_text()


@pytest.mark.long
@pytest.mark.parametrize("at", [0, -1], ids=["fingerprint", "secret"])
def test_a_wrong_token_is_77_and_starts_nothing(bottleneck, listener, at):
    token = list(listener.token)
    token[at] = "a" if token[at] != "a" else "b"
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec),
        environment={TOKEN_VARIABLE: "".join(token)},
    )
    assert done.code == 77
    assert "wrong token" in done.complaint and str(listener.port) in done.complaint
    assert listener.says("a wrong token from 127.0.0.1")
    assert not listener.children()


@pytest.mark.long
@pytest.mark.parametrize(
    ("token", "says"),
    [("abcd-efgh-ijkl", "12 groups of 4"), ("\udcff", "12 groups of 4"), ("", TOKEN_VARIABLE)],
)
def test_half_a_token_or_none_is_77_and_goes_nowhere(bottleneck, listener, token, says):
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", listener.spec),
        environment={TOKEN_VARIABLE: token},
    )
    assert done.code == 77 and says in done.complaint
    assert not listener.said.read_text()


@pytest.mark.long
def test_nobody_there_is_69(bottleneck):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    done = bottleneck(
        *("probe", "tcp", "//127.0.0.1/-", "--agent", f"tcp://127.0.0.1:{port}"),
        environment={TOKEN_VARIABLE: TOKEN.text},
    )
    assert done.code == 69
    assert "bottleneck agent --listen" in done.complaint


@pytest.mark.long
@pytest.mark.parametrize("words", [b"SSH-2.0-OpenSSH\r\n", b"", b"\0" * 4096])
def test_another_service_there_ends_with_a_sentence(monkeypatch, words):
    monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: TOKEN.text})

    def answer(caller):
        caller.sendall(words)
        caller.shutdown(socket.SHUT_WR)
        while caller.recv(4096):
            pass

    with answering(answer) as (spec, _), pytest.raises(Refused) as refused:
        hosts.start_there(spec)
    assert refused.value.kind == "unreachable"
    said = "connection closed|not an agent of this program|no answer|reset"
    assert re.search(said, refused.value.text)


@pytest.mark.long
def test_who_stands_in_between_with_another_certificate_is_told_nothing(listener, monkeypatch):
    """Not the token, not that it was right, not even the end of the handshake."""
    monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: listener.token})
    context, _ = tls.listening()

    def answer(caller):
        stream = tls.over(caller, context)
        while not stream.ended:
            select.select([caller], [], [], PATIENCE_SECONDS)
            stream.hear()
            assert not stream.shaken()
            stream.flush()
        return stream.plain

    with answering(answer) as (spec, given), pytest.raises(Refused, match="certificate") as refused:
        hosts.start_there(spec)
    assert refused.value.kind == "login"
    assert given == [b""]
    with hosts.start_there(listener.spec) as host:
        assert host.tell("counters")


def test_a_listener_speaks_tls_1_3_alone(listener):
    context = tls.calling()
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    name = credentials.parse_token(listener.token).name
    with (
        socket.create_connection(("127.0.0.1", listener.port), PATIENCE_SECONDS) as caller,
        pytest.raises((ssl.SSLError, ConnectionError)),
    ):
        context.wrap_socket(caller, server_hostname=name)


@pytest.mark.long
def test_one_coordinator_at_a_time_and_then_the_next(listener, reached):
    assert reached.tell("counters")
    with pytest.raises(Refused, match="another client"):
        hosts.start_there(listener.spec)
    assert reached.tell("counters")
    reached.close()
    assert listener.says("it disconnected")
    with hosts.start_there(listener.spec) as host:
        assert host.tell("counters")


@contextlib.contextmanager
def in_process(**about):
    """A listener in this process: its port, its token, and itself."""
    context, shown = tls.listening()
    token = Token(shown, b"s" * PART_BYTES)
    waiting = listening.listener("127.0.0.1:0", any_address=False)
    said = []
    made = listening.Listening(token, context, said.append, **about)
    thread = threading.Thread(target=made.serve, args=(waiting, PATIENCE_SECONDS), daemon=True)
    thread.start()
    yield waiting.getsockname()[1], token, said


def called(port, address="127.0.0.1"):
    return socket.create_connection(("127.0.0.1", port), 10, source_address=(address, 0))


def greeted(stream):
    """What the listener says to whoever knows the token."""
    stream.flush()
    while b"\n" not in stream.plain and not stream.ended:
        assert select.select([stream.connection], [], [], PATIENCE_SECONDS)[0]
        stream.hear()
        stream.decrypt()
    return stream.plain


@pytest.mark.long
def test_wrong_tokens_wait_for_their_answer_and_a_right_one_from_there_does_not(monkeypatch):
    monkeypatch.setattr(login_throttle, "FIRST_SECONDS", 60.0)
    monkeypatch.setattr(login_throttle, "LONGEST_SECONDS", 60.0)
    with in_process() as (port, token, said), contextlib.ExitStack() as stack:
        wrong = Token(token.fingerprint, b"x" * PART_BYTES)
        for _ in range(login_throttle.FREE):
            assert b"wrong token" in greeted(dialling.meet("127.0.0.1", port, wrong))
        late = dialling.meet("127.0.0.1", port, wrong)
        late.flush()
        stack.enter_context(late.connection)
        good = dialling.meet("127.0.0.1", port, token)
        stack.enter_context(good.connection)
        assert b"version" in greeted(good)
        assert not select.select([late.connection], [], [], 0)[0]
    assert len(said) == login_throttle.FREE + 1


@pytest.mark.parametrize("kind", [listening.SILENT, listening.KNOWING])
def test_who_fills_the_line_makes_room_out_of_his_own_callers(monkeypatch, kind):
    monkeypatch.setattr(listening, "PROVING_SECONDS", PATIENCE_SECONDS)
    with in_process() as (port, token, _), contextlib.ExitStack() as stack:

        def caller(address):
            made = stack.enter_context(called(port, address))
            stream = tls.over(made, tls.calling(), token.name)
            if kind == listening.KNOWING:
                assert not stream.shaken()
                stream.flush()
            return stream

        honest = caller("127.0.0.2")
        strangers = [caller("127.0.0.1") for _ in range(listening.MOST[kind] + MORE)]
        # Which of them goes is theirs to settle: two hellos may be heard in either order.
        while sum(each.ended for each in strangers) < MORE:
            there = [each for each in strangers if not each.ended]
            heard = select.select([each.connection for each in there], [], [], PATIENCE_SECONDS)[0]
            assert heard
            for each in there:
                if each.connection in heard:
                    each.hear()
        while not honest.shaken():
            honest.flush()
            select.select([honest.connection], [], [], PATIENCE_SECONDS)
            honest.hear()
        honest.write(token.secret.hex().encode() + b"\n")
        assert b"version" in greeted(honest)


@pytest.mark.long
def test_a_coordinator_that_shows_no_life_is_given_up(monkeypatch):
    # Longer than its handshake takes where the cores are busy.
    monkeypatch.setattr(listening, "SILENT_SECONDS", 3.0)
    with in_process() as (port, token, said):
        stream = dialling.meet("127.0.0.1", port, token)
        stream.flush()
        assert until(lambda: any("nothing received for" in each for each in said))
        monkeypatch.setattr(listening, "SILENT_SECONDS", PATIENCE_SECONDS)
        stream.connection.close()
        next_one = dialling.meet("127.0.0.1", port, token)
        assert b"version" in greeted(next_one)
        next_one.connection.close()


@contextlib.contextmanager
def joined(**about):
    """A caller's relay and what it talks to: (its requests, its replies, the listener's stream)."""
    context, shown = tls.listening()
    pair = socket.socketpair(socket.AF_UNIX)
    caller = tls.over(pair[0], tls.calling(), "x")
    there = tls.over(pair[1], context)
    while not all([caller.shaken(), there.shaken()]):
        for each in (caller, there):
            each.flush()
        for each in (caller, there):
            each.hear()
    caller.flush()
    (asked, asks), (replied, replies) = os.pipe(), os.pipe()
    relay = tls.Relay(caller, asked, replies, **about)
    thread = threading.Thread(target=relay.run, daemon=True)
    thread.start()
    yield asks, replied, there
    thread.join(PATIENCE_SECONDS)
    assert not thread.is_alive()
    for each in pair:
        each.close()
    for fd in (asked, replied, replies):
        os.close(fd)


def test_a_relay_shows_life_by_its_own_timer_and_never_within_a_line(monkeypatch):
    monkeypatch.setattr(tls, "SIGN_SECONDS", 0.02)
    monkeypatch.setattr(tls, "LOOK_SECONDS", 0.01)
    with joined(is_alive=lambda: True) as (asks, _, there):

        def heard():
            select.select([there.connection], [], [], PATIENCE_SECONDS)
            there.hear()
            there.decrypt()
            return there.plain

        assert until(lambda: heard().count(b"\n") > 3)
        os.write(asks, b"half of ")
        assert until(lambda: heard().endswith(b"half of "))
        assert not select.select([there.connection], [], [], 0.1)[0]
        os.write(asks, b"it\n")
        assert until(lambda: b"half of it\n\n\n" in heard())  # several may come at once
        os.close(asks)
        while not there.ended:
            heard()
        there.connection.shutdown(socket.SHUT_WR)


def test_a_listener_hands_signs_of_life_to_nobody():
    ours, theirs = os.pipe()
    relay = tls.Relay(SimpleNamespace(decrypt=lambda: None, plain=b""), 0, theirs, lambda: None)
    for came in (b"\n", b"\n\none", b"\n", b"\n\n", b"two\nthr", b"ee\n\n\nfour\n", b"\n"):
        relay.stream.plain = came
        relay._hear()
    assert relay.passing == b"one\ntwo\nthree\nfour\n"
    os.close(ours), os.close(theirs)


def test_a_relay_shows_no_life_of_a_coordinator_that_stands_still():
    with subprocess.Popen(STAYS) as process:
        assert dialling._is_there(process.pid)
        process.send_signal(signal.SIGSTOP)
        assert until(lambda: not dialling._is_there(process.pid))
        process.kill()
    assert dialling._is_there(1 << 30)


@pytest.mark.long
def test_what_is_shown_for_all_addresses_is_one_that_a_client_can_call(tmp_path):
    with started(tmp_path, "--listen", "0.0.0.0:0", "--any-address") as listener:
        shown = listener.process.stdout.readline()
        assert f"tcp://{socket.gethostname()}:{listener.port}" in shown


def test_a_link_local_address_is_refused_with_a_sentence():
    with pytest.raises(Refused, match="link-local") as refused:
        listening.listener("[fe80::1]:0", any_address=True)
    assert refused.value.kind == "usage"


@pytest.mark.long
def test_nobody_for_so_long_ends_it(tmp_path):
    with started(tmp_path, "--idle", "0.3") as listener:
        assert listener.process.wait(PATIENCE_SECONDS) == 0
        assert "stopped listening" in listener.said.read_text()


@pytest.mark.long
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_ended_listener_takes_its_agent_with_it(tmp_path, monkeypatch, how):
    with started(tmp_path) as listener:
        monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: listener.token})
        with hosts.start_there(listener.spec) as host:
            held = host.hold("loopback", loopback.Setting(), Endpoint(), 60)
            held.__enter__()
            family = listener.children()
            assert len(family) >= 2
            listener.process.send_signal(how)
            assert listener.process.wait(30) == (-how if how == signal.SIGKILL else 130)
            assert ended(family)


@pytest.mark.long
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
        env={**os.environ, TOKEN_VARIABLE: listener.token},
    ) as coordinator:
        assert coordinator.stdout.readline() == b"held\n"
        family = listener.children()
        coordinator.kill()
        assert ended(family)
    assert listener.says("it disconnected")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "0:0", "[::ffff:0.0.0.0]:0"])
def test_all_addresses_are_taken_only_where_that_is_said(address):
    with pytest.raises(Refused, match="any-address") as refused:
        listening.listener(address, any_address=False)
    assert refused.value.kind == "usage"
    with contextlib.suppress(Refused):  # a host without IPv6
        listening.listener(address, any_address=True).close()


@pytest.mark.long
@pytest.mark.parametrize(
    "spec", ["", ":", "127.0.0.1", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000", "192.0.2.1:0"]
)
def test_what_cannot_be_listened_on_is_usage(bottleneck, spec):
    assert bottleneck("agent", "--listen", spec).code == 64


@pytest.mark.parametrize(
    "spec", ["tcp://", "tcp://nas", "tcp://nas:", "tcp://u@nas:1", "tcp://nas:0"]
)
def test_a_spec_without_host_and_port_is_refused(monkeypatch, spec):
    monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: TOKEN.text})
    with pytest.raises(Refused) as refused:
        bootstrap.command_for(spec)
    assert refused.value.kind == "usage"


def test_somebody_at_a_terminal_is_asked_once_for_the_token(monkeypatch):
    asked = []
    monkeypatch.setattr(credentials, "_taken", {})
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    monkeypatch.setattr(credentials.getpass, "getpass", lambda p: asked.append(p) or TOKEN.text)
    assert credentials.token() == credentials.token() == TOKEN
    assert len(asked) == 1


def test_the_token_is_taken_out_of_the_environment(monkeypatch):
    monkeypatch.setattr(credentials, "_taken", {})
    monkeypatch.setenv(TOKEN_VARIABLE, f" {TOKEN.text.upper()} ")
    assert credentials.token() == TOKEN
    assert TOKEN_VARIABLE not in os.environ
    assert "ssss" not in repr(TOKEN)


def test_the_token_is_read_from_a_file_that_nobody_else_reads(monkeypatch, tmp_path):
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    monkeypatch.setenv(TOKEN_FILE_VARIABLE, str(tmp_path / "token"))
    (tmp_path / "token").write_text(f"{TOKEN.text}\n")
    for mode, taken in ((0o644, None), (0o600, TOKEN)):
        monkeypatch.setattr(credentials, "_taken", {})
        (tmp_path / "token").chmod(mode)
        if taken is None:
            with pytest.raises(Refused, match=f"{TOKEN_FILE_VARIABLE}.*readable by other users"):
                credentials.token()
        else:
            assert credentials.token() == taken


@pytest.mark.long
def test_a_terminal_that_takes_no_more_ends_no_session(tmp_path, monkeypatch):
    (tmp_path / "said").symlink_to("/dev/full")
    with started(tmp_path, "--idle", "60") as made:
        monkeypatch.setattr("bottleneck.credentials._taken", {TOKEN_VARIABLE: made.token})
        for _ in range(2):
            with hosts.start_there(made.spec) as host:
                assert host.tell("counters")


def test_the_first_ones_are_free_and_each_one_more_costs_twice_as_much():
    delays = [login_throttle.delay_seconds(count) for count in range(1, 80)]
    assert set(delays[: login_throttle.FREE]) == {0.0}
    assert delays[login_throttle.FREE + 1] == 2 * delays[login_throttle.FREE] > 0
    assert set(delays[20:]) == {login_throttle.LONGEST_SECONDS}


def test_a_network_of_ipv6_is_one_caller_and_of_ipv4_an_address():
    of = login_throttle.prefix
    assert of("2001:db8:0:1::5") == of("2001:db8:0:1:ffff::6") != of("2001:db8:0:2::5")
    assert of("192.0.2.7") != of("192.0.2.8")


def test_their_memory_is_bounded_and_a_right_one_makes_them_forgotten():
    made = login_throttle.Throttle()
    for number in range(login_throttle.MOST_PREFIXES + 10):
        assert made.wrong(str(number)) == 1
    assert len(made.counts) == login_throttle.MOST_PREFIXES
    assert "0" not in made.counts
    assert made.wrong("500") == 2
    made.right("500")
    assert made.wrong("500") < 1
