"""The project gets no larger and no more tangled than it is; the ceilings are scripts/mass.py's."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
CEILINGS = {
    "lines": 68_295,
    "lines of code": 47_889,
    "modules": 358,
    "lines of tests": 65_006,
    "largest file": 400,
    "largest function": 50,
    "longest import chain": 30,
    "circles of files": 0,
    "circles of packages": 0,
}
"""Changed downwards only, with what goes."""
ALLOWANCE = {
    "issue": "62 to 71",
    "lines": 2240 + 1110 + 444 + 260 + 366 + 1300 + 1473,
    "lines of tests": 2540 + 165 + 172 + 265 + 400 + 106 + 884 + 1096,
    "modules": 38 + 13 + 14,
}
"""Lines above the ceilings, by reason in the order of the sums; they only fall:
rules that the one model replaces: each takes its lines off both sums when it is removed;
readers of other tools' outputs (1,300); zones that are written (500); the first hour (300);
recordings of nine runs (265), repaid as the engine's monkeypatches are removed;
table rows that were incomplete (400); the test of the words (106); packet captures (1,300);
what users ask for next (1,473 of 1,500, after what went)."""


def above(figures, allowance=ALLOWANCE):
    code = {"lines of code": allowance["lines"]}
    return {
        name: figure
        for name, (figure, *_) in figures.items()
        if figure > CEILINGS[name] + {**allowance, **code}.get(name, 0)
    }


@pytest.fixture(scope="module")
def mass():
    spec = importlib.util.spec_from_file_location("mass", ROOT / "scripts" / "mass.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    module._nodes.cache_clear()  # they would make each later fork of this process dearer


def test_no_figure_is_above_its_ceiling(mass):
    figures = mass.measured(ROOT)
    assert figures.keys() == CEILINGS.keys()
    assert above(figures) == {}
    grown = {**figures, "lines": (CEILINGS["lines"] + ALLOWANCE["lines"] + 1, "")}
    assert above(grown).keys() == {"lines"}


def test_code_is_what_is_no_docstring_no_comment_and_not_blank(mass):
    text = '"""What it is."""\n\n# why\nA = """two\nlines"""\n\n\n'
    text += 'def f():\n    """More."""\n    pass\n'
    assert mass.code_lines(text) == 4
    assert [each for each, _ in mass.functions("a.py", text)] == [3]


def test_chains_and_circles_are_counted_through_packages_and_late_imports(mass):
    texts = {
        "p/a/__init__.py": "",
        "p/a/one.py": "from p.a import two\nif TYPE_CHECKING:\n    import p.b.three",
        "p/a/two.py": "def late():\n    from ..b.three import what",
        "p/b/three.py": "import p.a.four",
        "p/a/four.py": "import os",
    }
    files = mass.graph(texts)
    assert files["p/a/one.py"] == {"p/a/__init__.py", "p/a/two.py", "p/b/three.py"}
    assert files["p/a/two.py"] == {"p/b/three.py"}
    assert (mass.longest_chain(files), mass.circles(files)) == (4, 0)
    assert mass.circles(mass.package_graph(files)) == 1
    assert mass.longest_chain({"x": {"y"}, "y": {"x"}, "z": {"x"}}) == 2
