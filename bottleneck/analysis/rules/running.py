"""Rules for a copy that was watched while it ran: what its queues, disks and interfaces show.

Nothing else was measured, so that nothing tells what a component could carry: a ceiling here is
the copy's own rate at a component that was seen to hold it. What is known of processors and windows
comes from the rules for every copy. A device with I/O in flight all the time may still have room
(many of them serve several requests at once), and a process that never waits for its disk is not
held by it: both have to agree where both were seen. Sources: probes/host/limits.py; tcp(7);
iostats.rst (field 10); proc(5) (state D); mm/page-writeback.c.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from bottleneck.analysis import interface_facts, model
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import FOREIGN_RATIO, Evidence, foreign_rate
from bottleneck.analysis.evidence.details import DiskRow, End
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk import contention as disk_contention
from bottleneck.analysis.rules.disk.alone import CAUSES, DOES
from bottleneck.analysis.rules.network import contention, link_rate, loss
from bottleneck.analysis.rules.smb import round_trips
from bottleneck.analysis.steps import Copy, Found, with_agent
from bottleneck.report import Report
from bottleneck.units import percent_text, rate_text, seconds_text, size_text
from probes.records import SIDES, HostFacts

STEADY_RATIO = 0.1
"""Spread of the seconds' rates, up to which a rate may be a link's."""
FAR_SECONDS = 1e-3
"""A round trip from which on requests that wait for replies cost something."""
FILLED_RATIO, OVERFILLED_RATIO = 0.6, 1.3
"""Bytes that the rate has under way in a round trip, over the most that were: a full window."""
LEAST_WINDOW_BYTES = 16 << 10
BEHIND_RATIO = 0.2
"""Of the copy's bytes, that are worth telling where they are not on the disk yet."""
WAITS_RATIO = 0.3
"""Share of the looks at which a process waited for a disk, from which on that held it."""
BUSY_RATIO = 0.9
CARRIED_RATIO = 0.5
"""Of the copy's bytes, that a disk has to have moved to be on its way."""
THROTTLED_RATIO = 0.9
"""Dirty memory over the level from which on the kernel slows writers down."""
OTHERS_RATIO = 0.5
"""Bytes that others moved on the disk over the copy's own, from which on they share it."""
FULL_RATIO = 0.93
"""Of what an interface can, by its own counters."""
NOT_AT_AN_END = ("network", "receive-window", "send-buffer")
"""Where the bytes waited, other than at an end's program."""


def rule(given: Evidence) -> Iterator[Claim | str]:
    """Ceilings of a running copy, by what held it while it was watched."""
    if not given.copy.running:
        return
    yield from _remarks(given.copy, given.made)
    by = held_by(given.made)
    if given.copy.on_one_host or by not in NOT_AT_AN_END:
        yield from _disks(given, by)
    if not given.copy.on_one_host:
        yield from _network(given, by)
        yield from _round_trips(given, by)


def held_by(made: Found) -> str:
    """Where the copy's bytes waited, as limits.who_limits tells; unknown where it cannot."""
    return made.details.sockets.by or "unknown"


def _held(
    given: Evidence,
    cause: Cause,
    side: str,
    words: str,
    evidence: str,
    *,
    foreign: float = 0.0,
    remedy: str = "",
) -> Claim:
    """The copy's own rate at what holds it; foreign: what others moved beside it."""
    rate = given.rate
    return claim(
        cause,
        side,
        given.made,
        words,
        level=rate.median + foreign,
        low=rate.low + foreign,
        high=rate.high + foreign,
        standing="inferred",
        reached=None if foreign else True,
        evidence=(evidence,),
        remedy=remedy,
    )


def _disks(given: Evidence, by: str) -> Iterator[Claim]:
    """The disk that the copy waited for: the receiver's, or the sender's if its queue was empty.

    Of a copy between two folders of one host the one that is at its end.
    """
    one = given.copy.on_one_host
    reads = disk_use(given.made, "client" if one else given.sender, "read")
    writes = disk_use(given.made, "client" if one else given.receiver, "write")
    if writes is not None and writes.holds and not (one and _less_busy(writes, reads)):
        yield _of_disk(given, writes)
    elif reads is not None and reads.holds and (one or by != "receiver"):
        yield _of_disk(given, reads)


