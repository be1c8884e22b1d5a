"""A real fleet of 3 clients and 2 servers, measured by the real ansible-playbook."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.fleet import hosts

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: namespaces need root")
ROOT = Path(__file__).parents[2]
FAST, SLOW = "240mbit", "80mbit"
CLIENTS = ("pc0", "pc1", "pc2")


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    rates = {**dict.fromkeys((*CLIENTS, "nas0"), FAST), "nas1": SLOW}
    with hosts.lab(rates, ("nas0", "nas1"), tmp_path_factory.mktemp("served")) as made:
        yield made


def inventory(lab, folder, dead=()):
    """The clients are this host, with a command that enters each one's namespace."""
    told = {}
    for client in CLIENTS:
        (folder / client).mkdir()
        command = ["ip", "netns", "exec", lab.spaces[client], sys.executable, "-m", "bottleneck"]
        here = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable}
        if client in dead:
            here = {"ansible_connection": "ssh", "ansible_host": "127.0.0.1", "ansible_port": 1}
        told[client] = {
            **here,
            "bottleneck_command": ["env", f"PYTHONPATH={ROOT}", *command],
            "bottleneck_folder": str(folder / client),
            "bottleneck_size": "4MiB",
        }
    path = folder / "inventory.yml"
    path.write_text(json.dumps({"all": {"hosts": told}}))
    return path


def asked(lab, path, folder):
    shares = [word for share in lab.shares.values() for word in ("--share", share)]
    more = ["--user", hosts.USER, "--yes", "--budget", "10", "--keep", folder / "kept"]
    return ["fleet", path, *shares, *more]


def left_behind(folder):
    return [str(each) for client in CLIENTS for each in (folder / client).rglob("*")]


@pytest.mark.long
def test_the_slow_server_is_named_and_a_dead_client_costs_its_own_pairs(lab, bottleneck, tmp_path):
    path = inventory(lab, tmp_path, dead=("pc2",))
    ended = bottleneck(
        *asked(lab, path, tmp_path), "--json", "-", password=hosts.PASSWORD, seconds=160
    )
    told = json.loads(ended.out)
    assert ended.code == 3, ended.err
    assert [each["name"].partition(":")[0] for each in told["culprits"]] == [
        lab.shares["nas1"].split("/")[2].partition(":")[0]
    ], told["evidence"]
    assert {each["client"] for each in told["missing"]} == {"pc2"}
    assert told["status"] == "partial"
    # ARP of the others alone.
    assert sum(lab.sent_bytes("pc2")) < 100_000 < sum(lab.sent_bytes("pc0"))
    assert left_behind(tmp_path) == []
    kept = sorted(each.name for each in (tmp_path / "kept").glob("*@*"))
    assert len(kept) <= 2 * (3 + 2) and {each.partition("@")[0] for each in kept} == {"pc0", "pc1"}
    password = hosts.PASSWORD.encode()
    for file in (tmp_path / "kept").rglob("*"):
        assert not file.is_file() or password not in file.read_bytes(), file


@pytest.fixture
def interrupted():
    """Runs the program until it says something, interrupts it, and gives its ending."""

    def run(words, text):
        process = subprocess.Popen(
            [sys.executable, "-m", "bottleneck", *map(str, words)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONPATH": str(ROOT), "BOTTLENECK_PASSWORD": hosts.PASSWORD},
        )
        try:
            assert any(text in line for line in process.stderr)
            process.send_signal(signal.SIGINT)
            return (*process.communicate(timeout=60), process.returncode)
        finally:
            process.kill()
            process.wait()

    return run


@pytest.mark.long
def test_after_an_interrupt_there_is_one_document_and_the_run_goes_on(
    lab, interrupted, bottleneck, tmp_path
):
    path = inventory(lab, tmp_path)
    words = [*asked(lab, path, tmp_path), "--json", "-"]
    out, err, code = interrupted(words, "round 2 of")
    assert code == 130 and "Traceback" not in err
    assert json.loads(out)["status"] == "interrupted"
    assert err.splitlines()[-1] == "bottleneck: interrupted; continue with --resume"
    until = time.monotonic() + 20
    while left_behind(tmp_path) and time.monotonic() < until:
        time.sleep(0.1)
    assert left_behind(tmp_path) == []
    refused = bottleneck(*words, password=hosts.PASSWORD)
    assert refused.code == 64 and "use --resume" in refused.complaint
    ended = bottleneck(*words, "--resume", password=hosts.PASSWORD, seconds=160)
    told = json.loads(ended.out)
    assert len(told["culprits"]) == 1 and told["status"] == "complete", ended.err


@pytest.mark.long
def test_a_wrong_password_is_told_of_each_pair(lab, bottleneck, tmp_path):
    path = inventory(lab, tmp_path)
    ended = bottleneck(*asked(lab, path, tmp_path), "--json", "-", password="wrong", seconds=160)
    told = json.loads(ended.out)
    assert ended.code == 69 and told["culprits"] == []
    assert told["missing"]
    assert not [each for each in told["missing"] if "no report" in each["reason"]]
    assert left_behind(tmp_path) == []
