"""Drawings of whatever report: marks lie in the box, nothing foreign acts, tables are whole."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck.documents.plots.shapes import sheet
from bottleneck.report import report as reports
from tests import stored_reports
from tests.documents.plots.conftest import every_plot

ROOT = Path(__file__).parents[3]
FILES = sorted((ROOT / "tests" / "data").glob("report-*.json"))
FILES += [ROOT / "examples" / "server-disk-read.json"]
FILES += sorted((ROOT / "tests" / "data" / "traces").glob("*.json.gz"))
TAGS = {"svg", "title", "desc", "rect", "circle", "line", "polyline", "polygon", "path", "text"}
HOSTILE = "</title><script>alert(1)</script>\x1b[2J\u202e&\"' onload=x\x00"
STRANGE = (0, 1e-9, 2**63, None, HOSTILE * 5, {"a": 1})
STORED = json.loads((ROOT / "tests" / "data" / "report-v1-comparisons.json").read_text())
WHOLE = reports.from_json(STORED)
TIMED = stored_reports.load(ROOT / "tests" / "data" / "traces" / "client-write.json.gz")


def inside(mark, drawing):
    across = mark.left_x >= -0.2 and mark.right <= drawing.width + 0.2
    return across and mark.top >= -1 and mark.bottom <= drawing.height + 0.2


def look_at(plot, drawing):
    """Asserts what holds for every plot."""
    marks = drawing(plot)
    assert plot.svg.isascii()
    assert {each.tag for each in marks.root.iter()} <= TAGS
    for each in marks.root.iter():
        assert not {"style", "href", "id"} & (set(each.attrib) - {"id"})
        assert not any(name.startswith("on") for name in each.attrib)
    outside = [mark for mark in marks.marks if not inside(mark, marks)]
    assert not outside, (plot.name, outside[:3])
    assert any(mark.kind != "text" and mark.width > 0 for mark in marks.marks)
    assert re.fullmatch(r"[a-z0-9-]+", plot.name)
    ids = [each.attrib["id"] for each in marks.root.iter() if "id" in each.attrib]
    assert marks.root.attrib["aria-labelledby"].split() == ids
    assert all(plot.name in each for each in ids)
    assert marks.root.find("title").text
    assert marks.root.find("desc").text == plot.sentence
    assert plot.rows
    assert all(len(row) == len(plot.columns) for row in plot.rows)
    texts = [plot.title, plot.sentence, *plot.columns, *(cell for row in plot.rows for cell in row)]
    assert all(text.isprintable() for text in texts)
    assert "://" not in plot.svg
    return marks


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_marks_lie_in_the_box_and_tables_are_whole(path, parse_drawing):
    report = stored_reports.load(path)
    plots = every_plot(report)
    for plot in plots:
        look_at(plot, parse_drawing)
    assert [each.svg for each in every_plot(report)] == [each.svg for each in plots]


KEYS = (
    *"bytes_per_second low_bytes_per_second high_bytes_per_second seconds from_ratio".split(),
    *"to_ratio device spans points table zones fit verb over".split(),
    *"side copy dialect engine flush_seconds place".split(),
)
OF_TRACES = (
    *"trace looks bins elapsed_seconds connection threads counts".split(),
    *"unsent_bytes in_flight_bytes unread_bytes receive_buffer_bytes".split(),
)


def forge(value, key, strange):
    """The value with whatever has that key replaced, however deep it lies."""
    if isinstance(value, dict):
        return {k: strange if k == key else forge(v, key, strange) for k, v in value.items()}
    return [forge(each, key, strange) for each in value] if isinstance(value, list) else value


@pytest.mark.long
@pytest.mark.parametrize("strange", STRANGE, ids=lambda each: str(each)[:8].strip("</\x1b"))
@pytest.mark.parametrize("key", [*KEYS, *OF_TRACES])
def test_forged_figures_stay_in_the_box_and_forged_words_are_escaped(key, strange, parse_drawing):
    base = TIMED if key in OF_TRACES else WHOLE
    entries = [
        (
            replace(step, setting=forge(step.setting, key, strange)),
            replace(outcome, details=forge(outcome.details, key, strange)),
        )
        for step, outcome in base.entries
        if f'"{key}"' in json.dumps([step.setting, outcome.details])
    ]
    report = replace(base, entries=tuple(entries))
    for plot in every_plot(report):
        look_at(plot, parse_drawing)


@pytest.mark.parametrize("factor", [1e-12, 1e9])
def test_very_small_and_very_large_rates_are_drawn_too(factor, parse_drawing):
    def scaled(run):
        return [[seconds / factor, count] for seconds, count in run]

    document = json.loads(json.dumps(STORED))
    for each in document["steps"]:
        outcome = each["outcome"]
        if outcome["kind"] == "measured":
            outcome["runs"] = [scaled(run) for run in outcome["runs"]]
            outcome.pop("samples", None)
            rate = outcome.get("bytes_per_second")
            outcome["bytes_per_second"] = rate and {k: v * factor for k, v in rate.items()}
    report = reports.from_json(document)
    plots = every_plot(report)
    assert plots
    for plot in plots:
        look_at(plot, parse_drawing)


@pytest.mark.long
def test_every_class_of_the_drawings_has_a_rule():
    rules = set(re.findall(r"\.plot (?:text)?\.([a-z0-9-]+)\{", sheet("plots")))
    used = set()
    for path in FILES:
        report = stored_reports.load(path)
        for plot in every_plot(report):
            for names in re.findall(r' class="([^"]+)"', plot.svg):
                used |= set(names.split())
    assert used - rules <= {"plot"}
