"""Texts for users have the words of docs/style.md, and sentences of at most 25 words."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from markdown_it import MarkdownIt
from typer.core import TyperArgument

from bottleneck.cli.app import tree
from bottleneck.cli.command_line import commands_of, options_of

ROOT = Path(__file__).parents[1]
STYLE = (ROOT / "docs/style.md").read_text()
WORDS = 25
GLOSSARY = STYLE.partition("\n## Glossary\n")[2]

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md")),
    *(ROOT / "examples" / name for name in ("README.md", "windows.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
GOLDENS = sorted(ROOT.glob("tests/documents/golden/*.txt"))
KEPT = sorted(
    each for part in ("analysis", "gate") for each in ROOT.glob(f"tests/{part}/**/golden/*.txt")
)


def old_words() -> list[str]:
    """The glossary's left column; what is in italics there has other meanings, too."""
    rows = [line.split("|")[1] for line in GLOSSARY.splitlines() if line.startswith("| ")][1:]
    terms = [term.strip() for row in rows for term in row.split(",")]
    return [term for term in terms if not term.startswith("*")]


TERM = re.compile(
    r"(?<![\w-])(?:" + "|".join(each.replace(" ", r"\s+") for each in old_words()) + r")(?![\w-])",
    re.IGNORECASE,
)
# Names and figures: options, what has a dot, slash or underscore within, `code`, "word".
IDENTIFIER = re.compile(r'`[^`\n]*`|"[^"\s]*"|(?<!\w)-{1,2}[a-z][\w-]*|\w*[./\\_]\w\S*')
CODE = re.compile(r"`[^`]*`(?:,? (?:and |or )?`[^`]*`)*")
FIGURES = re.compile(r"\s*\([^()]*\d[^()]*\)")
SENTENCE_END = re.compile(r"(?<=[.!?;])[\"')]*\s+|:\s+| because ")
TABLE = re.compile(r"\S {2,}\S|[▏▎▍▌▋▊▉█▁▂▃▄▅▆▇┃│─◀]")
BULLET = re.compile(r"(?:[-*•]|\d+\.) ")
VERDICT = re.compile(r"[a-z]+/[A-Za-z]+/[a-z-]+( |$)")


def terms_in(text: str) -> list[str]:
    return [" ".join(each.split()) for each in TERM.findall(IDENTIFIER.sub(" ", text))]


def long_sentences(paragraph: str) -> list[str]:
    """The sentences with too many words: a figure with its unit is one, a list of code is, too.

    A fact and its reason, what stands behind a semicolon or a colon, and figures in brackets are
    read apart.
    """
    text = FIGURES.sub("", CODE.sub("code", " ".join(paragraph.split())))
    return [
        sentence
        for sentence in SENTENCE_END.split(text)
        if sum(1 for word in sentence.split() if re.search(r"[^\W\d_]", word)) > WORDS
    ]


def paragraphs(text: str) -> Iterator[str]:
    """The prose of a plain text: lines that follow each other at one indentation, no table's."""
    lines: list[str] = []
    column = 0
    for line in [*text.splitlines(), ""]:
        bare = line.strip()
        indentation = len(line) - len(line.lstrip())
        bullet = BULLET.match(bare)
        is_table = TABLE.search(bare) or VERDICT.match(bare)
        if lines and (not bare or bullet or is_table or indentation != column):
            yield " ".join(lines)
            lines = []
        if bare and not is_table:
            column = indentation + (bullet.end() if bullet and not lines else 0)
            lines.append(bare)


def prose_of_page(text: str) -> Iterator[str]:
    """Paragraphs, items and cells of Markdown, without code blocks and without `code`."""
    for token in MarkdownIt("commonmark").enable("table").parse(text):
        if token.type == "inline":
            yield "".join(
                "`code`" if each.type == "code_inline" else each.content or " "
                for each in token.children or ()
                if each.type != "html_inline"
            )


def strings(value: object) -> Iterator[str]:
    """The sentences within JSON: its strings that have a space."""
    if isinstance(value, str) and " " in value:
        yield value
    inner = value.values() if isinstance(value, dict) else value
    for each in inner if isinstance(value, dict | list) else ():
        yield from strings(each)


def prose_of_kept(text: str) -> Iterator[str]:
    """Yields the analysis' lines, and the sentences within its JSON."""
    for line in text.splitlines():
        written = re.search(r'\[?\{".*', line)
        if written:
            yield from strings(json.loads(written[0]))
        if not line.startswith("== "):
            yield from paragraphs(line[: written.start()] if written else line)


def prose_of_help() -> Iterator[tuple[str, str]]:
    """Every command's own help, and that of its arguments and options."""
    yield "bottleneck", tree().help or ""
    for name, command in commands_of(tree()).items():
        yield from ((name, each) for each in (command.help or "").split("\n\n"))
        by_place = (each for each in command.params if isinstance(each, TyperArgument))
        yield from ((f"{name} {each.name}", each.help or "") for each in by_place)
        yield from ((f"{name} --{each.key}", each.help) for each in options_of(command))


def prose_of(path: Path) -> list[str]:
    """A page's prose, the glossary left out, which shows what is not used; or what is kept."""
    text = path.read_text("utf-8").removesuffix(GLOSSARY)
    return list(prose_of_page(text) if path.suffix == ".md" else prose_of_kept(text))


def name(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", [*PAGES, *KEPT], ids=name)
def test_a_page_and_what_the_analysis_said_are_in_the_words_of_the_style(path):
    prose = prose_of(path)
    assert not [(each, terms) for each in prose if (terms := terms_in(each))]
    assert not [each for text in prose for each in long_sentences(text)]


@pytest.mark.parametrize("path", GOLDENS, ids=name)
def test_an_output_is_in_the_words_of_the_style(path):
    text = path.read_text("utf-8")
    assert not terms_in(text)
    assert not [each for part in paragraphs(text) for each in long_sentences(part)]


def test_every_help_is_in_the_words_of_the_style():
    prose = list(prose_of_help())
    assert not [(where, terms) for where, text in prose if (terms := terms_in(text))]
    assert not [(where, long) for where, text in prose if (long := long_sentences(text))]


# -- the test itself ------------------------------------------------------------------------------


def test_the_glossary_is_read():
    assert {"cap", "no more than", "ladder"} <= set(old_words())
    assert "alone" not in old_words()


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("The disk Caps it.", ["Caps"]),
        ("It carries no\n  more than 3 MB/s", ["no more than"]),
        ("capture, landscape and cap-like", []),
        (
            "use --expect-cap, `cap`, disk/client/cap, cap_confidence or instrument/client/ceiling",
            [],
        ),
        ('{"ceilings": "cap"}', []),
    ],
)
def test_words_are_found_and_identifiers_are_left_out(text, terms):
    assert terms_in(text) == terms


def test_sentences_are_counted_across_lines_and_not_across_rows():
    row = "copy  rate  " + "word " * 30
    head, tail = "word " * 15, "word " * 15 + "end."
    assert [len(long_sentences(each)) for each in paragraphs(f"{head}\n{tail}")] == [1]
    assert not [each for part in paragraphs(f"{head}\n\n{tail}") for each in long_sentences(part)]
    assert not [each for part in paragraphs(f"{head}\n  {tail}") for each in long_sentences(part)]
    assert [len(long_sentences(each)) for each in paragraphs(f"- {head}\n  {tail}")] == [1]
    assert list(paragraphs(row)) == []
