"""benchmarks/tcp_physics.py: what it catches; benchmarks/tcp_sampling.py: its document."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from probes.core.records import Sample
from probes.core.stage import Last
from probes.net.transfer import Transfer

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
sys.path.append(str(BENCHMARKS))
import tcp_physics  # noqa: E402


@pytest.mark.long
def test_what_looking_costs_is_told_two_ways(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    short = ("--rounds", "1", "--seconds", "0.3", "--json", path)
    command = [sys.executable, BENCHMARKS / "tcp_sampling.py", *short]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    # 1: of so short a run the cost is noise
    assert done.returncode in {0, 1}, done.stderr
    document = json.loads(path.read_text())
    assert {looks: len(rates) for looks, rates in document["bytes_per_second"].items()} == {
        "0": 1,
        "50": 1,
        "1000": 1,
    }
    assert document["cost_ratio"] < 1 and document["cost_by_many_ratio"] < 0.05


LINK = tcp_physics.Link(80_000_000, 10_000, 100_000)
END = {"seconds": 1.0, "moved_bytes": 9_000_000, "calls": 90, "granted_bytes": 1}
SAMPLES = (Sample(0.0, 0), Sample(0.5, 4_700_000), Last(1.0, 9_400_000))
MOVED = Transfer(SAMPLES, END, {**END, "cpu_seconds": 0.5}, {"loss_ratio": 0.5}, "bbr", 0.001)


def violations(transfer: Transfer) -> list[str]:
    shape = tcp_physics.Shape("push", 1, 100_000, 1.5)
    return list(tcp_physics.impossible(LINK, transfer, shape))


def test_what_a_link_carries_is_not_beyond_physics() -> None:
    assert violations(MOVED) == []


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"samples": (Sample(0.0, 0), Last(1.0, 10_000_000))}, "of what the link carries"),
        ({"samples": (Sample(0.0, 0), Sample(0.1, 1_200_000), SAMPLES[2])}, "from 0.0000"),
        ({"samples": (Sample(0.0, 0), Sample(0.9, 5), Last(0.8, 6))}, "backwards"),
        ({"samples": (Sample(0.0, 0), Sample(0.5, 5), Last(0.8, 4))}, "backwards"),
        ({"sender": {**END, "calls": 89}}, "sender: 89 calls"),
        ({"receiver": {**END, "cpu_seconds": 1e3}}, "of CPU"),
        ({"receiver": {**END, "granted_bytes": -1}}, "negative"),
        ({"limits": {"loss_ratio": 1.01}}, "loss_ratio"),
        ({"limits": {"unsent_bytes_median": -1}}, "unsent_bytes_median"),
    ],
)
def test_each_rule_of_physics_is_seen_to_be_broken(change: dict, text: str) -> None:
    assert any(text in line for line in violations(replace(MOVED, **change)))


def test_the_same_seed_draws_the_same_runs() -> None:
    one, other = random.Random(7), random.Random(7)
    assert [tcp_physics.drawn(one) for _ in range(50)] == [
        tcp_physics.drawn(other) for _ in range(50)
    ]


@pytest.mark.lab
@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root (network namespaces, veth, tc)")
def test_no_short_transfer_tells_a_rate_that_its_link_cannot_carry() -> None:
    command = [sys.executable, BENCHMARKS / "tcp_physics.py", "--runs", "25", "--seed", "11"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 beyond physics" in done.stdout
