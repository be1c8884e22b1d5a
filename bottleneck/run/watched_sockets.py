"""Watches the TCP connections of copies on both hosts, and combines the observations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from bottleneck.agents import protocol
from bottleneck.agents.hosts import Observation, Pair, Result
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
from probes.watch.socket_watch import Observations, Setting
from probes.watch.trace_rows import thinned_rows

OTHER: dict[Side, Side] = {"client": "server", "server": "client"}
LEAST_SHARE = 0.25
"""Share of the copy's payload below which a connection is not the copy's."""
TRANSLATED_RATIO = 0.1
"""Largest relative difference of the counts at both ends of one connection behind NAT."""
STAGES = ("smb-copy", "native-copy")
UNSEEN = "connections of the copies: not observed"
GRACE_SECONDS = 5.0
"""Time that a watch may live beyond its copy."""


def settings(
    serving: Side, addresses: Mapping[Side, str], port: int, seconds: float
) -> dict[Side, Setting]:
    """Returns what each host watches of a copy from or to a share on the serving host.

    addresses: address of each host as the other sees it; empty: unknown, any matches. port: 0:
    SMB's own.
    """
    ports = tuple(dict.fromkeys(each for each in (port, *SMB_PORTS) if each))
    asking = OTHER[serving]
    return {
        serving: Setting(ports, True, addresses.get(asking, ""), seconds),
        asking: Setting(ports, False, addresses.get(serving, ""), seconds),
    }


def port_of(mount_options: str) -> int:
    """Returns the server's port in a mount's options; 0: there is none."""
    match = re.search(r"(?:^|,)port=(\d{1,5})(?:,|$)", mount_options)
    return int(match[1]) if match else 0


def _check(connections: Iterable[Connection]) -> None:
    for each in connections:
        for figures in (each.sender or {}, each.receiver or {}):
            for name, value in figures.items():
                typed.number(value, name)


def parse_observations(reply: Any) -> Observations:
    """Parses the answer of a watch, which may be another host's. Errors: ValueError."""
    observation = protocol.from_plain(Observations, reply)
    _check(observation.connections)
    return observation


def look_columns(
    observation: Observations, local: Connection | None, began: float, lasted: float
) -> Details:
    """Turns a host's observations into columns: connection, threads, counters.

    local: the copy's connection there; None: not identified. began, lasted: the copy's time span on
    the clock of the rows, seconds.
    """
    connection: Details = {}
    if local is not None:
        connection = {
            **_columns(SocketLook, local.rows, began, lasted),
            "send_buffer_bytes": local.send_buffer_bytes,
            "receive_buffer_bytes": local.receive_buffer_bytes,
            "segment_bytes": (local.sender or {}).get("segment_bytes"),
        }
    return {
        "connection": connection,
        "threads": _columns(ThreadLook, observation.threads, began, lasted),
        "counts": _columns(CountLook, observation.counts, began, lasted, around=True),
        "cpu_ratio": observation.cpu_ratio,
    }


def _columns(
    kind: type[L], looks: Sequence[L], began: float, lasted: float, around: bool = False
) -> dict[str, list[float | None]]:
    """Columns of the looks in a copy's time span; times count from its start.

    around: moves looks outside the span to its start or end, instead of dropping them.
    """
    times = [look.elapsed_seconds - began for look in looks]
    shifted = [
        look._replace(elapsed_seconds=round(min(max(moment, 0.0), lasted), 6))
        for moment, look in zip(times, looks, strict=True)
        if around or 0 <= moment <= lasted
    ]
    return columns(kind, thinned_rows(shifted))


def ends(
    connections: Mapping[Side, list[Connection]], sender: Side, asking: Side, moved_bytes: int
) -> tuple[Connection | None, Connection | None]:
    """Returns the copy's connection at its sender and at its receiver; None: not seen there.

    connections: those of each watching host. sender: host that sent the payload. asking: host that
    connected to the other. moved_bytes: the copy's payload.
    """
    receiver = OTHER[sender]
    threshold = LEAST_SHARE * moved_bytes
    sent = [each for each in connections.get(sender, ()) if each.sent_bytes > threshold]
    got = [each for each in connections.get(receiver, ()) if each.received_bytes > threshold]
    sent.sort(key=lambda each: -each.sent_bytes)
    got.sort(key=lambda each: -each.received_bytes)
    one, other = _pair(sent, got)
    if one is None and other is None:
        # The two do not match: the host that connected chose its peer, so its own is the copy's.
        one = sent[0] if sent and (asking == sender or not got) else None
        other = got[0] if got and one is None else None
    return one, other


def _pair(
    senders: list[Connection], receivers: list[Connection]
) -> tuple[Connection | None, Connection | None]:
    """Returns both ends of the connection that carried the most; None: they do not match."""
    for sender_end in senders:
        for receiver_end in receivers:
            if (sender_end.local, sender_end.peer) == (receiver_end.peer, receiver_end.local):
                return sender_end, receiver_end
    if len(senders) == len(receivers) == 1:
        sender_end, receiver_end = senders[0], receivers[0]
        apart = abs(sender_end.sent_bytes - receiver_end.received_bytes)
        if apart <= TRANSLATED_RATIO * max(sender_end.sent_bytes, receiver_end.received_bytes):
            return sender_end, receiver_end
    return None, None


