#!/usr/bin/env python3
"""Counts this project's lines, modules, largest pieces and import chains.

Usage: python scripts/mass.py [FOLDER]

Product is bottleneck/ and probes/. Code is what is left without docstrings, comments and blanks. A
chain is of files that import each other, an import inside a function or for the type checker
counted as any other; a circle is a set of files, or of folders, each of which leads to
all others of it, and counts in a chain as one.
"""

from __future__ import annotations

import ast
import io
import sys
import tokenize
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

PRODUCT = ("bottleneck", "probes")
Graph = Mapping[str, set[str]]
_NOT_CODE = {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.ENDMARKER}
_NOT_CODE |= {tokenize.INDENT, tokenize.DEDENT}


def sources(root: Path, *folders: str) -> dict[str, str]:
    """Returns the text of every module, by its path below the root."""
    files = (file for folder in folders for file in sorted((root / folder).rglob("*.py")))
    return {str(file.relative_to(root)): file.read_text("utf-8") for file in files}


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def code_lines(text: str) -> int:
    """Returns the number of lines with a token that is no docstring and no comment."""
    skipped: set[int] = set()
    for node in _nodes(text):
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            skipped.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in _NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    return len(lines - skipped)


def functions(path: str, text: str) -> Iterator[tuple[int, str]]:
    """Yields the lines and the place of each function, its inner functions included."""
    for node in _nodes(text):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield lines, f"{path}:{node.lineno} {node.name}"


def imports(path: str, text: str) -> Iterator[str]:
    """Yields the full names of a file's imports at any depth; of `from a import b` a and a.b."""
    for node in _nodes(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = Path(path).parts[: -node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def graph(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Returns each file with the files that it imports."""
    names = {
        ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__"): path for path in texts
    }
    return {
        path: {names[name] for name in imports(path, text) if name in names} - {path}
        for path, text in texts.items()
    }


def package_graph(files: Graph) -> dict[str, set[str]]:
    """Returns the imports between the packages directly below `bottleneck` and `probes`.

    A file directly below them counts as a package of its own.
    """
    edges: dict[str, set[str]] = {}
    for path, others in files.items():
        room = package(path)
        edges.setdefault(room, set()).update({package(each) for each in others} - {room})
    return edges


def package(path: str) -> str:
    """Returns the first two parts of a path: `bottleneck/analysis` for every file in it."""
    return str(Path(*Path(path).parts[:2]))


def knots(edges: Graph) -> list[list[str]]:
    """Returns the strongly connected sets of nodes (Tarjan), imported sets first."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    sets: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            start = stack.index(node)
            sets.append(stack[start:])
            del stack[start:]

    for node in edges:
        if node not in order:
            visit(node)
    return sets


def circles(edges: Graph) -> int:
    """Returns the number of sets of nodes that import each other in a circle."""
    return sum(len(each) > 1 for each in knots(edges))


def longest_chain(edges: Graph) -> int:
    """Returns the number of nodes on the longest path; a circle on it counts as one."""
    reach: dict[str, int] = {}
    for knot in knots(edges):
        beyond = [reach[other] for node in knot for other in edges[node] if other not in knot]
        reach |= dict.fromkeys(knot, 1 + max(beyond, default=0))
    return max(reach.values(), default=0)


def measured(root: Path) -> dict[str, tuple[int, str]]:
    """Returns every figure, with its place if it belongs to one."""
    product, tests = sources(root, *PRODUCT), sources(root, "tests")
    files = graph(product)
    line_counts = [(len(text.splitlines()), path) for path, text in product.items()]
    return {
        "lines": (sum(lines for lines, _ in line_counts), ""),
        "lines of code": (sum(map(code_lines, product.values())), ""),
        "modules": (len(product), ""),
        "lines of tests": (sum(len(text.splitlines()) for text in tests.values()), ""),
        "largest file": max(line_counts),
        "largest function": max(each for item in product.items() for each in functions(*item)),
        "longest import chain": (longest_chain(files), ""),
        "circles of files": (circles(files), ""),
        "circles of packages": (circles(package_graph(files)), ""),
    }


def main() -> None:
    """Prints the table."""
    root = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[1]
    for name, (figure, place) in measured(root).items():
        print(f"{name:22}{figure:8,}  {place}".rstrip())


if __name__ == "__main__":
    main()
