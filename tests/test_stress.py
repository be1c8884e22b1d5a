"""`./test --stress` names each test that did not pass in every round."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TURNS = """
from pathlib import Path

def test_one():
    pass

def test_two():
    there = Path(__file__).with_name("there")
    there.unlink() if there.exists() else there.touch()
    assert there.exists()
"""


@pytest.mark.long
def test_each_test_that_did_not_pass_in_every_round_is_named_with_its_seed(tmp_path: Path) -> None:
    """Real rounds beside real load."""
    (tmp_path / "test_turns.py").write_text(TURNS)
    command = [sys.executable, "scripts/stress.py", "2", str(tmp_path / "test_turns.py")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    *_, name, last = done.stdout.splitlines()
    assert done.returncode == 1
    assert re.fullmatch(r".*test_turns::test_two: not passed in 1 of 2, seeds \[\d+\]", name)
    assert last == "2 rounds; tests that did not pass in each: 1"
