"""What was told of a stage as the step of a report: a setting and an outcome.

What a record cannot leave out is empty, and every outcome says who told it.
"""

from __future__ import annotations

from typing import Any

from bottleneck.observations.records import Copy, Disk, Latency, Tcp
from bottleneck.report import ReportError, Step
from bottleneck.reports import units
from probes.net import fit
from probes.records import Measured, Outcome, Run, Sample, Skipped, Usage

Entry = tuple[Step, Outcome]
RUN_SECONDS = 10.0
"""How long a run is taken to last where its size was not told: the rate alone counts."""
NO_RATE = "its rate was not told"
HELD_LOW_RATIO, HELD_HIGH_RATIO = 0.6, 1.3
"""Of window over round trip: a transfer in between was held by its window."""


def known(**values: Any) -> dict[str, Any]:
    """What is known of these, by name."""
    return {name: value for name, value in values.items() if value is not None}


def _measured(bytes_per_second: float, details: dict[str, Any]) -> Measured:
    moved = max(1, round(bytes_per_second * RUN_SECONDS))
    return _of_run((Sample(0.0, 0), Sample(moved / bytes_per_second, moved)), details)


def _of_run(run: Run, details: dict[str, Any]) -> Measured:
    """One run of which nobody watched the hosts: no core is known."""
    unseen = Usage(
        wall_seconds=run[-1].elapsed_seconds,
        core_busy_ratios=(),
        busiest_core_ratio=0.0,
        softirq_ratio=0.0,
        steal_ratio=0.0,
        copy_cpu_seconds=0.0,
        busiest_process_ratio=0.0,
        other_cpu_seconds=0.0,
        quota_cores=None,
        throttled_ratio=None,
        run_delay_seconds=None,
        memory_total_bytes=None,
        memory_used_bytes=None,
        memory_cached_bytes=None,
        memory_dirty_bytes=None,
        interface_sent_bytes=None,
        interface_received_bytes=None,
        device_read_bytes=None,
        device_written_bytes=None,
        device_busy_ratio=None,
    )
    return Measured((run,), unseen, None, {**details, "told_by": "a person"})


def tcp_entry(tcp: Tcp, rtt: float | None) -> Entry:
    """TCP alone; held by its window where its rate is what that carries."""
    rate, window, streams = tcp.rate, tcp.window, tcp.streams or 1
    setting = {
        "verb": "push" if tcp.sender == "client" else "pull",
        "streams": streams,
        **known(buffer_bytes=tcp.buffer),
    }
    limits = {}
    if window is not None and rtt is not None:
        share = rate / (streams * window / rtt)
        if HELD_LOW_RATIO <= share <= HELD_HIGH_RATIO:
            limits = {"limits": {"by": "receive-window"}}
    details = known(window_bytes=window, tool=tcp.tool, client=tcp.client)
    return Step("tcp", setting, "client"), _measured(rate, {**details, **limits})


def latency_entry(latency: Latency, where: str) -> Entry:
    """Messages and their answers, with the line through the times of one round trip."""
    rows: list[dict[str, Any]] = []
    for at, each in enumerate(latency.table):
        if each.message > units.MOST_RATE * each.time:
            raise ReportError(f"{where}.table[{at}]: no message of this size takes so little time")
        rows.append(
            {
                "message_bytes": each.message,
                "round_trips": each.round_trips,
                "connection": latency.connection,
                "seconds": each.time,
            }
        )
    once = [row for row in rows if row["round_trips"] == 1]
    if not once:
        raise ReportError(f"{where}.table: no message that was answered once")
    line = fit.line([(row["message_bytes"], row["seconds"]) for row in once])
    longest = max(once, key=lambda row: row["message_bytes"])
    details = {
        "fit": line or {"refused": "longer messages did not take longer"},
        "table": rows,
        **known(tool=latency.tool),
    }
    run = (Sample(0.0, 0), Sample(longest["seconds"], longest["message_bytes"]))
    return Step("latency", {}, "client"), _of_run(run, details)


def disk_entry(disk: Disk, where: str) -> Entry:
    """A disk alone, or by zone: then its best zone is its rate."""
    zones = [{"at_ratio": each.at, "bytes_per_second": each.rate} for each in disk.zones]
    rate = disk.rate
    if rate is None and not zones:
        raise ReportError(f"{where} tells neither a rate nor zones")
    best = rate or max(each.rate for each in disk.zones)
    setting = {"side": disk.side, "verb": disk.verb, "pattern": "told"}
    details = {"zones": zones, **known(tool=disk.tool)}
    return Step("disk", setting, disk.side), _measured(best, details)


def copy_entry(copy: Copy) -> Entry:
    """A copy; one without a rate was not measured."""
    setting = {
        "copy": copy.copy,
        "dialect": copy.dialect or "unknown",
        "end": "folder",
        "engine": _engine(copy),
        **known(
            streams=copy.streams,
            size_bytes=copy.size,
            request_bytes=None if copy.request is None else units.parse_size(copy.request),
            depth=copy.depth,
            from_place_ratio=copy.from_place,
            to_place_ratio=copy.to_place,
        ),
    }
    step = Step("smb-copy", setting, "server" if copy.copy.startswith("server.") else "client")
    return step, Skipped(NO_RATE) if copy.rate is None else _measured(copy.rate, {})


def _engine(copy: Copy) -> str:
    """Who moved the bytes, and how: two copies of one name are told apart by it."""
    told = [copy.tool] if copy.tool else []
    told += [f"{copy.streams} streams"] if (copy.streams or 1) > 1 else []
    told += [f"{copy.request} a request"] if copy.request else []
    told += [f"from {copy.from_place:.0%}"] if copy.from_place is not None else []
    told += [f"to {copy.to_place:.0%}"] if copy.to_place is not None else []
    return ", ".join(told) or "told"
