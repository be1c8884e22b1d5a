"""A module or a program that somebody planted does not run: the short cut of planted_modules.py."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.long


def test_nothing_that_is_planted_runs() -> None:
    """In the current folder, at home or in PATH; both agents and what they start are at work."""
    command = [sys.executable, str(Path(__file__).parent / "planted_modules.py"), "--quick"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("\n0 ran, exit 0: ") == 2
