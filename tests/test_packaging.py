"""Living beside the numeric package of the same import name; the lock and the names."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INIT = ROOT / "bottleneck" / "__init__.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCK = tomllib.loads((ROOT / "uv.lock").read_text())


def literal_version() -> str:
    (value,) = (
        node.value
        for node in ast.parse(INIT.read_text()).body
        if isinstance(node, ast.Assign)
        and [target.id for target in node.targets if isinstance(target, ast.Name)]
        == ["__version__"]
    )
    assert isinstance(value, ast.Constant)
    assert isinstance(value.value, str)
    return value.value


def test_the_version_is_a_literal_that_pandas_reads_as_too_old() -> None:
    """From 1.2.1 on some pandas would call the numeric package's functions in our module."""
    version = literal_version()
    # PEP 440: release, then perhaps pre, post and development parts.
    parts = re.fullmatch(r"(\d+)\.(\d+)\.(\d+)((a|b|rc)\d+)?(\.post\d+)?(\.dev\d+)?", version)
    assert parts
    assert tuple(int(parts[index]) for index in (1, 2, 3)) < (1, 2, 1)


def test_the_package_imports_nothing() -> None:
    """pandas imports it by mistake wherever both are on the path."""
    for node in ast.walk(ast.parse(INIT.read_text())):
        assert not isinstance(node, (ast.Import, ast.ImportFrom))


def test_the_distribution_has_a_name_of_its_own_and_one_place_for_its_version() -> None:
    project = PROJECT["project"]
    assert project["name"] == "copy-bottleneck"
    assert "version" in project["dynamic"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "bottleneck/__init__.py"
    assert project["scripts"] == {
        "bottleneck": "bottleneck.__main__:main",
        "copy-bottleneck": "bottleneck.__main__:main",
    }


def test_the_lock_holds_no_pandas_no_xarray_and_no_numeric_bottleneck() -> None:
    names = {package["name"] for package in LOCK["package"]}
    assert not names & {"pandas", "xarray", "numpy", "bottleneck"}
    assert {"typer", "rich", "psutil", "smbprotocol", "impacket", "pytest"} <= names


def test_the_lock_names_the_public_index_and_no_other_source() -> None:
    sources = {
        tuple(package["source"].items())
        for package in LOCK["package"]
        if package["name"] != "copy-bottleneck"
    }
    assert sources == {(("registry", "https://pypi.org/" + "simple"),)}
    hosts = set(re.findall(r"https?://[^/\"]+", (ROOT / "uv.lock").read_text()))
    assert hosts == {"https://pypi.org", "https://files." + "pythonhosted.org"}


def test_the_lock_belongs_to_this_project_file() -> None:
    """uv, asked without a network, finds nothing to change."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("UV_")}
    done = subprocess.run(
        [sys.executable, "-m", "uv", "lock", "--check", "--offline", "--no-config"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_the_commands_refuse_to_start_beside_the_numeric_package(tmp_path: Path) -> None:
    """Installed together, the later one overwrites the other's __init__.py."""
    metadata = tmp_path / "Bottleneck-1.6.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: Bottleneck\nVersion: 1.6.0\n")
    done = subprocess.run(
        [sys.executable, "-m", "bottleneck", "--version"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 64, done.stderr
    assert "Bottleneck" in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


def test_the_licence_and_the_changelog_belong_to_this_version() -> None:
    assert "MIT License" in (ROOT / "LICENSE").read_text()
    assert f"## {literal_version()}" in (ROOT / "CHANGELOG.md").read_text()
