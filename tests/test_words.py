"""Names are nouns and verbs, docstrings begin with what they describe."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NO_NAMES = frozenset(
    "found told known made seen given shown chosen left held asked wanted gone kept named moved "
    "alone most least whole own at about more before after alike".split()
)
NO_BEGINNINGS = tuple("The same,That ,Of ,What ,Those ,Which ,How ,As ,Where ".split(","))
FILE_KEYS = {
    "Comparison.about",
    "DiskDetails.before",
    "FactChange.after",
    "FactChange.before",
    "PlaceDetails.whole",
    "Zone.at",
}
"""Keys of JSON and TOML documents, which keep their names."""


def faults(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yields the line and the text of each name, docstring and argument list to write anew."""
    for node in ast.walk(tree):
        for name in names(node):
            if name.rpartition(".")[2].strip("_") in NO_NAMES and name not in FILE_KEYS:
                yield node.lineno, name
        if isinstance(node, ast.Starred) and isinstance(node.value, ast.Tuple | ast.List):
            yield node.lineno, "packed arguments"
        body = getattr(node, "body", None)
        for index, each in enumerate(body if isinstance(body, list) else ()):
            if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                text = each.value.value
                follows = index == 0 or isinstance(body[index - 1], ast.Assign | ast.AnnAssign)
                if isinstance(text, str) and (text.startswith(NO_BEGINNINGS) or not follows):
                    yield each.lineno, text.partition("\n")[0]


def names(node: ast.AST) -> Iterator[str]:
    """Yields the names that a node gives: variables, parameters, functions, `Class.field`."""
    match node:
        case ast.Name(id=name, ctx=ast.Store()) if not hasattr(node, "field"):
            yield name
        case ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.alias(asname=str(name)):
            yield name
        case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
            yield name
        case ast.ClassDef(name=owner):
            for each in node.body:
                if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name):
                    each.target.field = True
                    yield f"{owner}.{each.target.id}"


def test_no_file_has_a_word_to_write_anew():
    listed = subprocess.run(["git", "ls-files", "*.py"], cwd=ROOT, capture_output=True, text=True)
    trees = {path: ast.parse((ROOT / path).read_text()) for path in listed.stdout.split()}
    assert [(path, *fault) for path, tree in trees.items() for fault in faults(tree)] == []


def test_bare_participles_riddles_and_packed_arguments_are_faults():
    text = 'found = 1\n"""That it is of."""\n"""Twice."""\n\n\ndef _held(most, size):\n'
    text += '    """Of the file."""\n    for copy in size:\n        call(*(copy, size))\n'
    text += "\n\nclass FactChange:\n    before: str\n    after_all: str\n    own: int\n"
    assert sorted(line for line, _ in faults(ast.parse(text))) == [1, 2, 3, 6, 6, 7, 9, 12]
