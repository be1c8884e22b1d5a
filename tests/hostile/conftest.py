"""The hostile ends stand beside their tests: they are a program (trial.py), not a package."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
sys.path.append(str(HERE))


def _once(results: Path) -> None:
    """Runs all behaviours in a process of its own; one worker does it, the others wait."""
    with results.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if results.exists():
            return
        command = [sys.executable, str(HERE / "trial.py"), "--json", str(results)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=200)
        if not results.exists():
            results.with_suffix(".said").write_text(done.stdout + done.stderr)


@pytest.fixture(scope="session")
def trial(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What trial.py found."""
    folder = tmp_path_factory.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        folder = folder.parent
    results = folder / "hostile.json"
    _once(results)
    said = results.with_suffix(".said")
    assert results.exists(), said.read_text() if said.exists() else "trial.py left no results"
    found: dict[str, Any] = json.loads(results.read_text())
    return found
