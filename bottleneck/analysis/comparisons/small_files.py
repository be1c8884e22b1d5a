"""Many small files: what one takes, in round trips and in the server's work, beside one file.

The verdict is about seconds per file, not about a rate: a faster link changes little.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import table
from bottleneck.analysis.comparisons.table import Row
from bottleneck.analysis.finding import Comparison, Verdict
from bottleneck.analysis.load import SATURATED_RATIO, Load, hindrance
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, percent_text, rate_text, seconds_text, size_text
from probes.core.records import SIDES

MANY = 10_000
DOING = {"pull": "pulled", "push": "pushed"}
MOST_RATIO = 0.5
"""Share of a file's time that has to be round trips for them to be named."""
SURE_RATIO = 0.75
SHORT_SECONDS = 1e-3
"""A round trip below it is a LAN's, and half of it the server's answering."""
LINK_RATIO = 0.2
"""Share of a file's time that its bytes may take on the link without being the matter."""
CPU_TRUST = 0.8
SERVER_TRUST = 0.4
"""The server's work is the remainder: software, disk and directory are not separated."""


@dataclass(frozen=True)
class Cost:
    """What one small file takes; of a folder of the user's the mean of its files."""

    found: Found
    verb: str
    file_bytes: float
    files: float | None
    seconds_per_file: float
    round_trips_per_file: float | None
    rtt_seconds: float | None
    seconds_per_file_low: float | None
    seconds_per_file_high: float | None
    whole: Found | None
    """The fastest copy of one large file in the same direction."""
    loads: dict[str, Load | None]
    """What each host was busy with."""

    @property
    def trips_seconds(self) -> float | None:
        """What the round trips alone take of a file's time, at most all of it."""
        if not self.round_trips_per_file or not self.rtt_seconds:
            return None
        return min(self.seconds_per_file, self.round_trips_per_file * self.rtt_seconds)

    @property
    def link_seconds(self) -> float:
        """What the file's bytes take at the rate of a large file; 0: not known."""
        return 0.0 if self.whole is None else self.file_bytes / self.whole.rate.median


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison a direction: small files against the same bytes as one."""
    for found in steps.measured(report, "small-files"):
        file_bytes, verb = steps.positive(found.step.setting, "file_bytes"), found.setting.verb
        files = steps.positive(found.outcome.details, "files")
        if found.step.setting.get("tree") and files:
            file_bytes = found.moved_bytes / files
        if file_bytes is None or verb not in DOING:
            continue
        # The fastest sound copy of one file by the client in that direction, over SMB.
        made = (
            copy.made
            for copy in steps.copies(report)
            if copy.made is not None
            and copy.made.intact
            and (copy.verb, copy.initiator, copy.native) == (verb, "client", False)
        )
        whole = steps.fastest(made)
        loads = {side: load_of(report, found, side) for side in SIDES}
        known = {"file_bytes": file_bytes, "whole": whole, "loads": loads}
        cost = table.read(Cost, found.outcome.details, found=found, verb=verb, **known)
        if cost is None:
            continue
        verdict = _verdict(cost)
        yield table.compared(
            "small-files",
            verdict.sentence,
            (_row(cost, verdict),),
            (found,) if whole is None else (found, whole),
            (None if whole is None else whole.rate.median, file_bytes / cost.seconds_per_file),
        )


def _row(cost: Cost, verdict: Verdict) -> Row:
    seconds, trips, whole = cost.seconds_per_file, cost.trips_seconds, cost.whole
    told = asdict(verdict)
    del told["ceiling_bytes_per_second"]
    return {
        "verb": cost.verb,
        "files": cost.files or 0.0,
        "file_bytes": cost.file_bytes,
        "seconds_per_file": seconds,
        "seconds_per_file_low": cost.seconds_per_file_low,
        "seconds_per_file_high": cost.seconds_per_file_high,
        "files_per_second": 1 / seconds,
        "bytes_per_second": cost.file_bytes / seconds,
        "round_trips_per_file": cost.round_trips_per_file,
        "rtt_seconds": cost.rtt_seconds,
        "round_trips_seconds": trips,
        "ten_thousand_files_seconds": MANY * seconds,
        "same_as_one_file_seconds": None if whole is None else MANY * cost.link_seconds,
        "verdict": told,
    }


def _verdict(cost: Cost) -> Verdict:
    """What most of a file's time goes to, named with care."""
    if not cost.found.intact:
        text = (
            "DATA CORRUPTED: the received small files differ from the sent files. Find the cause "
            "before you use this path for data."
        )
        return Verdict("unknown", None, "inconclusive", 0.0, None, text)
    component, side, cause, confidence, why = _of_loads(cost) or _of_time(cost)
    return Verdict(component, side, cause, confidence, None, _sentence(cost, why))


