"""The short run sleeps for no fixed time and asserts on no clock; held by reading its tests.

Read are the short tests and all of tests/ that they reach by name: fixtures, helpers, code for a
child. What reading cannot see, `./test --stress` finds.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parent
_FUNCTIONS = r"(?:sleep|(?:monotonic|perf_counter|process_time|thread_time)(?:_ns)?)"
CLOCK = re.compile(rf"\b{_FUNCTIONS}\b|\btime\.time(?:_ns)?\b")
FIGURE = re.compile(r"\b(elapsed_seconds|bytes_per_second)\b")
EXEMPT = (TESTS / "living.py", Path(__file__).resolve())
"""The one place of tests that knows a clock, and what is planted below."""
PURE = frozenset(
    (
        *"analysis documents gate records/test_trend.py lab/law.py".split(),
        *"fleet/test_culprit.py fleet/test_together.py probes/system/test_bus.py".split(),
        "probes/storage/test_curve.py",
        "probes/storage/test_growing_write.py",
    )
)
"""Folders with figures of a stored report or of the test itself: no process there measures."""
Code = ast.stmt
Inner = tuple[ast.AST, ...]
"""A piece of code and all that is in it."""


@dataclass(eq=False)
class Module:
    """A file of tests: what it defines, and what it has from elsewhere."""

    path: Path
    tree: ast.Module
    defined: dict[str, list[Code]] = field(default_factory=dict)
    imported: dict[str, tuple[Path, str]] = field(default_factory=dict)
    aliases: dict[str, str] = field(default_factory=dict)
    """Full names of what is not of tests, by the name here."""

    def __post_init__(self) -> None:
        for node in self.tree.body:
            for name in _bound(node):
                self.defined.setdefault(name, []).append(node)
        for each in ast.walk(self.tree):
            if isinstance(each, ast.Import):
                self.aliases |= {alias.asname or alias.name: alias.name for alias in each.names}
            elif isinstance(each, ast.ImportFrom) and each.module:
                ours = each.module.split(".")[0] == "tests"
                for alias in each.names:
                    here = alias.asname or alias.name
                    if ours:
                        self.imported[here] = _source(each.module, alias.name)
                    else:
                        self.aliases[here] = f"{each.module}.{alias.name}"


def _bound(node: Code) -> list[str]:
    if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
        return [node.name]
    inner = (each for each in ast.walk(node) if isinstance(each, ast.Name))
    return [each.id for each in inner if isinstance(each.ctx, ast.Store)]


def _source(module: str, name: str) -> tuple[Path, str]:
    """The file that a name of tests comes from, and its name there; "" for the file itself."""
    base = TESTS.joinpath(*module.split(".")[1:])
    file = base / f"{name}.py"
    return (file, "") if file.exists() else (base.with_suffix(".py"), name)


@cache
def read(path: Path) -> Module:
    return Module(path, ast.parse(path.read_text("utf-8"), str(path)))


@cache
def conftests(folder: Path) -> tuple[Module, ...]:
    """Returns the conftests of a folder's tests, the nearest first."""
    above = [each / "conftest.py" for each in (folder, *folder.parents)]
    inside = (each for each in above if each.is_relative_to(TESTS) and each.exists())
    return tuple(map(read, inside))


def is_long(node: ast.AST) -> bool:
    return bool(re.search(r"\bmark\.(long|lab)\b", ast.unparse(node)))


def short_tests(module: Module) -> Iterator[Code]:
    """Its tests of the short run, and the fixtures that each of them takes unasked."""
    if any(is_long(each) for each in module.defined.get("pytestmark", ())):
        return
    for name, nodes in module.defined.items():
        for node in nodes:
            marks = getattr(node, "decorator_list", [])
            unasked = any("autouse" in ast.unparse(each) for each in marks)
            test = name.startswith(("test_", "Test"))
            if (test or unasked) and not any(map(is_long, marks)):
                yield node


def names(inner: Inner) -> Iterator[str]:
    """Names that a piece of code may have from elsewhere; `module.name` for an attribute."""
    for each in inner:
        if isinstance(each, ast.Name):
            yield each.id
        elif isinstance(each, ast.arg):
            yield each.arg
        elif isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            yield f"{each.value.id}.{each.attr}"
        elif isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield each.value  # a fixture that is asked for by its name


def definitions(module: Module, name: str) -> Iterator[tuple[Module, Code]]:
    """Yields definitions of a name: in the file, in one that it imports, or in a conftest above."""
    first, _, attribute = name.partition(".")
    if first in module.imported:
        path, there = module.imported[first]
        if path.exists() and (there or attribute):
            yield from definitions(read(path), there or attribute)
    elif first in module.defined:
        yield from ((module, node) for node in module.defined[first])
    elif name.isidentifier():
        for above in conftests(module.path.parent):
            if above is not module and name in above.defined:
                yield from ((above, node) for node in above.defined[name])
                return


