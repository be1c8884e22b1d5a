"""What was seen of a running copy at each of its ends: its disk, its interface, its processes.

A device with I/O in flight all the time may still have room (many of them serve several requests
at once), and a process that never waits for its disk is not held by it: both have to agree where
both were seen. Sources: iostats.rst (field 10), proc(5) (state D), mm/page-writeback.c.
"""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis import model
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import DiskRow, End
from bottleneck.analysis.steps import Found
from probes.records import SIDES, HostFacts

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
    alone = made.setting.over == "disk"
    return alone or all(end_of(made, side) is not None for side in SIDES)


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
    throttled = not reads and _throttled(end)
    if carried < CARRIED_RATIO * total and not throttled:
        return None
    # A copy from one folder of a disk to another one reads and writes it.
    both_ways = own.disk_read_bytes + own.disk_written_bytes
    whole = row.read_bytes + row.written_bytes
    return DiskUse(
        side=side,
        verb=verb,
        moved_bytes=carried,
        others_bytes=max(0.0, whole - max(carried, total, both_ways)),
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


def _throttled(end: End) -> bool:
    high, level = end.dirty.high_bytes, end.dirty.free_run_bytes
    return high is not None and level is not None and 0 < THROTTLED_RATIO * level <= high


def written_behind(made: Found, side: str) -> float | None:
    """What arrived and is not on the receiver's disk yet, bytes; None: its disk is not known."""
    end = end_of(made, side) or End()
    device = end.writes.device
    row = None if device is None else _row(end, device, False, 0.0)
    return None if row is None else max(0.0, made.moved_bytes - row.written_bytes)


def full_interface(given: Evidence) -> HostFacts | None:
    """The host whose interface moved all that its link carries, in the copy's direction."""
    able = model.payload_efficiency() / model.counted_efficiency() / 8
    for side in SIDES:
        usage, host = given.made.usage(side), given.host(side)
        if usage is None or host is None or host.interface is None or usage.wall_seconds <= 0:
            continue
        sends = side == given.sender
        counted = usage.interface_sent_bytes if sends else usage.interface_received_bytes
        bits = host.interface.rate_bits_per_second
        if not counted or not bits or host.interface.virtual:
            continue
        if counted / usage.wall_seconds >= FULL_RATIO * able * bits:
            return host
    return None
