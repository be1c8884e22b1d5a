"""benchmarks/disk, smb and tcp: the document that scripts read, on a small run of one cell."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import time
from pathlib import Path
from subprocess import DEVNULL

import pytest

pytestmark = pytest.mark.long
BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
MEMORY = Path("/dev/shm")


def run(program: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [BENCHMARKS / program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd="/")


@pytest.mark.parametrize(
    ("program", "cells_option", "cells"),
    [
        ("disk", "--only", "folder.read"),
        ("smb", "--cells", "3.1.1.plain.read,2.1.signed.write"),
        ("tcp", "--only", "loopback.1.zero-copy.128KiB"),
    ],
)
def test_a_quick_run_writes_the_documented_cells_and_leaves_nothing(
    tmp_path: Path, program: str, cells_option: str, cells: str
) -> None:
    left_before = set(MEMORY.glob("bottleneck-bench-*"))
    path, folder = tmp_path / "figures.json", tmp_path / "folder"
    folder.mkdir()
    options = ("--seconds", "1", "--folder", folder) if program == "disk" else ()
    done = run(program, "--quick", "--pairs", "2", *options, "--json", path, cells_option, cells)
    assert done.returncode == 0, done.stderr
    document = json.loads(path.read_text())
    assert [cell["name"] for cell in document["cells"]] == cells.split(",")
    for cell in document["cells"]:
        assert cell["name"] in done.stdout
        assert len(cell["ours"]) == len(cell["peer"]) == 2
        assert all(rate > 0 for rate in cell["ours"] + cell["peer"])
        pairs = [ours / other for ours, other in zip(cell["ours"], cell["peer"], strict=True)]
        assert cell["ratio"] == pytest.approx(statistics.median(pairs))
    if program == "smb":
        signing = [cell["details"]["signing"] for cell in document["cells"]]
        assert signing == [None, "hmac-sha256"]
        assert len(document["tcp"]["bytes_per_second"]) == 2
    assert list(folder.iterdir()) == []
    assert set(MEMORY.glob("bottleneck-bench-*")) - left_before == set()


@pytest.mark.parametrize(
    ("program", "cells_option", "wrong", "right"),
    [
        ("disk", "--only", "folder.erase", "planted.write"),
        ("smb", "--cells", "3.1.1.plain.read,nt2", "nt1.signed.write"),
        ("tcp", "--only", "loopback.3", "veth.4.copy.best"),
    ],
)
def test_a_cell_that_does_not_exist_is_a_wrong_call_and_is_named(
    program: str, cells_option: str, wrong: str, right: str
) -> None:
    done = run(program, cells_option, wrong)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"no such cell: {wrong.rpartition(',')[2]}" in done.stderr and right in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="not run: needs root (network namespaces, veth, tc)")
def test_a_shaped_link_is_told_and_the_document_on_stdout_is_all_that_is_there() -> None:
    done = run("tcp", "--quick", "--json", "-", "--only", "shaped.100Mbit")
    assert done.returncode == 0, done.stderr
    (cell,) = json.loads(done.stdout)["cells"]
    assert cell["link_bytes_per_second"] == pytest.approx(100e6 / 8 * 1448 / 1514)
    assert 0 < cell["share_of_link"] < 1.1
    assert "shaped.100Mbit" in done.stderr


def test_the_next_run_removes_what_a_killed_one_left_in_memory(tmp_path: Path) -> None:
    command = [BENCHMARKS / "smb", "--size", "4MiB", "--cells", "2.1.plain.read"]
    environment = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}
    earlier = set(MEMORY.glob("bottleneck-bench-*"))
    program = subprocess.Popen([*command, "--pairs", "1000"], stdout=DEVNULL, env=environment)
    try:
        until = time.monotonic() + 60
        while not (folders := set(MEMORY.glob("bottleneck-bench-*/served-plain")) - earlier):
            assert program.poll() is None and time.monotonic() < until
            time.sleep(0.05)
    finally:
        program.kill()
        program.wait()
    assert all(each.exists() for each in folders)
    subprocess.run([*command, "--quick"], stdout=DEVNULL, env=environment, check=True)
    assert not any(each.exists() for each in folders)
