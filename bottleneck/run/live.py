"""Watches the copies that run on this host: each second their rates and shares of time.

A process of its own watches them and computes their lines, so that little data is exchanged.
"""

from __future__ import annotations

import gc
import json
import os
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from bottleneck.analysis.attribution.attribution import attribution_of
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.attribution.trace import read
from bottleneck.analysis.finding import TimeShare
from bottleneck.run import watched_copy, watched_sockets
from bottleneck.run.plan import Side
from bottleneck.text.safe import safe
from probes.core.stage import Refused, Unavailable
from probes.system.child import Child, spawn
from probes.system.events import Tell
from probes.watch import live_copies
from probes.watch.live_copies import LiveCopy
from probes.watch.running_copies import Running, require_procfs, sends_more
from probes.watch.socket_watch import Observations

COST_SECONDS = 10
MOST_BYTES = 1 << 16
LONGEST_NAME = 60


@dataclass(frozen=True)
class Line:
    """State of one copy."""

    name: str
    """Safe text: `push to 10.0.0.2, smbclient 4711`."""
    bytes_per_second: float
    """Rate in the last second."""
    time: tuple[TimeShare, ...]
    """Shares of its time, the largest first; empty: too few observations."""


@dataclass
class Feed:
    """Reports of the watching process."""

    child: Child
    rest: bytes = b""
    used: deque[tuple[float, float]] = field(default_factory=lambda: deque(maxlen=COST_SECONDS))
    """Moments of the last seconds, with the CPU seconds of both processes until then."""
    unwatched: int = 0
    """Active connections that are not watched, or not yet."""
    ended: bool = False
    """Whether the requested process has ended."""

    def take(self) -> list[Line] | None:
        """Returns the copies of the latest second; None: it is incomplete. Waits for data.

        Raises:
            Refused, Unavailable: the error that ended the watch.
        """
        chunk = os.read(self.child.events_fd, MOST_BYTES)
        *lines, self.rest = (self.rest + chunk).split(b"\n")
        if not lines:
            if not chunk:
                raise Unavailable("the watch ended")
            return None
        event = json.loads(lines[-1])
        self.ended = "ended" in event
        if self.ended:
            return None
        if "lines" not in event:
            raise _end_error(event)
        self.unwatched = event["unwatched"]
        self.used.append((time.monotonic(), event["cpu_seconds"] + time.process_time()))
        return [
            Line(name, rate, tuple(TimeShare(*each) for each in shares))
            for name, rate, shares in event["lines"]
        ]

    @property
    def cost_ratio(self) -> float:
        """Share of a core that both processes took in the last seconds."""
        (began, first), (now, last) = self.used[0], self.used[-1]
        return (last - first) / max(1.0, now - began)


def _end_error(event: dict[str, Any]) -> Exception:
    if "refused" in event:
        return Refused(event["refused"]["kind"], event["refused"]["text"])
    return Unavailable(str(event.get("skipped") or event.get("failed")))


@contextmanager
def open_feed(pid: int, address: str) -> Iterator[Feed]:
    """Watches during the block; pid, address: choose the copies (running_copies.CopyFilter).

    Raises Unavailable: this system does not show other processes.
    """
    require_procfs()
    # Existing objects stay: collecting them again and again would cost more than the watch.
    gc.freeze()
    child = spawn(lambda tell, control_fd: _watch(tell, control_fd, pid, address))
    try:
        yield Feed(child)
    finally:
        os.close(child.control_fd)
        os.close(child.events_fd)
        child.kill()
        child.wait()
        gc.unfreeze()


def _watch(tell: Tell, control_fd: int, pid: int, address: str) -> None:
    times: dict[bytes, list[list[Any]]] = {}

    def emit(copies: tuple[LiveCopy, ...], unwatched: int, cpu_seconds: float) -> None:
        for each in copies:
            if each.observed is not None:
                time_shares = shares(each.running, each.observed)
                times[each.identity] = [[e.component, e.side, e.ratio] for e in time_shares]
        for identity in times.keys() - {each.identity for each in copies}:
            del times[identity]
        lines = [(_name(e.running), e.bytes_per_second, times.get(e.identity, ())) for e in copies]
        tell({"lines": lines, "unwatched": unwatched, "cpu_seconds": cpu_seconds})

    live_copies.watch(emit, control_fd, pid, address)
    tell({"ended": True})


def shares(running: Running, observed: Observations) -> tuple[TimeShare, ...]:
    """Returns the shares of a copy's time by one host's observations; empty: too few."""
    here = watched_copy.side_of(running)
    transfer = watched_copy.moved_in(observed, here, running.link)
    if transfer is None:
        return ()
    sender: Side = "client" if transfer.pushes else "server"
    trace = read(watched_copy.details_of({here: observed}, sender, transfer, running.link), here)
    if trace is None:
        return ()
    copy = TimedCopy(
        trace=trace,
        pull=sender != here,
        asking=here,
        serving=watched_sockets.OTHER[here],
        moved_bytes=transfer.run[-1].moved_bytes,
        flush_seconds=0.0,
        usages={},
        link_rates={},
        flushes=None,
        requests=0.0,
        watched=True,
    )
    attribution = attribution_of(copy)
    return () if attribution is None else attribution.shares


def _name(running: Running) -> str:
    """Returns direction, peer and program of a copy: `push to 10.0.0.2, smbclient 4711`."""
    link = running.link
    assert link is not None
    sends = bool(sends_more(running))
    verb = "push" if sends != link.serving else "pull"
    program = running.program or ("mount" if link.kernel else f"port {link.own_port}")
    number = f" {running.pids[0]}" if running.pids and not link.kernel else ""
    way = "to" if sends else "from"
    return safe(f"{verb} {way} {link.peer_address}, {program}{number}", LONGEST_NAME)