def short_run(files: list[Path]) -> Iterator[tuple[Module, Inner]]:
    """All code of tests that the short tests of these files reach by name."""
    waiting = [(read(file), node) for file in files for node in short_tests(read(file))]
    visited = {id(node) for _, node in waiting}
    while waiting:
        module, node = waiting.pop()
        if module.path in EXEMPT:
            continue
        inner = tuple(ast.walk(node))
        yield module, inner
        for name in set(names(inner)):
            for there, other in definitions(module, name):
                if id(other) not in visited:
                    visited.add(id(other))
                    waiting.append((there, other))


def clocks(module: Module, inner: Inner) -> Iterator[tuple[int, str]]:
    """Lines that name a clock or a sleep: by an alias and in code for a child too."""
    said = {id(each.value) for each in inner if isinstance(each, ast.Expr)}
    for each in inner:
        text = ""
        if isinstance(each, ast.Name):
            text = module.aliases.get(each.id, each.id)
        elif isinstance(each, ast.Attribute):
            owner = each.value.id if isinstance(each.value, ast.Name) else ""
            text = f"{module.aliases.get(owner, owner)}.{each.attr}"
        elif isinstance(each, ast.Constant) and id(each) not in said:
            text = each.value if isinstance(each.value, str) else ""
            text = each.value.decode("latin-1") if isinstance(each.value, bytes) else text
        if match := CLOCK.search(text):
            yield each.lineno, match[0]


def measured_lines(module: Module, inner: Inner) -> Iterator[tuple[int, str]]:
    """Returns lines that compare a rate or a duration with a number of the test's own.

    With zero it says that there is one at all, with another figure that both are the same.
    """
    place = _place(module.path)
    if place in PURE or place.partition("/")[0] in PURE:
        return
    for each in inner:
        if not isinstance(each, ast.Compare):
            continue
        sides = [each.left, *each.comparators]
        zero = any(isinstance(side, ast.Constant) and side.value == 0 for side in sides)
        sized = any(isinstance(op, (ast.Lt, ast.LtE, ast.Gt, ast.GtE)) for op in each.ops)
        figures = [match for side in sides if (match := FIGURE.search(ast.unparse(side)))]
        if len(figures) == 1 and not zero and (sized or "approx(" in ast.unparse(each)):
            yield each.lineno, figures[0][0]


def offences(files: list[Path]) -> list[str]:
    """`file:line: word` of each place where a short test could depend on real time."""
    places = {
        (_place(module.path), line, word)
        for module, inner in short_run(files)
        for look in (clocks, measured_lines)
        for line, word in look(module, inner)
    }
    return [f"{place}:{line}: {word}" for place, line, word in sorted(places)]


def _place(path: Path) -> str:
    return path.relative_to(TESTS).as_posix() if path.is_relative_to(TESTS) else path.name


@pytest.fixture(autouse=True)
def clear_caches():
    """Syntax trees of all tests would make each later fork of this process dearer."""
    yield
    read.cache_clear()
    conftests.cache_clear()


def test_no_short_test_reads_a_clock_or_sleeps_or_compares_a_measured_rate():
    assert offences(sorted(TESTS.rglob("test_*.py"))) == []


PLANTED = """
import subprocess, time as t
from time import sleep as rest
import pytest

CHILD = "import time; time.sleep(9)"

@pytest.fixture
def late():
    rest(3)

def helper(began):
    assert t.monotonic() - began < 5

def test_a(late):
    helper(0)

def test_b(sample):
    'It does not sleep.'
    assert sample.elapsed_seconds < 5 and sample.moved_bytes > 5
    assert sample.elapsed_seconds > 0 and sample.asleep

def test_c():
    subprocess.run(["sh", "-c", "sleep 9"])
    subprocess.run(["python3", "-c", CHILD])

def of_long_tests():
    t.sleep(9)

@pytest.mark.long
def test_d():
    of_long_tests()
"""


def test_what_a_short_test_reaches_is_named_by_file_and_line(tmp_path):
    """By an alias, in a fixture, a helper and code for a child; nothing of a long test."""
    file = tmp_path / "test_planted.py"
    file.write_text(PLANTED)
    places = ("6: sleep", "10: sleep", "13: monotonic", "20: elapsed_seconds", "24: sleep")
    assert set(offences([file])) == {f"test_planted.py:{place}" for place in places}
