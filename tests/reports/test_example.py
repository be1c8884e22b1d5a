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
from bottleneck.reports.console import print_report

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