def _less_busy(writes: DiskUse, reads: DiskUse | None) -> bool:
    full = writes.busy and (reads is None or not reads.busy)
    return not (writes.throttled or full)


def _of_disk(given: Evidence, use: DiskUse) -> Claim:
    seen = []
    if use.wait_ratio is not None:
        share = percent_text(use.wait_ratio)
        seen.append(f"the copy waited for a disk in {share} of the samples")
    if use.busy_ratio is not None and use.busy_ratio >= WAITS_RATIO:
        seen.append(f"the device had I/O in flight {percent_text(use.busy_ratio)} of the time")
    if use.throttled:
        seen.append("unwritten data in memory slowed writers down")
    rate = rate_text(given.rate.median)
    words = f"the {use.side}'s disk {DOES[use.verb]} at most {rate} for the copy"
    if use.shared:
        moved = size_text(use.others_bytes)
        words = f"the {use.side}'s disk moved {moved} for other processes at the same time"
    cause = disk_contention.CAUSE if use.shared else CAUSES[use.verb]
    evidence = f"On the {use.side}, {', and '.join(seen)}."
    remedy = disk_contention.remedy(use.side) if use.shared else ""
    return _held(given, cause, use.side, words, evidence, remedy=remedy)


def _network(given: Evidence, by: str) -> Iterator[Claim]:
    full = full_interface(given)
    match = given.looks_like(given.rate.median)
    spread = given.details.window_spread_ratio
    if by == "network":
        yield from _of_path(given, match)
    elif full is not None and by != "receiver":
        evidence = f"The interface of {full.name} was full."
        yield from _shared(given, match, evidence)
    elif by == "unknown" and match and spread is not None and spread <= STEADY_RATIO:
        evidence = "The rate was steady and is that of a standard link; its queue was not seen."
        yield _of_link(given, match, 0.0, evidence)


def _of_path(given: Evidence, match: model.LinkMatch | None) -> Iterator[Claim]:
    """The path holds the sender back: it lost packets, others use it too, or it is full."""
    seen = given.connection
    if seen is None:
        return
    told = seen.sockets
    lost = told.loss_ratio
    if lost and loss.lossy(seen, lost) is not None and match is None:
        again = told.retransmitted_segments
        evidence = f"{again:.0f} segments were retransmitted, and the path had no queue."
        words = loss.lossy_text(seen, lost)
        yield _held(given, loss.CAUSE, "path", words, evidence, remedy=loss.REMEDY)
        return
    usual, least = told.rtt_seconds_median, told.min_rtt_seconds
    trips = ""
    if usual is not None and least is not None:
        trips = f"; the RTT was {seconds_text(usual)}, at least {seconds_text(least)}"
    unsent = size_text(told.unsent_bytes_median or 0.0)
    evidence = f"The {given.sender} always had more to send ({unsent} in its socket){trips}."
    yield from _shared(given, match, evidence)


def _shared(given: Evidence, match: model.LinkMatch | None, evidence: str) -> Iterator[Claim]:
    """A full link: the copy's alone, or shared with other traffic."""
    foreign = foreign_rate(given.report, given.made, given.sender) or 0.0
    if foreign < FOREIGN_RATIO * given.rate.median:
        yield _of_link(given, match, 0.0, evidence)
        return
    total = given.looks_like(given.rate.median + foreign)
    yield _of_link(given, total, foreign, evidence)
    if total is None:
        # The rule for every copy tells it where the sum is a link's.
        words = contention.words(foreign, given.rate.median + foreign)
        remedy = contention.remedy(given, foreign)
        yield _held(given, contention.CAUSE, "path", words, evidence, remedy=remedy)


