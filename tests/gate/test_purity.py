"""A judgement depends on the report alone: no clock, no file, no chance."""

import ast
from pathlib import Path

import pytest

GATE = Path(__file__).parents[2] / "bottleneck" / "gate"
MACHINE = {"os", "io", "pathlib", "time", "datetime", "socket", "random", "subprocess", "signal"}
OUTER = ("bottleneck.cli", "bottleneck.run.session", "bottleneck.agents", "typer", "rich", "psutil")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module or ""


@pytest.mark.parametrize("path", sorted(GATE.glob("*.py")), ids=lambda path: path.stem)
def test_the_gate_touches_no_machine(path):
    names = set(imported(path))
    assert not {name.partition(".")[0] for name in names} & MACHINE
    assert not [name for name in names if name.startswith(OUTER)]
