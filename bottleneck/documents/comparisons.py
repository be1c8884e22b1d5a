"""The comparisons: for each kind a table and its sentence, and the tables of copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import groupby

from bottleneck.analysis.finding import Comparison, Diagnosis, Verdict
from bottleneck.analysis.phrases import cap_text, dialect_text
from bottleneck.documents import disks, document, tcp_tables
from bottleneck.text import units
from bottleneck.text.safe import safe

NO_DIFFERENCE = "no difference"


def _shape(row: document.RawRow) -> str | None:
    size, depth = row["request_bytes"], row["depth"]
    if size is None or depth is None:
        return None
    return f"{units.count_text(depth)} x {units.size_text(size)}"


def _difference_text(row: document.RawRow) -> str:
    difference = units.times_text(row["ratio"]) if row["significant"] else NO_DIFFERENCE
    return f"{difference}{'' if row['durable'] else ' *'}"


def _native_is_slower(row: document.RawRow) -> bool:
    return bool(row["native_bytes_per_second"] < row["own_bytes_per_second"])


def _native(row: document.RawRow) -> str:
    text = f"{units.times_text(row['ratio'])} {'slower' if _native_is_slower(row) else 'faster'}"
    return text if row["significant"] else NO_DIFFERENCE


def _options(row: document.RawRow) -> str | None:
    costs = _native_is_slower(row) and row["significant"]
    return (safe(" ".join(row["options"]), 32) if costs else "") or None


def _cost(row: document.RawRow) -> str | None:
    if row["cost_ratio"] == 0:
        return None
    if not row["significant"]:
        return NO_DIFFERENCE
    return units.percent_text(row["cost_ratio"]) if row["cost_ratio"] > 0 else "none"


def _round_trips(row: document.RawRow) -> str | None:
    trips, spent = row["round_trips_per_file"], row["round_trips_seconds"]
    if trips is None or spent is None:
        return None
    return f"{units.count_text(trips)} = {units.seconds_text(spent)}"


def _dialect(row: document.RawRow) -> str:
    return "mount" if row["dialect"] == "native" else safe(row["dialect"], 16)


def _source(row: document.RawRow) -> str:
    by = " by server" if row["initiator"] == "server" else ""
    return f"{row['cache']} {_dialect(row)}{by}"


def _slower(row: document.RawRow) -> str:
    return f"{row['slower']} {units.times_text(row['ratio'])}" if row["significant"] else "neither"


def _limited_by(row: document.RawRow) -> str | None:
    """Returns the limit of the slower copy, in few words."""
    component, side, cause = (row[name] for name in ("component", "side", "cause"))
    if component is None:
        return {"flush": "final flush", "unexplained": "not explained"}.get(row["mechanism"])
    return cap_text(Verdict(component, side, cause, 0.0, None, ""))


def _files(row: document.RawRow) -> str:
    return f"{row['verb']} {units.count_text(row['files'])} of {units.size_text(row['file_bytes'])}"


def requests_heat(comparison: Comparison) -> document.Heat:
    """Returns rates by request size (down) and requests in flight (across), the fastest framed."""
    measured = (row for row in comparison.rows if row["application"] is None)
    rows = list({(row["request_bytes"], row["depth"]): row for row in measured}.values())
    best = max(rows, key=lambda row: float(row["bytes_per_second"]), default=None)
    fastest = "" if best is None else f"fastest: {_fastest(best)}"
    cells = (
        document.HeatCell(e["request_bytes"], e["depth"], e["bytes_per_second"], framed=e is best)
        for e in rows
    )
    return document.Heat(
        cells=tuple(cells),
        rows="request size",
        columns="requests in flight",
        row_text=units.size_text,
        column_text=units.count_text,
        verb=next((safe(row["verb"], 8) for row in comparison.rows if row["verb"]), ""),
        framed=fastest,
    )


def _fastest(row: document.RawRow) -> str:
    return f"{units.size_text(row['request_bytes'])} x {units.count_text(row['depth'])}"


OF_COPIES = {
    "dialect": document.Form(
        "Dialects",
        (
            document.word("copy", "copy", 40),
            document.Field("dialect", lambda row: dialect_text(row["dialect"])),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.Field("requests", _shape, right=True),
            document.figure("in flight", units.size_text, "in_flight_bytes"),
            document.word("security", "security"),
        ),
    ),
    "initiator": document.Form(
        "Started by client or server",
        (
            document.word("direction", "direction"),
            document.word("source", "cache"),
            document.figure("sender starts", units.rate_text, "sender_bytes_per_second"),
            document.figure("receiver starts", units.rate_text, "receiver_bytes_per_second"),
            document.Field("difference", _difference_text),
        ),
        remark="* acknowledged rate: the copy that the server started was not flushed",
    ),
    "native": document.Form(
        "Mount and this tool",
        (
            document.word("copy", "copy"),
            document.figure("mount", units.rate_text, "native_bytes_per_second"),
            document.figure("this tool", units.rate_text, "own_bytes_per_second"),
            document.Field("mount is", _native),
            document.Field("slow options", _options),
        ),
    ),
    "security": document.Form(
        "Cost of signing and encryption",
        (
            document.Field("", lambda row: f"{row['verb']} {row['security']}"),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.Field("cost", _cost, right=True),
            document.figure("client CPU", units.cost_text, "client_cpu_seconds_per_byte"),
            document.figure("server CPU", units.cost_text, "server_cpu_seconds_per_byte"),
        ),
        document.first(3),
    ),
    "requests": document.Form(
        "SMB request size and depth",
        (
            document.word("application", "application", 40),
            document.word("direction", "verb", 8),
            document.Field("requests", _shape, right=True),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.Field("", lambda row: {"fit": "estimated"}.get(row["source"], row["source"])),
        ),
        lambda rows: tuple(row for row in rows if row["application"] is not None),
        heat=requests_heat,
    ),
    "channels": document.Form(
        "SMB multichannel",
        (
            document.word("", "verb", 8),
            document.figure("connections", units.count_text, "channels"),
            document.figure("rate", units.rate_text, "bytes_per_second"),
            document.figure("to one", units.times_text, "one_connection_ratio"),
        ),
        document.first(3),
    ),
    "small-files": document.Form(
        "Small files",
        (
            document.Field("", _files),
            document.figure("files/s", units.count_text, "files_per_second"),
            document.figure("per file", units.seconds_text, "seconds_per_file"),
            document.Field("round trips", _round_trips, right=True),
            document.figure("10,000 files", units.seconds_text, "ten_thousand_files_seconds"),
            document.figure("as one file", units.seconds_text, "same_as_one_file_seconds"),
        ),
        document.first(1),
    ),
    "listing": document.Form(
        "Listing a folder",
        (
            document.figure("files", units.count_text, "entries"),
            document.figure("1,000 at once", units.seconds_text, "query_seconds"),
            document.figure("round trips", units.count_text, "query_round_trips"),
            document.figure("1,000 one by one", units.seconds_text, "each_seconds"),
            document.figure("to at once", units.times_text, "times"),
            document.figure("RTT", units.seconds_text, "rtt_seconds"),
        ),
        document.first(1),
    ),
    "parallel": document.Form(
        "Several files at once",
        (
            document.word("", "verb", 8),
            document.figure("file size", units.size_text, "file_bytes"),
            document.figure("1 at once", units.rate_text, "one_bytes_per_second"),
            document.figure("4 at once", units.rate_text, "four_bytes_per_second"),
            document.figure("16 at once", units.rate_text, "sixteen_bytes_per_second"),
            document.word("command", "command", 60),
            document.figure("1,000 files", units.seconds_text, "seconds"),
        ),
    ),
    "durability": document.Form(
        "Acknowledged and durable writes",
        (
            document.Field("push", lambda row: f"{row['copy']} {safe(row['dialect'], 16)}"),
            document.figure("acknowledged", units.rate_text, "acknowledged_bytes_per_second"),
            document.figure("durable", units.rate_text, "durable_bytes_per_second"),
            document.figure("final flush", units.seconds_text, "flush_seconds"),
        ),
    ),
    "direction": document.Form(
        "Push and pull",
        (
            document.Field("", _source),
            document.figure("push", units.rate_text, "push_bytes_per_second"),
            document.figure("pull", units.rate_text, "pull_bytes_per_second"),
            document.Field("slower", _slower),
            document.Field("limited by", _limited_by),
        ),
    ),
    "cache": document.Form(
        "Cached and uncached source",
        (
            document.Field("", lambda row: f"{safe(row['copy'], 40)} {_dialect(row)}"),
            document.figure("cached", units.rate_text, "cached_bytes_per_second"),
            document.figure("uncached", units.rate_text, "uncached_bytes_per_second"),
            document.Field("slower", _slower),
            document.Field("limited by", _limited_by),
        ),
    ),
}


SENTENCE_CHARACTERS = 1000
MOST_MAPS = 8
BAR_CELLS, WIDE_BAR_CELLS = 8, 30
TABLES = {**OF_COPIES, **disks.TABLES, **tcp_tables.TABLES}
"""Table form of each kind of comparison."""


def comparisons(diagnosis: Diagnosis, verbose: bool = False) -> Iterator[document.Block]:
    """Yields each kind of comparison of the diagnosis; verbose: with all of its rows."""
    for kind, group in groupby(diagnosis.comparisons, key=lambda each: each.about):
        yield from _kind(TABLES[kind], list(group), verbose)


def figures(
    kind: str, group: Sequence[Comparison]
) -> tuple[list[str], list[document.Heat], document.Table]:
    """Returns the sentences of one kind, its maps, and the figures behind them."""
    form = TABLES[kind]
    rows = [row for each in group for row in each.rows]
    heats = [form.heat(each) for each in group] if form.heat else []
    several = enumerate((each for each in heats if each.cells), 1)
    maps = [replace(each, suffix=f"{nth}" if nth > 1 else "") for nth, each in several][:MOST_MAPS]
    return [_sentence(each).text for each in group], maps, _table(form, rows, 0)


def _kind(
    form: document.Form, group: Sequence[Comparison], verbose: bool
) -> Iterator[document.Block]:
    listed: list[document.RawRow] = []
    left_out = 0
    in_rows = form.heat is None or form.both
    for each in group:
        rows = each.rows if verbose and in_rows else form.telling(each.rows)
        left_out += len(each.rows) - len(rows) if in_rows else 0
        listed += rows
    yield _table(form, listed, left_out)
    for each in group:
        if form.heat is not None:
            yield form.heat(each)
        yield _sentence(each)


def _sentence(comparison: Comparison) -> document.Text:
    return document.Text(safe(comparison.sentence, SENTENCE_CHARACTERS), hanging="- ")


def _table(form: document.Form, rows: Sequence[document.RawRow], left_out: int) -> document.Table:
    columns = [document.Column(each.title, each.right) for each in form.fields]
    if form.bar is not None:
        columns.append(document.Column(f"{document.POINTER} knee", bar=_bar_cells))
    table = document.Table(form.heading, tuple(columns), left_out=left_out)
    starred = False
    for row in rows:
        cells: list[document.Cell] = [each.cell(row) for each in form.fields]
        starred = starred or any("*" in each for each in cells if isinstance(each, str))
        if form.bar is not None:
            sign = document.POINTER if row["standing"] == "knee" else ""
            cells.append(document.Bar(form.bar(row), 1.0, sign))
        table.add(*cells)
    table.note = form.remark if starred else ""
    return table


def _bar_cells(width: int) -> int:
    return BAR_CELLS if width < document.WIDE else WIDE_BAR_CELLS
