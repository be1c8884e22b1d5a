"""Turns the agents' observations of another program's copy into a report's step; pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from bottleneck.report.report import Step
from bottleneck.run import watched_sockets
from bottleneck.run.plan import Side
from probes.core import lenient, records
from probes.core.copy_trace import IDLE, ProgramLook, SocketLook
from probes.watch.running_copies import LEAST_BYTES, Link, Running
from probes.watch.socket_watch import Observations

STAGE = "running-copy"
WINDOW_SECONDS = 1.0
STORED_RATIO = 0.25
"""Least stored over written bytes of processes at which the stored ones count."""
FROM_DISK_RATIO, FROM_CACHE_RATIO = 0.5, 0.1
"""Bytes read from the sender's disk over bytes sent: at least the first, the source was uncached;
at most the second, cached."""


@dataclass(frozen=True)
class End:
    """One host of the copy, and its agent's observations."""

    running: Running
    reply: Any
    """probes.watch.socket_watch.Observations as plain values."""


@dataclass(frozen=True)
class Transfer:
    """Bytes of the copy over time."""

    run: tuple[records.Sample, ...]
    pushes: bool
    """Whether the client is the sender."""
    began_seconds: float
    """Start since the observation began, by the clock of the counting host."""

    def scaled_to(self, share_ratio: float) -> Transfer:
        """Scales the bytes to several connections, by this one's share."""
        run = (replace(e, moved_bytes=int(e.moved_bytes / share_ratio)) for e in self.run)
        return self if share_ratio >= 1 else replace(self, run=tuple(run))

    @property
    def bytes(self) -> int:
        return self.run[-1].moved_bytes


def side_of(running: Running) -> Side:
    """Returns a host's side of its copy: the client asked, the server serves."""
    return "server" if running.link is not None and running.link.serving else "client"


def moves(running: Running) -> bool:
    """Whether enough data moved during the search to be a copy."""
    if running.link is not None:
        return any(running.moved_bytes.values())
    return max(running.moved_bytes.values(), default=0) >= LEAST_BYTES


def mirror(link: Link) -> dict[str, Any]:
    """Returns a connection as the other host sees it, for its agent's search."""
    return {
        "own_address": link.peer_address,
        "own_port": link.peer_port,
        "peer_address": link.own_address,
        "peer_port": link.own_port,
    }


def step_of(
    here: Side, ends: Mapping[Side, End], usages: Mapping[Side, records.Usage], seconds: float
) -> tuple[Step, records.Outcome]:
    """Returns the step of a watch, by the host on which it was started.

    Raises:
        ValueError: an agent's observations are malformed.
    """
    by_side = {side: watched_sockets.parse_observations(end.reply) for side, end in ends.items()}
    link = ends[here].running.link
    over = _protocol(link)
    setting: dict[str, Any] = {
        "engine": "running",
        "over": over,
        "program": ends[here].running.program,
        "seconds": seconds,
        "dialect": _dialect(ends) if over == "smb" else "none",
    }
    transfer = moved_in(by_side[here], here, link)
    if transfer is None:
        setting.update(copy="pull", verb="pull")
        return Step(STAGE, setting, here), records.Skipped(
            "it transferred nothing during the observation"
        )
    transfer = transfer.scaled_to(ends[here].running.share_ratio)
    verb = "push" if transfer.pushes else "pull"
    sender: Side = "client" if transfer.pushes else "server"
    details = details_of(by_side, sender, transfer, link)
    from_disk = details.get("cache", {}).get("from_disk")
    source = {True: ".uncached", False: ".cached", None: ""}[from_disk]
    setting.update(copy=f"{verb}{source}", verb=verb)
    other = usages.get(watched_sockets.OTHER[here])
    return Step(STAGE, setting, here), records.Measured(
        (transfer.run,), usages[here], other, details
    )


def _protocol(link: Link | None) -> str:
    if link is None:
        return "disk"
    port = link.own_port if link.serving else link.peer_port
    return "smb" if port in records.SMB_PORTS else "tcp"


def _dialect(ends: Mapping[Side, End]) -> str:
    """Returns the dialect of the client's mount; "unknown": not shown."""
    client = ends.get("client")
    places = (client.running.reads, client.running.writes) if client is not None else ()
    return next((each.dialect for each in places if each is not None and each.dialect), "unknown")


def moved_in(observations: Observations, here: Side, link: Link | None) -> Transfer | None:
    """Returns the copy's samples in the direction with more bytes; None: nothing moved."""
    if link is None:
        # A process's writes are the copy; if it only reads, as a checksum does, its reads are.
        looks = observations.io_looks
        written, stored = (_transfer_of(looks, f"{to}written_bytes", True) for to in ("", "disk_"))
        # Bytes that processes pass to each other, as rsync's do, are written twice, stored once.
        if written and stored and stored.bytes >= STORED_RATIO * written.bytes:
            return stored
        return written or _transfer_of(observations.io_looks, "read_bytes", True)
    rows = [row for each in observations.connections[:1] for row in each.rows]
    sent = _transfer_of(rows, "acknowledged_bytes", here == "client")
    received = _transfer_of(rows, "received_bytes", here != "client")
    transfers = (each for each in (sent, received) if each is not None)
    return max(transfers, key=lambda each: each.run[-1].moved_bytes, default=None)


