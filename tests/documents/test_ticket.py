"""A ticket: one page, plain text in every reader, and figures that compare with their noise."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path

import jsonschema
import markdown_it
import pytest

from bottleneck.analysis import changes, steps
from bottleneck.cli import app, loading
from bottleneck.documents.markdown import APART, WIDTH, at_start, inline, paragraph
from bottleneck.documents.ticket import document as ticket_text
from bottleneck.records import schema as report_schema
from bottleneck.records import ticket_figures
from bottleneck.report import report
from bottleneck.report.report import ReportError
from bottleneck.text.safe import safe
from bottleneck.text.units import shown_as
from probes.core.records import Measured, Sample
from tests import stored_reports
from tests.stored_reports import diagnose

ROOT = Path(__file__).parents[2]
RECORDED = [
    *sorted((ROOT / "tests/data").glob("report-v1-*.json")),
    ROOT / "examples/server-disk-read.json",
]
STORED = [*RECORDED, *sorted((ROOT / "tests/data/answers").glob("*.json"))]
STORED += sorted((ROOT / "examples").glob("*.toml"))


def ticket_of(known):
    return ticket_text(known, diagnose(known))


@pytest.fixture(scope="module")
def example():
    return stored_reports.load(ROOT / "examples/server-disk-read.json")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_a_ticket_is_one_page_whose_figures_load(path):
    known = stored_reports.load(path)
    text = ticket_of(known)
    lines = text.splitlines()
    assert len(lines) <= 60
    assert max(len(each) for each in text.split("```json")[0].splitlines()) <= 100
    block = text.split("```json")[1].split("```")[0]
    assert len(block.strip().splitlines()) <= 25
    jsonschema.validate(json.loads(block), report_schema.schema())
    told = ticket_figures.report_of(text.encode())
    assert replace(told, ticket_diagnosis=None) == report.loads(block.encode())


@pytest.mark.parametrize("path", STORED, ids=lambda path: path.stem)
def test_a_ticket_has_the_verdict_of_its_report(path):
    known = loading.load(path)
    first, second = diagnose(known), diagnose(ticket_figures.report_of(ticket_of(known).encode()))
    assert (second.headline, second.summary) == (first.headline, safe(first.summary, 1000))
    for one, other in zip([first.chosen], [second.chosen], strict=True):
        assert (one and replace(one.verdict, ceiling_bytes_per_second=0.0)) == (
            other and replace(other.verdict, ceiling_bytes_per_second=0.0)
        )


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


def test_a_ticket_shows_the_command_of_its_own_run(example):
    told = {**example.tool, "command": ["bottleneck", "diagnose", "//nas/my share", "--yes"]}
    assert "bottleneck diagnose '//nas/my share' --yes\n" in ticket_of(replace(example, tool=told))


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


def test_a_ticket_is_shown_in_other_units_and_its_figures_are_not(example):
    with shown_as("iec"):
        text = ticket_of(example)
    assert "23.1 MiB/s" in text
    assert ticket_of(example).split("```json")[1] == text.split("```json")[1]


def spreads(known):
    return {
        (each.name, each.dialect): each.made.rate
        for each in steps.copies(known)
        if each.made is not None
    }


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.stem)
def test_runs_and_spread_survive_a_ticket(path):
    known = stored_reports.load(path)
    before = spreads(known)
    for key, after in spreads(ticket_figures.report_of(ticket_of(known).encode())).items():
        if key in before:
            assert (after.low, after.median, after.high) == pytest.approx(
                (before[key].low, before[key].median, before[key].high), rel=1e-3
            )
            assert after.runs == before[key].runs


@pytest.mark.parametrize("share", ["//127.0.0.1:4455/a", "//10.0.0.1/1.0", "//a/b.0 `c`", "//x/ü"])
def test_no_name_is_altered_by_its_figures(example, share):
    named = replace(example, target={**example.target, "share": share})
    told = ticket_figures.report_of(ticket_of(named).encode())
    assert told.target["share"] == share
    assert told.client.name == example.client.name
    assert told.client.memory_total_bytes == example.client.memory_total_bytes
    assert told.client.interface.rate_bits_per_second == 10**10


def faster(known, factor):
    """The same report with every run of every step so many times as fast."""

    def run(samples):
        return tuple(Sample(each.elapsed_seconds / factor, each.moved_bytes) for each in samples)

    entries = tuple(
        (step, replace(outcome, runs=tuple(map(run, outcome.runs))))
        if isinstance(outcome, Measured)
        else (step, outcome)
        for step, outcome in known.entries
    )
    return replace(known, entries=entries)


def test_two_tickets_compare_with_their_noise(example):
    first, same, other = (
        ticket_figures.report_of(ticket_of(each).encode())
        for each in (example, faster(example, 1.02), faster(example, 1.6))
    )
    assert not any(each.significant for each in changes.compare(first, same).copies)
    found = changes.compare(first, other)
    assert all(each.significant for each in found.copies)
    assert [each.ratio for each in found.copies] == pytest.approx([1.6] * 4, rel=2e-3)


def quoted(text):
    return "\n".join(f"> > {line}" for line in text.splitlines())


def wrapped(text):
    """As a mail program does: at a blank, or after a comma, at column 72."""
    found = re.sub(r"(?m)^(.{1,71}[ ,])(?=.{20})", r"\1\n", text)
    while found != text:
        found, text = re.sub(r"(?m)^(.{1,71}[ ,])(?=.{20})", r"\1\n", found), found
    return text.replace("\n", "\r\n")


@pytest.mark.parametrize("mangle", [quoted, wrapped, lambda text: quoted(wrapped(text))])
def test_a_ticket_that_mail_quoted_and_wrapped_loads(example, mangle):
    text = ticket_of(example)
    mangled = ticket_figures.report_of(f"Hello,\n\nsee below.\n\n{mangle(text)}\n".encode())
    assert mangled == ticket_figures.report_of(text.encode())


def test_a_ticket_whose_quotes_were_curled_loads(example):
    text = ticket_of(example)
    curled = text.replace('"copy"', "\u201ccopy\u201d")
    assert ticket_figures.report_of(curled.encode()) == ticket_figures.report_of(text.encode())


@pytest.mark.parametrize(
    "mangle",
    [
        lambda text: text[: text.index('"steps"')],
        lambda text: text.replace("[[0.0,0]", "[[x0.0,0]", 1),
        lambda text: text.replace('"median":', '"median":9e99,"median":9', 1),
        lambda text: text.replace("ticket/2", "ticket/1"),
        lambda text: text.replace('"steps":[', '"steps":[[[[', 1),
        lambda text: text.replace('"status":"complete"', '"status":"splendid"'),
        lambda text: text.replace('"started":"', '"started":"yesterday, '),
        lambda text: text.replace('"confidence":0.98', '"confidence":9.8'),
        lambda text: text.replace('"cause":"read"', '"cause":"gremlins"'),
        lambda text: text.replace('"standing":"measured"', '"standing":"believed"'),
        lambda text: text.replace('"copies":[', '"copies":[7,'),
        lambda text: text.replace('"headline":"pull.uncached"', '"headline":"pull.nothing"'),
        lambda text: "copy-bottleneck/ticket/2",
        lambda text: '"copy-bottleneck/ticket/2"}' * 1000,
        lambda text: '{"a":' * 500 + '"copy-bottleneck/ticket/2"',
    ],
)
def test_a_damaged_ticket_is_a_sentence(example, mangle):
    with pytest.raises(ReportError) as error:
        ticket_figures.report_of(mangle(ticket_of(example)).encode())
    assert str(error.value).startswith("the ticket's figures are damaged: ")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("cut", range(0, 3500, 350))
def test_no_cut_of_a_ticket_is_a_traceback(example, cut):
    content = ticket_of(example).encode()
    try:
        ticket_figures.report_of(content[:-cut] if cut else content)
    except ReportError as error:
        assert cut
        assert "\n" not in str(error)


MARKUP = [
    *("*a*", "_a_", "**a**", "`a`", "``a``", "[a](http://b)", "![a](b)", "<b>", "<http://a>"),
    *("&lt;", "~~a~~", "~a~", "# a", "## a", "- a", "+ a", "* a", "1. a", "2) a", "> a", "---"),
    *("===", "***", "```", "~~~", "    a", "| a | b |", "[a]: http://b", "http://a.de"),
    *("www.a.de", "\\", "a\\", "&#35; a", "$a$", "<!-- a", "<script>", "a  ", "[a]", "![a]"),
    *(
        "-",
        "+",
        "1.",
        "#",
        "@a",
        "@a @b @_c",
        "a@b.de",
        "#1",
        "a#23",
        "/close",
        "@",
        "@1#2#",
        "//a",
    ),
]


@pytest.mark.parametrize("text", MARKUP)
@pytest.mark.parametrize("escape", [at_start, inline])
def test_escaped_text_is_shown_as_it_is(text, escape):
    page = f"{'x ' if escape is inline else ''}{escape(text)}\n"
    tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(page)
    assert [each.type for each in tokens] == ["paragraph_open", "inline", "paragraph_close"]
    told = [each.content for each in tokens[1].children]
    kinds = {each.type for each in tokens[1].children if each.content != APART}
    assert kinds <= {"text", "text_special"}
    assert "".join(told).replace(APART, "").removeprefix("x ").strip() == text.strip()


@pytest.mark.parametrize("text", ["@all", "a @_b", "#1", "x#12", "me@a.de", "@a#1" * 9, "`@a`"])
def test_foreign_text_names_nobody_and_no_issue(text):
    """GitHub looks into what was rendered (cmark-gfm issue 181), GitLab at the backslash."""
    line = inline(text)
    parsed = markdown_it.MarkdownIt("commonmark").parse(line)[1].children
    assert not any(re.search(r"@\S|#\d", each.content) for each in parsed)
    assert not re.search(r"(?<!\\)(@\S|#\d)", line)


def test_foreign_text_gives_no_command_to_a_tracker(example):
    """In GitLab that is a line that begins with a slash; later lines of a point count too."""
    told = " ".join(["/close", "/assign @all", "/spend 1h"] * 20)
    known = replace(example, target={**example.target, "share": told}, notes=(told,))
    lines = ticket_of(known).split("```")[0].splitlines()
    assert any("/close" in each for each in lines)
    assert not [each for each in lines if each.strip().startswith("/")]


@pytest.mark.parametrize("text", ["@a ", "#1", "@_", "`"])
def test_no_foreign_text_makes_a_line_too_long(text):
    for line in paragraph(text * 200, 600, "- "):
        assert len(line) <= WIDTH
