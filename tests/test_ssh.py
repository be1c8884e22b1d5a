"""A real sshd on a loopback port: the program travels through the system's ssh."""

import time

import pytest

from bottleneck import hosts
from probes import tcp
from probes.records import Endpoint


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
