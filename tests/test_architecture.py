"""The house's directions, held by reading every module's imports."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from bottleneck.agents.bootstrap import names_and_sources

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(
    path.relative_to(ROOT)
    for package in ("bottleneck", "probes")
    for path in (ROOT / package).rglob("*.py")
)
CLOCK_AND_CHANCE = (
    *"time socket ssl select selectors asyncio psutil random secrets".split(),
    *"subprocess threading multiprocessing ctypes fcntl signal".split(),
)
"""Modules that make a result depend on when, where and beside what it was worked out."""
MACHINE = ("os", "io", "pathlib", "datetime")
"""Modules that read a host's files and its calendar."""
TRAVELLING = sorted({*map(Path, names_and_sources()), Path("probes/programs/samba.py")})
"""Files that run on the other host, and the private Samba, which a lab starts with any Python."""


@cache
def imports(path: Path) -> frozenset[str]:
    """Every module that a file imports, anywhere in it, by its full name."""
    return frozenset(_imported(path))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse((ROOT / path).read_text(), str(path))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                base = ".".join(
                    (*path.parent.parts[: len(path.parent.parts) - node.level + 1], base)
                )
            base = base.rstrip(".")
            yield base
            yield from (f"{base}.{alias.name}" for alias in node.names)


def reaches(path: Path, *packages: str) -> set[str]:
    """Returns the imports of a file that lie in one of the packages."""
    return {
        name
        for name in imports(path)
        if any(name == package or name.startswith(package + ".") for package in packages)
    }


def under(*folders: str) -> list[Path]:
    return [path for path in MODULES if any(path.is_relative_to(folder) for folder in folders)]


COMMANDS, REPORTS = "bottleneck/cli", "bottleneck/documents"
DRIVERS = tuple(f"probes/smb/impacket_{name}.py" for name in ("session", "server"))
HOUSE = ("bottleneck", "probes")
OF_HOSTS = tuple(f"probes/{name}" for name in ("system", "sockets", "files", "programs", "host"))
FORBIDDEN = [
    (("probes",), (), ("rich", "typer", "click")),
    ((REPORTS,), (), ("psutil",)),
    # A judgement depends on the report alone.
    (("bottleneck/gate",), (), (*MACHINE, *CLOCK_AND_CHANCE)),
    (("bottleneck/gate",), (), ("bottleneck.run.execution", "bottleneck.agents")),
    (HOUSE, (COMMANDS, "bottleneck/__main__.py"), ("typer", "bottleneck.cli")),
    (HOUSE, (COMMANDS, REPORTS), ("rich",)),
    # Security software flags impacket: it may be absent, and these have to cope.
    (HOUSE, DRIVERS, ("impacket",)),
    # Both take an importable `bottleneck` for the numeric package.
    (HOUSE, (), ("pandas", "xarray")),
]
"""Below some folders, but for others, no file imports from these packages."""


@pytest.mark.parametrize(("folders", "but", "packages"), FORBIDDEN)
def test_a_room_reaches_into_no_other_than_its_own(
    folders: tuple[str, ...], but: tuple[str, ...], packages: tuple[str, ...]
) -> None:
    for path in set(under(*folders)) - set(under(*but)):
        assert not reaches(path, *packages), path


def levels() -> list[set[str]]:
    """The rooms as CONTRIBUTING.md prints them, from top to bottom."""
    printed = (ROOT / "CONTRIBUTING.md").read_text().partition("```\nbottleneck")[2]
    lines = f"bottleneck{printed.partition('```')[0]}".split("\n")[:-1]
    return [{f"{root}/{name}" for name in rooms} for root, *rooms in map(str.split, lines)]


def room(path: Path) -> str:
    return "/".join(path.parts[:2])


@cache
def first_lines(name: str) -> str:
    """Returns the docstring of a room's `__init__.py` in one line."""
    docstring = ast.get_docstring(ast.parse((ROOT / name / "__init__.py").read_text()))
    return " ".join((docstring or "").split())


def test_contributing_prints_every_room_once_and_nothing_is_loose() -> None:
    rooms = [each for level in levels() for each in level]
    assert len(rooms) == len(set(rooms))
    loose = {each for each in map(room, MODULES) if each.endswith(".py")}
    names = ("bottleneck/__init__.py", "bottleneck/__main__.py", "probes/__init__.py")
    assert loose == set(names)
    assert set(rooms) == set(map(room, MODULES)) - loose


def test_a_room_imports_only_rooms_below_its_own_and_says_which() -> None:
    level_of = {name: index for index, level in enumerate(levels()) for name in level}
    for path in MODULES:
        here = room(path)
        if here not in level_of:
            continue
        said = first_lines(here).partition("It imports ")[2].partition(". Begin with ")[0]
        for other in {room(file) for file in own_files(path)} & level_of.keys() - {here}:
            assert level_of[here] < level_of[other], (path, other)
            names_all = "all other rooms" in said or other[:6] == "probes" and "the probes" in said
            names_all = names_all and "the probes' " not in said
            assert names_all or re.search(rf"\b{other.partition('/')[2]}\b", said), (path, other)


def test_each_room_says_where_to_begin() -> None:
    for name in (each for level in levels() for each in level):
        files = re.findall(r"\b[\w/]+\.py\b", first_lines(name).partition("Begin with ")[2])
        assert files, name
        for file in files:
            assert (ROOT / name / file).exists() or (ROOT / "probes" / file).exists(), (name, file)


