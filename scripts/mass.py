#!/usr/bin/env python3
"""How much there is of this project: lines, modules, largest pieces, and how they hang together.

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
    """The text of every module, by its path below the root."""
    found = (file for folder in folders for file in sorted((root / folder).rglob("*.py")))
    return {str(file.relative_to(root)): file.read_text("utf-8") for file in found}


@cache
def _nodes(text: str) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(ast.parse(text)))


def code_lines(text: str) -> int:
    """Lines with anything of a token on them that is no docstring and no comment."""
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
    """Lines and place of each function, what is inside of it included."""
    for node in _nodes(text):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield lines, f"{path}:{node.lineno} {node.name}"


def imports(path: str, text: str) -> Iterator[str]:
    """Full names of all that a file imports, anywhere in it; of `from a import b` a and a.b."""
    for node in _nodes(text):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = Path(path).parts[: -node.level] if node.level else ()
            base = ".".join([*above, *filter(None, [node.module])])
            yield from (base, *(f"{base}.{alias.name}" for alias in node.names))


def graph(texts: Mapping[str, str]) -> dict[str, set[str]]:
    """Each file with those that it imports."""
    names = {
        ".".join(Path(path).with_suffix("").parts).removesuffix(".__init__"): path for path in texts
    }
    return {
        path: {names[name] for name in imports(path, text) if name in names} - {path}
        for path, text in texts.items()
    }


def of_packages(files: Graph) -> dict[str, set[str]]:
    """The same of the packages right below the two of the product, each with all that is in it.

    A file that lies beside them is a room of its own: the ground floor does, and so does the door.
    """
    found: dict[str, set[str]] = {}
    for path, others in files.items():
        own = package(path)
        found.setdefault(own, set()).update({package(each) for each in others} - {own})
    return found


def package(path: str) -> str:
    """`bottleneck/analysis` of all in it, and a file of the top itself."""
    return str(Path(*Path(path).parts[:2]))


def knots(edges: Graph) -> list[list[str]]:
    """Sets of nodes that all lead to each other, most of them single; the led to come first."""
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in order:
                visit(other)
            if other in stack:
                low[node] = min(low[node], low[other])
        if low[node] == order[node]:
            at = stack.index(node)
            found.append(stack[at:])
            del stack[at:]

    for node in edges:
        if node not in order:
            visit(node)
    return found


def circles(edges: Graph) -> int:
    """How many sets of nodes lead back to themselves."""
    return sum(len(each) > 1 for each in knots(edges))


def longest_chain(edges: Graph) -> int:
    """Nodes on the longest way; a circle on it is one."""
    reach: dict[str, int] = {}
    for knot in knots(edges):
        beyond = [reach[other] for node in knot for other in edges[node] if other not in knot]
        reach |= dict.fromkeys(knot, 1 + max(beyond, default=0))
    return max(reach.values(), default=0)


def measured(root: Path) -> dict[str, tuple[int, str]]:
    """Every figure, and where it is from if it is of one place."""
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
        "circles of packages": (circles(of_packages(files)), ""),
    }


def main() -> None:
    """Prints the table."""
    root = Path(sys.argv[1]) if sys.argv[1:] else Path(__file__).resolve().parents[1]
    for name, (figure, place) in measured(root).items():
        print(f"{name:22}{figure:8,}  {place}".rstrip())


if __name__ == "__main__":
    main()
