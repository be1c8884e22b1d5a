"""A real sshd on a loopback port: the program travels through the system's ssh."""

import os
import signal
import socket
import subprocess

import pytest

from bottleneck.agents import bootstrap, hosts
from probes.core.records import Endpoint
from probes.stages import tcp
from tests.hostile.sshd import own_sshd
from tests.living import until


@pytest.mark.long
def test_an_agent_behind_ssh_serves_both_ends_of_a_transfer(ssh_on_path):
    with hosts.start_there("ssh://nas") as server, hosts.start_here() as client:
        setting = tcp.Setting("push", 1, seconds=1.0, address="127.0.0.1")
        with server.hold("tcp", setting, Endpoint(), 20) as peer:
            ran = client.initiate("tcp", setting, peer, 20, watch_too=server)
    assert ran.samples[-1].moved_bytes > 0
    assert ran.responder is not None


def test_a_changed_host_key_ends_with_sshs_own_words(ssh_on_path):
    known_hosts = ssh_on_path / "known"
    good = known_hosts.read_text()
    other = (ssh_on_path / "user.pub").read_text().split()
    known_hosts.write_text(f"{good.split()[0]} {other[0]} {other[1]}\n")
    try:
        with pytest.raises(hosts.AgentLost, match=r"(?i)host key"):
            hosts.start_there("ssh://nas")
    finally:
        known_hosts.write_text(good)


def test_a_login_that_would_ask_is_refused(ssh_on_path):
    with pytest.raises(hosts.AgentLost, match="accepts no key .* ssh-copy-id nobody"):
        hosts.start_there("ssh://nobody-of-that-name@nas")


BREAKING = """
  IgnoreUnknown UseKeychain
  UseKeychain yes
  RemoteCommand false
  StdinNull yes
  SessionType none
  ForkAfterAuthentication yes
"""


def test_what_a_user_configured_for_his_own_logins_breaks_no_agent(ssh_on_path):
    client = ssh_on_path / "client"
    usual = client.read_text()
    client.write_text(usual + BREAKING)
    try:
        with hosts.start_there("ssh://nas") as host:
            assert host.ask("facts", toward="", folder=None)["python"]
    finally:
        client.write_text(usual)


def test_a_banner_is_no_reason_of_a_failure(tmp_path, monkeypatch):
    """Neither of a login that ended nor of an agent that did."""
    words = "Staff only: connection refused and timed out"
    login = f'echo "{words}" >&2; [ -e {tmp_path}/closed ] || exec sh -c "$SSH_ORIGINAL_COMMAND"\n'
    with own_sshd(tmp_path, login, banner=f"{words}\n"):
        monkeypatch.setattr(bootstrap.tools, "find", lambda name: str(tmp_path / "bin" / name))
        with hosts.start_there("ssh://nas") as host:
            os.killpg(host.process.pid, signal.SIGKILL)
            with pytest.raises(hosts.AgentLost) as lost:
                host.ask("facts", toward="", folder=None)
        assert "Staff" not in str(lost.value)
        (tmp_path / "login").write_text("exit 1\n")
        with pytest.raises(hosts.AgentLost, match="did not start; try: ssh nas"):
            hosts.start_there("ssh://nas")


@pytest.fixture
def agent_of_the_user(tmp_path, monkeypatch):
    """An ssh-agent, as a login on a desktop has one."""
    place = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", place], stdout=subprocess.DEVNULL)
    assert until(place.exists)
    monkeypatch.setenv("SSH_AUTH_SOCK", str(place))
    yield
    agent.terminate()
    agent.wait()


def test_nothing_of_the_users_is_lent_to_the_server_and_no_connection_stays(
    ssh_on_path, agent_of_the_user, tmp_path
):
    """Whatever the user's configuration does for logins of his own."""
    ports = []
    for _ in range(2):
        with socket.create_server(("127.0.0.1", 0)) as free:
            ports.append(free.getsockname()[1])
    with (tmp_path / "ssh_config").open("a") as file:
        file.write(
            "  ForwardAgent yes\n  ForwardX11 yes\n  ExitOnForwardFailure yes\n"
            f"  RemoteForward {ports[0]} 127.0.0.1:1\n  LocalForward {ports[1]} 127.0.0.1:1\n"
            f"  ControlMaster auto\n  ControlPath {tmp_path}/master\n  ControlPersist 10m\n"
            f"  PermitLocalCommand yes\n  LocalCommand touch {tmp_path}/ran\n"
        )
    command = [*bootstrap.command_for("ssh://nas")[:-1], "env; echo ready; read end"]
    there = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    lines = []
    while "ready\n" not in lines:
        lines.append(there.stdout.readline())
        assert lines[-1], there.stderr.read()
    for port in ports:
        with socket.socket() as attempt:
            assert attempt.connect_ex(("127.0.0.1", port)) != 0
    assert not [line for line in lines if line.startswith(("SSH_AUTH_SOCK=", "DISPLAY="))]
    # A connection that others could use, and that would outlive this one, stands in that file.
    assert not (tmp_path / "master").exists()
    there.communicate()
    assert not (tmp_path / "master").exists() and not (tmp_path / "ran").exists()
