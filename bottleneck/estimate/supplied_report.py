"""Turns observations into a Report, so that the same rules read a person's figures.

No figure is invented: mandatory fields without one are empty, and every step says who supplied it.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date
from typing import Any

from bottleneck import __version__
from bottleneck.analysis.link_end import NAMELESS
from bottleneck.estimate.observations import SCHEMA, Copy, Disk, Host, Latency, Observations, Tcp
from bottleneck.report.report import Report, ReportError, Step
from bottleneck.text import units
from probes.core import typed
from probes.core.records import HostFacts, Measured, Outcome, Run, Sample, Skipped, Usage
from probes.net import fit

Entry = tuple[Step, Outcome]
RUN_SECONDS = 10.0
"""Assumed duration of a run whose size was not given: only the rate counts."""
NO_RATE = "its rate was not given"
HELD_LOW_RATIO, HELD_HIGH_RATIO = 0.6, 1.3
"""Least and most rate over (window / RTT) of a transfer that its window limited."""


def report_of(observations: Observations) -> Report:
    """Returns the report of observations. Errors: ReportError, one line: where and why."""
    try:
        date.fromisoformat(observations.date)
    except ValueError:
        raise ReportError(f"date {observations.date!r} is not YYYY-MM-DD") from None
    rtt = None if observations.path is None else observations.path.rtt
    entries = tuple(entries_of(observations))
    if not entries:
        raise ReportError(
            "observations have no tcp, latency, disk or copy; --copy 'pull 38MB/s' is one"
        )
    return Report(
        status="complete",
        tool={"version": __version__, "observations": SCHEMA},
        started=f"{observations.date}T00:00:00+00:00",
        elapsed_seconds=0.0,
        target=dict(_target(observations, rtt)),
        client=_host(observations.client, "client"),
        server=_host(observations.server, "server"),
        entries=entries,
        notes=tuple(_notes(observations)),
    )


def entries_of(observations: Observations) -> Iterator[Entry]:
    """Yields the step of each figure. Errors: ReportError."""
    rtt = None if observations.path is None else observations.path.rtt
    yield from (_tcp(each, rtt) for each in observations.tcp)
    for index, row in enumerate(observations.latency):
        yield _latency(row, f"latency[{index}]")
    yield from (_disk(disk, f"disk[{index}]") for index, disk in enumerate(observations.disk))
    yield from map(_copy, observations.copy)


def _target(observations: Observations, rtt: float | None) -> Iterator[tuple[str, Any]]:
    yield "share", f"//{_name(observations.server, 'server')}/-"
    if rtt is not None:
        yield "connect_seconds", rtt
    if observations.path is not None and observations.path.loss is not None:
        yield "loss_ratio", observations.path.loss
    starts = observations.start
    yield "starts", [_present(sender=e.sender, better=e.better, words=e.words) for e in starts]


def _notes(observations: Observations) -> Iterator[str]:
    source = f" Source: {observations.source}." if observations.source else ""
    yield f"{observations.title}: figures supplied by a person; nothing was measured.{source}"
    yield from observations.notes


def _name(host: Host | None, side: str) -> str:
    return side if host is None or host.name is None else host.name


def _host(host: Host | None, side: str) -> HostFacts | None:
    if host is None:
        return None
    interface = None
    if {host.link, host.mtu, host.wifi, host.usb} != {None}:
        interface = {
            **{"name": NAMELESS, "address": "", "virtual": False},
            "rate_bits_per_second": None if host.link is None else round(8 * host.link),
            "duplex": host.duplex,
            "mtu_bytes": host.mtu,
            "kind": "wifi" if host.wifi else None,
            "usb_bits_per_second": None if host.usb is None else round(8 * host.usb),
        }
    buffers = {"net.ipv4.tcp_rmem": host.tcp_rmem, "net.ipv4.tcp_wmem": host.tcp_wmem}
    facts = {
        **{"python": "", "privileged": False, "tools": {}},
        "name": _name(host, side),
        "system": host.system or "",
        "cores": host.cores or 0,
        "memory_total_bytes": host.memory,
        "interface": interface,
        "congestion_control": host.congestion_control,
        "socket_buffers": _present(**buffers),
    }
    return typed.record(HostFacts, facts, side)


# -- stages --------------------------------------------------------------------------------------


def _present(**values: Any) -> dict[str, Any]:
    """Returns the values that are not None, by name."""
    return {name: value for name, value in values.items() if value is not None}


def _outcome_at_rate(bytes_per_second: float, details: dict[str, Any]) -> Measured:
    size_bytes = max(1, round(bytes_per_second * RUN_SECONDS))
    return _run_result((Sample(0.0, 0), Sample(size_bytes / bytes_per_second, size_bytes)), details)


def _run_result(run: Run, details: dict[str, Any]) -> Measured:
    """Returns a measured run without any load of the hosts."""
    idle = dict.fromkeys(("busiest_core_ratio", "softirq_ratio", "steal_ratio"), 0.0)
    idle.update(copy_cpu_seconds=0.0, busiest_process_ratio=0.0, other_cpu_seconds=0.0)
    usage = {"wall_seconds": run[-1].elapsed_seconds, "core_busy_ratios": [], **idle}
    unseen = typed.record(Usage, usage, "usage")
    return Measured((run,), unseen, None, {**details, "told_by": "a person"})


def _tcp(tcp: Tcp, rtt: float | None) -> Entry:
    """Returns a TCP step; limited by its window if that explains its rate."""
    rate, window, streams = tcp.rate, tcp.window, tcp.streams or 1
    setting = {
        "verb": "push" if tcp.sender == "client" else "pull",
        "streams": streams,
        **_present(buffer_bytes=tcp.buffer),
    }
    limits = {}
    if window is not None and rtt is not None:
        share = rate / (streams * window / rtt)
        if HELD_LOW_RATIO <= share <= HELD_HIGH_RATIO:
            limits = {"limits": {"by": "receive-window"}}
    details = _present(window_bytes=window, tool=tcp.tool, client=tcp.client)
    return Step("tcp", setting, "client"), _outcome_at_rate(rate, {**details, **limits})


def _latency(latency: Latency, where: str) -> Entry:
    """Returns a latency step, with the line through the times of one round trip."""
    rows: list[dict[str, Any]] = []
    for i, each in enumerate(latency.table):
        if each.message > units.MOST_RATE * each.time:
            raise ReportError(f"{where}.table[{i}]: too short a time for a message of this size")
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
        raise ReportError(f"{where}.table: no message with one round trip")
    line = fit.line([(row["message_bytes"], row["seconds"]) for row in once])
    longest = max(once, key=lambda row: row["message_bytes"])
    details = {
        "fit": line or {"refused": "longer messages did not take longer"},
        "table": rows,
        **_present(tool=latency.tool),
    }
    run = (Sample(0.0, 0), Sample(longest["seconds"], longest["message_bytes"]))
    return Step("latency", {}, "client"), _run_result(run, details)


def _disk(disk: Disk, where: str) -> Entry:
    """Returns a disk step; by zone, its rate is that of the best zone."""
    zones = [{"at_ratio": each.at, "bytes_per_second": each.rate} for each in disk.zones]
    rate = disk.rate
    if rate is None and not zones:
        raise ReportError(f"{where} has neither a rate nor zones")
    best = rate or max(each.rate for each in disk.zones)
    setting = {"side": disk.side, "verb": disk.verb, "pattern": "told"}
    details = {"zones": zones, **_present(tool=disk.tool)}
    return Step("disk", setting, disk.side), _outcome_at_rate(best, details)


def _copy(copy: Copy) -> Entry:
    """Returns a copy; one without a rate counts as not measured."""
    setting = {
        "copy": copy.copy,
        "dialect": copy.dialect or "unknown",
        "end": "folder",
        "engine": _engine(copy),
        **_present(
            streams=copy.streams,
            size_bytes=copy.size,
            request_bytes=None if copy.request is None else units.parse_size(copy.request),
            depth=copy.depth,
            from_place_ratio=copy.from_place,
            to_place_ratio=copy.to_place,
            client_cpu_ratio=copy.client_cpu,
            server_cpu_ratio=copy.server_cpu,
            security=copy.security,
            synced=copy.synced,
        ),
    }
    step = Step("smb-copy", setting, "server" if copy.copy.startswith("server.") else "client")
    return step, Skipped(NO_RATE) if copy.rate is None else _outcome_at_rate(copy.rate, {})


def _engine(copy: Copy) -> str:
    """Returns tool and options of a copy: they distinguish two copies of one name."""
    words = [copy.tool] if copy.tool else []
    words += [f"{copy.streams} streams"] if (copy.streams or 1) > 1 else []
    words += [f"{copy.request} a request"] if copy.request else []
    words += [f"from {copy.from_place:.0%}"] if copy.from_place is not None else []
    words += [f"to {copy.to_place:.0%}"] if copy.to_place is not None else []
    return ", ".join(words) or "supplied"
