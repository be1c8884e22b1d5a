"""The comparisons on a terminal: a heading, a small table, and what it means."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from rich.console import Console

from bottleneck.analysis.finding import Comparison, Diagnosis
from bottleneck.reports import asymmetries, disks, layout, tcp_tables
from bottleneck.reports.layout import Columns, Signs
from bottleneck.reports.safe import safe
from bottleneck.reports.table import Row, Table, first, written
from bottleneck.reports.units import (
    cost_text,
    count_text,
    megabytes_text,
    megabytes_unit,
    percent_text,
    rate_text,
    seconds_text,
    size_text,
    times_text,
)

SENTENCE_CHARACTERS = 1000
MOST_LINES = 8
"""And columns of a matrix: this tool measures fewer."""
OF_TCP_ALONE = frozenset(tcp_tables.TABLES)
BAR_CELLS, WIDE_BAR_CELLS = 8, 30
LABEL_COLUMNS = 11
"""As wide as `push Mbit/s`."""


def print_comparisons(
    diagnosis: Diagnosis, console: Console, signs: Signs, verbose: bool = False
) -> None:
    """Each kind of comparison that the diagnosis has; verbose: with all of its rows.

    Beside copies the tables of TCP alone would bury the verdict: their sentences are enough.
    """
    brief = [
        each
        for each in diagnosis.comparisons
        if each.about in OF_TCP_ALONE and diagnosis.copies and not verbose
    ]
    for about, group in groupby(diagnosis.comparisons, key=lambda each: each.about):
        found = [each for each in group if each not in brief]
        if found:
            _print(TABLES[about], found, console, signs, verbose)
    if brief:
        layout.heading(console, "TCP alone (its tables with --verbose)")
    for each in brief:
        layout.paragraph(console, safe(each.sentence, SENTENCE_CHARACTERS), bullet="- ")
        draw = TABLES[each.about].sparks
        for drawn in draw(each, signs) if draw is not None else ():
            layout.line(console, f"  {drawn}")


def _of_first_copy(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    """All dialects of the copy that the sentence is about."""
    return tuple(row for row in rows if row["copy"] == rows[0]["copy"])


def _print(
    table: Table, found: Sequence[Comparison], console: Console, signs: Signs, verbose: bool
) -> None:
    layout.heading(console, table.heading)
    bar_title = (f"{signs.knee} knee",) if table.bar else ()
    columns = Columns((*table.titles, *bar_title), table.right)
    bar_cells = BAR_CELLS if console.width < layout.WIDE else WIDE_BAR_CELLS
    left_out = 0
    for each in found:
        in_rows = table.grid is None or table.both
        rows = each.rows if verbose and in_rows else table.telling(each.rows)
        left_out += len(each.rows) - len(rows) if in_rows else 0
        for row in rows:
            texts = (signs.none if text is None else text for text in table.cells(row))
            drawn = (_bar(table.bar(row), row, bar_cells, signs),) if table.bar else ()
            columns.add(*texts, *drawn)
    if columns.rows:
        columns.print(console)
    if table.remark and any("*" in text for row in columns.rows for text in row.cells):
        layout.line(console, table.remark, "dim")
    if left_out:
        layout.line(console, f"  and {left_out} more with --verbose", "dim")
    for each in found:
        if table.grid is not None:
            table.grid(each, signs, console.width).print(console)
        layout.paragraph(console, safe(each.sentence, SENTENCE_CHARACTERS), bullet="- ")


def _bar(share: float, row: Row, width: int, signs: Signs) -> str:
    drawn = layout.bar(share, 1.0, width, signs)
    return f"{drawn} {signs.knee}" if row["standing"] == "knee" else drawn


def _shape(row: Row) -> str | None:
    size, depth = row["request_bytes"], row["depth"]
    if size is None or depth is None:
        return None
    return f"{count_text(depth)} x {size_text(size)}"


def _dialect(row: Row) -> tuple[str | None, ...]:
    name = safe(row["dialect"], 16)
    return (
        safe(row["copy"], 40),
        "SMB1" if name == "smb1" else f"SMB {name}",
        rate_text(row["bytes_per_second"]),
        _shape(row),
        written(size_text, row["in_flight_bytes"]),
        row["security"],
    )


def _initiator(row: Row) -> tuple[str | None, ...]:
    told = times_text(row["ratio"]) if row["significant"] else "in the noise"
    return (
        row["direction"],
        row["cache"],
        rate_text(row["sender_bytes_per_second"]),
        rate_text(row["receiver_bytes_per_second"]),
        f"{told}{'' if row['durable'] else ' *'}",
    )


def _native(row: Row) -> tuple[str | None, ...]:
    slower = row["native_bytes_per_second"] < row["own_bytes_per_second"]
    options = safe(" ".join(row["options"]), 32) if slower and row["significant"] else ""
    told = f"{times_text(row['ratio'])} {'slower' if slower else 'faster'}"
    return (
        row["copy"],
        rate_text(row["native_bytes_per_second"]),
        rate_text(row["own_bytes_per_second"]),
        told if row["significant"] else "in the noise",
        options or None,
    )


def _security(row: Row) -> tuple[str | None, ...]:
    first = row["cost_ratio"] == 0
    cost = percent_text(row["cost_ratio"]) if row["cost_ratio"] > 0 else "none"
    cost = cost if row["significant"] else "in the noise"
    return (
        f"{row['verb']} {row['security']}",
        rate_text(row["bytes_per_second"]),
        None if first else cost,
        written(cost_text, row["client_cpu_seconds_per_byte"]),
        written(cost_text, row["server_cpu_seconds_per_byte"]),
    )


def _request(row: Row) -> tuple[str | None, ...]:
    return (
        row["application"],
        row["verb"] and safe(row["verb"], 8),
        _shape(row),
        rate_text(row["bytes_per_second"]),
        {"fit": "by the fit"}.get(row["source"], row["source"]),
    )


def _applications(rows: tuple[Row, ...]) -> tuple[Row, ...]:
    return tuple(row for row in rows if row["application"] is not None)


def _matrix(found: Comparison, signs: Signs, width: int) -> Columns:
    """Rate by request size (down) and requests in flight (across), as a figure and as a bar."""
    cells = {
        (row["request_bytes"], row["depth"]): row["bytes_per_second"]
        for row in found.rows
        if row["application"] is None
    }
    sizes, depths = (sorted({key[axis] for key in cells})[:MOST_LINES] for axis in (0, 1))
    verb = next((safe(row["verb"], 8) for row in found.rows if row["verb"]), "")
    titles = (f"{verb} {megabytes_unit()}", *(f"{f'x {count_text(each)}':>7}" for each in depths))
    table = Columns(titles)
    most = max(cells.values(), default=1.0)
    wide = layout.heat_columns(width, LABEL_COLUMNS, max(1, len(depths)))
    for size in sizes:
        told = (cells.get((size, depth)) for depth in depths)
        heats = (
            "" if rate is None else layout.heat(megabytes_text(rate), rate, most, wide, signs)
            for rate in told
        )
        table.add(size_text(size), *heats)
    return table


def _small_files(row: Row) -> tuple[str | None, ...]:
    trips = written(count_text, row["round_trips_per_file"])
    spent = row["round_trips_seconds"]
    return (
        f"{row['verb']} {count_text(row['files'])} of {size_text(row['file_bytes'])}",
        count_text(row["files_per_second"]),
        seconds_text(row["seconds_per_file"]),
        None if trips is None or spent is None else f"{trips} = {seconds_text(spent)}",
        seconds_text(row["ten_thousand_files_seconds"]),
        written(seconds_text, row["same_as_one_file_seconds"]),
    )


def _durability(row: Row) -> tuple[str | None, ...]:
    name = safe(row["dialect"], 16)
    return (
        f"{row['copy']} {name}",
        rate_text(row["acknowledged_bytes_per_second"]),
        rate_text(row["durable_bytes_per_second"]),
        seconds_text(row["flush_seconds"]),
    )


TABLES = {
    "dialect": Table(
        "Dialects",
        ("copy", "dialect", "rate", "requests", "in flight", "security"),
        _dialect,
        frozenset({2, 3, 4}),
        _of_first_copy,
    ),
    "initiator": Table(
        "Who starts the copy",
        ("direction", "source", "sender starts", "receiver starts", "difference"),
        _initiator,
        frozenset({2, 3}),
        first(4),
        "* as acknowledged: the one that the server started was not flushed",
    ),
    "native": Table(
        "The system's own copy beside this tool's",
        ("copy", "mount", "this tool", "the mount is", "options that cost"),
        _native,
        frozenset({1, 2}),
        first(4),
    ),
    "security": Table(
        "What security costs",
        ("", "rate", "cost", "client CPU", "server CPU"),
        _security,
        frozenset({1, 2, 3, 4}),
        first(3),
    ),
    "requests": Table(
        "Requests: which application would get what",
        ("application", "verb", "requests", "rate", ""),
        _request,
        frozenset({2, 3}),
        _applications,
        grid=_matrix,
    ),
    "small-files": Table(
        "Small files, one after the other",
        ("", "files/s", "a file", "round trips", "10,000 files", "as one"),
        _small_files,
        frozenset({1, 2, 3, 4, 5}),
        first(1),
    ),
    "durability": Table(
        "Acknowledged and safe",
        ("push", "acknowledged", "on the disk", "last flush"),
        _durability,
        frozenset({1, 2, 3}),
        first(2),
    ),
    **asymmetries.TABLES,
    **disks.TABLES,
    **tcp_tables.TABLES,
}