def _of_link(
    given: Evidence, match: model.LinkMatch | None, foreign: float, evidence: str
) -> Claim:
    behind = interface_facts.behind(given, level := given.rate.median + foreign, match)
    words = f"the network carries at most {rate_text(level)}{link_rate.likeness(match)}"
    told = (behind.words or words, evidence)
    found = _held(given, link_rate.CAUSE, "path", *told, foreign=foreign)
    return replace(found, remedy=behind.remedy, detail=behind.detail)


def _round_trips(given: Evidence, by: str) -> Iterator[Claim]:
    """Of SMB: all that may be in flight was, for as long as the round trip takes."""
    seen = given.connection
    if seen is None or by != "sender" or given.made.setting.over != "smb":
        return
    window, trip = seen.sockets.in_flight_bytes_high, seen.sockets.min_rtt_seconds
    if window is None or trip is None or trip < FAR_SECONDS or window < LEAST_WINDOW_BYTES:
        return
    if FILLED_RATIO <= given.rate.median * trip / window <= OVERFILLED_RATIO:
        yield _held(
            given,
            round_trips.CAUSE,
            "path",
            f"only {size_text(window)} of SMB data is in flight, at most "
            f"{rate_text(window / trip)} at an RTT of {seconds_text(trip)}",
            f"The {given.sender} had nothing left to send most of the time, because its requests "
            "waited for replies.",
            remedy=round_trips.IN_PARALLEL.format(size_text(window)),
        )


def _remarks(copy: Copy, made: Found) -> Iterator[str]:
    if made.details.cache.proven is None:
        yield (
            "Not verified: whether the file came from a disk or from the sender's memory. It is "
            "called cached, because only a verified source is called uncached."
        )
    if not both(made):
        unseen = _unseen(copy, made)
        yield (f"Not measured: the {unseen}'s queues, disk and CPU.")
    receiver = "client" if copy.on_one_host else copy.receiver
    end = end_of(made, receiver) or End()
    row = end.writes.device and _row(end, end.writes.device, False, 0.0)
    behind = made.moved_bytes - row.written_bytes if row else 0.0
    if behind >= BEHIND_RATIO * made.moved_bytes:
        yield (
            f"{size_text(behind)} of the data was still in the {receiver}'s memory and not on its "
            "disk."
        )


def _unseen(copy: Copy, made: Found) -> str:
    return copy.receiver if end_of(made, copy.sender) else copy.sender


def suspicion(copy: Copy, made: Found) -> str:
    """Of a running copy without a cap: where its bytes waited, as the end of a sentence."""
    by = held_by(made)
    if copy.on_one_host:
        return "neither of its disks was seen to limit it"
    if by == "receiver":
        return (
            f"the {copy.receiver}'s program reads the data too slowly. No limit of its disk or CPU "
            "was seen"
        )
    if by == "sender":
        return (
            f"the {copy.sender} often had nothing to send, because its program is slow or waits "
            "for replies. No limit of a disk or CPU was seen"
        )
    if by in NOT_AT_AN_END:
        return f"its data waited at the {by.replace('-', ' ')}, for a reason that was not seen"
    full = made.details.sockets.peer_window_full_ratio
    if full >= WAITS_RATIO:
        return (
            f"the {copy.receiver}'s window was full in {percent_text(full)} of the samples, "
            "because of its program, disk, CPU or size"
        )
    unseen = "what limits it cannot be seen from this end alone"
    return "where its data waited was not seen" if both(made) else unseen


def what_to_try(report: Report, copy: Copy, made: Found) -> str:
    """Advice for a running copy without a cap."""
    if both(made):
        return (
            "Watch it for longer (--seconds 60), or measure each component separately: bottleneck "
            "diagnose //SERVER/SHARE."
        )
    unseen = _unseen(copy, made)
    agent = with_agent(report, unseen)
    return f"Watch both ends with {agent}. It adds the {unseen}'s socket queues, disk and CPU."