def connection_details(sender_end: Connection | None, receiver_end: Connection | None) -> Details:
    """Returns figures of a copy's connection at both ends; empty: neither was seen."""
    if sender_end is None and receiver_end is None:
        return {}
    congestion_control = sender_end.congestion_control if sender_end else None
    sender, receiver = (
        (sender_end.sender if sender_end else None),
        (receiver_end.receiver if receiver_end else None),
    )
    figures = {
        **limits.step_details(sender or {}, receiver or {}, congestion_control),
        "sender_seen": sender_end is not None,
        "receiver_seen": receiver_end is not None,
        "send_buffer_bytes": sender_end.send_buffer_bytes if sender_end else None,
        "receive_buffer_bytes": receiver_end.receive_buffer_bytes if receiver_end else None,
        "process": next(
            (each.process for each in (sender_end, receiver_end) if each and each.process), None
        ),
    }
    return {name: value for name, value in figures.items() if value is not None}


@dataclass
class Watching:
    """Observations of one run of a copy on each host."""

    world: World
    files: Files
    log: Log
    step: Step
    watches: dict[Side, Observation] = field(default_factory=dict)

    @property
    def asker(self) -> Side:
        """Host that connects to the one that serves the share."""
        return "client" if self.step.initiator == "client" else "server"

    def finish(self, initiator: Pair, responder: Pair | None) -> None:
        """Ends the watches while the copy's connection is still there.

        initiator, responder: counters of each host at both ends of the copy's window, which give
        the copy's time by the clock of each.
        """
        for side, pair in ((self.asker, initiator), (OTHER[self.asker], responder)):
            if side not in self.watches or not pair:
                continue
            try:
                began, ended = map(_clock_seconds, pair)
            except ValueError as error:
                self.watches[side].trouble = str(error)
            else:
                self.watches[side].window = began, ended
        # The connection of a quick copy may be gone before the next look.
        for watch in self.watches.values():
            watch.end()

    def annotate(self, ran: Result) -> Result:
        """Returns the run with the observations of its connection, after the watches' end."""
        observations: dict[Side, Observations] = {}
        for side, watch in self.watches.items():
            try:
                if watch.window is not None and not watch.trouble:
                    observations[side] = parse_observations(watch.reply)
            except ValueError as error:
                watch.trouble = str(error)
            self._note(side, watch)
        if not observations:
            return ran
        pushes = self.step.setting["copy"].removeprefix("server.").startswith("push")
        sender = self.asker if pushes else OTHER[self.asker]
        moved_bytes = ran.samples[-1].moved_bytes
        carried = {side: list(each.connections) for side, each in observations.items()}
        one, other = ends(carried, sender, self.asker, moved_bytes)
        by_side = {sender: one, OTHER[sender]: other}
        figures = connection_details(one, other)
        details = {**ran.details, "sockets": figures} if figures else dict(ran.details)
        if "trace" in details:
            try:
                details["looks"] = self._timed_looks(details["trace"], observations, by_side)
            except ValueError as error:
                self.log.note(f"{self.asker}: the copy's own times are not to be read: {error}")
        return replace(ran, details=details)

    def _timed_looks(
        self,
        trace: Any,
        observations: Mapping[Side, Observations],
        connections: Mapping[Side, Connection | None],
    ) -> Details:
        """Returns the looks by the clock of the copy's own times. Errors: ValueError."""
        began, lasted = (
            typed.number(typed.mapping(trace, "trace").get(name), f"trace.{name}")
            for name in ("clock_seconds", "lasted_seconds")
        )
        by_side: Details = {}
        for side, each in observations.items():
            window = self.watches[side].window
            # The initiator's rows have the copy's clock; the other window began with the copy.
            late = began - window[0] if side == self.asker and window else 0.0
            by_side[side] = look_columns(each, connections[side], late, lasted)
        return by_side

    def _note(self, side: Side, watch: Observation) -> None:
        """Notes a host's trouble, once: the next copy will not be watched either."""
        what = f"{side}: {UNSEEN}"
        if watch.trouble and not any(each.startswith(what) for each in self.log.notes):
            self.log.note(f"{what}: {watch.trouble}")


def _clock_seconds(counters: Any) -> float:
    """Returns the clock in a host's plain counters. Errors: ValueError."""
    value = typed.mapping(counters, "counters").get("clock_seconds")
    return typed.number(value, "counters.clock_seconds")


@contextmanager
def watch_copy(
    world: World, files: Files, log: Log, step: Step, peer: Endpoint, seconds: float
) -> Iterator[Watching]:
    """Has each host with an agent watch a copy's connections during the block."""
    watches = Watching(world, files, log, step)
    with ExitStack() as stack:
        for side, setting in _settings(watches, peer, seconds).items():
            if side in world.hosts:
                watch = world.hosts[side].observe("sockets", setting, seconds + GRACE_SECONDS)
                watches.watches[side] = stack.enter_context(watch)
        yield watches


def _settings(watched: Watching, peer: Endpoint, seconds: float) -> dict[Side, Any]:
    world, mount = watched.world, watched.files.share.facts.get("mount") or {}
    is_reachable = world.address or watched.step.stage == "native-copy"
    if watched.step.stage not in STAGES or not is_reachable or mount.get("remote") is False:
        return {}
    addresses = {side: world.address_of(side) for side in OTHER}
    port = peer.port or port_of(mount.get("options", "")) or world.options.target.port
    watches = settings(OTHER[watched.asker], addresses, port, seconds)
    folders = {side: world.facts[side].folder for side in world.facts}
    devices = {side: folder.device for side, folder in folders.items() if folder}
    return {side: replace(each, device=devices.get(side)) for side, each in watches.items()}
