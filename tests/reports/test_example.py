"""Real runs on the console: the README's example with an agent, and one without."""

from __future__ import annotations

import io
import os
import re
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck import report as reports
from bottleneck.analysis import diagnose
from bottleneck.report import Step
from bottleneck.reports.console import print_report
from probes.records import Failed, Skipped

TESTS = Path(__file__).parent.parent
GOLDEN = Path(__file__).parent / "golden"
FILES = {
    "example": TESTS.parent / "examples" / "server-disk-read.json",
    "lab-no-agent": TESTS / "data" / "report-v1-lab-no-agent.json",
}
SGR = re.compile(r"\x1b\[([0-9;]*)m")


def shown(report, width=80, encoding="utf-8", verbose=True, **options) -> str:
    """What a terminal of this width and encoding gets."""
    raw = io.BytesIO()
    file = io.TextIOWrapper(raw, encoding=encoding, write_through=True)
    print_report(report, diagnose(report), Console(file=file, width=width, **options), verbose)
    return raw.getvalue().decode(encoding)


@pytest.fixture(params=FILES)
def report(request):
    return reports.load(FILES[request.param])


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("width", [80, 120, 200])
def test_the_output_is_the_one_that_was_looked_at(name, width):
    """`UPDATE_GOLDEN=1` writes it anew."""
    path = GOLDEN / f"{name}-{width}.txt"
    text = shown(reports.load(FILES[name]), width, verbose=False)
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [80, 120, 200])
def test_it_fits_the_terminal(report, width):
    lines = shown(report, width).splitlines()
    assert max(map(len, lines)) <= width
    assert all(line == line.rstrip() for line in lines)


# -- colour and encodings ----------------------------------------------------------------------


def test_no_color_leaves_no_colour_and_the_same_words(report, monkeypatch):
    monkeypatch.delenv("NO_COLOR", raising=False)
    options = {"force_terminal": True, "color_system": "truecolor"}
    coloured = shown(report, **options)
    monkeypatch.setenv("NO_COLOR", "1")
    plain = shown(report, **options)
    codes = {code for found in SGR.findall(plain) for code in found.split(";")}
    assert codes <= {"0", "1", "2"}
    assert "31" in {code for found in SGR.findall(coloured) for code in found.split(";")}
    assert SGR.sub("", plain) == SGR.sub("", coloured) == shown(report)


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "koi8-r"])
def test_where_block_characters_cannot_be_printed_ascii_is(report, encoding):
    text = shown(report, encoding=encoding)
    assert text.isascii()
    assert "<- cap" in text
    assert "##" in text


def test_a_name_that_the_encoding_has_no_characters_for_is_escaped(report):
    named = replace(report, notes=("caf\u00e9 \u65e5\u672c",))
    assert "- caf\u00e9 \u65e5\u672c" in shown(named)
    assert "- caf\\xe9 \\u65e5\\u672c" in shown(named, encoding="ascii")
    assert "- caf\u00e9 \\u65e5\\u672c" in shown(named, encoding="latin-1")


# -- foreign names -----------------------------------------------------------------------------

HOSTILE = "nas\x1b]0;owned\x07\x1b[2J\r\n\u202e\u200b\u2066\x9b31m\ud800[red]x[/red]"
ESCAPED = "nas\\x1b]0;owned\\x07\\x1b[2J\\x0d\\x0a\\u202e\\u200b\\u2066\\x9b31m\\ud800[red]x[/red]"


def hostile(report):
    """The report with such a name wherever a name can stand."""
    setting = {"copy": "pull.cached", "dialect": HOSTILE, "end": "folder"}
    interface = replace(report.client.interface, name=HOSTILE, address=HOSTILE, virtual=False)
    folder = replace(report.client.folder, path=HOSTILE, device=HOSTILE, filesystem=HOSTILE)
    client = replace(report.client, name=HOSTILE, interface=interface, folder=folder)
    entries = (
        (Step(HOSTILE, {"verb": HOSTILE, "streams": HOSTILE}, "client"), Skipped(HOSTILE)),
        (Step("smb-copy", setting, "client"), Failed(f"//{HOSTILE}/share: reset")),
        (Step("disk", {"side": HOSTILE, "verb": HOSTILE}, "server"), Failed(HOSTILE)),
    )
    return replace(
        report,
        target={**report.target, "share": f"//{HOSTILE}/{HOSTILE}"},
        client=client,
        entries=(*report.entries, *entries),
        notes=(HOSTILE,),
    )


@pytest.mark.parametrize("width", [80, 120])
def test_hostile_names_appear_escaped_and_act_on_nothing(report, width):
    text = shown(hostile(report), width)
    for line in text.splitlines():
        assert line.isprintable(), repr(line)
    unwrapped = re.sub(r"\n\s*", "", text)
    assert f"- {ESCAPED}" in unwrapped
    assert f"//{ESCAPED}/share: reset" in unwrapped
    assert "\ud800" not in text


def test_hostile_names_are_no_markup(report):
    text = shown(hostile(report), force_terminal=True, color_system="truecolor")
    assert "[red]x[/red]" in SGR.sub("", text)
    assert SGR.sub("", text) == shown(hostile(report))


def test_an_interface_by_a_hostile_name_is_evidence_and_escaped(report):
    """The one place where a host's own word stands in a sentence of the diagnosis."""
    text = re.sub(r"\n\s*", "", shown(hostile(report), 200))
    assert "client's interface nas\\x1b]0;owned" in text


def test_every_copy_that_failed_by_a_hostile_server_is_told_escaped(report):
    """Where no copy was made the server's own words are the headline."""
    setting = {"copy": "pull.cached", "dialect": "3.1.1", "end": "folder"}
    failed = (Step("smb-copy", setting, "client"), Failed(HOSTILE))
    text = shown(replace(report, entries=(failed,), notes=()), 400)
    assert f"The copy broke off: {ESCAPED}" in text.splitlines()[0]
