"""Turns the copies of a capture into a report, so that the one model judges them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from ipaddress import ip_address
from typing import Any

from bottleneck import __version__
from bottleneck.captures.capture import SMB_PORTS, Capture, Host
from bottleneck.captures.figures import CapturedCopy, bins_of, copy_of, figures_of, is_stuck
from bottleneck.captures.packets import CaptureError
from bottleneck.captures.turns import BINS_A_SECOND
from bottleneck.report.report import Report, Step
from probes.core import typed
from probes.core.records import Measured, Outcome, Sample, Usage

STAGE = "running-copy"
LEAST_OTHERS_RATIO = 0.01
"""Share of other SMB connections, below which they do not show that no filter hides the rest."""
DIALECTS = dict(
    zip((0x202, 0x210, 0x300, 0x302, 0x311), ("2.0.2", "2.1", "3.0", "3.0.2", "3.1.1"), strict=True)
)
"""SMB dialect by its number in the reply to NEGOTIATE (MS-SMB2 2.2.4)."""
MOST_SAMPLES, MOST_COPIES = 1000, 8
SHORT_SECONDS = 1.0
"""Time of a copy, below which it may be a trial."""
NO_COPY = "no SMB connection (port 445 or 139) in it moves a file; if one hangs, capture both ends"


def report_of(*captures: Capture) -> Report:
    """Returns the report of the first capture's copies, the slowest first, trials last.

    Others are of the same connections from other points, as at the client and at the server.
    Errors: CaptureError.
    """
    capture = captures[0]
    if any(not each.connections.keys() & capture.connections.keys() for each in captures[1:]):
        raise CaptureError("its connections are not in the other captures: explain each by itself")
    copies = [(ends, copy) for ends, c in capture.connections.items() if (copy := copy_of(c))]
    if not copies:
        raise CaptureError(NO_COPY)
    copies.sort(key=lambda each: _order(each[1]))
    (_, server), first = copies[0][0], min(copy.began for _, copy in copies)
    port = "" if server[1] == SMB_PORTS[0] else f":{server[1]}"
    return Report(
        status="complete",
        tool={"version": __version__},
        started=_date(first),
        elapsed_seconds=max(copy.ended for _, copy in copies) - first,
        target={"share": f"//{_host(server)}{port}/-", "capture": _facts(capture)},
        client=None,
        server=None,
        entries=tuple(
            _entry(copy, tuple(_figures(captures, ends)), number)
            for number, (ends, copy) in enumerate(copies[:MOST_COPIES], 1)
        ),
        notes=() if len(copies) <= MOST_COPIES else (f"{len(copies)} connections moved files",),
    )


def _date(seconds: float) -> str:
    try:
        return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
    except (OverflowError, OSError, ValueError):
        raise CaptureError("the times of its packets are no dates") from None


def _facts(capture: Capture) -> dict[str, object]:
    return {
        "packets": capture.packets,
        "cut_ratio": capture.cut_packets / max(1, capture.packets),
        "connections": len(capture.connections),
    }


def _host(host: Host) -> str:
    address = ip_address(host[0])
    return f"[{address}]" if address.version == 6 else str(address)


def _order(copy: CapturedCopy) -> tuple[bool, float]:
    """Returns the key by which copies are sorted: the slowest first, trials last."""
    seconds = copy.ended - copy.began
    is_trial = seconds < SHORT_SECONDS and not is_stuck(copy)
    return is_trial, copy.carrying.bytes / max(1e-3, seconds)


def _others_ratio(capture: Capture, ends: tuple[Host, Host], copy: CapturedCopy) -> float | None:
    """Returns others' share of the bytes to the receiver or from the sender, while a copy runs.

    None: the capture holds no packet of others, so that a filter may hide them.
    """
    receiver, sender = (host for host, _ in (ends if copy.pull else ends[::-1]))
    total = sum(
        size
        for (source, target, second), size in capture.other_bytes.items()
        if (source == sender or target == receiver) and copy.began - 1 < second < copy.ended
    )
    bins = bins_of(copy)
    for ((client, _), (server, _)), each in capture.connections.items():
        lanes = (client, server, "up"), (server, client, "down")
        for source, target, way in lanes:
            if each is not copy.connection and (source == sender or target == receiver):
                total += int(sum(each.course.values(way, bins)))
    ratio = total / max(1, total + copy.carrying.bytes)
    return ratio if capture.other_bytes or ratio > LEAST_OTHERS_RATIO else None


def _figures(captures: Sequence[Capture], ends: tuple[Host, Host]) -> Iterator[dict[str, Any]]:
    """Yields the figures of a connection from each capture that has it."""
    for capture in captures:
        connection = capture.connections.get(ends)
        copy = None if connection is None else copy_of(connection)
        if copy is not None:
            yield figures_of(copy, _others_ratio(capture, ends, copy))


def _joined(views: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Returns the figures of several views of one connection: shares are means."""
    views = sorted(views, key=lambda each: (not each["has_syn"], each["unseen_bytes"]))
    figures = dict(views[0])
    for name, value in figures.items():
        if isinstance(value, float) and name.endswith("_ratio"):
            values = [each[name] for each in views if each[name] is not None]
            figures[name] = sum(values) / len(values)
    figures["has_syn"] = any(each["has_syn"] for each in views)
    queues = (each["queue_seconds"] for each in views)
    figures["queue_seconds"] = max((each for each in queues if each is not None), default=None)
    figures["points"] = len(views)
    return figures


def _entry(
    copy: CapturedCopy, views: Sequence[dict[str, Any]], number: int
) -> tuple[Step, Outcome]:
    """Returns the step of a copy; number: its place among the capture's, the slowest first."""
    verb = "pull" if copy.pull else "push"
    connection, protocols = copy.connection, copy.connection.requests.protocols
    figures = _joined(views) if len(views) > 1 else views[0]
    details = {"capture": figures, "rtt_seconds": figures["rtt_seconds"]}
    dialect = DIALECTS.get(connection.requests.dialect, "unknown")
    dialect = "smb1" if protocols["smb1"] > protocols["smb2"] else dialect
    setting = {
        "engine": "running" if number == 1 else f"running {number}",
        **{"over": "smb", "program": "", "copy": verb, "verb": verb},
        "dialect": dialect,
        "seconds": copy.ended - copy.began,
    }
    run = tuple(_samples(copy))
    idle = dict.fromkeys(("busiest_core_ratio", "softirq_ratio", "steal_ratio"), 0.0)
    idle.update(copy_cpu_seconds=0.0, busiest_process_ratio=0.0, other_cpu_seconds=0.0)
    usage = {"wall_seconds": run[-1].elapsed_seconds, "core_busy_ratios": [], **idle}
    unseen = typed.record(Usage, usage, "usage")
    return Step(STAGE, setting, "client"), Measured((run,), unseen, None, details)


def _samples(copy: CapturedCopy) -> Iterator[Sample]:
    """Yields the bytes of a copy over time; the last bin ends with it."""
    began, lasted = copy.began, max(1e-3, copy.ended - copy.began)
    moved_bytes, last = 0, 0.0
    yield Sample(0.0, 0)
    step = lasted / MOST_SAMPLES
    for number, count in zip(bins_of(copy), copy.bytes_by_bin(), strict=True):
        moved_bytes += int(count)
        end = (number + 1) / BINS_A_SECOND - began
        if last + step <= end < lasted and moved_bytes <= copy.carrying.bytes:
            yield Sample(end, moved_bytes)
            last = end
    yield Sample(lasted, copy.carrying.bytes)
