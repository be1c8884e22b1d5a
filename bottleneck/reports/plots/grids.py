"""TCP windows x streams, and SMB request size x depth, as heat maps."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.reports.copy_tables import requests_heat
from bottleneck.reports.document import Heat
from bottleneck.reports.plots import shapes
from bottleneck.reports.plots.heat import heat_map, within
from bottleneck.reports.plots.plot import Plot, numbered, plot
from bottleneck.reports.table import Row
from bottleneck.reports.tcp_tables import windows_heat
from bottleneck.reports.units import rate_text, seconds_text, size_text

MOST_PLOTS = 2
WINDOWS = ("window", "streams", "rate", "round trip, idle", "under load", "")
REQUESTS = ("request", "in flight", "bytes in flight", "rate")


def windows(diagnosis: Diagnosis) -> Iterator[Plot]:
    """A heat map for each matrix: the rate, the round trip under load, the knee framed."""
    found = [each for each in diagnosis.comparisons if each.about == "windows"]
    for at, each, more in numbered(found, MOST_PLOTS):
        rows = {(row["window_bytes"], row["streams"]): row for row in each.rows}
        heat, name = windows_heat(each), f"windows-{at}"
        yield _plot(name, "TCP windows x streams", each, more, heat, WINDOWS, rows, _window)


def _window(row: Row) -> tuple[str, ...]:
    times = (row[f"rtt_{state}_seconds"] for state in ("unloaded", "loaded"))
    return (
        rate_text(row["bytes_per_second"]),
        *("" if each is None else seconds_text(each) for each in times),
        row["standing"] or "",
    )


def requests(diagnosis: Diagnosis) -> Iterator[Plot]:
    """A heat map for each smb-matrix, the fastest cell framed."""
    found = [each for each in diagnosis.comparisons if each.about == "requests"]
    for at, each, more in numbered(found, MOST_PLOTS):
        measured = (row for row in each.rows if row["application"] is None)
        rows = {(row["request_bytes"], row["depth"]): row for row in measured}
        heat, name = requests_heat(each), f"requests-{at}"
        yield _plot(name, "SMB request size x depth", each, more, heat, REQUESTS, rows, _request)


def _request(row: Row) -> tuple[str, ...]:
    return size_text(row["in_flight_bytes"]), rate_text(row["bytes_per_second"])


def _plot(
    name: str,
    title: str,
    found: Comparison,
    more: str,
    heat: Heat,
    titles: tuple[str, ...],
    rows: dict[tuple[float, float], Row],
    told: Callable[[Row], tuple[str, ...]],
) -> Plot:
    shown = within(heat.cells)
    sentence = shapes.told(found.sentence) + more
    if len(shown) < len(heat.cells):
        sentence += f" {len(shown)} of {len(heat.cells)} cells are drawn."
    table = [
        (heat.row_text(each.row), heat.column_text(each.column), *told(rows[each.row, each.column]))
        for each in shown
    ]
    title += f", {heat.verb}" if heat.verb else ""
    return plot(name, title, sentence, heat_map(heat), titles, table)
