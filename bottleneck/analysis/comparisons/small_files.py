"""Many files: time per small file in round trips and in the server's work; several at once; lists.

The verdict is about seconds per file, not about a rate: a faster link changes little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.axis import Axis, Group, Groups, sentences
from bottleneck.analysis.comparisons.table import Cell, Cells, Row
from bottleneck.analysis.load import SATURATED_RATIO, hindrance
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text
from probes.core.records import SIDES

MANY = 10_000
DOING = {"pull": "pulled", "push": "pushed"}
MOST_RATIO, SURE_RATIO = 0.5, 0.75
"""Least share of a file's time in round trips at which they are named; and named with certainty."""
SHORT_SECONDS = 1e-3
"""Most RTT of a LAN, half of which is the server's own work."""
LINK_RATIO = 0.2
"""Most share of a file's time on the link at which the link does not matter."""
CPU_TRUST, TRIPS_TRUST, SURE_TRIPS_TRUST, SERVER_TRUST = 0.8, 0.7, 0.9, 0.4
"""Confidence by cause; the server's work is the remainder: software, disk and directory."""
COLUMNS = (
    "verb files file_bytes seconds_per_file! seconds_per_file_low seconds_per_file_high "
    "files_per_second bytes_per_second round_trips_per_file rtt_seconds round_trips_seconds "
    "ten_thousand_files_seconds same_as_one_file_seconds verdict"
)
UNKNOWN = ("unknown", None, "inconclusive", 0.0)
Because = tuple[tuple[str, str | None, str, float], str]
"""The contract's words with the confidence, and the reason, a sentence without its full stop."""


def _small_files(report: Report) -> Iterator[Cell]:
    for result in steps.measured_steps(report, "small-files"):
        details, verb = result.outcome.details, result.setting.verb
        files = steps.positive(details, "files")
        size = steps.positive(result.plan.setting, "file_bytes")
        if result.plan.setting.get("tree") and files:
            size = result.moved_bytes / files
        # The fastest sound copy of one file by the client in that direction, over SMB.
        large = steps.fastest(
            copy.step
            for copy in steps.copies(report)
            if copy.step is not None
            and copy.step.is_intact
            and (copy.verb, copy.initiator, copy.is_native) == (verb, "client", False)
        )
        row = table.read(details, COLUMNS, verb=verb, file_bytes=size, verdict=None)
        if size is None or verb not in DOING or row is None:
            continue
        names = ("seconds_per_file", "round_trips_per_file", "rtt_seconds")
        seconds, trips, trip = (row[name] for name in names)
        row["files"] = row["files"] or 0.0
        row["files_per_second"], row["bytes_per_second"] = 1 / seconds, size / seconds
        row["round_trips_seconds"] = min(seconds, trips * trip) if trips and trip else None
        row["ten_thousand_files_seconds"] = MANY * seconds
        row["same_as_one_file_seconds"] = large and MANY * (size / large.rate.median)
        yield table.cell(result, row, None, *filter(None, (large,)))


def _beside_large(cells: Cells) -> Cells:
    """Returns the large file and the small ones, each by its bytes per second."""
    small = cells[0]
    return [*(replace(small, spread=table.single(e.rate.median)) for e in small.others), small]


def _because(report: Report, small: Cell) -> Because:
    """Returns the component that takes most of a file's time, and the reason."""
    result, row = small.result, small.row
    if not result.is_intact:
        return UNKNOWN, ""
    loads = {side: load_of(report, result, side) for side in SIDES}
    client, server = loads["client"], loads["server"]
    for side, load in loads.items():
        if load is not None and load.is_crowded:
            text = f"Other processes used {percent_text(load.others_ratio)} of the {side}'s CPU"
            return ("cpu", side, "contention", CPU_TRUST), text
    if client is not None and client.process_ratio >= SATURATED_RATIO:
        return ("instrument", "client", "ceiling", CPU_TRUST), "This tool itself used a full core"
    full = hindrance(server, "server")
    if full is not None and server is not None:
        cause = "quota" if server.is_throttled else "all-cores" if server.is_full else "one-core"
        return ("cpu", "server", cause, CPU_TRUST), table.capital(full)
    return _explain_time(row, 0.0 if client is None else client.process_ratio)


