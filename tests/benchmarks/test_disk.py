"""benchmarks/disk: the document that scripts read, on a small run."""

from __future__ import annotations

import json
import statistics
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "disk"


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=120, cwd="/"
    )


def test_a_quick_run_writes_the_documented_cells_and_leaves_nothing(tmp_path: Path) -> None:
    path, folder = tmp_path / "figures.json", tmp_path / "folder"
    folder.mkdir()
    some = ("--quick", "--pairs", "2", "--seconds", "1", "--folder", folder)
    done = run(*some, "--json", path, "--only", "folder.read")
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(path.read_text())["cells"]
    assert cell["name"] == "folder.read" and cell["name"] in done.stdout
    assert len(cell["ours"]) == len(cell["peer"]) == 2
    pairs = [own / other for own, other in zip(cell["ours"], cell["peer"], strict=True)]
    assert cell["ratio"] == statistics.median(pairs) > 0
    assert list(folder.iterdir()) == []


def test_a_cell_that_does_not_exist_is_a_wrong_call_and_is_named() -> None:
    done = run("--only", "folder.erase")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such cell: folder.erase" in done.stderr and "planted.write" in done.stderr
