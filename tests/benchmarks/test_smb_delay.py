"""benchmarks/smb_delay.py: a copy over a planted delay has the window and the rate it should."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "smb_delay.py"


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root (network namespaces, TAP)")
def test_both_verbs_are_held_to_the_planted_link_and_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "figures.json"
    short = ("--pairs", "1", "--size", "8MiB", "--rtt", "0.02", "--link", "50MB/s")
    done = subprocess.run(
        [sys.executable, PROGRAM, *short, "--json", path],
        capture_output=True,
        text=True,
        timeout=120,
    )
    # 1: so short a copy is all start, and may stay below the bar
    assert done.returncode in {0, 1}, done.stderr
    document = json.loads(path.read_text())
    assert [cell["name"] for cell in document["cells"]] == ["3.1.1.plain.read", "3.1.1.plain.write"]
    for cell in document["cells"]:
        assert cell["measured_rtt_seconds"] >= document["rtt_seconds"] == 0.02
        assert cell["details"]["request_bytes"] * cell["details"]["depth"] >= 0.02 * 2.5e9
        assert 0 < cell["ours"][0] < cell["bound_bytes_per_second"] <= 50e6