Because = tuple[str, str | None, str, float, str]
"""The contract's words, the confidence, and why, as a sentence without its full stop."""


def _of_loads(cost: Cost) -> Because | None:
    """A host that was full meanwhile; None: none was."""
    own, there = cost.loads["client"], cost.loads["server"]
    for side, seen in cost.loads.items():
        if seen is not None and seen.crowded:
            taken = f"Other processes used {percent_text(seen.others_ratio)} of the {side}'s CPU"
            return "cpu", side, "contention", CPU_TRUST, taken
    if own is not None and own.process_ratio >= SATURATED_RATIO:
        why = "This tool itself used a full core"
        return "instrument", "client", "ceiling", CPU_TRUST, why
    held = hindrance(there, "server")
    if held is not None and there is not None:
        name = "quota" if there.throttled else "all-cores" if there.full else "one-core"
        return "cpu", "server", name, CPU_TRUST, f"{held[0].upper()}{held[1:]}"
    return None


def _of_time(cost: Cost) -> Because:
    """Round trips, or what the server does beside them; unknown where neither stands out."""
    trips, count, trip = cost.trips_seconds, cost.round_trips_per_file, cost.rtt_seconds
    if trips is None or not count or not trip:
        return "unknown", None, "inconclusive", 0.0, "The share of round trips is unknown"
    share = trips / cost.seconds_per_file
    each = f"{count_text(count)} round trips of {seconds_text(trip)}"
    told = f"{each} take {seconds_text(trips)} of that"
    if share >= MOST_RATIO and trip >= SHORT_SECONDS:
        return "smb", "path", "round-trips", 0.9 if share >= SURE_RATIO else 0.7, told
    own = cost.loads["client"]
    own_ratio = 0.0 if own is None else own.process_ratio
    rest = cost.seconds_per_file * (1 - own_ratio) - trips - cost.link_seconds
    if rest >= MOST_RATIO * cost.seconds_per_file:
        why = f"{told}; most of the rest is the server's own work on each file"
        return "smb", "server", "server-software", SERVER_TRUST, why
    return "unknown", None, "inconclusive", 0.0, f"{told}; the rest is not explained"


def _sentence(cost: Cost, why: str) -> str:
    if cost.found.step.setting.get("tree") and cost.files:
        whole = seconds_text(cost.found.seconds)
        return (
            f"The {count_text(cost.files)} files of the folder, "
            f"{size_text(cost.found.moved_bytes)} in all, are {DOING[cost.verb]} in {whole}: "
            f"{rate_text(cost.found.rate.median)}, {seconds_text(cost.seconds_per_file)} per file. "
            f"{why}."
        )
    small = f"{seconds_text(cost.seconds_per_file)} per file of {size_text(cost.file_bytes)}"
    rate = count_text(1 / cost.seconds_per_file)
    known = cost.whole is not None and cost.link_seconds <= LINK_RATIO * cost.seconds_per_file
    whatever = ", independent of the link rate" if known else ""
    told = (
        f"Small files are {DOING[cost.verb]} at {rate} files/s{whatever}: {small}. {why}. "
        f"{count_text(MANY)} files take {seconds_text(MANY * cost.seconds_per_file)}"
    )
    if cost.whole is None:
        return f"{told}."
    one = seconds_text(MANY * cost.link_seconds)
    return f"{told}; the same data as one file, {one} at {rate_text(cost.whole.rate.median)}."
