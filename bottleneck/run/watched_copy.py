"""What the agents saw of a copy that others made, put together as a report's step; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bottleneck.report.report import Step
from bottleneck.run import sockets
from bottleneck.run.plan import Side
from probes.core import lenient
from probes.core.copy_trace import IDLE, ProgramLook, SocketLook
from probes.core.records import (
    SMB_PORTS,
    Details,
    Measured,
    Outcome,
    Sample,
    Skipped,
    Usage,
    run_rate,
)
from probes.watch.running_copies import LEAST_BYTES, Link, Running
from probes.watch.socket_watch import Observed

STAGE = "running-copy"
WINDOW_SECONDS = 1.0
STORED_RATIO = 0.25
"""What a copy's processes made dirty over what they wrote, from which on it is what was copied."""
FROM_DISK_RATIO, FROM_CACHE_RATIO = 0.5, 0.1
"""What the sender fetched from its disk over what it sent, from which on the source was not, or
was, in its page cache."""


@dataclass(frozen=True)
class End:
    """One host of the copy, and what its agent saw."""

    running: Running
    told: Any
    """A probes.watch.socket_watch.Observed as plain values."""


@dataclass(frozen=True)
class Moved:
    """The copy's bytes over time."""

    run: tuple[Sample, ...]
    pushes: bool
    """Whether the client is the sender."""
    began_seconds: float
    """Since the observation began, by the clock of the host that counted."""

    def over(self, share_ratio: float) -> Moved:
        """All that several connections moved, by the share of this one."""
        run = (replace(e, moved_bytes=int(e.moved_bytes / share_ratio)) for e in self.run)
        return self if share_ratio >= 1 else replace(self, run=tuple(run))

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.run[-1].moved_bytes


def side_of(running: Running) -> Side:
    """Which side of its copy a host is: the one that asked, or the one that serves."""
    return "server" if running.link is not None and running.link.serving else "client"


def moves(running: Running) -> bool:
    """Whether a copy's worth was moved while it was looked for."""
    if running.link is not None:
        return any(running.moved_bytes.values())
    return max(running.moved_bytes.values(), default=0) >= LEAST_BYTES


def turned(link: Link) -> dict[str, Any]:
    """How the other host is asked for its end of a connection."""
    return {
        "own_address": link.peer_address,
        "own_port": link.peer_port,
        "peer_address": link.own_address,
        "peer_port": link.own_port,
    }


def step_of(
    here: Side, ends: Mapping[Side, End], usages: Mapping[Side, Usage], seconds: float
) -> tuple[Step, Outcome]:
    """The step of a watch, by the host that it was started on.

    Raises:
        ValueError: what an agent told cannot be.
    """
    seen = {side: sockets.observed(end.told) for side, end in ends.items()}
    link = ends[here].running.link
    over = _over(link)
    setting: dict[str, Any] = {
        "engine": "running",
        "over": over,
        "program": ends[here].running.program,
        "seconds": seconds,
        "dialect": _dialect(ends) if over == "smb" else "none",
    }
    moved = moved_in(seen[here], here, link)
    if moved is None:
        setting.update(copy="pull", verb="pull")
        return Step(STAGE, setting, here), Skipped("it transferred nothing during the observation")
    moved = moved.over(ends[here].running.share_ratio)
    verb = "push" if moved.pushes else "pull"
    sender: Side = "client" if moved.pushes else "server"
    details = details_of(seen, sender, moved, link)
    from_disk = details.get("cache", {}).get("from_disk")
    source = {True: ".uncached", False: ".cached", None: ""}[from_disk]
    setting.update(copy=f"{verb}{source}", verb=verb)
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


