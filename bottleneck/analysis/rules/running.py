"""Rules for a copy that was watched while it ran: what its queues, disks and interfaces show.

Nothing else was measured, so that nothing tells what a component could carry: a ceiling here is
the copy's own rate at a component that was seen to hold it. What is known of processors and windows
comes from the rules for every copy. Sources: probes/host/limits.py; tcp(7); iostats.rst.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import model, steps, tcp_evidence
from bottleneck.analysis.claim import Cause, Source, claim
from bottleneck.analysis.disk_alone import CAUSES, DOES
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk import contention as disk_contention
from bottleneck.analysis.rules.network import contention, link_rate, loss
from bottleneck.analysis.rules.network.contention import FOREIGN_RATIO, foreign_rate
from bottleneck.analysis.rules.smb import round_trips
from bottleneck.analysis.running_ends import (
    WAITS_RATIO,
    DiskUse,
    both,
    disk_use,
    end_of,
    full_interface,
    moved_bytes,
    written_behind,
)
from bottleneck.analysis.steps import Copy, Found
from bottleneck.analysis.tcp_evidence import Connection
from bottleneck.report import Report
from bottleneck.reports.units import (
    percent_text,
    rate_text,
    seconds_text,
    size_text,
)

ONE_SIDED_TRUST = 0.8
"""The most that one end alone may be sure of."""
STEADY_RATIO = 0.1
"""Spread of the seconds' rates, up to which a rate may be a link's."""
FAR_SECONDS = 1e-3
"""A round trip from which on requests that wait for replies cost something."""
FILLED_RATIO, OVERFILLED_RATIO = 0.6, 1.3
"""Bytes that the rate has under way in a round trip, over the most that were: a full window."""
LEAST_WINDOW_BYTES = 16 << 10
BEHIND_RATIO = 0.2
"""Of the copy's bytes, that are worth telling where they are not on the disk yet."""
ELSEWHERE = ("network", "receive-window", "send-buffer")
"""Where the bytes waited, other than at an end's program."""


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """Ceilings of a running copy, by what held it while it was watched."""
    made = copy.made
    if made is None or not copy.running:
        return
    yield from _remarks(copy, made)
    if copy.on_one_host:
        yield from _on_one_host(made)
        return
    by = held_by(made)
    if by not in ELSEWHERE:
        yield from _disks(copy, made, by)
    yield from _network(report, copy, made, by)
    if by == "sender":
        yield from _round_trips(report, copy, made)


def held_by(made: Found) -> str:
    """Where the copy's bytes waited, as limits.who_limits tells; unknown where it cannot."""
    return made.details.sockets.by or "unknown"


def trust(copy: Copy, made: Found) -> float:
    """The most that a verdict on a copy may be sure of: less where one end alone was seen."""
    return ONE_SIDED_TRUST if copy.running and not both(made) else 1.0


def _held(
    cause: Cause,
    side: str,
    made: Found,
    words: str,
    source: Source,
    evidence: tuple[str, ...],
    *,
    more: float = 0.0,
    reached: bool | None = True,
    remedy: str = "",
) -> Claim:
    """The copy's own rate at what holds it; more: what others moved beside it."""
    rate = made.rate
    return claim(
        cause,
        side,
        made,
        words,
        level=rate.median + more,
        low=rate.low + more,
        high=rate.high + more,
        standing="inferred",
        reached=reached,
        source=source,
        evidence=evidence,
        remedy=remedy,
    )


# -- disks ---------------------------------------------------------------------------------------


def _disks(copy: Copy, made: Found, by: str) -> Iterator[Claim]:
    """The disks of both ends that the copy waited for; the sender's if its queue was empty."""
    writes = disk_use(made, copy.receiver, "write")
    if writes is not None and writes.holds:
        yield _of_disk(made, writes)
        return
    reads = disk_use(made, copy.sender, "read")
    if reads is not None and reads.holds and by != "receiver":
        yield _of_disk(made, reads)


def _on_one_host(made: Found) -> Iterator[Claim]:
    """Of a copy between two folders of one host the disk that is at its end."""
    reads, writes = disk_use(made, "client", "read"), disk_use(made, "client", "write")
    if writes is not None and writes.holds and (writes.throttled or _busier(writes, reads)):
        yield _of_disk(made, writes)
    elif reads is not None and reads.holds:
        yield _of_disk(made, reads)


