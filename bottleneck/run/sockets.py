"""What the copies' own TCP connections showed while a copy ran: who limited it, on both hosts.

Which sockets to watch, and what their watches saw put together; then the watches themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck.agents import protocol
from bottleneck.agents.hosts import Observation, Pair, Ran
from bottleneck.report.report import Step
from bottleneck.run.files import Files
from bottleneck.run.log import Log
from bottleneck.run.plan import Side
from bottleneck.run.world import World
from probes.core import typed
from probes.core.copy_trace import CountLook, L, SocketLook, ThreadLook, columns
from probes.core.records import SMB_PORTS, Details, Endpoint
from probes.sockets import limits
from probes.watch.connection_track import Connection
from probes.watch.look_rows import thinned
from probes.watch.socket_watch import Observed, Setting

OTHER: dict[Side, Side] = {"client": "server", "server": "client"}
LEAST_SHARE = 0.25
"""Of the copy's payload: a connection that carried less was not the copy's."""
TRANSLATED_RATIO = 0.1
"""How far two ends of one connection may count apart whose addresses are translated between."""
STAGES = ("smb-copy", "native-copy")
UNSEEN = "connections of the copies: not observed"
GRACE_SECONDS = 5.0
"""How much longer than its copy a watch may live."""


def settings(
    serving: Side, addresses: Mapping[Side, str], port: int, seconds: float
) -> dict[Side, Setting]:
    """What each host has to watch of a copy from and to a share on the serving one.

    addresses: each host's own as the other sees it; empty: not known, and any counts. port: 0 is
    SMB's own.
    """
    ports = tuple(dict.fromkeys(each for each in (port, *SMB_PORTS) if each))
    asking = OTHER[serving]
    return {
        serving: Setting(ports, True, addresses.get(asking, ""), seconds),
        asking: Setting(ports, False, addresses.get(serving, ""), seconds),
    }


def port_of(mount_options: str) -> int:
    """The server's port that a mount's options name; 0: they name none."""
    found = re.search(r"(?:^|,)port=(\d{1,5})(?:,|$)", mount_options)
    return int(found[1]) if found else 0


def _check(found: Iterable[Connection]) -> None:
    for each in found:
        for figures in (each.sender or {}, each.receiver or {}):
            for name, value in figures.items():
                typed.number(value, name)


def observed(seen: Any) -> Observed:
    """Parses the answer of a watch, which may be another host's. Errors: ValueError."""
    found = protocol.from_plain(Observed, seen)
    _check(found.connections)
    return found


def looks(seen: Observed, own: Connection | None, began: float, lasted: float) -> Details:
    """Turns a host's observations into columns: connection, threads, counters.

    own: the copy's connection there; None: it could not be identified. began, lasted: the copy's
    time span on the clock of the rows, seconds.
    """
    connection: Details = {}
    if own is not None:
        connection = {
            **_columns(SocketLook, own.rows, began, lasted),
            "send_buffer_bytes": own.send_buffer_bytes,
            "receive_buffer_bytes": own.receive_buffer_bytes,
            "segment_bytes": (own.sender or {}).get("segment_bytes"),
        }
    return {
        "connection": connection,
        "threads": _columns(ThreadLook, seen.threads, began, lasted),
        "counts": _columns(CountLook, seen.counts, began, lasted, around=True),
        "cpu_ratio": seen.cpu_ratio,
    }


def _columns(
    kind: type[L], looks: Sequence[L], began: float, lasted: float, around: bool = False
) -> dict[str, list[float | None]]:
    """Columns of the looks in a copy's time span; times count from its start.

    around: moves looks outside the span to its start or end, instead of dropping them.
    """
    times = [look.elapsed_seconds - began for look in looks]
    kept = [
        look._replace(elapsed_seconds=round(min(max(at, 0.0), lasted), 6))
        for at, look in zip(times, looks, strict=True)
        if around or 0 <= at <= lasted
    ]
    return columns(kind, thinned(kept))


def ends(
    seen: Mapping[Side, list[Connection]], sender: Side, asking: Side, moved_bytes: int
) -> tuple[Connection | None, Connection | None]:
    """The copy's connection at its sender and at its receiver; None: not seen there.

    seen: the connections of each host that watched. sender: the host that the payload came from.
    asking: the host that connected to the other. moved_bytes: the copy's payload.
    """
    receiver = OTHER[sender]
    least = LEAST_SHARE * moved_bytes
    sent = [each for each in seen.get(sender, ()) if each.sent_bytes > least]
    got = [each for each in seen.get(receiver, ()) if each.received_bytes > least]
    sent.sort(key=lambda each: -each.sent_bytes)
    got.sort(key=lambda each: -each.received_bytes)
    one, other = _pair(sent, got)
    if one is None and other is None:
        # Not one connection: the host that connected chose its peer, so its own is the copy's.
        one = sent[0] if sent and (asking == sender or not got) else None
        other = got[0] if got and one is None else None
    return one, other


def _pair(
    sent: list[Connection], got: list[Connection]
) -> tuple[Connection | None, Connection | None]:
    """The two ends of the connection that carried the most; none where they do not fit."""
    for one in sent:
        for other in got:
            if (one.local, one.peer) == (other.peer, other.local):
                return one, other
    if len(sent) == len(got) == 1:
        one, other = sent[0], got[0]
        apart = abs(one.sent_bytes - other.received_bytes)
        if apart <= TRANSLATED_RATIO * max(one.sent_bytes, other.received_bytes):
            return one, other
    return None, None


