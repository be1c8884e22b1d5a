"""The heat maps: each cell's figure, the knee framed, and contrast that everybody can read."""

from __future__ import annotations

import pytest

from bottleneck.reports.document import Heat, HeatCell
from bottleneck.reports.plots.cells import heat_map, within


@pytest.mark.long
def test_each_cell_holds_its_figure_and_the_round_trip_under_load(drawn, report):
    plot, drawing = drawn(report, "windows-1")
    cells = [each for each in drawing.having("", "rect") if "heat-" in each.name]
    assert len(cells) == len(plot.rows)
    for cell, row in zip(cells, plot.rows, strict=True):
        assert cell.text.startswith(f"{row[0]} x {row[1]}: {row[2]}")
        inside = [
            each.text
            for each in drawing.having("", "text")
            if cell.left < each.centre < cell.right and cell.top < each.bottom <= cell.bottom
        ]
        assert inside[0] == row[2].split(" ")[0]
        assert inside[1] == row[4]


@pytest.mark.long
def test_the_frame_is_the_knees(drawn, report):
    plot, drawing = drawn(report, "windows-1")
    (knee,) = (row for row in plot.rows if row[-1] == "knee")
    around = next(each for each in drawing.having("frame", "rect"))
    (cell,) = drawing.saying(f"{knee[0]} x {knee[1]}: ")
    assert cell.left <= around.left < around.right <= cell.right
    assert cell.top <= around.top < around.bottom <= cell.bottom
    assert f"knee: {knee[0]} x {knee[1]}" in drawing.words


@pytest.mark.long
def test_requests_are_those_that_were_measured_the_fastest_framed(drawn, report):
    plot, drawing = drawn(report, "requests-1")
    stage = next(o for s, o in report.entries if s.stage == "smb-matrix")
    assert len(plot.rows) == len(stage.details["cells"])
    assert any(each.startswith("fastest: ") for each in drawing.words)


def test_a_large_map_is_bounded_and_stays_in_its_box(drawing):
    cells = tuple(HeatCell(at // 100, at % 100, 1e8, "12.3 ms") for at in range(10_000))
    heat = Heat(cells, "window", "streams", str, str, second="round trip", framed="the knee")
    assert len(within(cells)) == 16 * 8
    height, parts = heat_map(heat)
    marks = drawing(
        type("P", (), {"svg": f'<svg viewBox="0 0 330 {height}">{"".join(parts)}</svg>'})
    )
    assert all(each.left >= 0 and each.right <= 330.1 for each in marks.marks)
    # So narrow a cell has no room for a second figure.
    assert "12.3 ms" not in marks.words