def _explain_time(row: Row, tool_ratio: float) -> Because:
    """Returns round trips, or the server's work beside them; unknown: neither stands out."""
    seconds, trips = row["seconds_per_file"], row["round_trips_seconds"]
    if trips is None:
        return UNKNOWN, "The share of round trips is unknown"
    text = "{round_trips_per_file} round trips of {rtt_seconds} take {round_trips_seconds} of that"
    text = table.write(text, row)
    share = trips / seconds
    if share >= MOST_RATIO and row["rtt_seconds"] >= SHORT_SECONDS:
        trust = SURE_TRIPS_TRUST if share >= SURE_RATIO else TRIPS_TRUST
        return ("smb", "path", "round-trips", trust), text
    link = (row["same_as_one_file_seconds"] or 0.0) / MANY
    if seconds * (1 - tool_ratio) - trips - link >= MOST_RATIO * seconds:
        text += "; most of the rest is the server's own work on each file"
        return ("smb", "server", "server-software", SERVER_TRUST), text
    return UNKNOWN, f"{text}; the rest is not explained"


def _figures(group: Group, groups: Groups) -> Row:
    small, (_, why) = group.cells[0], _because(group.report, group.cells[0])
    row, result = small.row, small.result
    large, seconds = row["same_as_one_file_seconds"], row["ten_thousand_files_seconds"]
    independent = large is not None and large <= LINK_RATIO * seconds
    folder = bool(result.plan.setting.get("tree") and row["files"])
    return {
        "altered": not result.is_intact,
        "folder": result.is_intact and folder,
        "alike": result.is_intact and not folder,
        "moved_bytes": result.moved_bytes,
        "doing": DOING[row["verb"]],
        "all_seconds": result.seconds,
        "folder_bytes_per_second": result.rate.median,
        "independent": independent,
        "why": why,
        "many": MANY,
        "large_bytes_per_second": group.ends[0].rate,
    }


def _rows(group: Group) -> Iterator[Row]:
    names = ("component", "side", "cause", "confidence")
    words, _ = _because(group.report, group.cells[0])
    sentence = " ".join(sentences(SMALL_FILES, group, [group]))
    verdict = {**dict(zip(names, words, strict=True)), "sentence": sentence, "detail": ""}
    yield {**group.cells[0].row, "verdict": verdict}


SMALL_FILES = Axis(
    "small-files",
    cells=_small_files,
    ends=_beside_large,
    rows=_rows,
    figures=_figures,
    sentences=(
        "{altered}DATA CORRUPTED: the received small files differ from the sent files. Find the "
        "cause before you use this path for data.",
        "{folder}The {files} files of the folder, {moved_bytes} in all, are {doing} in "
        "{all_seconds}: {folder_bytes_per_second}, {seconds_per_file} per file. {why}.",
        "{alike}Small files are {doing} at {files_per_second} files/s[{independent}, independent "
        "of the link rate]: {seconds_per_file} per file of {file_bytes}. {why}. {many} files take "
        "{ten_thousand_files_seconds}[; the same data as one file, {same_as_one_file_seconds} at "
        "{large_bytes_per_second}].",
    ),
    is_unreliable_on_busy_cores=False,
)


LISTED_FILES = 1000
"""Count of files that the times of a listing are for."""
SLOW_TIMES, SLOW_SECONDS = 3.0, 2.0
"""Time of one query for each file over that of all at once, from which on programs differ; time of
1,000 files from which on a person waits."""
LISTING_COLUMNS = (
    "entries! rtt_seconds query_seconds each_seconds query_round_trips times copy_ratio"
)


