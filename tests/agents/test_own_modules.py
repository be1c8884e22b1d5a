"""Modules come from where the program is installed, whatever lies in the current folder."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from bottleneck.agents import hosts, own_modules

PLANT = "import os; os.write(os.open({!r}, os.O_CREAT | os.O_WRONLY), b'x'); raise SystemExit(9)\n"


@pytest.fixture
def ran_marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder has modules that are called as Python's, a library's and our own."""
    marker = tmp_path / "ran"
    folder = tmp_path / "planted"
    names = ("selectors", "psutil", "typer", "json", "signal")
    names += ("bottleneck/agents/server", "probes/stages/tcp")
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(PLANT.format(str(marker)))
    (folder / "bottleneck" / "__init__.py").touch()
    for name in ("bottleneck/agents", "probes", "probes/stages"):
        (folder / name / "__init__.py").touch()
    monkeypatch.chdir(folder)
    return marker


@pytest.mark.long
@pytest.mark.parametrize("variable", [None, ":", ".", "../planted", "PLANTED"])
@pytest.mark.parametrize("start", [hosts.start_here, partial(hosts.start_there, "exec:env")])
def test_an_agent_here_and_one_that_travels_run_nothing_of_the_current_folder(
    ran_marker: Path,
    monkeypatch: pytest.MonkeyPatch,
    variable: str | None,
    start: Callable[[], hosts.Host],
) -> None:
    if variable is not None:
        folder = str(ran_marker.parent / "planted")
        monkeypatch.setenv("PYTHONPATH", folder if variable == "PLANTED" else variable)
    with start() as host:
        assert host.ask("facts", toward="127.0.0.1", folder=".")
    assert not ran_marker.exists()


@pytest.mark.long
def test_python_m_drops_the_current_folder_before_it_imports_more(
    ran_marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m` finds its own imports, and a `bottleneck` there, before we run."""
    (ran_marker.parent / "planted" / "bottleneck").rename(ran_marker.parent / "away")
    monkeypatch.setenv("PYTHONPATH", f"{own_modules.HOME}:.:")
    done = subprocess.run(
        [sys.executable, "-m", "bottleneck", "doctor"], capture_output=True, check=False
    )
    assert done.stdout and not ran_marker.exists(), done


def test_the_current_folder_comes_last_where_the_program_itself_lies_there(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(own_modules.HOME)
    library = str(Path(os.__file__).parent)
    monkeypatch.setattr(sys, "path", ["", own_modules.HOME, "relative", library])
    assert own_modules.folders() == [library, own_modules.HOME]


def test_a_current_folder_that_is_gone_is_no_hindrance(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    monkeypatch.setattr(sys, "path", [own_modules.HOME, "relative"])
    assert own_modules.folders() == [own_modules.HOME]


def test_another_installation_that_stands_before_ours_is_not_the_agents(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for package in ("bottleneck", "probes"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("raise SystemExit(9)\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    with hosts.start_here() as host:
        assert host.ask("facts", toward="127.0.0.1", folder=".")
