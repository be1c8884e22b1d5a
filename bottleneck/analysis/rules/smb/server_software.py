"""smb/server-software: requests wait in a file server whose host has nothing to do.

The kernels' queues show that the file server and nobody else keeps the bytes waiting, while its CPU
and its disk rest. That needs an agent beside the file server.
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
from bottleneck.analysis.socket_buffers import Fixed
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text
from probes.core.records import SIDES

CAUSE = Cause(
    "smb",
    "server-software",
    "server software",
    title="file server software",
    stays=True,
    remedy="Check the modules, virus scanner, log and version of the {side}'s file server",
)
IDLE_THREAD_RATIO, IDLE_CORES_RATIO = 0.5, 0.7
WAITING_RATIO = 0.2
"""Share of the time ready to run and not let."""
STOLEN_RATIO = 0.05
BUSY_DISK_RATIO = 0.5
UNREAD_RATIO = 0.5
"""Share of the looks in which much waited unread in front of the file server."""
FLUSH_RATIO = 0.3
ASKED_RATIO = 0.5
"""In flight on average (rate times a request's time) over the most: the initiator kept asking."""
SILENT_RATIO = 0.5
"""Share of the time without any reply, of a server that works in bursts."""
ROUND_TRIPS = 3.0
"""A request's time over the idle path's, from which on it was not the way that took it."""
_OPTIONS = (
    *("vfs objects", "strict locking", "strict allocate"),
    *("aio read size", "aio write size", "aio max threads", "use sendfile", "min receivefile size"),
)
"""Of smb.conf, those that make smbd itself wait."""


def software_signs(report: Report, copy: Copy) -> Iterator[Sign]:
    """Yields server-waits: requests wait in a file server at rest."""
    side, step = steps.other(copy.initiator), copy.step
    if step is None or copy.by_this_tool(side):
        return
    seconds = _waited_seconds(report, step)
    if seconds is None or not (_idle(report, step, side) and _waits_for_server(copy, step)):
        return
    load = load_of(report, step, side)
    busy = percent_text(0.0 if load is None else load.all_cores_ratio)
    words = f"each request waits {seconds_text(seconds)} for the {side}'s file server, while its "
    yield Sign("server-waits", side, seconds, f"{words}CPU is {busy} busy")


def setting_behind(evidence: Evidence, cause: str, side: str) -> Fixed | None:
    """Returns what the server's smb.conf holds that makes such a copy wait; None: nothing."""
    settings = list(_settings(evidence, side)) if cause == CAUSE.word else []
    if not settings:
        return None
    remedy = f"Change the {side}'s smb.conf: {'; '.join(str(each.remedy) for each in settings)}"
    return Fixed(remedy, ", ".join(f"`{each.option} = {each.value}`" for each in settings))


def _waited_seconds(report: Report, made: Found) -> float | None:
    """What a request took, of an initiator that always kept enough of them under way.

    None: not known, or it was no longer than a round trip or three.
    """
    took, most = made.details.request_seconds_median, made.details.in_flight_bytes
    idle = rtt(report, made)
    if took is None or most is None or idle is None:
        return None
    waited: float = took
    if made.details.replies.silent_ratio >= SILENT_RATIO:
        # Most come at once, and few wait through the silence: the median knows nothing of it.
        waited = max(took, most / made.rate.median)
    asked = made.rate.median * waited >= ASKED_RATIO * most
    return waited if asked and waited >= ROUND_TRIPS * idle.seconds else None


def _idle(report: Report, made: Found, side: str) -> bool:
    """Whether both hosts have cores to spare and no disk of them was busy all the time.

    The file server's side must not be kept from its cores either, as by a quota that is not seen.
    """
    server = load_of(report, made, side)
    if server is None or server.throttled_ratio:
        return False
    if server.throttled_ratio is None:
        # A quota that cannot be seen shows as time ready to run; unknown, it may be there.
        waiting = server.waiting_ratio
        if waiting is None or waiting > WAITING_RATIO:
            return False
    return all(_rests(report, made, each) for each in SIDES)


def _rests(report: Report, made: Found, side: str) -> bool:
    seen, usage = load_of(report, made, side), made.usage(side)
    return (
        seen is not None
        and usage is not None
        and seen.one_core_ratio <= IDLE_THREAD_RATIO
        and seen.all_cores_ratio <= IDLE_CORES_RATIO
        and usage.steal_ratio <= STOLEN_RATIO
        # A disk that nobody sees (ZFS, NFS behind the share) is no idle one.
        and usage.device_busy_ratio is not None
        and usage.device_busy_ratio <= BUSY_DISK_RATIO
    )


def _waits_for_server(copy: Copy, made: Found) -> bool:
    """Whether the kernels' queues show that the file server keeps the bytes waiting.

    In a pull it gives none to send; in a push it leaves them unread, or does not answer.
    """
    told = made.details.sockets
    if not (told.sender_seen and told.receiver_seen):
        return False
    if copy.verb == "pull":
        return told.by == "sender"
    flush = made.details.flush_seconds or 0.0
    if flush / made.seconds > FLUSH_RATIO:
        return False
    return told.by in ("sender", "receiver") or told.full_ratio >= UNREAD_RATIO


def _settings(given: Evidence, side: str) -> Iterator[ServerSetting]:
    """What the server's smb.conf holds that makes such a copy wait."""
    wanted = ("all", "read" if given.copy.verb == "pull" else "write")
    for each in given.smb_conf(side):
        if each.option in _OPTIONS and each.matters_for in wanted and each.why and each.remedy:
            yield each


def _text(setting: ServerSetting) -> str:
    return f"{setting.option} = {setting.value}"