def moved_in(seen: Observed, here: Side, link: Link | None) -> Moved | None:
    """The copy's samples, by the direction in which more went; None: nothing moved."""
    if link is None:
        # What a process writes is the copy; one that only reads, as a checksum, is one too.
        written, stored = (_run(seen.io_looks, f"{to}written_bytes", True) for to in ("", "disk_"))
        # What its processes hand to each other, as rsync's do, was written twice and stored once.
        if written and stored and stored.bytes >= STORED_RATIO * written.bytes:
            return stored
        return written or _run(seen.io_looks, "read_bytes", True)
    rows = [row for each in seen.connections[:1] for row in each.rows]
    sent = _run(rows, "acknowledged_bytes", here == "client")
    received = _run(rows, "received_bytes", here != "client")
    found = (each for each in (sent, received) if each is not None)
    return max(found, key=lambda each: each.run[-1].moved_bytes, default=None)


def _run(looks: Sequence[SocketLook | ProgramLook], name: str, pushes: bool) -> Moved | None:
    """Samples from the first count on; None: nothing moved, or it is not known."""
    known = [(look.elapsed_seconds, getattr(look, name)) for look in looks]
    counted = [(at, count) for at, count in known if count is not None]
    found: list[Sample] = []
    for at, count in counted:
        sample = Sample(at - counted[0][0], int(count - counted[0][1]))
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
    if run_rate(run) > lenient.LARGEST:
        raise ValueError("an observation has a rate that is out of range")
    return Moved(run, pushes, counted[0][0])


def window_rates(run: Sequence[Sample]) -> list[float]:
    """Rates of consecutive windows of a second, bytes per second; what is left over is left out."""
    found, start = [], run[0]
    for each in run[1:]:
        lasted = each.elapsed_seconds - start.elapsed_seconds
        if lasted >= WINDOW_SECONDS:
            found.append((each.moved_bytes - start.moved_bytes) / lasted)
            start = each
    return found


def details_of(
    seen: Mapping[Side, Observed], sender: Side, moved: Moved, link: Link | None
) -> Details:
    total = moved.run[-1].moved_bytes
    details: Details = {
        "window_rates_bytes_per_second": window_rates(moved.run),
        **_time(seen, moved),
    }
    if link is not None:
        carried = {side: list(each.connections) for side, each in seen.items()}
        details["sockets"] = sockets.connection_details(
            *sockets.ends(carried, sender, "client", total)
        )
    side: Side = sender if link is not None else "client"
    from_disk = _from_disk(seen[side], total, side) if side in seen else None
    if from_disk is not None:
        details["cache"] = {"side": side, "proven": True, "from_disk": from_disk}
    return details


def _from_disk(seen: Observed, total: int, side: Side) -> bool | None:
    """Whether the sender fetched from its disk what it sent; None: not to be seen.

    Of processes that did not read what was sent (a mount's, whose kernel does) their bytes say
    nothing.
    """
    last = seen.io_looks[-1] if seen.io_looks else ProgramLook(0.0)
    fetched, read = last.disk_read_bytes or 0.0, last.read_bytes or 0.0
    if fetched >= FROM_DISK_RATIO * total:
        return True
    if read >= FROM_DISK_RATIO * total and fetched <= FROM_CACHE_RATIO * total:
        return False
    # At the client it may be a mount that is waited for.
    return True if side == "server" and _disk_wait_ratio(seen) >= FROM_DISK_RATIO else None


def _disk_wait_ratio(seen: Observed) -> float:
    """Share of the looks at which a thread waited for a disk."""
    waits = [look.disk or 0.0 for look in seen.threads]
    return sum(waits) / len(waits) if waits else 0.0


def _time(seen: Mapping[Side, Observed], moved: Moved) -> Details:
    """Where the time of the copy's program went, and what each host saw meanwhile."""
    began, lasted = moved.began_seconds, moved.run[-1].elapsed_seconds
    bins = [
        each._replace(elapsed_seconds=round(each.elapsed_seconds - began, 6))
        for each in seen["client" if "client" in seen else "server"].bins
        if 0 <= each.elapsed_seconds - began <= lasted
    ]
    looks = {
        side: sockets.looks(each, next(iter(each.connections), None), began, lasted)
        for side, each in seen.items()
    }
    if bins:
        return {"trace": {"bins": bins, "requests": []}, "looks": looks}
    idle = [IDLE, IDLE._replace(elapsed_seconds=lasted)]
    return {"trace": {"bins": idle, "requests": [], "unseen": True}, "looks": looks}