def _busier(writes: DiskUse, reads: DiskUse | None) -> bool:
    return writes.busy and (reads is None or not reads.busy)


def _of_disk(made: Found, use: DiskUse) -> Claim:
    seen = []
    if use.wait_ratio is not None:
        share = percent_text(use.wait_ratio)
        seen.append(f"the copy's processes there waited for a disk in {share} of the looks")
    if use.busy_ratio is not None and use.busy_ratio >= WAITS_RATIO:
        seen.append(f"its device had I/O in flight {percent_text(use.busy_ratio)} of the time")
    if use.throttled:
        seen.append("so much waited in memory to be written that the kernel held writers back")
    rate = rate_text(made.rate.median)
    words = f"the {use.side}'s disk {DOES[use.verb]} no faster than {rate} for it"
    if use.shared:
        words = f"the {use.side}'s disk moved {size_text(use.others_bytes)} for others meanwhile"
    cause = disk_contention.CAUSE if use.shared else CAUSES[use.verb]
    source: Source = "one-end" if use.shared or use.wait_ratio is None else "measured"
    evidence = (f"On the {use.side}, {', and '.join(seen)}.",)
    return _held(cause, use.side, made, words, source, evidence)


# -- the network ---------------------------------------------------------------------------------


def _network(report: Report, copy: Copy, made: Found, by: str) -> Iterator[Claim]:
    full = full_interface(report, copy, made)
    match = model.looks_like(made.rate.median, steps.mtu_bytes(report))
    if by == "network":
        yield from _of_path(report, copy, made, match)
    elif full is not None and by != "receiver":
        yield from _shared(report, copy, made, match, "measured", _of_interface(full.name))
    elif by == "unknown" and match is not None and _steady(made):
        words = "the rate is steady, and what a link of that kind carries; its queue was not seen"
        yield _of_link(made, match, 0.0, "law", f"From second to second {words}.")


def _of_path(
    report: Report, copy: Copy, made: Found, match: model.LinkMatch | None
) -> Iterator[Claim]:
    """The path holds the sender back: it lost packets, others use it too, or it is full."""
    seen = tcp_evidence.connection(report, copy)
    if seen is None:
        return
    lost = seen.sockets.loss_ratio
    if lost and loss.lossy(seen, lost) is not None and match is None:
        again = seen.sockets.retransmitted_segments
        evidence = f"{again:.0f} segments were sent again, and no queue stood on the path."
        words = loss.lossy_text(seen, lost)
        remedy = loss.REMEDY
        yield _held(loss.CAUSE, "path", made, words, "one-end", (evidence,), remedy=remedy)
        return
    source: Source = "measured" if match is not None else "one-end"
    yield from _shared(report, copy, made, match, source, _of_queue(copy, seen))


def _shared(
    report: Report,
    copy: Copy,
    made: Found,
    match: model.LinkMatch | None,
    source: Source,
    evidence: str,
) -> Iterator[Claim]:
    """A full link: the copy's alone, or shared with somebody else's traffic."""
    foreign = foreign_rate(report, made, copy.sender) or 0.0
    if foreign < FOREIGN_RATIO * made.rate.median:
        yield _of_link(made, match, 0.0, source, evidence)
        return
    total = model.looks_like(made.rate.median + foreign, steps.mtu_bytes(report))
    yield _of_link(made, total, foreign, "measured", evidence, reached=None)
    if total is None:
        # The rule for every copy tells it where the sum is a link's.
        words = f"somebody else's traffic ({rate_text(foreign)}) shares the full path with it"
        yield _held(contention.CAUSE, "path", made, words, "one-end", (evidence,))


def _of_link(
    made: Found,
    match: model.LinkMatch | None,
    foreign: float,
    source: Source,
    evidence: str,
    reached: bool | None = True,
) -> Claim:
    level = rate_text(made.rate.median + foreign)
    words = f"the network carries no more than {level}{link_rate.likeness(match)}"
    return _held(
        *(link_rate.CAUSE, "path", made, words, source, (evidence,)), more=foreign, reached=reached
    )


def _of_interface(name: str) -> str:
    return f"The interface of {name} moved all that its link carries."


