"""While a copy runs, each host with an agent watches the copy's own TCP connections."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from bottleneck import sockets, typed
from bottleneck.hosts import Observation, Pair, Ran
from bottleneck.plan import Side
from bottleneck.report import Step
from probes.records import Endpoint

if TYPE_CHECKING:
    from bottleneck.bench import Bench

STAGES = ("smb-copy", "native-copy")
GRACE_SECONDS = 5.0
"""How much longer than its copy a watch may live."""


@dataclass
class Watching:
    """The watches of one run of a copy; none where there is nothing to be watched."""

    bench: Bench
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
        for side, pair in ((self.asking, own), (sockets.OTHER[self.asking], other)):
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
        seen = {}
        for side, watch in self.on.items():
            try:
                if watch.window is not None and not watch.trouble:
                    seen[side] = sockets.connections(watch.seen)
            except ValueError as error:
                watch.trouble = str(error)
            self._note(side, watch)
        if not seen:
            return ran
        pushes = self.step.setting["copy"].removeprefix("server.").startswith("push")
        sender = self.asking if pushes else sockets.OTHER[self.asking]
        shown = sockets.of_copy(seen, sender, self.asking, ran.samples[-1].moved_bytes)
        return replace(ran, details={**ran.details, "sockets": shown}) if shown else ran

    def _note(self, side: Side, watch: Observation) -> None:
        """Once a host: the next copy is watched no better."""
        if watch.trouble and side not in self.bench.unwatched:
            self.bench.unwatched.add(side)
            self.bench.note(f"{side}: the copies' connections were not watched: {watch.trouble}")


def _clock_seconds(counters: Any) -> float:
    """Of counters as a host told them. Errors: ValueError."""
    told = typed.mapping(counters, "counters").get("clock_seconds")
    return typed.number(told, "counters.clock_seconds")


@contextmanager
def watching(bench: Bench, step: Step, peer: Endpoint, seconds: float) -> Iterator[Watching]:
    """Has each host with an agent watch a copy's connections until left."""
    found = Watching(bench, step)
    with ExitStack() as stack:
        for side, setting in _settings(bench, found, peer, seconds).items():
            if side in bench.reached:
                watch = bench.reached[side].observe("sockets", setting, seconds + GRACE_SECONDS)
                found.on[side] = stack.enter_context(watch)
        yield found


def _settings(bench: Bench, found: Watching, peer: Endpoint, seconds: float) -> dict[Side, Any]:
    mount: dict[str, Any] = bench.share.facts.get("mount") or {}
    if found.step.stage not in STAGES or not bench.address or mount.get("remote") is False:
        return {}
    client = bench.facts["client"].interface if "client" in bench.facts else None
    addresses: dict[Side, str] = {
        "server": bench.address,
        "client": client.address if client else "",
    }
    own = sockets.port_of(mount.get("options", ""))
    port = peer.port or own or bench.options.target.port
    return dict(sockets.settings(sockets.OTHER[found.asking], addresses, port, seconds))
