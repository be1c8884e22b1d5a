"""The zone curve as a chart and as a drawing: each zone, the files' places, nothing foreign."""

from __future__ import annotations

import io
import re
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
from rich.console import Console

from bottleneck import report as reports
from bottleneck.analysis.comparisons.zones import all_zones
from bottleneck.cli.explain import explain
from bottleneck.reports import layout
from bottleneck.reports.zone_curve import chart, marks, print_zone_curves
from bottleneck.reports.zone_curve_svg import zone_curves_svg
from probes.stage import Refused

DATA = Path(__file__).parent.parent / "data"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def report():
    return reports.load(DATA / "report-v1-comparisons.json")


def lines_of(report, width=80, encoding="utf-8") -> list[str]:
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
    console = Console(file=file, width=width)
    print_zone_curves(report, console, layout.signs(console))
    file.seek(0)
    return file.read().splitlines()


@pytest.mark.parametrize("width", [80, 200])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_the_chart_falls_from_left_to_right_and_fits(report, width, encoding):
    lines = lines_of(report, width, encoding)
    assert all(len(line) <= width and line == line.rstrip() for line in lines)
    (zones,) = all_zones(report)
    columns = min(120, width - 10)
    drawn = list(chart(zones, (), columns, layout.ASCII))
    heights = [
        sum(line.ljust(columns + 10)[10 + at] == "#" for line in drawn[:8]) for at in range(columns)
    ]
    centres = [int(zone.centre_ratio * columns) for zone in zones.zones]
    most = max(zone.bytes_per_second for zone in zones.zones)
    for at, zone in zip(centres, zones.zones, strict=True):
        assert heights[at] == pytest.approx(8 * zone.bytes_per_second / most, abs=0.6)


def test_the_weak_zone_and_the_files_are_marked_at_their_places(report):
    lines = lines_of(report)
    weak = next(line for line in lines if "!" in line)
    own = next(line for line in lines if "this run's own file" in line)
    named = next(line for line in lines if line.endswith("^^^^^") and "the file" in line)
    assert [weak.index("!") - 10, weak.rindex("!") - 10] == [23, 31]
    assert [own.index("^") - 10, own.rindex("^") - 10] == [7, 13]
    assert [named.index("^") - 10, named.rindex("^") - 10] == [63, 67]


def test_a_report_without_zones_has_neither(report):
    left = [e for e in report.entries if e[0].setting.get("pattern") != "zones"]
    bare = replace(report, entries=tuple(left))
    assert lines_of(bare) == []
    assert zone_curves_svg(bare) is None


def test_the_drawing_has_each_zone_with_its_rate_and_the_files_below(report):
    text = zone_curves_svg(report)
    root = ElementTree.fromstring(text)
    assert root.find(f"{SVG}title").text
    assert "2.00 to 1" in root.find(f"{SVG}desc").text
    told = [each.find(f"{SVG}title") for each in root.iter(f"{SVG}rect")]
    bars = [each.text for each in told if each is not None]
    assert sum("zone" in each for each in bars) == 9
    assert sum(each.startswith("weak zone 4") for each in bars) == 1
    assert sum(each.startswith(("the file", "this run's")) for each in bars) == 2
    words = " ".join(each.text or "" for each in root.iter(f"{SVG}text"))
    assert "MB/s" in words
    assert "per cent" in words
    assert text.isascii()


def test_nothing_foreign_acts_in_it(report):
    strange = "sda</title><script>alert(1)</script>\x1b[2J\u202e&\"'"
    entries = []
    for step, outcome in report.entries:
        if step.setting.get("pattern") == "zones":
            setting = {**step.setting, "side": strange}
            details = {**outcome.details, "device": strange}
            entries.append((replace(step, setting=setting), replace(outcome, details=details)))
        else:
            entries.append((step, outcome))
    forged = replace(report, entries=tuple(entries))
    text = zone_curves_svg(forged)
    root = ElementTree.fromstring(text)
    tags = {each.tag.removeprefix(SVG) for each in root.iter()}
    assert tags <= {"svg", "title", "desc", "rect", "g", "text", "line", "polyline"}
    addresses = re.findall(r"\w+://[^\"]+", text)
    assert addresses == ["http://www.w3.org/2000/svg"]
    assert not any(
        "href" in name or name.startswith("on") for e in root.iter() for name in e.attrib
    )
    assert all(line.isprintable() for line in lines_of(forged))


def test_files_on_another_disk_are_not_marked(report):
    (zones,) = all_zones(report)
    assert len(marks(report, zones)) == 2
    details = {**zones.found.outcome.details, "device": "sdb"}
    other = replace(zones.found, outcome=replace(zones.found.outcome, details=details))
    assert marks(report, replace(zones, found=other)) == ()


def test_explain_writes_the_drawing_and_refuses_where_there_is_none(report, capsys):
    assert explain(DATA / "report-v1-comparisons.json", format="svg") == 0
    assert capsys.readouterr().out == zone_curves_svg(report)
    with pytest.raises(Refused, match="nothing to draw"):
        explain(DATA / "report-v1-server-disk.json", format="svg")
