"""Whatever a host, a share, a file or a message is called: it is text in every output.

Judges are the formats' own parsers: what a name could make is what a harmless one does not have.
"""

from __future__ import annotations

import copy
import io
import json
import re
import unicodedata
import xml.etree.ElementTree as ET
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import markdown_it
import pytest
from prometheus_client.parser import text_string_to_metric_families
from rich.console import Console

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.documents.console import print_report
from bottleneck.documents.github import github_summary, github_text
from bottleneck.documents.html import document as html_text
from bottleneck.documents.junit import junit_text
from bottleneck.documents.markdown import APART
from bottleneck.documents.nagios import nagios_text
from bottleneck.documents.openmetrics import openmetrics_text
from bottleneck.documents.plots.zones import zone_curves_svg
from bottleneck.documents.ticket import document as ticket_text
from bottleneck.documents.trend import print_trends
from bottleneck.gate.judged import Ruling
from bottleneck.gate.judging import judge
from bottleneck.records.redaction import MODELS, STAY, STAYING_TABLES, Redaction
from bottleneck.records.trend import Point, Trend, Trends, Unusual
from bottleneck.report import report

ROOT = Path(__file__).parents[2]
HARMLESS = "nas"

# fmt: off
NAMES = [
    # markup of terminals and of rich
    "[bold]x[/bold]", "[/]", "[red]", "[link=http://e.example]x[/link]", "[[x]]",
    "[@click=x()]y", "\x1b[31mred\x1b[0m", "\x1b]0;title\x07",
    "\x1b]8;;http://e.example\x07x\x1b]8;;\x07", "\x1b[2J\x1b[H", "\x1bP1$r\x1b\\", "\x9b31m",
    "\x9d0;x\x9c", "\x90x\x9c", "\x07\x08\x08\x08", "a\rb", "a\nb", "a\r\nb", "a\tb",
    "a\x0bb\x0cc", "a\x00b", "\x7f", "a\x85b", "a\u2028b",
    # what hides and reorders
    "\u202egnp.exe", "a\u202db", "\u2066x\u2069", "\u200bzero\u200b", "\u200f\u200e",
    "\ufeffx", "a\u00adb", "\u2060", "\u034f", "\u115f", "\u3164", "x\ufe0f",
    "\U000e0041\U000e007f", "e" + "\u0301" * 200, "\u0489" * 50, "\udcff\udc80", "\ud800",
    "\ue000", "\uffff", "\U0010ffff", "\u0430dmin", "ｎａｓ", "﷽" * 9, "👩‍👩‍👧‍👦", "مرحبا",
    "日本語" * 30,
    # HTML and SVG
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>",
    "<b>", '"><script>alert(1)</script>', "' onmouseover='x", "</title><script>x</script>",
    "</style>", "</svg><script>x</script>", "<!--", "-->", "<![CDATA[", "]]>",
    "&lt;script&gt;", "&#60;b&#62;", "javascript:alert(1)", "<a href='javascript:x'>y</a>",
    "<iframe src=//e.example>", "&", "&amp;", "{{7*7}}", "${7*7}", "<?php x ?>",
    "<?xml version='1.0'?>", "<!DOCTYPE x [<!ENTITY y 'z'>]>",
    # Nagios, CSV, GitHub, OpenMetrics, XML
    "x | y=1;2;3", "'x'=9", "a;b;c", "=cmd|' /C calc'!A0", "@SUM(1+1)", "$HOSTNAME$", "`id`",
    "::error::x", "\n::error file=a::x", "%0A::error::x", "::stop-commands::x", "%25",
    "a%0D%0Ab", 'x"y', "x\\", 'x\\"', 'a"} 1\nevil_metric{b="', "# EOF", "\n# EOF\n",
    "# HELP x y", "NaN",
    # Markdown
    "[x](http://e.example)", "![x](http://e.example/x.png)", "<http://e.example>", "**x**",
    "`code`", "```", "~~~", "# title", "- item", "1. one", "> quote", "| a | b |", "---",
    "===", "http://e.example/x", "www.e.example", "[x]: http://e.example", "\\`x\\`", "$x$",
    "_x_", "~~x~~", "@all", "#1", "/close", "@a#1" * 99,
    # lengths and nothing
    "", " ", "   x   ", "x" * 10_000, "<b>" * 3_000, "\u202e" * 5_000, "a b " * 2_000, "/",
    "\\", ".", "../../etc/passwd", "-rf", "--help", "%s%n", "${IFS}", "$(id)",
    "'; DROP TABLE runs; --", "null",
]
# fmt: on


