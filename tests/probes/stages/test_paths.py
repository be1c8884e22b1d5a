"""The paths stage: a host's own addresses, and which of a server's are other ways to it."""

from __future__ import annotations

import json
import subprocess

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Last, Unavailable
from probes.net import peers
from probes.stages import paths
from probes.stages.paths import Own, Setting

SLOW, FAST, SMB = "10.91.7.2", "10.91.8.2", 445
OWN = [Own("10.91.7.1", 24, "eth0", ""), Own("10.91.8.1", 24, "eth1", "")]


def row(address, interface, kind=""):
    return {"address": address, "prefix_bits": 24, "interface": interface, "kind": kind}


def test_own_addresses_are_those_that_ip_shows():
    links = json.loads(subprocess.run(["ip", "-j", "address"], capture_output=True).stdout)
    addresses = {
        (each["local"], each["prefixlen"], link["ifname"])
        for link in links
        for each in link["addr_info"]
        if each["scope"] in ("global", "site")
    }
    assert {(o.address, o.prefix_bits, o.interface) for o in paths.own_addresses()} == addresses


def test_an_answer_that_is_cut_off_tells_no_address():
    assert paths.parse_addresses(b"") == []
    assert paths.parse_addresses(b"\x10\x00\x00\x00\x14\x00\x00\x00" + b"\x01" * 9) == []


@pytest.mark.parametrize(
    "told_address", ["192.0.2.1", "10.91.7.1", "8.8.8.8", "169.254.1.1", "127.0.0.1"]
)
def test_nobody_is_called_who_is_not_next_to_this_host(told_address):
    """Whoever answers may tell any address; this host's own is none of the server's either."""
    ways = paths._list_ways(SLOW, OWN, [row(told_address, "eth1"), row(SLOW, "eth0")])
    assert [each["address"] for each in ways] == [SLOW]


def test_what_is_no_address_breaks_the_stage_alone():
    with pytest.raises(ValueError, match="does not appear to be"):
        paths._list_ways(SLOW, OWN, [row("nas; reboot", "eth1")])


def test_only_so_many_addresses_are_looked_at():
    many = [row(f"10.91.8.{n % 250 + 2}", f"eth{n}") for n in range(10_000)]
    assert len(paths._list_ways(SLOW, OWN, many)) <= paths.MOST_WAYS


def test_one_address_alone_is_the_way_in_use_and_costs_no_transfer(run_stage):
    setting = Setting("127.0.0.1", 1, 1.0)
    with paths.respond(setting) as peer:
        samples, details = run_stage(paths, setting, peer)
    assert isinstance(samples[-1], Last)
    assert not any("push_bytes_per_second" in each for each in details["ways"])


@pytest.mark.parametrize("nonce", ["FLUSHALL\r\nconfig set dir /x\r\n...", "ab" * 15, 7, None])
def test_a_nonce_that_says_something_is_said_to_nobody(nonce):
    with pytest.raises(ValueError):
        paths._check_nonce(nonce)


def test_a_port_that_nobody_opened_is_unavailable(run_stage):
    with pytest.raises(Unavailable):
        run_stage(paths, Setting("127.0.0.1", 1, 1.0), Endpoint("127.0.0.1", 9, nonce="0" * 32))


def test_a_peer_that_ssh_saw_names_further_callers_of_its_own(monkeypatch):
    monkeypatch.setenv("SSH_CONNECTION", "10.0.0.1 5 10.0.0.9 22")
    peers.expect("10.0.0.1")
    peers.expect_also(["10.0.0.2"])
    assert peers._peer == ["10.0.0.1", "10.0.0.2"]
    peers.expect("")
    peers.expect_also(["10.0.0.2"])
    assert peers._peer == []
