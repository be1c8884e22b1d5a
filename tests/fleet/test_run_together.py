"""Real clients that copy from one real server at once, by the real ansible-playbook over ssh."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from tests.fleet import hosts
from tests.fleet.test_run import DEAD, end_of, wait_for_a_test, wait_until_clean

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces need root")
FAST, USUAL, SLOW = 1_000_000_000, 100_000_000, 40_000_000
CLIENTS = ("pc0", "pc1", "pc2")


@pytest.fixture
def start_fleet(tmp_path):
    """Function that starts all clients at once over links of given rates: lab, process."""
    with contextlib.ExitStack() as stack:

        def start(client_bits, server_bits, *extra, count=3, budget=12, prepare=None, **by_client):
            place = tmp_path / "hosts"
            place.mkdir()
            plan = hosts.Plan(dict.fromkeys(CLIENTS[:count], client_bits), {"nas0": server_bits})
            lab = stack.enter_context(hosts.lab(plan, place))
            if prepare:
                prepare(lab)
            path = lab.inventory(tmp_path, "8MiB", **by_client)
            words = ["--share", lab.shares["nas0"], "--user", hosts.USER, "--yes", "--json", "-"]
            words += ["--keep", tmp_path / "kept", "--budget", str(budget)]
            words += ["--together", str(count)]
            process = subprocess.Popen(
                [*lab.within(lab.hub), *hosts.PROGRAM, "fleet", path, *words, *extra],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
                env={
                    **os.environ,
                    "TMPDIR": str(tmp_path),
                    "PYTHONPATH": str(hosts.ROOT),
                    "BOTTLENECK_PASSWORD": hosts.PASSWORD,
                },
            )
            stack.callback(process.communicate)
            stack.callback(process.kill)
            return lab, process

        yield start


def assert_server_link_limits(lab, answer, count):
    """The link of the server is named, and the sum is what it carries."""
    limit = answer["together"]
    assert limit["kind"] == "shared", limit
    (suspect,) = limit["suspects"]
    assert suspect["name"] == lab.address("nas0") and suspect["verdict"]["cause"] == "link-rate"
    assert limit["sum_bytes_per_second"] == pytest.approx(11.8e6, rel=0.1)
    assert answer["sentence"].startswith("Bottleneck: server ")
    assert answer["evidence"][0].startswith(f"{count} clients at once ")


@pytest.mark.lab
def test_the_link_of_the_server_limits_two_clients_at_once(start_fleet, tmp_path):
    # So short a test has no time for pulls.
    lab, process = start_fleet(FAST, USUAL, "--direction", "push", count=2, budget=10)
    code, output, err = end_of(process)
    assert code == 0 and output["status"] == "complete", (output["together"], err)
    assert_server_link_limits(lab, output, 2)
    saved = sorted(each.name for each in (tmp_path / "kept").glob("*.together.json"))
    assert saved == [f"{each}@{lab.address('nas0')}.together.json" for each in CLIENTS[:2]]
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_the_link_of_the_server_limits_three_pulls_at_once(start_fleet, tmp_path):
    lab, process = start_fleet(FAST, USUAL)
    code, output, err = end_of(process)
    assert code == 0 and output["together"]["copy"] == "pull.cached", (output["together"], err)
    assert_server_link_limits(lab, output, 3)
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_clients_with_slow_links_of_their_own_reach_no_shared_limit(start_fleet, tmp_path):
    lab, process = start_fleet(SLOW, FAST, "--direction", "push")
    code, output, err = end_of(process)
    limit = output["together"]
    assert code == 0 and (limit["kind"], limit["suspects"]) == ("none", []), (limit, err)
    assert limit["sum_bytes_per_second"] == pytest.approx(3 * 4.75e6, rel=0.1)
    assert output["sentence"].startswith("No fault found: no shared limit up to ")
    assert not any(each["starved"] for each in limit["taken"])
    wait_until_clean(lab, tmp_path)


def starve_pc2(lab):
    """Leaves pc2 4 % of the server's link while the other two share the rest."""
    lines = ["qdisc replace dev eth0 root handle 1: htb"]
    lines += ["class add dev eth0 parent 1: classid 1:1 htb rate 100mbit burst 64k"]
    for index, (client, rate_mbit) in enumerate({"pc0": 48, "pc1": 48, "pc2": 4}.items(), 10):
        rates = f"rate {rate_mbit}mbit ceil 100mbit prio {'7' if rate_mbit < 10 else '0'}"
        lines += [f"class add dev eth0 parent 1:1 classid 1:{index} htb {rates}"]
        match = f"u32 match ip dst {lab.address(client)} flowid 1:{index}"
        lines += [f"filter add dev eth0 parent 1: protocol ip {match}"]
    for line in lines:
        hosts.call("tc", "-n", lab.spaces["nas0"], *line.split())


@pytest.mark.long
def test_a_client_that_the_server_leaves_little_is_starved(start_fleet, tmp_path):
    lab, process = start_fleet(FAST, USUAL, prepare=starve_pc2)
    code, output, err = end_of(process)
    starved = {each["client"]: each["starved"] for each in output["together"]["taken"]}
    assert starved == {"pc0": False, "pc1": False, "pc2": True}, (output["together"], err)
    assert output["together"]["kind"] == "shared" and code == 0
    wait_until_clean(lab, tmp_path)


@pytest.mark.lab
def test_a_dead_client_is_only_missing(start_fleet, tmp_path):
    lab, process = start_fleet(FAST, USUAL, pc2=DEAD)
    code, output, err = end_of(process)
    assert code == 3 and output["status"] == "partial", err
    assert [each["client"] for each in output["together"]["taken"]] == ["pc0", "pc1"]
    assert output["together"]["kind"] == "shared"
    assert [each["client"] for each in output["missing"]] == ["pc2"]
    assert output["evidence"][0].startswith("2 of 3 clients at once pull ")
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_an_interrupt_while_all_copy_leaves_one_document_and_no_file(start_fleet, tmp_path):
    lab, process = start_fleet(FAST, USUAL, count=2)
    assert any("2 clients at once" in line for line in process.stderr)
    wait_for_a_test(lab, "smb-copy")
    process.send_signal(signal.SIGINT)
    code, output, _ = end_of(process)
    assert code == 130 and output["status"] == "interrupted"
    assert output["together"]["kind"] == "undecided" and output["pairs"]
    assert json.dumps(output["together"]["taken"]) == "[]"
    wait_until_clean(lab, tmp_path)
