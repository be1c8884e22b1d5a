"""smb/server-software: requests wait in a file server whose host has nothing to do.

What is left when all else is known to be idle: the kernel's queues show that the file server and
nobody else keeps the bytes waiting, its CPU rests, and path and disks carry far more. That needs
an agent beside the file server: without one its CPU and disk may as well be the reason, and long
stops between replies are a likeness. A copy in one direction alone may wait for what was not
measured, such as dirty memory: then a setting of the server has to explain it, or the other
direction has to wait as well.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from bottleneck.analysis import model, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import ServerSetting
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.cpu import quota
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, rate_text, seconds_text
from probes.core.records import SIDES

CAUSE = Cause(
    "smb",
    "server-software",
    "server software",
    title="file server software",
    stays=True,
)
LOOK = "Check the modules, virus scanner, log and version of the {}'s file server"
MORE_RATIO = 1.5
"""What all else allows, one stage after the other, over the copy's rate."""
IDLE_THREAD_RATIO, IDLE_CORES_RATIO = 0.5, 0.7
WAITING_RATIO = 0.2
"""Ready to run and not let, as a share of the time."""
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
SAME_RATIO = 0.7
"""Of the same copy without the initiator's disk: a file server that waits holds both."""
BOTH_RATIO = 2.0
"""How far the two directions may be apart where one file server holds both."""
STAGES = ("network", "disk")
_OPTIONS = (
    *("vfs objects", "strict locking", "strict allocate"),
    *("aio read size", "aio write size", "aio max threads", "use sendfile", "min receivefile size"),
)
"""Of smb.conf, those that make smbd itself wait."""


def rule(given: Evidence) -> Iterator[Claim]:
    """The copy's own rate, where replies pause for longer than other processes explain."""
    words = "stands still between replies: they take {:.0f} times their median on average"
    seen = "The client cannot see why. A CPU quota or a paused virtual machine looks the same."
    stops = (quota.STOPS_RATIO, math.inf)
    return quota.paused(given, stops, CAUSE, words, seen, LOOK.format("server"))


def refine(given: Evidence, claims: Sequence[Claim]) -> Iterator[Claim]:
    """The claims, and the file server itself where nothing else explains what the copy waits for.

    Silent where any part of the way is not known.
    """
    yield from claims
    copy, side = given.copy, steps.other(given.copy.initiator)
    if copy.made is None or copy.by_this_tool(side):
        return
    made, rate = copy.made, copy.made.rate.median
    beyond, seconds = _beyond(copy, claims), _waited_seconds(given.report, made)
    if beyond is None or seconds is None or beyond < MORE_RATIO * rate:
        return
    if not (_idle(given.report, made, side) and _waits_for_server(copy, made)):
        return
    if copy.memory is not None and rate < SAME_RATIO * copy.memory.rate.median:
        return
    settings = tuple(_settings(given, side))
    if settings or _other_direction_waits(given, side):
        yield _claim(given, side, seconds, beyond, settings)


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


def _beyond(copy: Copy, claims: Sequence[Claim]) -> float | None:
    """What all else allows, even one stage after the other; None: a part of the way is not known.

    Lower bounds count: the part carries at least that.
    """
    if any(each.reached or each.partly for each in claims):
        return None
    best: dict[tuple[str, str | None], float] = {}
    for each in claims:
        if each.ceiling.component in STAGES:
            part, level = each.ceiling.part, each.ceiling.bytes_per_second
            best[part] = min(level, best.get(part, level))
    parts = {("network", "path"), ("disk", copy.receiver)}
    if copy.cache == "uncached":
        parts.add(("disk", copy.sender))
    if not parts <= best.keys():
        return None
    lowest = min(each.ceiling.bytes_per_second for each in claims)
    return min(lowest, model.in_turn(list(best.values())))


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


def _other_direction_waits(given: Evidence, side: str) -> bool:
    """Whether a copy of the other direction runs no better, and waits for the server too."""
    copy = given.copy
    alike = (copy.initiator, copy.dialect, copy.engine)
    return any(
        each.made.rate.median <= BOTH_RATIO * given.rate.median
        and _waits_for_server(each, each.made)
        and _idle(given.report, each.made, side)
        for each in steps.copies(given.report)
        if (each.initiator, each.dialect, each.engine) == alike
        and each.verb != copy.verb
        and each.made is not None
        and each.made.intact
    )


def _settings(given: Evidence, side: str) -> Iterator[ServerSetting]:
    """What the server's smb.conf holds that makes such a copy wait."""
    wanted = ("all", "read" if given.copy.verb == "pull" else "write")
    for each in given.smb_conf(side):
        if each.option in _OPTIONS and each.matters_for in wanted and each.why and each.remedy:
            yield each


def _text(setting: ServerSetting) -> str:
    return f"{setting.option} = {setting.value}"


def _claim(
    given: Evidence, side: str, seconds: float, beyond: float, settings: tuple[ServerSetting, ...]
) -> Claim:
    """seconds: what a request waits; beyond: what all else would allow, bytes per second."""
    named = f" ({', '.join(map(_text, settings))})" if settings else ""
    seen = load_of(given.report, given.made, side)
    busy = percent_text(0.0 if seen is None else seen.all_cores_ratio)
    waits = f"The data had arrived, but the {side}'s file server did not read or answer it."
    if given.copy.verb == "pull":
        waits = f"The {side}'s send queue was mostly empty, because its file server sent nothing."
    quick = seconds_text(seconds * given.rate.median / beyond)
    remedy = LOOK.format(side)
    if settings:
        remedy = f"Change the {side}'s smb.conf: {'; '.join(each.remedy for each in settings)}"
    return claim(
        CAUSE,
        side,
        given.made,
        f"each request waits {seconds_text(seconds)} for the {side}'s file server{named}, while "
        f"its CPU is {busy} busy",
        standing="inferred",
        reached=True,
        evidence=(
            waits,
            f"All other components allow {rate_text(beyond)} or more, with replies in {quick}.",
            *(f"`{_text(each)}` in its smb.conf: {each.why}." for each in settings),
        ),
        remedy=remedy,
        detail=f"`{_text(settings[0])}`" if len(settings) == 1 else "",
    )
