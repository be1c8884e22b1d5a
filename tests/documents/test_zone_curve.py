"""The zone curve as a chart and as a drawing: each zone, the files' places, nothing foreign."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bottleneck.analysis.comparisons.disks import all_zones
from bottleneck.cli.app import run
from bottleneck.documents.disks import zone_curves
from bottleneck.documents.plots.zones import zone_curves_svg
from tests import stored_reports

DATA = Path(__file__).parent.parent / "data"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def report():
    return stored_reports.load(DATA / "report-v1-comparisons.json")


@pytest.fixture
def lines_of(render):
    return lambda report, *terminal: render(zone_curves(report), *terminal).splitlines()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_chart_falls_from_left_to_right_and_fits(lines_of, report, width, encoding):
    lines = lines_of(report, width, encoding)
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    (zones,) = all_zones(report)
    columns = min(120, width - 10)
    drawn = lines_of(report, width, "ascii")[2:10]
    heights = [
        sum(line.ljust(width)[10 + column] == "#" for line in drawn) for column in range(columns)
    ]
    centres = [int(zone.centre_ratio * columns) for zone in zones.zones]
    highest = max(zone.bytes_per_second for zone in zones.zones)
    for column, zone in zip(centres, zones.zones, strict=True):
        assert heights[column] == pytest.approx(8 * zone.bytes_per_second / highest, abs=0.6)


def test_a_report_without_zones_has_neither(lines_of, report):
    entries = [e for e in report.entries if e[0].setting.get("pattern") != "zones"]
    bare = replace(report, entries=tuple(entries))
    assert lines_of(bare) == []
    assert zone_curves_svg(bare) is None


def test_the_drawing_that_stands_alone_is_named_and_told(report):
    """Its shapes are those of the page, which plots/test_stages.py holds."""
    text = zone_curves_svg(report)
    root = ElementTree.fromstring(text)
    assert root.find(f"{SVG}title").text
    assert "2.00 to 1" in root.find(f"{SVG}desc").text
    assert "location on disk" in " ".join(each.text or "" for each in root.iter(f"{SVG}text"))
    assert text.isascii()


def test_files_on_another_disk_are_not_marked(report):
    (curve,) = zone_curves(report)
    assert len(curve.files) == 2
    entries = [
        (step, replace(outcome, details={**outcome.details, "device": "sdb"}))
        if step.setting.get("pattern") == "zones"
        else (step, outcome)
        for step, outcome in report.entries
    ]
    (other,) = zone_curves(replace(report, entries=tuple(entries)))
    assert other.files == ()


def test_what_is_written_stands_on_the_same_drawing(lines_of, report):
    step, outcome = next(e for e in report.entries if e[0].setting.get("pattern") == "zones")
    half = [
        {**each, "bytes_per_second": 0.5 * each["bytes_per_second"]}
        for each in outcome.details["zones"][:3]
    ]
    written = (
        replace(step, setting={**step.setting, "verb": "write"}),
        replace(outcome, details={**outcome.details, "zones": half}),
    )
    both = replace(report, entries=(*report.entries, written))
    (curve,) = zone_curves(both)
    assert "read and write rate" in curve.title
    lines = lines_of(both, 80, "ascii")
    (level,) = (index for index, line in enumerate(lines) if "ww" in line)
    assert lines[level].count("w") == 70 // 3 and 5 <= level <= 7
    assert "zone, write" in zone_curves_svg(both)


@pytest.mark.long
def test_explain_writes_the_drawing_and_refuses_where_there_is_none(report, capsys):
    assert run(["explain", str(DATA / "report-v1-comparisons.json"), "--format", "svg"]) == 0
    assert capsys.readouterr().out == zone_curves_svg(report)
    assert run(["explain", str(DATA / "report-v1-server-disk.json"), "--format", "svg"]) == 64
    assert "cannot plot" in capsys.readouterr().err