def _transfer_of(
    looks: Sequence[SocketLook | ProgramLook], name: str, pushes: bool
) -> Transfer | None:
    """Returns samples from the first count on; None: nothing moved, or it is unknown."""
    figures = [(look.elapsed_seconds, getattr(look, name)) for look in looks]
    counted = [(seconds, count) for seconds, count in figures if count is not None]
    samples: list[records.Sample] = []
    for seconds, count in counted:
        sample = records.Sample(seconds - counted[0][0], int(count - counted[0][1]))
        last = samples[-1] if samples else records.Sample(0.0, 0)
        if sample.elapsed_seconds < last.elapsed_seconds or sample.moved_bytes < last.moved_bytes:
            raise ValueError("an observation has counts that run backwards")
        samples.append(sample)
    if len(samples) < 2 or samples[-1].moved_bytes == 0 or samples[-1].elapsed_seconds <= 0:
        return None
    final = samples[-1].moved_bytes
    end = next(index for index, each in enumerate(samples) if each.moved_bytes == final)
    # A pause of a window or more is the copy's end; a shorter one belongs to it.
    ended = samples[-1].elapsed_seconds - samples[end].elapsed_seconds >= WINDOW_SECONDS
    run = tuple(samples[: end + 1] if ended else samples)
    if records.run_rate(run) > lenient.LARGEST:
        raise ValueError("an observation has a rate that is out of range")
    return Transfer(run, pushes, counted[0][0])


def window_rates(run: Sequence[records.Sample]) -> list[float]:
    """Returns rates of consecutive windows of a second, bytes per second, without the rest."""
    window_list, start = [], run[0]
    for each in run[1:]:
        lasted = each.elapsed_seconds - start.elapsed_seconds
        if lasted >= WINDOW_SECONDS:
            window_list.append((each.moved_bytes - start.moved_bytes) / lasted)
            start = each
    return window_list


def details_of(
    by_side: Mapping[Side, Observations], sender: Side, transfer: Transfer, link: Link | None
) -> records.Details:
    total = transfer.run[-1].moved_bytes
    details: records.Details = {
        "window_rates_bytes_per_second": window_rates(transfer.run),
        **_time(by_side, transfer),
    }
    if link is not None:
        carried = {side: list(each.connections) for side, each in by_side.items()}
        details["sockets"] = watched_sockets.connection_details(
            *watched_sockets.ends(carried, sender, "client", total)
        )
    side: Side = sender if link is not None else "client"
    from_disk = _from_disk(by_side[side], total, side) if side in by_side else None
    if from_disk is not None:
        details["cache"] = {"side": side, "proven": True, "from_disk": from_disk}
    return details


def _from_disk(observations: Observations, total: int, side: Side) -> bool | None:
    """Whether the sender read the sent bytes from its disk; None: unknown.

    The counters of processes that did not read the sent bytes themselves (a mount's kernel does)
    prove nothing.
    """
    last = observations.io_looks[-1] if observations.io_looks else ProgramLook(0.0)
    fetched, read = last.disk_read_bytes or 0.0, last.read_bytes or 0.0
    if fetched >= FROM_DISK_RATIO * total:
        return True
    if read >= FROM_DISK_RATIO * total and fetched <= FROM_CACHE_RATIO * total:
        return False
    # At the client a disk wait may be a wait for the mount.
    return True if side == "server" and _disk_wait_ratio(observations) >= FROM_DISK_RATIO else None


def _disk_wait_ratio(observations: Observations) -> float:
    """Share of the looks at which a thread waited for a disk."""
    waits = [look.disk or 0.0 for look in observations.threads]
    return sum(waits) / len(waits) if waits else 0.0


def _time(by_side: Mapping[Side, Observations], transfer: Transfer) -> records.Details:
    """Returns the trace of the copy's program, and the looks of each host."""
    began, lasted = transfer.began_seconds, transfer.run[-1].elapsed_seconds
    bins = [
        each._replace(elapsed_seconds=round(each.elapsed_seconds - began, 6))
        for each in by_side["client" if "client" in by_side else "server"].bins
        if 0 <= each.elapsed_seconds - began <= lasted
    ]
    looks = {
        side: watched_sockets.look_columns(each, next(iter(each.connections), None), began, lasted)
        for side, each in by_side.items()
    }
    if bins:
        return {"trace": {"bins": bins, "requests": []}, "looks": looks}
    idle = [IDLE, IDLE._replace(elapsed_seconds=lasted)]
    return {"trace": {"bins": idle, "requests": [], "unseen": True}, "looks": looks}
