"""smb/server-software: requests wait in a file server whose host is idle.

The kernels' queues show that bytes wait for nothing but the file server, while its CPU and its disk
are idle. That needs an agent on the file server's host.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.claim import Cause
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import ServerSetting
from bottleneck.analysis.facts.record import Sign
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.socket_buffers import BufferSetting
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text
from probes.core.records import SIDES

CAUSE = Cause(
    "smb",
    "server-software",
    "server software",
    title="file server software",
    limits_without_fault=True,
    remedy="Check the modules, virus scanner, log and version of the {side}'s file server",
)
IDLE_THREAD_RATIO, IDLE_CORES_RATIO = 0.5, 0.7
WAITING_RATIO = 0.2
"""Share of the time ready to run without a core."""
STOLEN_RATIO = 0.05
BUSY_DISK_RATIO = 0.5
UNREAD_RATIO = 0.5
"""Share of the looks in which many bytes waited unread in front of the file server."""
FLUSH_RATIO = 0.3
ASKED_RATIO = 0.5
"""Mean bytes in flight (rate times a request's time) over the maximum, of a busy initiator."""
SILENT_RATIO = 0.5
"""Share of the time without any reply, of a server that works in bursts."""
ROUND_TRIPS = 3.0
"""Least time of a request / idle RTT at which the time is not due to the path."""
_OPTIONS = (
    "vfs objects,strict locking,strict allocate,aio read size,aio write size,aio max threads,"
    "use sendfile,min receivefile size"
).split(",")
"""Options of smb.conf that make smbd itself wait."""


def software_signs(report: Report, copy: Copy) -> Iterator[Sign]:
    """Yields server-waits: requests wait in a file server at rest."""
    side, step = steps.other(copy.initiator), copy.step
    if step is None or copy.is_by_this_tool(side):
        return
    seconds = _waited_seconds(report, step)
    if seconds is None or not (_is_idle(report, step, side) and _waits_for_server(copy, step)):
        return
    load = load_of(report, step, side)
    busy = percent_text(0.0 if load is None else load.all_cores_ratio)
    words = f"each request waits {seconds_text(seconds)} for the {side}'s file server, while its "
    yield Sign("server-waits", side, seconds, f"{words}CPU is {busy} busy")


def setting_behind(evidence: Evidence, cause: str, side: str) -> BufferSetting | None:
    """Returns the settings of the server's smb.conf that make a side's copy wait; None: none."""
    settings = list(_settings(evidence, side)) if cause == CAUSE.word else []
    if not settings:
        return None
    remedy = f"Change the {side}'s smb.conf: {'; '.join(str(each.remedy) for each in settings)}"
    return BufferSetting(remedy, ", ".join(f"`{each.option} = {each.value}`" for each in settings))


def _waited_seconds(report: Report, step: MeasuredStep) -> float | None:
    """Returns a request's time, if the initiator always kept enough of them in flight.

    None: not known, or it was no longer than ROUND_TRIPS.
    """
    took, highest = step.details.request_seconds_median, step.details.in_flight_bytes
    idle = rtt(report, step)
    if took is None or highest is None or idle is None:
        return None
    waited: float = took
    if step.details.replies.silent_ratio >= SILENT_RATIO:
        # Most replies come at once, and few wait through the silence: the median ignores it.
        waited = max(took, highest / step.rate.median)
    is_asking = step.rate.median * waited >= ASKED_RATIO * highest
    return waited if is_asking and waited >= ROUND_TRIPS * idle.seconds else None


def _is_idle(report: Report, step: MeasuredStep, side: str) -> bool:
    """Whether both hosts have cores to spare and no disk of theirs was busy all the time.

    Nor may a hidden quota keep the file server's host from its cores.
    """
    server = load_of(report, step, side)
    if server is None or server.throttled_ratio:
        return False
    if server.throttled_ratio is None:
        # A hidden quota shows as time ready to run; if that is unknown, there may be one.
        waiting = server.waiting_ratio
        if waiting is None or waiting > WAITING_RATIO:
            return False
    return all(_is_at_rest(report, step, each) for each in SIDES)


def _is_at_rest(report: Report, step: MeasuredStep, side: str) -> bool:
    load, usage = load_of(report, step, side), step.usage(side)
    return (
        load is not None
        and usage is not None
        and load.one_core_ratio <= IDLE_THREAD_RATIO
        and load.all_cores_ratio <= IDLE_CORES_RATIO
        and usage.steal_ratio <= STOLEN_RATIO
        # A disk without counters (ZFS, NFS behind the share) is not known to be idle.
        and usage.device_busy_ratio is not None
        and usage.device_busy_ratio <= BUSY_DISK_RATIO
    )


def _waits_for_server(copy: Copy, step: MeasuredStep) -> bool:
    """Whether the kernels' queues show that the bytes wait for the file server.

    In a pull it has none to send; in a push it leaves them unread, or does not answer.
    """
    sockets = step.details.sockets
    if not (sockets.sender_seen and sockets.receiver_seen):
        return False
    if copy.verb == "pull":
        return sockets.by == "sender"
    flush = step.details.flush_seconds or 0.0
    if flush / step.seconds > FLUSH_RATIO:
        return False
    return sockets.by in ("sender", "receiver") or sockets.full_ratio >= UNREAD_RATIO


def _settings(evidence: Evidence, side: str) -> Iterator[ServerSetting]:
    purposes = ("all", "read" if evidence.copy.verb == "pull" else "write")
    for each in evidence.smb_conf(side):
        if each.option in _OPTIONS and each.matters_for in purposes and each.why and each.remedy:
            yield each
