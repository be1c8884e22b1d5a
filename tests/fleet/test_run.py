"""A real fleet of 3 clients and 2 servers, measured by the real ansible-playbook over real ssh."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests import living
from tests.fleet import hosts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces need root")
ROOT = Path(__file__).parents[2]
FAST, SLOW = 100_000_000, 40_000_000
CLIENTS = ("pc0", "pc1", "pc2")
DEAD = {"ansible_port": 1}


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    plan = hosts.Plan(dict.fromkeys(CLIENTS, FAST), {"nas0": FAST, "nas1": SLOW})
    with hosts.lab(plan, tmp_path_factory.mktemp("hosts")) as hosts_lab:
        yield hosts_lab


@pytest.fixture
def fleet(lab, tmp_path):
    """Starts the program in the switch of the lab; a function that gives its ending."""
    running = []

    def start(*extra, password=hosts.PASSWORD, **by_client):
        path = lab.inventory(tmp_path, "2MiB", **by_client)
        environment = {**os.environ, "TMPDIR": str(tmp_path)}
        shares = [word for share in lab.shares.values() for word in ("--share", share)]
        words = ["--user", hosts.USER, "--yes", "--budget", "12", "--keep", tmp_path / "kept"]
        process = subprocess.Popen(
            [*lab.within(lab.hub), *hosts.PROGRAM, "fleet", path, *shares, *words, *extra],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**environment, "PYTHONPATH": str(ROOT), "BOTTLENECK_PASSWORD": password},
        )
        running.append(process)
        return process

    yield start
    for each in running:
        each.kill()
        each.communicate()


def end_of(process):
    """Waits for a run; returns its exit code, document and complaints."""
    out, err = process.communicate(timeout=200)
    assert "Traceback" not in err, err
    return process.returncode, json.loads(out) if out else None, err


def wait_until_clean(lab, folder):
    """No file, folder or process of a run is left on a host, and no folder of ours here."""

    def remaining():
        return [*lab.left_behind(), *folder.glob("bottleneck-*")]

    assert living.swept(lambda: not remaining()), remaining()


def wait_for_a_test(lab, name="diagnose"):
    assert living.until(lambda: any(name in each for each in lab.left_behind()))


@pytest.mark.long
def test_the_slow_server_is_named_and_nothing_is_left(lab, fleet, tmp_path):
    code, output, err = end_of(fleet("--json", "-"))
    assert [each["name"] for each in output["culprits"]] == [lab.address("nas1")], (output, err)
    assert code == 0 and output["status"] == "complete" and output["missing"] == []
    saved = list((tmp_path / "kept").glob("*@*.json"))
    assert len(saved) <= 2 * (3 + 2)
    password = hosts.PASSWORD.encode()
    assert not [each for each in (tmp_path / "kept").iterdir() if password in each.read_bytes()]
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_a_dead_client_costs_its_own_pairs(lab, fleet, tmp_path):
    earlier = lab.sent_bytes("pc2")
    code, output, err = end_of(fleet("--json", "-", pc2=DEAD))
    assert code == 3 and output["status"] == "partial", err
    assert [each["name"] for each in output["culprits"]] == [lab.address("nas1")]
    assert {each["client"] for each in output["missing"]} == {"pc2"}
    # ARP of the others alone.
    assert sum(lab.sent_bytes("pc2")) - sum(earlier) < 100_000
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_after_an_interrupt_there_is_one_document_and_the_run_goes_on(lab, fleet, tmp_path):
    process = fleet("--json", "-")
    assert any("round 2 of" in line for line in process.stderr)
    wait_for_a_test(lab)
    process.send_signal(signal.SIGINT)
    code, output, err = end_of(process)
    assert code == 130 and output["status"] == "interrupted"
    assert err.splitlines()[-1] == "bottleneck: interrupted; continue with --resume"
    wait_until_clean(lab, tmp_path)
    code, output, err = end_of(fleet())
    assert code == 64 and "use --resume" in err
    code, output, err = end_of(fleet("--json", "-", "--resume"))
    assert len(output["culprits"]) == 1 and output["status"] == "complete", err


@pytest.mark.long
def test_a_killed_coordinator_leaves_nothing_on_any_host(lab, fleet, tmp_path):
    process = fleet("--json", "-")
    wait_for_a_test(lab)
    process.kill()
    process.communicate()
    wait_until_clean(lab, tmp_path)
    code, output, _ = end_of(fleet("--json", "-", "--resume"))
    assert code == 0 and output["status"] == "complete"


@pytest.mark.long
def test_a_wrong_password_is_refused_once_by_each_server(lab, fleet, tmp_path):
    code, output, err = end_of(fleet("--json", "-", password="wrong"))
    assert code == 77 and output["status"] == "failed" and output["culprits"] == []
    # No more than the first round: accounts are locked after a few.
    servers = [each["server"] for each in output["missing"]]
    assert servers and len(servers) == len(set(servers))
    assert "no pair was measured" in err.splitlines()[-1]
    wait_until_clean(lab, tmp_path)


@pytest.mark.long
def test_a_full_disk_of_a_client_costs_its_own_pairs(lab, fleet, tmp_path):
    full = tmp_path / "full"
    full.mkdir()
    with lab.full_disk("pc1", full) as disk:
        code, output, err = end_of(fleet("--json", "-", pc1={"bottleneck_folder": str(full)}))
        assert [each.name for each in disk.iterdir()] == ["filler"]
    assert code == 3 and output["status"] == "partial", err
    assert {each["client"] for each in output["missing"]} == {"pc1"}
    wait_until_clean(lab, tmp_path)
