"""A ticket: one page, and plain text in every reader."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import markdown_it
import pytest

from bottleneck.cli import app, loading
from bottleneck.documents.markdown import APART, WIDTH, at_start, inline, paragraph
from bottleneck.documents.ticket import document as ticket_text
from bottleneck.text.units import shown_as
from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[2]
STORED = sorted(
    [*(ROOT / "tests/data/answers").glob("*.json"), *(ROOT / "examples").glob("*.toml")]
)
STORED += sorted(ROOT.glob("tests/data/report-v1-*.json"))


def ticket_of(report):
    return ticket_text(report, diagnose(report))


@pytest.fixture(scope="module")
def example():
    return stored_reports.load(ROOT / "examples/server-disk-read.json")


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_ticket_is_one_page_that_fits_a_mail_and_says_where_its_figures_are(path):
    lines = ticket_of(loading.load(path)).splitlines()
    assert len(lines) <= 60
    assert max(len(each) for each in lines) <= 100
    assert "```json" not in lines and "(.json)" in lines[-1]


@pytest.mark.long
def test_a_report_from_elsewhere_gives_no_document_a_command_to_paste(tmp_path, capsys):
    """A stranger's would be run by whoever reads the ticket."""
    document = json.loads((ROOT / "examples/server-disk-read.json").read_text())
    document["tool"]["command"] = ["bottleneck", "diagnose", "//nas/x", "--agent", "exec:pwned"]
    path = tmp_path / "report.json"
    path.write_text(json.dumps(document))
    for kind in ("text", "html", "ticket", "json", "junit"):
        assert app.run(["explain", str(path), "--format", kind, "--verbose"]) == 0
        out = capsys.readouterr().out
        assert out
        assert "pwned" not in out
        assert "bottleneck diagnose" not in out


def test_a_long_command_can_be_pasted_into_a_shell(example):
    words = ["bottleneck", "diagnose", "//nas/my share", "--agent", "exec:..."]
    words += ["--folder", f"/srv/{'x' * 60}", "--server-folder", f"/srv/{'y' * 60}", "--yes"]
    text = ticket_of(replace(example, tool={**example.tool, "command": words}))
    (block,) = re.findall(r"```sh\n(.*?)```", text, re.DOTALL)
    assert shlex.split(block.replace("\\\n", "")) == words and block.count("\n") > 1
    assert "In place of exec:... goes the command" in text


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_no_sentence_of_a_ticket_is_cut(path):
    lines = ticket_of(loading.load(path)).splitlines()
    assert [line for line in lines if line.endswith(" ...")] == []


def test_a_ticket_is_shown_in_other_units(example):
    with shown_as("iec"):
        assert "23.1 MiB/s" in ticket_of(example)


# fmt: off
MARKUP = [
    "*a*", "_a_", "**a**", "`a`", "``a``", "[a](http://b)", "![a](b)", "<b>", "<http://a>",
    "&lt;", "~~a~~", "~a~", "# a", "## a", "- a", "+ a", "* a", "1. a", "2) a", "> a", "---",
    "===", "***", "```", "~~~", "    a", "| a | b |", "[a]: http://b", "http://a.de",
    "www.a.de", "\\", "a\\", "&#35; a", "$a$", "<!-- a", "<script>", "a  ", "[a]", "![a]",
    "-", "+", "1.", "#", "@a", "@1#2#", "#1", "a#23", "@", "/close", "//a", "a@b.de",
    "@a @b @_c",
]
# fmt: on


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize("escape", [at_start, inline])
def test_escaped_text_is_shown_as_it_is(text, escape):
    page = f"{'x ' if escape is inline else ''}{escape(text)}\n"
    tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    assert [each.type for each in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    contents = [each.content for each in tokens[1].children]
    kinds = {each.type for each in tokens[1].children if each.content != APART}
    assert kinds <= {"text", "text_special"}
    assert "".join(contents).replace(APART, "").removeprefix("x ").strip() == text.strip()


@pytest.mark.parametrize("text", ["@all", "a @_b", "#1", "x#12", "me@a.de", "@a#1" * 9, "`@a`"])
def test_foreign_text_names_nobody_and_no_issue(text):
    """GitHub looks into what was rendered (cmark-gfm issue 181), GitLab at the backslash."""
    line = inline(text)
    parsed = markdown_it.MarkdownIt("commonmark").parse(line)[1].children
    assert not any(re.search(r"@\S|#\d", each.content) for each in parsed)
    assert not re.search(r"(?<!\\)(@\S|#\d)", line)


def test_foreign_text_gives_no_command_to_a_tracker(example):
    """In GitLab that is a line that begins with a slash; later lines of a point count too."""
    commands = " ".join(["/close", "/assign @all", "/spend 1h"] * 20)
    report = replace(example, target={**example.target, "share": commands}, notes=(commands,))
    lines = ticket_of(report).split("```")[0].splitlines()
    assert any("/close" in each for each in lines)
    assert not [each for each in lines if each.strip().startswith("/")]


@pytest.mark.parametrize("text", ["@a ", "#1", "@_", "`"])
def test_no_foreign_text_makes_a_line_too_long(text):
    for line in paragraph(text * 200, 600, "- "):
        assert len(line) <= WIDTH