def connection_details(one: Connection | None, other: Connection | None) -> Details:
    """What a copy's connection showed at its ends; empty where neither was seen."""
    if one is None and other is None:
        return {}
    congestion_control = one.congestion_control if one else None
    sender, receiver = (one.sender if one else None), (other.receiver if other else None)
    server = next((each.process for each in (one, other) if each and each.process), None)
    known = {
        **limits.step_details(sender or {}, receiver or {}, congestion_control),
        "sender_seen": one is not None,
        "receiver_seen": other is not None,
        "send_buffer_bytes": one.send_buffer_bytes if one else None,
        "receive_buffer_bytes": other.receive_buffer_bytes if other else None,
        "process": server,
    }
    return {name: value for name, value in known.items() if value is not None}


@dataclass
class Watching:
    """The watches of one run of a copy; none where there is nothing to be watched."""

    world: World
    files: Files
    log: Log
    step: Step
    on: dict[Side, Observation] = field(default_factory=dict)

    @property
    def asking(self) -> Side:
        """The host that connects to the other one, which serves the share."""
        return "client" if self.step.initiator == "client" else "server"

    def copied(self, own: Pair, other: Pair | None) -> None:
        """Ends the watches while the copy's connection is still there.

        own, other: the counters at both ends of the copy's window, of the host that runs it and
        of the other one: which time was the copy's, by the clock of each.
        """
        for side, pair in ((self.asking, own), (OTHER[self.asking], other)):
            if side not in self.on or not pair:
                continue
            try:
                began, ended = map(_clock_seconds, pair)
            except ValueError as error:
                self.on[side].trouble = str(error)
            else:
                self.on[side].window = began, ended
        # A quick copy may have come and gone between two looks, and its connection goes with it.
        for watch in self.on.values():
            watch.end()

    def shown(self, ran: Ran) -> Ran:
        """The run with what its connection showed, where that was seen; after the watches' end."""
        seen: dict[Side, Observed] = {}
        for side, watch in self.on.items():
            try:
                if watch.window is not None and not watch.trouble:
                    seen[side] = observed(watch.reply)
            except ValueError as error:
                watch.trouble = str(error)
            self._note(side, watch)
        if not seen:
            return ran
        pushes = self.step.setting["copy"].removeprefix("server.").startswith("push")
        sender = self.asking if pushes else OTHER[self.asking]
        moved_bytes = ran.samples[-1].moved_bytes
        carried = {side: list(each.connections) for side, each in seen.items()}
        one, other = ends(carried, sender, self.asking, moved_bytes)
        own = {sender: one, OTHER[sender]: other}
        shown = connection_details(one, other)
        details = {**ran.details, "sockets": shown} if shown else dict(ran.details)
        if "trace" in details:
            try:
                details["looks"] = self._timed(details["trace"], seen, own)
            except ValueError as error:
                self.log.note(f"{self.asking}: the copy's own times are not to be read: {error}")
        return replace(ran, details=details)

    def _timed(
        self, trace: Any, seen: Mapping[Side, Observed], own: Mapping[Side, Connection | None]
    ) -> Details:
        """The looks by the clock of the copy's own times. Errors: ValueError."""
        began, lasted = (
            typed.number(typed.mapping(trace, "trace").get(name), f"trace.{name}")
            for name in ("clock_seconds", "lasted_seconds")
        )
        found: Details = {}
        for side, each in seen.items():
            window = self.on[side].window
            # The host that makes the copy times it by the clock of its looks; the other one was
            # read right before the copy began.
            late = began - window[0] if side == self.asking and window else 0.0
            found[side] = looks(each, own[side], late, lasted)
        return found

    def _note(self, side: Side, watch: Observation) -> None:
        """Once a host: the next copy is watched no better."""
        what = f"{side}: {UNSEEN}"
        if watch.trouble and not any(each.startswith(what) for each in self.log.notes):
            self.log.note(f"{what}: {watch.trouble}")


def _clock_seconds(counters: Any) -> float:
    """Of counters as a host told them. Errors: ValueError."""
    told = typed.mapping(counters, "counters").get("clock_seconds")
    return typed.number(told, "counters.clock_seconds")


@contextmanager
def watching(
    world: World, files: Files, log: Log, step: Step, peer: Endpoint, seconds: float
) -> Iterator[Watching]:
    """Has each host with an agent watch a copy's connections until left."""
    found = Watching(world, files, log, step)
    with ExitStack() as stack:
        for side, setting in _settings(found, peer, seconds).items():
            if side in world.hosts:
                watch = world.hosts[side].observe("sockets", setting, seconds + GRACE_SECONDS)
                found.on[side] = stack.enter_context(watch)
        yield found


def _settings(found: Watching, peer: Endpoint, seconds: float) -> dict[Side, Any]:
    world, mount = found.world, found.files.share.facts.get("mount") or {}
    known = world.address or found.step.stage == "native-copy"
    if found.step.stage not in STAGES or not known or mount.get("remote") is False:
        return {}
    addresses = {side: world.address_of(side) for side in OTHER}
    own = port_of(mount.get("options", ""))
    port = peer.port or own or world.options.target.port
    watches = settings(OTHER[found.asking], addresses, port, seconds)
    folders = {side: world.facts[side].folder for side in world.facts}
    devices = {side: folder.device for side, folder in folders.items() if folder}
    return {side: replace(each, device=devices.get(side)) for side, each in watches.items()}