# -- both ends ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class DiskUse:
    """One disk during the copy."""

    side: str
    verb: str
    moved_bytes: float
    """Of the copy, by its processes or the device."""
    others_bytes: float
    """What else the device moved."""
    busy_ratio: float | None
    wait_ratio: float | None
    """Share of the looks at which the copy's processes waited for a disk; None: not to be seen."""
    throttled: bool
    """Whether so much waits in memory to be written that the kernel slows writers down."""

    @property
    def busy(self) -> bool:
        """Whether the device had I/O in flight nearly all of the time."""
        return self.busy_ratio is not None and self.busy_ratio >= BUSY_RATIO

    @property
    def holds(self) -> bool:
        """Whether the copy waited for it."""
        if self.wait_ratio is not None:
            return self.wait_ratio >= WAITS_RATIO
        # What is written at leisure keeps a device busy, and nobody waits for it.
        return self.busy and (self.verb == "read" or self.throttled)

    @property
    def shared(self) -> bool:
        """Whether others moved so much on it that they may be what holds it."""
        return self.others_bytes > OTHERS_RATIO * self.moved_bytes


def end_of(made: Found, side: str) -> End | None:
    """What was seen at a side; None: nobody watched there."""
    return made.details.ends.client if side == "client" else made.details.ends.server


def both(made: Found) -> bool:
    """Whether all of the copy was seen: both hosts, or the one that it stays on."""
    return made.setting.over == "disk" or all(end_of(made, side) is not None for side in SIDES)


def disk_use(made: Found, side: str, verb: str) -> DiskUse | None:
    """The disk that an end reads from or writes to; None: not to be seen, or not on the way."""
    end = end_of(made, side) or End()
    reads, own, total = verb == "read", end.processes, made.moved_bytes
    file = end.reads if reads else end.writes
    if file.remote:
        return None
    row = _row(end, file.device, reads, CARRIED_RATIO * total) or DiskRow()
    its = own.disk_read_bytes if reads else own.disk_written_bytes
    carried = max(its, min(total, _moved(row, reads)))
    level = THROTTLED_RATIO * (end.dirty.free_run_bytes or 0.0)
    throttled = not reads and 0 < level <= (end.dirty.high_bytes or 0.0)
    if carried < CARRIED_RATIO * total and not throttled:
        return None
    # A copy from one folder of a disk to another one reads and writes it.
    both_ways = own.disk_read_bytes + own.disk_written_bytes
    return DiskUse(
        side=side,
        verb=verb,
        moved_bytes=carried,
        others_bytes=max(0.0, row.read_bytes + row.written_bytes - max(carried, total, both_ways)),
        busy_ratio=row.busy_ratio,
        # A process that works on a mount waits for the network in the same state.
        wait_ratio=None if end.kernel else own.disk_wait_ratio,
        throttled=throttled,
    )


def _moved(row: DiskRow, reads: bool) -> float:
    return row.read_bytes if reads else row.written_bytes


def _row(end: End, device: str | None, reads: bool, least: float) -> DiskRow | None:
    """The device of the copy's file; where it is not known the busiest that carried as much."""
    if device is not None:
        return next((row for row in end.disks if row.name == device), None)
    carrying = [row for row in end.disks if _moved(row, reads) >= least]
    return max(carrying, key=lambda row: row.busy_ratio or 0.0, default=None)


def full_interface(given: Evidence) -> HostFacts | None:
    """The host whose interface moved all that its link carries, in the copy's direction."""
    able = model.payload_efficiency() / model.counted_efficiency() / 8
    for side in SIDES:
        usage, host = given.made.usage(side), given.host(side)
        if usage is None or host is None or host.interface is None or usage.wall_seconds <= 0:
            continue
        sent, bits = usage.interface_sent_bytes, host.interface.rate_bits_per_second
        counted = sent if side == given.sender else usage.interface_received_bytes
        if not counted or not bits or host.interface.virtual:
            continue
        if counted / usage.wall_seconds >= FULL_RATIO * able * bits:
            return host
    return None