def _of_queue(copy: Copy, seen: Connection) -> str:
    """What shows that the path, and no end, held the bytes back."""
    usual, least = seen.sockets.rtt_seconds_median, seen.sockets.min_rtt_seconds
    trips = ""
    if usual is not None and least is not None:
        trips = f"; its round trip was {seconds_text(usual)}, {seconds_text(least)} at the least"
    unsent = size_text(seen.sockets.unsent_bytes_median or 0.0)
    return f"The {copy.sender} always had more to send ({unsent} waited in its socket){trips}."


def _steady(made: Found) -> bool:
    spread = made.details.window_spread_ratio
    return spread is not None and spread <= STEADY_RATIO


# -- requests ------------------------------------------------------------------------------------


def _round_trips(report: Report, copy: Copy, made: Found) -> Iterator[Claim]:
    """Of SMB: all that may be in flight was, for as long as the round trip takes."""
    seen = tcp_evidence.connection(report, copy)
    if seen is None or made.setting.over != "smb":
        return
    window, trip = seen.sockets.in_flight_bytes_high, seen.sockets.min_rtt_seconds
    if window is None or trip is None or trip < FAR_SECONDS or window < LEAST_WINDOW_BYTES:
        return
    filled = made.rate.median * trip / window
    if not FILLED_RATIO <= filled <= OVERFILLED_RATIO:
        return
    yield _held(
        round_trips.CAUSE,
        "path",
        made,
        f"{size_text(window)} in flight at a round trip of {seconds_text(trip)} carry no more "
        f"than {rate_text(window / trip)}",
        "one-end",
        (
            f"The {copy.sender} had nothing left to send most of the time, and what it sent was "
            "under way for as long as the path takes: requests wait for replies.",
        ),
        remedy=f"More than {size_text(window)} in flight, as several copies at once keep,",
    )


# -- what is said in any case --------------------------------------------------------------------


def _remarks(copy: Copy, made: Found) -> Iterator[str]:
    if made.details.cache.proven is None:
        yield (
            "Whether the file came from a disk or from the sender's memory was not seen: it is "
            "called cached because uncached is said only where it was proven."
        )
    if not both(made):
        unseen = copy.receiver if end_of(made, copy.sender) else copy.sender
        yield (
            f"Seen from one end alone: the {unseen}'s queues, disk and CPU are not known, and no "
            f"verdict is surer than {percent_text(ONE_SIDED_TRUST)}."
        )
    receiver = "client" if copy.on_one_host else copy.receiver
    behind = written_behind(made, receiver)
    if behind is not None and behind >= BEHIND_RATIO * moved_bytes(made):
        yield (
            f"{size_text(behind)} of what arrived waits in the {receiver}'s memory: how fast its "
            "disk is shows once that is full."
        )


def suspicion(copy: Copy, made: Found) -> str:
    """Of a running copy without a cap: where its bytes waited, as the end of a sentence."""
    by = held_by(made)
    if copy.on_one_host:
        return "neither of its disks was seen to hold it"
    if by == "receiver":
        return (
            f"what arrived lay unread at the {copy.receiver}: its program does not keep up, though "
            "neither its disk nor its CPU was seen to hold it"
        )
    if by == "sender":
        return (
            f"the {copy.sender} had nothing to send for much of the time: its program, or the "
            "requests and replies that it waits for, hold it, and no disk or CPU was seen to"
        )
    if by in ELSEWHERE:
        return f"its bytes waited at the {by.replace('-', ' ')}, and what limits that was not seen"
    full = made.details.sockets.peer_window_full_ratio
    if full >= WAITS_RATIO:
        return (
            f"the {copy.receiver} took no more (its window was full in {percent_text(full)} of the "
            "looks): its program, its disk, its CPU, or the window itself"
        )
    return "where its bytes waited cannot be told from what was seen"


def what_to_try(copy: Copy, made: Found) -> str:
    """Advice for a running copy without a cap."""
    if both(made):
        return (
            "Watch it for longer (--seconds 60), or have each stage measured by itself: bottleneck "
            "diagnose //SERVER/SHARE."
        )
    unseen = copy.receiver if end_of(made, copy.sender) else copy.sender
    return (
        f"Watch both ends (--agent ssh://USER@{unseen.upper()}): it adds 3 things that only the "
        f"{unseen} shows: its socket's queues, its disk and its CPU."
    )
