#!/usr/bin/env python3
"""Plant a module of every name and a program of every name, run the commands there, count what ran.

Usage: python tests/hostile/planted_modules.py [--quick] [--only TEXT]

Modules and programs lie in the current folder, in the home folder and in folders of PATH that
everybody can write to, in front of all others; each writes its name into one file when it runs.
Names: every module of Python, of what is installed and of this program, and whatever these import;
every program of this system, and every word of this program's source that could be one.
Exit code: 0 none of them ran; 1 one did, or a command did not do its work; 69 this machine cannot
hold the trial.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

from sshd import own_sshd

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from probes.programs.samba import Samba, private_samba  # noqa: E402
from probes.system.tools import SYSTEM_FOLDERS  # noqa: E402

NOTHING_RAN, SOMETHING_RAN, NO_TRIAL = 0, 1, 69
DONE = (0, 3)
"""Exit codes of a command that did its work."""
NO_AGENT = 69
COMMAND_SECONDS = 120
FOLDER = "0"
"""Folder of the copies: no name that could be planted."""
MODULE = """import posix
posix.write(posix.open({marker!r}, posix.O_WRONLY | posix.O_APPEND), b"module {name}\\n")
raise SystemExit(99)
"""
PROGRAM = """#!/bin/sh
echo "program ${{0##*/}} of ${{0%/*}}" >>{marker}
exit 99
"""
OURS = ("bottleneck", "probes")
_IMPORT = re.compile(r"^\s*(?:from|import)\s+([A-Za-z_]\w*)", re.MULTILINE)
_WORD = re.compile(r"[A-Za-z][\w.+-]{0,30}")


@dataclass
class Planted:
    root: Path
    modules: frozenset[str]
    programs: frozenset[str]

    def __post_init__(self) -> None:
        self.marker = self.root / "ran"
        """File that everything planted writes its name to."""
        self.here = self.root / "here"
        """The current folder: with modules, programs and all of this program's own files."""
        self.elsewhere = self.root / "elsewhere"
        """Like `here`, without imports of `python -m` itself and without this program's files."""
        self.home = self.root / "home"
        """The home folder, with modules and programs."""

    def path(self) -> str:
        """PATH: everybody's folders first, relative ones too."""
        everybodys = f"{self.root / 'open'}:{self.root / 'sticky'}"
        return f"{everybodys}:.::../open:{self.home}:{os.environ['PATH']}"

    def ran(self) -> list[str]:
        """Returns what ran since the last call."""
        text = self.marker.read_text().splitlines()
        self.marker.write_text("")
        return text


def module_names(libraries: bool) -> frozenset[str]:
    """All that this program could import, installed or not; what its libraries could as well."""
    names = {*sys.stdlib_module_names, *metadata.packages_distributions(), "usercustomize"}
    sources = [each for package in OURS for each in (ROOT / package).rglob("*.py")]
    for each in map(Path, sys.path):
        if libraries and each.name == "site-packages":
            sources += [file for file in each.rglob("*.py") if "tests" not in file.parts]
    for file in sources:
        names.update(_IMPORT.findall(file.read_text("utf-8", "replace")))
    names -= {*OURS, *sys.builtin_module_names}
    return frozenset(each for each in names if each.isidentifier())


def program_names() -> frozenset[str]:
    """All programs of this system, and what the source could mean for one."""
    names = {"bottleneck", "copy-bottleneck", Path(sys.executable).name, "python", "python3"}
    for folder in SYSTEM_FOLDERS:
        with contextlib.suppress(FileNotFoundError):
            names.update(os.listdir(folder))
    for package in OURS:
        for file in (ROOT / package).rglob("*.py"):
            for node in ast.walk(ast.parse(file.read_text())):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    names.update(filter(_WORD.fullmatch, node.value.split()))
    return frozenset(names)


def imported_by_python_m() -> set[str]:
    """Returns what `python -m` takes from the current folder before it runs anything of ours."""
    code = "import runpy, sys; print(*sys.modules)"
    outcome = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True)
    return {each.partition(".")[0] for each in outcome.stdout.split()}


def plant_all(root: Path, quick: bool) -> Planted:
    folders = Planted(root, module_names(libraries=not quick), program_names())
    folders.marker.touch()
    folders.marker.chmod(0o666)
    program = root / "program"
    program.write_text(PROGRAM.format(marker=folders.marker))
    program.chmod(0o755)
    for name in ("here", "elsewhere", "home", "open", "sticky"):
        (root / name).mkdir()
    for folder in (folders.here, folders.elsewhere, folders.home):
        early = imported_by_python_m() if folder == folders.elsewhere else set()
        for each in folders.modules - early:
            (folder / f"{each}.py").write_text(MODULE.format(marker=str(folders.marker), name=each))
    for package in OURS:
        for file in (ROOT / package).rglob("*.py"):
            path = folders.here / file.relative_to(ROOT)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(MODULE.format(marker=str(folders.marker), name=path.stem))
    for name in ("here", "elsewhere", "home", "open", "sticky"):
        for each in folders.programs:
            with contextlib.suppress(FileExistsError):  # this program's own package is a folder
                os.link(program, root / name / each)
        (root / name).chmod(0o1777 if name == "sticky" else 0o777)
    return folders


def works(planted: Planted) -> bool:
    """Whether what is planted runs where nobody minds it: else a count of 0 would mean nothing."""
    environment = {**os.environ, "PATH": planted.path()}
    command = [sys.executable, "-c", "import selectors"]
    subprocess.run(command, cwd=planted.here, env=environment, check=False)
    subprocess.run(["/bin/sh", "-c", "fio"], cwd=planted.here, env=environment, check=False)
    return len(planted.ran()) == 2


