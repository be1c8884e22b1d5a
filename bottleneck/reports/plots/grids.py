"""TCP windows x streams, and SMB request size x depth, as heat maps."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis.finding import Diagnosis
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.heat import Cell, Words, heat_map, within
from bottleneck.reports.plots.numbered import numbered
from bottleneck.reports.plots.plot import Plot
from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row
from bottleneck.reports.units import count_text, rate_text, seconds_text, size_text

MOST_PLOTS = 2


def windows(diagnosis: Diagnosis) -> Iterator[Plot]:
    """A heat map for each matrix: the rate, the round trip under load, the knee framed."""
    found = [each for each in diagnosis.comparisons if each.about == "windows"]
    for at, each, more in numbered(found, MOST_PLOTS):
        cells = [
            Cell(
                row=row["window_bytes"],
                column=row["streams"],
                bytes_per_second=row["bytes_per_second"],
                second=_loaded(row),
                framed=row["standing"] == "knee",
            )
            for row in each.rows
        ]
        knee = next((cell for cell in cells if cell.framed), None)
        framed = (
            "" if knee is None else f"the knee: {_window(knee.row)} x {count_text(knee.column)}"
        )
        words = Words(
            rows="window",
            columns="TCP streams",
            row_text=_window,
            column_text=count_text,
            second="round trip under load",
            framed=framed,
        )
        name, title = f"windows-{at}", f"TCP windows x streams{_way(each.rows[0])}"
        titles = ("window", "streams", "rate", "round trip, idle", "under load", "")
        rows = {(row["window_bytes"], row["streams"]): row for row in each.rows}
        shown = [rows[cell.row, cell.column] for cell in within(cells)]
        yield _plot(
            name,
            title,
            shapes.told(each.sentence) + more,
            cells,
            words,
            titles,
            map(_window_row, shown),
        )


def _window_row(row: Row) -> tuple[str, ...]:
    times = (row[f"rtt_{state}_seconds"] for state in ("unloaded", "loaded"))
    return (
        _window(row["window_bytes"]),
        count_text(row["streams"]),
        rate_text(row["bytes_per_second"]),
        *("" if each is None else seconds_text(each) for each in times),
        row["standing"] or "",
    )


def requests(diagnosis: Diagnosis) -> Iterator[Plot]:
    """A heat map for each smb-matrix, the fastest cell framed."""
    found = [each for each in diagnosis.comparisons if each.about == "requests"]
    for at, each, more in numbered(found, MOST_PLOTS):
        measured = (row for row in each.rows if row["application"] is None)
        known = {(row["request_bytes"], row["depth"]): row for row in measured}
        rows = list(known.values())
        best = max(rows, key=lambda row: row["bytes_per_second"])
        cells = [
            Cell(
                row=row["request_bytes"],
                column=row["depth"],
                bytes_per_second=row["bytes_per_second"],
                framed=row is best,
            )
            for row in rows
        ]
        words = Words(
            rows="request",
            columns="requests in flight",
            row_text=size_text,
            column_text=count_text,
            second="",
            framed=f"the fastest: {size_text(best['request_bytes'])} x {count_text(best['depth'])}",
        )
        name, title = f"requests-{at}", f"SMB request size x depth{_way(rows[0])}"
        titles = ("request", "in flight", "bytes in flight", "rate")
        shown = [known[cell.row, cell.column] for cell in within(cells)]
        yield _plot(
            name,
            title,
            shapes.told(each.sentence) + more,
            cells,
            words,
            titles,
            map(_request_row, shown),
        )


def _request_row(row: Row) -> tuple[str, ...]:
    return (
        size_text(row["request_bytes"]),
        count_text(row["depth"]),
        size_text(row["in_flight_bytes"]),
        rate_text(row["bytes_per_second"]),
    )


def _plot(
    name: str,
    title: str,
    sentence: str,
    cells: list[Cell],
    words: Words,
    columns: tuple[str, ...],
    rows: Iterator[tuple[str, ...]],
) -> Plot:
    shown = within(cells)
    if len(shown) < len(cells):
        sentence += f" {len(shown)} of {len(cells)} cells are drawn."
    height, parts = heat_map(cells, words)
    drawn = shapes.drawing(name, title, sentence, height, parts)
    return Plot(name, title, sentence, drawn, columns, tuple(rows))


def _way(row: Row) -> str:
    return "" if row["verb"] is None else f", {safe(row['verb'], 16)}"


def _loaded(row: Row) -> str:
    loaded = row["rtt_loaded_seconds"]
    return "" if loaded is None else seconds_text(loaded)


def _window(window_bytes: float) -> str:
    """The system's own tuning is told as a window of 0."""
    return "tuned" if window_bytes == 0 else size_text(window_bytes)
