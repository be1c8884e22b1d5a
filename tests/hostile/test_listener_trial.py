"""A listening agent among strangers: bounded, unharmed, and there for whoever knows the token."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from listener_trial import MOST_RESIDENT_BYTES, Result

PATIENCE_SECONDS = 30.0
"""Not the promise, which the whole trial is held to: of a machine that has other work."""


@pytest.mark.long
def test_a_hundred_hostile_peers_keep_nobody_out(tmp_path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("not run: a network namespace needs root")
    path = tmp_path / "seen"
    command = [sys.executable, str(Path(__file__).with_name("listener_trial.py"))]
    command += ["--peers", "100", "--sessions", "1", "--json", str(path)]
    command += ["--seconds", str(PATIENCE_SECONDS)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(path.read_text())["hostile_connections"] >= 100


def test_a_broken_promise_is_told() -> None:
    good = Result(greeting_seconds=[0.5], answer_seconds=[0.1], data_seconds=[0.1], ended_by=130)
    assert good.faults() == []
    for change in (
        {"greeting_seconds": [0.5, 1.1]},
        {"answer_seconds": [1.1]},
        {"data_seconds": []},
        {"resident_bytes": MOST_RESIDENT_BYTES + 1},
        {"descriptors_after": 1},
        {"third_host_packets": 1},
        {"ended_by": 1},
        {"complaints": ["lost"]},
    ):
        assert len(replace(good, **change).faults()) == 1, change  # type: ignore[arg-type]
