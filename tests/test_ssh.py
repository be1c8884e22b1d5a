"""A real sshd on a loopback port: the program travels through the system's ssh."""

import getpass
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path

import pytest

from bottleneck import hosts
from probes import tcp
from probes.records import Endpoint

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/bin:" + os.environ.get("PATH", ""))


@pytest.fixture(scope="module")
def sshd(tmp_path_factory):
    """Port and client configuration of an sshd of our own."""
    if SSHD is None:
        pytest.fail("openssh-server is not installed: run ./test, which installs it")
    folder = tmp_path_factory.mktemp("sshd")
    for name in ("host", "user"):
        key = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)]
        subprocess.run(key, check=True)
    (folder / "authorized").write_text((folder / "user.pub").read_text())
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    (folder / "banner").write_text("This host belongs to nobody.\n")
    (folder / "config").write_text(
        f"Port {port}\nListenAddress 127.0.0.1\nHostKey {folder}/host\nPidFile none\n"
        f"AuthorizedKeysFile {folder}/authorized\nStrictModes no\nUsePAM no\n"
        f"PasswordAuthentication no\nPermitRootLogin yes\nBanner {folder}/banner\n"
    )
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    server = subprocess.Popen([SSHD, "-D", "-e", "-f", str(folder / "config")], stderr=subprocess.DEVNULL)
    until = time.monotonic() + 10
    while time.monotonic() < until:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                break
        time.sleep(0.05)
    public = (folder / "host.pub").read_text().split()
    (folder / "known").write_text(f"[127.0.0.1]:{port} {public[0]} {public[1]}\n")
    yield folder, port
    server.terminate()
    server.wait(10)


@pytest.fixture
def ssh_on_path(sshd, tmp_path, monkeypatch):
    """The system's ssh, with this test's configuration in place of the user's."""
    folder, port = sshd
    configuration = tmp_path / "ssh_config"
    configuration.write_text(
        f"Host nas\n  HostName 127.0.0.1\n  Port {port}\n  IdentityFile {folder}/user\n"
        f"  IdentitiesOnly yes\n  UserKnownHostsFile {folder}/known\n  User {getpass.getuser()}\n"
    )
    wrapper = tmp_path / "bin" / "ssh"
    wrapper.parent.mkdir()
    wrapper.write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} -F {configuration} "$@"\n')
    wrapper.chmod(0o755)
    monkeypatch.setenv("PATH", f"{wrapper.parent}:{os.environ['PATH']}")
    return folder


def test_an_agent_behind_ssh_serves_both_ends_of_a_transfer(ssh_on_path):
    with hosts.start_there("ssh://nas") as server, hosts.start_here() as client:
        setting = tcp.Setting("push", 1, seconds=0.4, address="127.0.0.1")
        with server.hold("tcp", setting, Endpoint(), 20) as peer:
            ran = client.initiate("tcp", setting, peer, 20, watch_too=server)
    assert ran.samples[-1].moved_bytes > 0
    assert ran.other is not None


def test_a_changed_host_key_ends_with_sshs_own_words(ssh_on_path):
    known = ssh_on_path / "known"
    good = known.read_text()
    other = (ssh_on_path / "user.pub").read_text().split()
    known.write_text(f"{good.split()[0]} {other[0]} {other[1]}\n")
    try:
        with pytest.raises(hosts.AgentLost, match=r"(?i)host key"):
            hosts.start_there("ssh://nas")
    finally:
        known.write_text(good)


def test_a_login_that_would_ask_is_refused_at_once(ssh_on_path):
    began = time.monotonic()
    with pytest.raises(hosts.AgentLost, match="Permission denied"):
        hosts.start_there("ssh://nobody-of-that-name@nas")
    assert time.monotonic() - began < hosts.GREETING_SECONDS
