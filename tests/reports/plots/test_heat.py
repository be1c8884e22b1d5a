"""The heat maps: each cell's figure, the knee framed, and contrast that everybody can read."""

from __future__ import annotations

import pytest

from bottleneck.reports.plots.heat import Cell, Words, cell_text, heat_map, level, within
from bottleneck.reports.plots.style import HEAT_DARK, HEAT_LEVELS, HEAT_LIGHT


def luminance(colour):
    """WCAG 2.2, relative luminance."""
    parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("levels", [HEAT_LIGHT, HEAT_DARK])
def test_the_figures_of_each_step_have_the_contrast_of_text(levels):
    assert len(levels) == HEAT_LEVELS
    for ground, ink in levels:
        dark, light = sorted((luminance(ground), luminance(ink)))
        assert (light + 0.05) / (dark + 0.05) >= 4.5


@pytest.mark.parametrize("levels", [HEAT_LIGHT, HEAT_DARK])
def test_the_steps_rise_or_fall_in_lightness_alone(levels):
    told = [luminance(ground) for ground, _ in levels]
    assert told in (sorted(told), sorted(told, reverse=True))


def test_a_step_is_an_equal_share_of_the_highest():
    assert [level(each, 100.0) for each in (0, 19, 21, 59, 81, 100)] == [0, 0, 1, 2, 4, 4]


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


def test_the_frame_is_the_knees(drawn, report):
    plot, drawing = drawn(report, "windows-1")
    (knee,) = (row for row in plot.rows if row[-1] == "knee")
    around = next(each for each in drawing.having("frame", "rect"))
    (cell,) = drawing.saying(f"{knee[0]} x {knee[1]}: ")
    assert cell.left <= around.left < around.right <= cell.right
    assert cell.top <= around.top < around.bottom <= cell.bottom
    assert f"the knee: {knee[0]} x {knee[1]}" in drawing.words


def test_requests_are_those_that_were_measured_the_fastest_framed(drawn, report):
    plot, drawing = drawn(report, "requests-1")
    stage = next(o for s, o in report.entries if s.stage == "smb-matrix")
    assert len(plot.rows) == len(stage.details["cells"])
    assert any(each.startswith("the fastest: ") for each in drawing.words)


def words(**changes):
    told = {"rows": "window", "columns": "streams", "row_text": str, "column_text": str}
    return Words(**{**told, "second": "round trip", "framed": "the knee", **changes})


def test_a_large_map_is_bounded_and_stays_in_its_box(drawing):
    cells = [Cell(row, column, 1e8, "12.3 ms") for row in range(100) for column in range(100)]
    assert len(within(cells)) == 16 * 8
    height, parts = heat_map(cells, words())
    marks = drawing(
        type("P", (), {"svg": f'<svg viewBox="0 0 330 {height}">{"".join(parts)}</svg>'})
    )
    assert all(each.left >= 0 and each.right <= 330.1 for each in marks.marks)
    # So narrow a cell has no room for a second figure.
    assert "12.3 ms" not in marks.words


def test_figures_of_cells_have_three_digits():
    told = [cell_text(each) for each in (0.0001, 0.5, 3.14159, 23.64, 117.4, 999.4)]
    assert told == ["<0.01", "0.50", "3.14", "23.6", "117", "999"]