def document_for(name):
    """A small report of every kind of step, in which every foreign text is this name."""
    document = copy.deepcopy(_BASE)
    document["target"]["share"] = f"//{name}/{name}/{name}"
    document["target"]["smb_conf"] = [
        {"option": name, "value": name, "why": name, "remedy": name, "matters_for": "all"}
    ]
    document["notes"] = [name, f"{name}: {name}"]
    document["tool"]["command"] = ["bottleneck", "diagnose", name, "--user", name]
    document["tool"]["fio"] = name
    for host in (document["hosts"]["client"], document["hosts"]["server"]):
        host.update(name=name, system=name, distribution=name, virtual=name)
        host["interface"].update(name=name, address=name, driver=name, duplex=name)
        host["folder"].update(path=name, filesystem=name, mount_options=name, device=name)
        host["tools"] = {"fio": name}
    for step in document["steps"]:
        step["why"] = name
        for key in ("folder", "file", "path", "address", "engine"):
            if key in step["setting"]:
                step["setting"][key] = name
        details = step["outcome"].get("details", {})
        details["layers"] = [{"name": name, "kind": name, "model": name, "mount_options": name}]
    failed = {"kind": "failed", "error": name, "samples": []}
    skipped = {"kind": "skipped", "reason": name}
    for stage, outcome in (("tcp", failed), ("disk", skipped), (name, skipped)):
        setting = {"verb": "read", "side": "server", "cache": "uncached", "file": name}
        document["steps"].append(
            {"stage": stage, "initiator": "client", "setting": setting, "outcome": outcome}
        )
    setting = {"copy": "file.pull.uncached", "dialect": name, "file": name, "engine": name}
    document["steps"].append(
        {"stage": "smb-copy", "initiator": "client", "setting": setting, "outcome": failed}
    )
    return document


def _small():
    document = json.loads((ROOT / "tests/data/report-v1-comparisons.json").read_text())
    del document["diagnosis"]
    kinds = {("smb-copy", "push.uncached"), ("disk", "zones"), ("tcp", "push")}
    steps = {}
    for step in document["steps"]:
        setting = step["setting"]
        kind = setting.get("copy") or setting.get("pattern") or setting.get("verb")
        if (step["stage"], kind) in kinds and step["outcome"]["kind"] == "measured":
            steps.setdefault((step["stage"], kind), step)
    assert len(steps) == len(kinds), steps.keys()
    document["steps"] = list(steps.values())
    return document


_BASE = _small()


def known_for(name):
    named_report = report.from_json(document_for(name))
    return named_report, diagnose(named_report)


def trend_of(name):
    points = tuple(
        Point(f"2026-11-2{day}T00:00:00+00:00", 1e8 * day, 1e8 * day, 1e8 * day, name, 0.9)
        for day in (1, 2)
    )
    unusual = Unusual(name, 1e8, "lower", 2e8, 3e8)
    return Trends(2, name, name, (Trend(name, name, points, (unusual,)),), (name,))


def on_terminal(write):
    console = Console(file=io.StringIO(), width=80, highlight=False, color_system=None)
    write(console)
    return console.file.getvalue()


def render_text(run_report, diagnosis, name):
    return on_terminal(
        lambda console: print_report(run_report, diagnosis, console, sections=("all",))
    )


def render_trend(run_report, diagnosis, name):
    return on_terminal(lambda console: print_trends(trend_of(name), console))


def render_judgement(render):
    """Renders in a format a judgement whose expectations, too, have the name."""

    def of(run_report, diagnosis, name):
        # No expectation is without a name, and no message without a word.
        name = name or HARMLESS
        figures = (
            (name, "critical", 1e6, "bytes_per_second"),
            (f"{name}2", "warning", 0.5, "seconds"),
        )
        rest = (("tcp", "unknown", None, "ratio"), ("cap", "ok", None, ""))
        judgements = tuple(
            Ruling(name, metric, state, name, value, unit, name, name)
            for metric, state, value, unit in (*figures, *rest)
        )
        judgement = judge(run_report, diagnosis)
        return render(replace(judgement, state="critical", sentence=name, judged=judgements))

    return of


# -- what each format's own parser finds -------------------------------------------------------


def no_control(text):
    """Nothing that moves a cursor, hides or reorders; the text's own line breaks alone."""
    unsafe = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    controls = {each for each in text if each != "\n" and unicodedata.category(each) in unsafe}
    assert not controls, controls
    return ()


def tags_of(text):
    """Every element with its attributes, whatever a name made of them."""
    no_control(text.replace("\t", ""))
    tags = set()

    class Tags(HTMLParser):
        def handle_starttag(self, tag, attributes):
            tags.add((tag, frozenset(name for name, _ in attributes)))
            for key, value in attributes:
                assert not key.startswith("on")
                assert key not in ("href", "src", "action") or value.startswith("#"), value

        def handle_comment(self, data):
            tags.add(("comment", frozenset()))

        def handle_decl(self, decl):
            tags.add((decl.lower(), frozenset()))

        def handle_pi(self, data):
            tags.add(("pi", frozenset()))

        def unknown_decl(self, data):
            tags.add(("unknown", frozenset()))

    Tags(convert_charrefs=True).feed(text)
    assert "script" not in {tag for tag, _ in tags}
    return {tag for tag, _ in tags}