def _listings(report: Report) -> Iterator[Cell]:
    for result in steps.measured_steps(report, "listing"):
        details = result.outcome.details
        query, each = (
            steps.positive(details, "seconds_per_thousand", name) for name in ("query", "each")
        )
        trips = steps.positive(details, "round_trips_per_thousand", "query")
        row = table.read(
            details,
            LISTING_COLUMNS,
            query_seconds=query,
            each_seconds=each,
            query_round_trips=trips,
        )
        if row is None or query is None or each is None:
            continue
        pulls = (
            small.outcome.details
            for small in steps.measured_steps(report, "small-files")
            if small.setting.verb == "pull"
        )
        copied = next((steps.positive(pull, "seconds_per_file") for pull in pulls), None)
        row["times"] = each / query
        row["copy_ratio"] = copied and each / (each + LISTED_FILES * copied)
        yield table.cell(result, row, None)


def _listing_figures(group: Group, _: Groups) -> Row:
    row = group.cells[0].row
    differs = row["times"] >= SLOW_TIMES
    return {
        "differs": differs,
        "alike": not differs,
        "slow": row["each_seconds" if differs else "query_seconds"] >= SLOW_SECONDS,
        "many": LISTED_FILES,
    }


LISTING = Axis(
    "listing",
    cells=_listings,
    ends=lambda cells: cells[:1],
    rows=lambda group: iter([group.cells[0].row]),
    figures=_listing_figures,
    sentences=(
        "{differs}{many} files of a folder are listed in {first.query_seconds}. A program that "
        "asks for each file by itself needs {first.each_seconds}, {first.times} as long[, which is "
        "{first.copy_ratio} of a copy of small files][{slow}: such a program lists slowly over "
        "this path].",
        "{alike}{many} files of a folder are listed in {first.query_seconds}, and one by one in "
        "{first.each_seconds}[{slow}: the listing itself is slow at the server].",
    ),
    is_unreliable_on_busy_cores=False,
)


PARALLEL_COLUMNS = (
    "seconds! one_at_a_time_seconds! files! files_at_once! verb= file_bytes= times= "
    "one_bytes_per_second= four_bytes_per_second= sixteen_bytes_per_second= command="
)
AT_ONCE = {"one": 1, "four": 4, "sixteen": 16}
"""Names of the counts of files that are copied at once."""


def _parallel(report: Report) -> Iterator[Cell]:
    for result in filter(lambda e: e.is_intact, steps.measured_steps(report, "parallel")):
        command = result.outcome.details.get("command")
        text = steps.word(command, "text")
        cells = {
            steps.positive(each, "files_at_once"): steps.positive(each, "bytes_per_second")
            for each in steps.items(result.outcome.details, "cells")
        }
        size = steps.positive(result.plan.setting, "file_bytes")
        verb = result.setting.verb
        rates = {f"{name}_bytes_per_second": cells.get(count) for name, count in AT_ONCE.items()}
        row = table.read(
            command, PARALLEL_COLUMNS, verb=verb, file_bytes=size, command=text, **rates
        )
        if row is None or size is None or text is None or verb not in DOING:
            continue
        row["times"] = row["one_at_a_time_seconds"] / row["seconds"]
        yield table.cell(result, row, None)


def _parallel_figures(group: Group, _: Groups) -> Row:
    cell = group.cells[0]
    gains = cell.row["files_at_once"] > 1
    is_minimum = steps.flag(cell.result.outcome.details, "command", "at_least")
    return {
        "gains": gains,
        "alike": not gains,
        "about": "at least" if is_minimum else "about",
        "moves": f"{cell.row['verb']}{'es' if cell.row['verb'] == 'push' else 's'}",
        "own_limit": (steps.positive(cell.result.outcome.details, "core_ratio") or 0.0)
        >= SATURATED_RATIO,
    }


PARALLEL = Axis(
    "parallel",
    cells=_parallel,
    ends=lambda cells: cells[:1],
    rows=lambda group: iter([group.cells[0].row]),
    figures=_parallel_figures,
    sentences=(
        "{gains}{files_at_once} files at once are faster: `{command}` {moves} {files} files of "
        "{file_bytes} in {about} {seconds} if both disks keep up; one at a time, they take "
        "{one_at_a_time_seconds}.",
        "{alike}More files at once gain nothing: `{command}` {moves} {files} files of {file_bytes} "
        "in {about} {seconds} if both disks keep up.",
        "{own_limit}This tool used a full core of the client: other programs may be faster.",
    ),
    is_unreliable_on_busy_cores=False,
)