@contextlib.contextmanager
def ssh_server(planted: Planted) -> Iterator[tuple[str, Path]]:
    """An sshd whose logins start in the planted home; the agent's SPEC, and a folder of modules.

    They have the coordinator's ssh take the configuration of this trial.
    """
    work = planted.root / "ssh"
    work.mkdir(mode=0o700)
    # The system's folders first: which python3 a login finds is up to its user.
    path = f"{':'.join(SYSTEM_FOLDERS)}:{planted.path()}"
    login = f"cd {planted.home}\nexport HOME={planted.home} PATH={path} PYTHONPATH=.\n"
    with own_sshd(work, login + 'eval "$SSH_ORIGINAL_COMMAND"\n') as sshd:
        yield "ssh://nas", sshd.folder / "site"


def commands(server: Samba, agent: str) -> list[tuple[str, ...]]:
    """Every command that starts anything, behind its way; what one writes the next may read.

    Ways: `bottleneck`, as its script starts it; `-m` for python -m bottleneck; `ssh`, with sshd.
    """
    target = f"//{server.host}:{server.port}/{server.share}"
    user = ("--user", server.username, "--folder", FOLDER, "--yes")
    short = ("--budget", "14", *user, "--json", "../report.json")
    files = ("--html", "../report.html", "--ticket", "../report.md", "--junit", "../report.xml")
    return [
        ("bottleneck", "doctor", target, *user[:4], "--agent", "exec:env"),
        ("bottleneck", "probe", "loopback", "--budget", "5"),
        ("bottleneck", "probe", "disk", "--budget", "6", "--folder", FOLDER, "--yes"),
        ("bottleneck", "diagnose", target, "--agent", "exec:env", *short, *files),
        ("bottleneck", "explain", "../report.json"),
        ("bottleneck", "check", "--report", "../report.json", "--warn", "pull.cached < 1kB/s"),
        ("bottleneck", "check", target, "--agent", "exec:env", *short[:-2]),
        ("bottleneck", "probe", "smb-copy", target, "--agent", "exec:env", "--budget", "8", *user),
        ("bottleneck", "watch", "--seconds", "2"),
        ("bottleneck", "cleanup", target, *user[:4], "--agent", "exec:env", "--dry-run"),
        ("bottleneck", "demo", "--budget", "14"),
        ("-m", "doctor", target, *user[:4], "--agent", "exec:env"),
        ("-m", "probe", "loopback", "--budget", "5"),
        ("ssh", "doctor", target, *user[:4], "--agent", agent),
        ("ssh", "diagnose", target, "--agent", agent, *short),
    ]


def run(planted: Planted, way: str, words: list[str], password: str, site: Path) -> tuple[int, str]:
    """Runs a command among what is planted; its exit code and last words."""
    modules = [str(ROOT), *([str(site)] if way == "ssh" else [])]
    environment = {name: text for name, text in os.environ.items() if "BOTTLENECK" not in name}
    environment |= {"PATH": planted.path(), "HOME": str(planted.home), "BOTTLENECK_CONFIG": ""}
    environment |= {"BOTTLENECK_PASSWORD": password, "PYTHONPATH": os.pathsep.join(modules)}
    # A script has its own folder in front and never the current one: -P is the same.
    start = ["-m", "bottleneck"] if way == "-m" else ["-P", "-m", "bottleneck"]
    done = subprocess.run(
        [sys.executable, *start, *words],
        **{"stdin": subprocess.DEVNULL, "capture_output": True, "text": True, "env": environment},
        cwd=planted.elsewhere if way == "-m" else planted.here,
        timeout=COMMAND_SECONDS,
        check=False,
    )
    lines = done.stderr.strip().splitlines() or [""]
    if "--json" in words and done.returncode in DONE:
        report = json.loads((planted.root / "report.json").read_text())
        if report["hosts"]["server"] is None:
            return NO_AGENT, "the server's agent did not start"
    return done.returncode, lines[-1]


def trial(root: Path, part: str, quick: bool) -> int:
    plant = plant_all(root, quick)
    print(
        f"{len(plant.modules)} modules and {len(plant.programs)} programs in 5 folders below {root}"
    )
    if not works(plant):
        print("what is planted does not run even where nobody minds it", file=sys.stderr)
        return NO_TRIAL
    for folder in (plant.here, plant.elsewhere):
        (folder / FOLDER).mkdir()
    (root / "shared").mkdir()
    password, worst = secrets.token_urlsafe(16), NOTHING_RAN
    with contextlib.ExitStack() as stack:
        server = stack.enter_context(private_samba(root / "shared", password=password))
        agent, site = ("", root) if quick else stack.enter_context(ssh_server(plant))
        lines = commands(server, agent)
        lines = [lines[0], lines[-4]] if quick else lines
        for way, *words in lines:
            text = " ".join((way, *words[:2]))
            if part not in text:
                continue
            code, last = run(plant, way, words, password, site)
            ran = plant.ran()
            print(f"{len(ran)} ran, exit {code}: {text}", *sorted(set(ran)), sep="\n    ")
            if ran or code not in DONE:
                print(f"    {last}")
                worst = SOMETHING_RAN
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="two short commands, fewer names")
    parser.add_argument("--only", default="", metavar="TEXT", help="commands that have this text")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="planted-") as folder:
        # Everybody may come this far: what is planted is reached as anybody.
        Path(folder).chmod(0o755)
        code = trial(Path(folder), options.only, options.quick)
    print("nothing that was planted ran" if code == NOTHING_RAN else "see above")
    raise SystemExit(code)


if __name__ == "__main__":
    main()
