#!/usr/bin/env python3
"""Keeps what the program says today, so that a redesign can be held against it.

Usage: python scripts/freeze.py BEFORE                  what this tree says, in a new folder
       python scripts/freeze.py --tree FOLDER BEFORE    the same of another tree
       python scripts/freeze.py --compare BEFORE AFTER  what differs, as a unified diff

Kept are, for each stored report, every document that can be made of it offline; what the gate says
of it; of the lab's reports and traces the answer and its JSON; --help of every command; the schema;
and how wrong usage ends. Each file begins with the exit code.
Exit code of --compare: 0 nothing differs, 1 something does.
"""

from __future__ import annotations

import argparse
import difflib
import gzip
import importlib
import os
import pkgutil
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
REPORTS = ("tests/data/report-v1*.json", "examples/*.json", "examples/*.toml")
PACKED = ("tests/data/lab/*/*.json.gz", "tests/data/traces/*.json.gz")
UNPACKED = Path(tempfile.gettempdir()) / "bottleneck-freeze"
"""One fixed folder for every run: an answer may name its file."""
COMMANDS = tuple(
    "diagnose demo probe watch explain check compare estimate agent schema config doctor "
    "cleanup".split()
)
DOCUMENTS = ("text", "html", "ticket", "json", "junit", "svg")
GATE = ("text", "nagios", "junit", "openmetrics", "github", "json")
WRONG: tuple[list[str], ...] = (
    [],
    ["nonsense"],
    ["diagnose"],
    ["diagnose", "//host"],
    ["diagnose", "//user:pw@host/share"],
    ["diagnose", "//127.0.0.1:1/share", "--user", "anna%pw", "--yes"],
    ["diagnose", "//127.0.0.1:1/share", "--allow-guest", "--yes", "--quick"],
    ["probe", "nonsense"],
    ["probe", "tcp", "--agent", "nowhere"],
    ["explain", "tests/data/junit-10.xsd"],
    ["explain", "missing.json"],
    ["compare", "missing.json", "missing.json"],
    ["check"],
    ["check", "--report", "missing.json"],
    ["check", "//host/share", "--crit", "nonsense"],
    ["estimate", "pull", "--link", "fast"],
)
WIDTH = 100


def cases(tree: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields the name of each kept file and the arguments of the call that writes it."""
    yield "help/bottleneck", ["--help"]
    for command in COMMANDS:
        yield f"help/{command}", [command, "--help"]
    yield "schema", ["schema"]
    for number, arguments in enumerate(WRONG):
        yield f"wrong/{number:02} {' '.join(arguments).replace('/', '_')}", arguments
    stored = [path.relative_to(tree) for each in REPORTS for path in sorted(tree.glob(each))]
    for path in stored:
        if path.name == "grafana-dashboard.json":
            continue
        for form in DOCUMENTS:
            yield f"explain/{path.stem}.{form}", ["explain", str(path), "--format", form]
        verbose = ["explain", str(path), "--verbose", "--target-rate", "500MB/s"]
        yield f"explain/{path.stem}.verbose", verbose
        yield f"explain/{path.stem}.redacted", ["explain", str(path), "--redact"]
        for form in GATE:
            limits = ["--crit", "pull.cached < 20MB/s", "--warn", "push.cached < 1GB/s"]
            judged = ["check", "--report", str(path), *limits, "--format", form]
            yield f"check/{path.stem}.{form}", judged
    for earlier, later in zip(stored, stored[1:], strict=False):
        for form in ("text", "json"):
            name = f"compare/{earlier.stem} {later.stem}.{form}"
            yield name, ["compare", str(earlier), str(later), "--format", form]


def packed_cases(tree: Path) -> Iterator[tuple[str, list[str]]]:
    """Yields the cases of the gzipped reports, each unpacked into UNPACKED first."""
    for path in (path for each in PACKED for path in sorted(tree.glob(each))):
        report = UNPACKED / f"{path.parent.name}-{path.stem}"
        report.write_bytes(gzip.decompress(path.read_bytes()))
        for form in ("text", "json"):
            yield f"kept/{report.stem}.{form}", ["explain", str(report), "--format", form]


def output_of(arguments: list[str]) -> str:
    """Returns exit code, stdout and stderr of one call, in a fork that has the program loaded."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        child = os.fork()
        if not child:
            _call(arguments, out.fileno(), err.fileno())
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        texts = []
        for each in (out, err):
            each.seek(0)
            texts.append(each.read())
    # How old a report is depends on today.
    out_text = re.sub(r'("age_seconds": )[\d.]+', r"\1...", texts[0])
    out_text = re.sub(r", \d+ (min|h|d) ago$", r", ... ago", out_text, flags=re.MULTILINE)
    return f"exit code {code}\n== stdout\n{out_text}== stderr\n{texts[1]}"


def _call(arguments: list[str], out: int, err: int) -> NoReturn:
    from bottleneck.__main__ import main as program

    code = 70
    with Path(os.devnull).open() as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(out, 1)
    os.dup2(err, 2)
    sys.argv = ["bottleneck", *arguments]
    try:
        program()
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def freeze(tree: Path, folder: Path) -> int:
    """Writes one file a case, as a user without settings sees it, and returns their number."""
    folder.mkdir(parents=True)
    folder = folder.resolve()
    os.chdir(tree)
    sys.path.insert(0, str(tree))
    for name in [each for each in os.environ if each.startswith("BOTTLENECK_")]:
        del os.environ[name]
    os.environ.update({"BOTTLENECK_CONFIG": "", "COLUMNS": str(WIDTH), "TZ": "UTC"})
    # Loaded once, for all calls: what a command needs is imported by it alone otherwise.
    for module in pkgutil.walk_packages([str(tree / "bottleneck")], "bottleneck."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    UNPACKED.mkdir(mode=0o700)
    try:
        todo = [*cases(tree), *packed_cases(tree)]
        for name, arguments in todo:
            path = folder / f"{name}.txt"
            path.parent.mkdir(exist_ok=True)
            path.write_text(output_of(arguments), encoding="utf-8")
    finally:
        shutil.rmtree(UNPACKED)
    return len(todo)


def differences(first: Path, second: Path) -> Iterator[str]:
    """Yields the lines of a unified diff of both folders."""
    names = {
        path.relative_to(folder) for folder in (first, second) for path in folder.rglob("*.txt")
    }
    for name in sorted(names):
        sides = [folder / name for folder in (first, second)]
        one, other = (
            path.read_text("utf-8").splitlines() if path.exists() else [] for path in sides
        )
        yield from difflib.unified_diff(one, other, f"before/{name}", f"after/{name}", lineterm="")


def main() -> int:
    """Freezes or compares, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tree", type=Path, default=ROOT)
    parser.add_argument("--compare", action="store_true")
    parser.add_argument("folders", type=Path, nargs="+")
    options = parser.parse_args()
    if not options.compare:
        print(f"{freeze(options.tree.resolve(), options.folders[0])} files in {options.folders[0]}")
        return 0
    lines = list(differences(*options.folders))
    print("\n".join(lines) or "nothing differs")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