def summary_of(text):
    """GitHub's summary shows names as code."""
    return markdown_of(text, ("code_inline",))


def markdown_of(text, allowed=()):
    """The kinds of blocks; in them stands nothing but text."""
    no_control(text)
    tokens = markdown_it.MarkdownIt("commonmark").enable(["table", "strikethrough"]).parse(text)
    inside = [each for token in tokens for each in token.children or () if each.content != APART]
    kinds = {each.type for each in inside}
    assert kinds <= {"text", "text_special", "softbreak", *allowed}, kinds
    texts = [each.content for each in inside if each.type != "code_inline"]
    assert not any(re.search(r"@\S|#\d", each) for each in texts)
    return {each.type for each in tokens if each.type != "inline"}


def ticket_of(text):
    lines = text.splitlines()
    assert len(lines) <= 60
    return markdown_of(text), text.count("\n```")


def json_of(text):
    assert text.isascii()
    return set(json.loads(text))


def xml_of(text):
    no_control(text.replace("\t", ""))
    root = ET.fromstring(text)
    return sorted({(each.tag, *sorted(each.attrib)) for each in root.iter()}), len(
        list(root.iter())
    )


def svg_of(text):
    root = ET.fromstring(text)
    for each in root.iter():
        assert not any(key.startswith("on") or "href" in key for key in each.attrib)
    return {each.tag for each in root.iter()}


def nagios_of(text):
    no_control(text)
    first, *_ = text.splitlines()
    assert first.startswith("BOTTLENECK ")
    assert sum(line.count("|") for line in text.splitlines()) <= 2
    return first.count("|"), len(re.findall(r"=\S+;", first.partition("|")[2]))


def metrics_of(text):
    no_control(text)
    return sorted({each.name for each in text_string_to_metric_families(text)})


def commands_of(text):
    no_control(text)
    assert all(
        re.match(r"::(error|warning|notice|group|endgroup)[ :]", e) for e in text.splitlines()
    )
    return len(text.splitlines())


FORMATS = {
    "text": (render_text, no_control),
    "trend": (render_trend, no_control),
    "json": (lambda run_report, diagnosis, _: report.dumps(run_report, diagnosis), json_of),
    "ticket": (lambda run_report, diagnosis, _: ticket_text(run_report, diagnosis), ticket_of),
    "html": (lambda run_report, diagnosis, _: html_text(run_report, diagnosis), tags_of),
    "svg": (lambda run_report, *_: zone_curves_svg(run_report) or "", svg_of),
    "junit": (render_judgement(junit_text), xml_of),
    "nagios": (render_judgement(nagios_text), nagios_of),
    "openmetrics": (render_judgement(openmetrics_text), metrics_of),
    "github": (render_judgement(github_text), commands_of),
    "summary": (render_judgement(github_summary), summary_of),
}


@pytest.fixture(scope="module")
def harmless():
    run_report, diagnosis = known_for(HARMLESS)
    return {
        kind: parsed(render(run_report, diagnosis, HARMLESS))
        for kind, (render, parsed) in FORMATS.items()
    }


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(e, marks=pytest.mark.long if index % 20 else ())
        for index, e in enumerate(NAMES)
    ],
    ids=range(len(NAMES)),
)
def test_a_hostile_name_is_text_in_every_output(name, harmless):
    run_report, diagnosis = known_for(name)
    for kind, (render, parsed) in FORMATS.items():
        structure = parsed(render(run_report, diagnosis, name))
        like = harmless[kind]
        is_same = structure <= like if isinstance(structure, set) else structure == like
        assert is_same, f"{kind} of {name[:60]!r}: {structure} and not {like}"


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_hostile_name_can_be_redacted(name):
    run_report, _ = known_for(name)
    hidden = Redaction().report(run_report)
    assert hidden.client.name == ("client-host" if name else "")
    document = report.to_json(hidden, diagnose(hidden))
    if len(name) > 12 and not re.search(r"[/\\]", name):
        assert name not in json.dumps(without_technical(document), ensure_ascii=False)
    ticket_text(hidden, diagnose(hidden))


def without_technical(value):
    """The document without what kernels, drivers and disks call themselves, which stays."""
    if isinstance(value, dict):
        remaining = {k: v for k, v in value.items() if k not in STAY | STAYING_TABLES | MODELS}
        return {key: without_technical(each) for key, each in remaining.items()}
    return [without_technical(each) for each in value] if isinstance(value, list) else value