def test_which_system_this_is_is_asked_in_the_rooms_of_hosts_alone() -> None:
    """A platform's abilities are asked of them by their own names."""
    asking = re.compile(r"\bsys\.platform\b|\bos\.name\b|\bplatform\.system\b")
    for path in set(under(*HOUSE)) - set(under(*OF_HOSTS)):
        assert not asking.search(path.read_text()), path


def test_documents_know_of_the_probes_the_records_and_plain_values_alone() -> None:
    for path in under(REPORTS):
        assert reaches(path, "probes") - {"probes"} == reaches(path, "probes.core"), path


def test_analysis_reads_records_and_reports_and_touches_no_machine() -> None:
    machine = ("os", "pathlib", "shutil", "tempfile", "io", *CLOCK_AND_CHANCE)
    # The units are pure too, and the one place that writes a rate for people.
    allowed = ["probes.core.records", "bottleneck.analysis", "bottleneck.report.report"]
    allowed += ["bottleneck.text", "probes.core.copy_trace", "probes.core.lenient"]
    for path in under("bottleneck/analysis"):
        assert not reaches(path, *machine), path
        house = reaches(path, "bottleneck", "probes")
        house -= {"bottleneck", "probes", "probes.core", "bottleneck.documents"}
        assert house == reaches(path, *allowed), path


def test_nothing_that_analysis_reaches_knows_a_clock_a_socket_or_chance() -> None:
    """Through what it imports, too; opening a report's file is the one thing done there."""
    # What a finished document is put into a file with; its name on the way is a random one.
    writing = Path("bottleneck/report/document_file.py")
    # Windows' os, which opens files by its own calls; nothing but that is asked of it there.
    system = Path("probes/system/windows/os.py")
    waiting, visited = under("bottleneck/analysis"), {writing, system}
    while waiting:
        path = waiting.pop()
        visited.add(path)
        assert not reaches(path, *CLOCK_AND_CHANCE), path
        waiting += [other for other in own_files(path) if other not in visited]
    assert Path("bottleneck/report/report.py") in visited
    assert Path("probes/core/records.py") in visited


def own_files(path: Path) -> Iterator[Path]:
    """The files of this project that one imports, with the packages that they lie in."""
    for name in imports(path):
        parts = name.split(".")
        for count in range(1, len(parts) + 1):
            base = Path(*parts[:count])
            yield from {base.with_suffix(".py"), base / "__init__.py"} & set(MODULES)


def test_a_diagnosis_is_made_without_a_socket_or_psutil() -> None:
    """Modules that Python itself has loaded at its start are not asked for."""
    code = f"""
import sys
before = set(sys.modules)
import bottleneck.analysis
print(*sorted({set(CLOCK_AND_CHANCE) - {"random", "secrets"}!r} & (set(sys.modules) - before)))
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


def test_every_stage_is_in_the_list_of_stages_and_describes_itself() -> None:
    stages = import_module("probes").STAGES
    assert isinstance(stages, tuple)
    described = {
        path.stem: import_module(f"probes.stages.{path.stem}").STAGE.name
        for path in MODULES
        if path.parent == Path("probes/stages") and "STAGE = Stage(" in (ROOT / path).read_text()
    }
    assert described == {name.replace("-", "_"): name for name in stages}


def test_no_folder_of_tests_is_a_package() -> None:
    """tests/probes/__init__.py would hide the real probes/."""
    assert not list((ROOT / "tests").rglob("__init__.py"))


@pytest.mark.parametrize("path", TRAVELLING, ids=str)
def test_what_travels_is_python_3_9_and_the_standard_library(path: Path) -> None:
    ast.parse((ROOT / path).read_text(), str(path), feature_version=(3, 9))
    house = {"bottleneck", "probes"}
    foreign = {name.partition(".")[0] for name in imports(path)} - house - {"psutil"}
    assert foreign <= sys.stdlib_module_names


def test_what_travels_calls_nothing_newer_than_python_3_9() -> None:
    """vermin knows the version that each function and argument of the library came with."""
    run = [sys.executable, "-c", "import vermin; vermin.main()", "--target=3.9-", "--no-tips"]
    # It takes bytes for a string of Python 2; annotations are mere text in these files.
    run += ["--exclude", "str.decode", "--no-eval-annotations", "--violations"]
    run += ["--exclude", "tomllib"]  # the coordinator's alone: bounded.loads_toml
    done = subprocess.run(
        [*run, *(str(ROOT / path) for path in TRAVELLING)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "incompatible versions" not in done.stdout, done.stdout


LOADS = {
    "the commands": "import bottleneck.cli.app",
    "a stage": "import probes",
    # An agent does so in its own process; its child imports what carries the request out.
    "a request": """
from bottleneck.agents import requests
from probes import STAGES
for do, listed in requests.LISTED.items():
    for name in (*listed, *(STAGES if do in requests.OF_STAGES else ())):
        assert requests.takes(do, name).keys is not None""",
}


@pytest.mark.parametrize("loaded", LOADS)
def test_what_comes_before_a_child_loads_no_smb_library(loaded: str) -> None:
    """Each costs 130-160 ms, and `--help` has 200."""
    libraries = ("impacket", "smbprotocol", "smbclient", "spnego", "cryptography")
    code = f"import sys\n{LOADS[loaded]}\n"
    code += f"print(*[name for name in {libraries!r} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []
