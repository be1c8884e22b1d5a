"""What the agents saw of a copy that others made, put together as a report's step; pure."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bottleneck import sockets, typed
from bottleneck.plan import Side
from bottleneck.report import Step
from probes.host.open_files import Place
from probes.host.running_copies import LEAST_BYTES, SMB_PORTS, Link, Running
from probes.records import Details, Measured, Outcome, Sample, Skipped, Usage, run_rate

STAGE = "running-copy"
WINDOW_SECONDS = 1.0
FROM_DISK_RATIO, FROM_CACHE_RATIO = 0.5, 0.1
"""What the sender fetched from its disk over what it sent, from which on the source was not, or
was, in its page cache."""
COLUMNS = 5
"""Of a count: clock, bytes sent, received, read and written."""
SENT, RECEIVED, READ, WRITTEN = range(1, COLUMNS)


@dataclass(frozen=True)
class End:
    """One host of the copy, and what its agent saw."""

    running: Running
    told: Any
    """As probes.host.copy_watch told it."""


@dataclass(frozen=True)
class Moved:
    """The copy's bytes over time."""

    run: tuple[Sample, ...]
    pushes: bool
    """Whether the client is the sender."""


def side_of(running: Running) -> Side:
    """Which side of its copy a host is: the one that asked, or the one that serves."""
    return "server" if running.link is not None and running.link.serving else "client"


def moves(running: Running) -> bool:
    """Whether a copy's worth was moved while it was looked for."""
    if running.link is not None:
        return any(running.moved.values())
    return max(running.moved.values(), default=0) >= LEAST_BYTES


def turned(link: Link) -> dict[str, Any]:
    """How the other host is asked for its end of a connection."""
    return {
        "own_address": link.peer_address,
        "own_port": link.peer_port,
        "peer_address": link.own_address,
        "peer_port": link.own_port,
    }


def place_of(running: Running, sends: bool | None) -> Place | None:
    """Where a host's file lies; sends: whether the bytes leave it, None: it copies to itself."""
    if sends is None:
        return running.writes
    return running.reads if sends else running.writes


def sends_more(running: Running) -> bool | None:
    """Whether a host was the sender while the copy was looked for; None: no connection moved."""
    sent, received = (running.moved.get(name, 0) for name in ("sent_bytes", "received_bytes"))
    return None if running.link is None else sent >= received


def step_of(
    here: Side,
    ends: Mapping[Side, End],
    usages: Mapping[Side, Usage],
    seconds: float,
) -> tuple[Step, Outcome]:
    """The step of a watch, by the host that it was started on.

    Raises:
        ValueError: what an agent told cannot be.
    """
    rows = _rows(ends[here].told)
    link = ends[here].running.link
    over = _over(link)
    setting: dict[str, Any] = {
        "engine": "running",
        "over": over,
        "program": ends[here].running.program,
        "seconds": seconds,
        "dialect": _dialect(ends) if over == "smb" else "none",
    }
    moved = _moved(rows, here, link)
    if moved is None:
        setting.update(copy="pull.cached", verb="pull")
        return Step(STAGE, setting, here), Skipped("it transferred nothing during the observation")
    verb = "push" if moved.pushes else "pull"
    sender: Side = "client" if moved.pushes else "server"
    details = _details(ends, sender, moved, link)
    proven = details.get("cache", {}).get("proven")
    uncached = proven and details["cache"]["from_disk"]
    setting.update(copy=f"{verb}.{'uncached' if uncached else 'cached'}", verb=verb)
    other = usages.get(sockets.OTHER[here])
    return Step(STAGE, setting, here), Measured((moved.run,), usages[here], other, details)


def _over(link: Link | None) -> str:
    if link is None:
        return "disk"
    port = link.own_port if link.serving else link.peer_port
    return "smb" if port in SMB_PORTS else "tcp"


def _dialect(ends: Mapping[Side, End]) -> str:
    """Of the client's mount, where it tells."""
    client = ends.get("client")
    places = (client.running.reads, client.running.writes) if client is not None else ()
    return next((each.dialect for each in places if each is not None and each.dialect), "unknown")


def _rows(told: Any) -> list[list[float | None]]:
    """The counts that a watch told, checked."""
    found = []
    for at, each in enumerate(
        typed.array(typed.mapping(told, "watch").get("counts", []), "counts")
    ):
        row = typed.array(each, f"counts[{at}]")
        if len(row) != COLUMNS:
            raise typed.NotTyped(f"counts[{at}] must be {COLUMNS} numbers")
        found.append([None if cell is None else typed.number(cell, "counts") for cell in row])
    return found


def _moved(rows: Sequence[Sequence[float | None]], here: Side, link: Link | None) -> Moved | None:
    """The copy's samples, by the direction in which more went; None: nothing moved."""
    if link is None:
        # What a process writes is the copy; one that only reads, as a checksum, is one too.
        run = _run(rows, WRITTEN) or _run(rows, READ)
        return None if run is None else Moved(run, True)
    sent, received = _run(rows, SENT), _run(rows, RECEIVED)
    most = max((sent, received), key=lambda run: run[-1].moved_bytes if run else 0)
    return None if most is None else Moved(most, (most is sent) == (here == "client"))


def _run(rows: Sequence[Sequence[float | None]], column: int) -> tuple[Sample, ...] | None:
    """Samples from the first count on; None: nothing moved, or it is not known."""
    began: tuple[float, float] | None = None
    found: list[Sample] = []
    for row in rows:
        clock, count = row[0], row[column]
        if clock is None or count is None:
            continue
        began = began or (clock, count)
        sample = Sample(clock - began[0], int(count - began[1]))
        last = found[-1] if found else Sample(0.0, 0)
        if sample.elapsed_seconds < last.elapsed_seconds or sample.moved_bytes < last.moved_bytes:
            raise ValueError("an observation has counts that run backwards")
        found.append(sample)
    if len(found) < 2 or found[-1].moved_bytes == 0 or found[-1].elapsed_seconds <= 0:
        return None
    whole = next(at for at, each in enumerate(found) if each.moved_bytes == found[-1].moved_bytes)
    # The copy's end; a shorter pause is its own.
    ended = found[-1].elapsed_seconds - found[whole].elapsed_seconds >= WINDOW_SECONDS
    run = tuple(found[: whole + 1] if ended else found)
    if run_rate(run) > typed.LARGEST:
        raise ValueError("an observation has a rate that is out of range")
    return run


def window_rates(run: Sequence[Sample]) -> list[float]:
    """Rates of consecutive windows of a second, bytes per second; what is left over is left out."""
    found, start = [], run[0]
    for each in run[1:]:
        lasted = each.elapsed_seconds - start.elapsed_seconds
        if lasted >= WINDOW_SECONDS:
            found.append((each.moved_bytes - start.moved_bytes) / lasted)
            start = each
    return found


def _details(ends: Mapping[Side, End], sender: Side, moved: Moved, link: Link | None) -> Details:
    total = moved.run[-1].moved_bytes
    details: Details = {
        "ends": {side: _end(end, link is None) for side, end in ends.items()},
        "window_rates_bytes_per_second": window_rates(moved.run),
    }
    if link is not None:
        seen = {
            side: sockets.connections([end.told["connection"]])
            for side, end in ends.items()
            if end.told.get("connection") is not None
        }
        details["sockets"] = sockets.of_copy(seen, sender, "client", total)
    side: Side = sender if link is not None else "client"
    fetched = _fetched(details["ends"].get(side, {}), total)
    if fetched is not None and (
        fetched >= FROM_DISK_RATIO * total or fetched <= FROM_CACHE_RATIO * total
    ):
        from_disk = fetched >= FROM_DISK_RATIO * total
        details["cache"] = {"side": side, "proven": True, "from_disk": from_disk}
    rates = details["window_rates_bytes_per_second"]
    if len(rates) > 1:
        details["window_spread_ratio"] = (max(rates) - min(rates)) / max(
            1.0, statistics.mean(rates)
        )
    return details


def _end(end: End, alone: bool) -> Details:
    """What one host saw beside the connection."""
    told, running = typed.mapping(end.told, "watch"), end.running
    found: Details = {
        name: told[name] for name in ("processes", "disks", "dirty") if told.get(name) is not None
    }
    for name, place in (("reads", running.reads), ("writes", running.writes)):
        if place is not None:
            kept = {"device": place.device, "filesystem": place.filesystem}
            told_of = {key: value for key, value in kept.items() if value is not None}
            found[name] = {**told_of, "remote": place.remote}
    found["kernel"] = running.link is not None and running.link.kernel
    if running.program is not None:
        found["program"] = running.program
    found["alone"] = alone
    return found


def _fetched(end: Details, total: int) -> float | None:
    """Bytes that the sender's processes fetched from disks; None: not to be seen.

    Of those that did not read what was sent (a mount's, whose kernel does) that says nothing.
    """
    told = typed.mapping(end.get("processes", {}), "processes")
    if "disk_read_bytes" not in told:
        return None
    fetched = typed.number(told["disk_read_bytes"], "disk_read_bytes")
    read = typed.number(told.get("read_bytes", 0), "read_bytes")
    return fetched if max(read, fetched) >= FROM_DISK_RATIO * total else None
