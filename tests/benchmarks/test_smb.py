"""benchmarks/smb: the document that scripts read, on two cells with a small file."""

from __future__ import annotations

import json
import statistics
import subprocess
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

PROGRAM = Path(__file__).parents[2] / "benchmarks" / "smb"
MEMORY = Path("/dev/shm")


def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PROGRAM, *arguments], capture_output=True, text=True, timeout=120, cwd="/"
    )


def test_a_quick_run_writes_the_documented_cells_and_leaves_nothing(tmp_path: Path) -> None:
    left_before = set(MEMORY.glob("bottleneck-bench-*"))
    path = tmp_path / "figures.json"
    cells = "3.1.1.plain.read,2.1.signed.write"
    done = run("--quick", "--pairs", "2", "--json", path, "--cells", cells)
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert [cell["name"] for cell in document["cells"]] == ["3.1.1.plain.read", "2.1.signed.write"]
    for cell in document["cells"]:
        assert len(cell["ours"]) == len(cell["peer"]) == 2
        assert all(rate > 0 for rate in cell["ours"] + cell["peer"])
        pairs = [own / other for own, other in zip(cell["ours"], cell["peer"], strict=True)]
        assert cell["ratio"] == pytest.approx(statistics.median(pairs))
        assert cell["name"] in done.stdout
    assert [cell["details"]["signing"] for cell in document["cells"]] == [None, "hmac-sha256"]
    assert len(document["tcp"]["bytes_per_second"]) == 2
    assert set(MEMORY.glob("bottleneck-bench-*")) - left_before == set()


def test_a_cell_that_does_not_exist_is_a_wrong_call_and_is_named() -> None:
    done = run("--cells", "3.1.1.plain.read,nt2")
    assert (done.returncode, done.stdout) == (2, "")
    assert "no such cell: nt2" in done.stderr and "nt1.signed.write" in done.stderr


def test_the_document_on_stdout_is_all_that_is_there() -> None:
    done = run("--quick", "--json", "-", "--cells", "3.1.1.plain.write")
    assert done.returncode == 0, done.stderr
    assert [cell["name"] for cell in json.loads(done.stdout)["cells"]] == ["3.1.1.plain.write"]
    assert "3.1.1.plain.write" in done.stderr


def test_a_killed_run_leaves_nothing_in_memory() -> None:
    before = set(MEMORY.glob("bottleneck-bench-*"))
    program = subprocess.Popen(
        [PROGRAM, "--size", "4MiB", "--pairs", "1000", "--cells", "2.1.plain.read"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 60
        while not (made := set(MEMORY.glob("bottleneck-bench-*/served-plain")) - before):
            assert program.poll() is None and time.monotonic() < until
            time.sleep(0.05)
    finally:
        program.kill()
        program.wait()
    until = time.monotonic() + 60
    while any(path.exists() for path in made):
        assert time.monotonic() < until
        time.sleep(0.05)
