"""TCP steps between the hosts, or with an iperf3 server: one stream, then four."""

from __future__ import annotations

import socket
from dataclasses import asdict, dataclass, replace

from bottleneck.agents.hosts import Result
from bottleneck.analysis.phrases import stage_text
from bottleneck.login.target import TcpPeer
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.log import NEEDS_AGENT, Log, Task, Tasks, step_of
from bottleneck.run.steps.turns import HOLD_SECONDS, SHARE_OF_LEFT, Turns, link_that_fits
from bottleneck.run.world import World
from probes.core.records import DROPS, Endpoint, Skipped
from probes.core.stage import LONG_BUDGET_SECONDS, Unavailable
from probes.net import peers, transfer
from probes.programs import iperf3
from probes.stages import tcp

WHYS = ("what the network carries", "whether several connections carry more than one")
BOTH_WAYS = "what both directions carry at once"
PEER_SECONDS = 25.0
"""Time limit of a foreign peer (iperf3) beyond its transfer: it may be busy."""
OR_PEER = "needs an agent on the server (use --agent ssh://HOST, or --tcp-peer iperf3://HOST)"
FAR_TIMES = 4.0
"""Least time of one stream over that of several at which the latter is mostly slow start."""
LEAST_BYTES, SLOW_SECONDS = 512 << 10, 6.0
"""Bytes below which a transfer is repeated, and the time of the repetition."""


def _connections_suffix(setting: tcp.Setting) -> str:
    return "" if setting.streams == 1 else f" {setting.streams} connections"


@dataclass
class Transfers:
    """TCP steps between the agents, or with --tcp-peer."""

    turns: Turns
    world: World
    clock: Clock
    log: Log

    def measure(self, one: bool = True, several: bool = True) -> Tasks[None]:
        """Measures one stream, then four; one, several: which of them.

        Several streams are skipped if one fills a standard link: they would carry no more.
        """
        for each in dict.fromkeys(map(self.world.apply_choices, plan.TCP_STEPS)):
            usual = not self.world.options.settings
            is_made = one if each.streams == 1 else several
            if usual and (not is_made or each.streams > 1 and self._fills(each.verb)):
                continue
            seconds = self.world.times().tcp if each.streams == 1 else self.world.times().tcp_many
            if self.world.options.tcp_peer is not None:
                yield from self._run_iperf3(self.world.options.tcp_peer, each, seconds)
                continue
            yield from self._between_agents(each, seconds)
        if self.world.options.settings.get("both_ways"):
            yield from self._both_ways()

    def _between_agents(self, each: tcp.Setting, seconds: float) -> Tasks[None]:
        """Makes one transfer; on a slow path repeats it with more time."""
        setting = replace(each, seconds=seconds, address=self.world.address, both_ways=False)
        step = step_of("tcp", setting, "client")
        with self.log.attempt(
            step, f"tcp {each.verb}{_connections_suffix(each)}", WHYS[each.streams > 1]
        ) as add_run:
            if self.world.server is None:
                raise Unavailable(OR_PEER)
            if self.turns.drops_packets(each.verb):
                raise Unavailable(f"{DROPS} in that direction")
            if not self.world.is_only("tcp"):
                self.clock.require_seconds(seconds)
                # On the longest paths several streams would end within their slow start.
                if each.streams > 1 and self.world.times().tcp > FAR_TIMES * seconds:
                    raise Unavailable("out of time on a far path (use a larger --budget)")
            ran = yield Task(step, setting, self.world.caller, seconds + HOLD_SECONDS, "server")
            few = each.streams == 1 and ran.samples[-1].moved_bytes < LEAST_BYTES
            few = few and not self.world.options.settings
            if few and seconds < SLOW_SECONDS < SHARE_OF_LEFT * self.clock.remaining():
                yield from self._between_agents(each, SLOW_SECONDS)
            else:
                add_run(ran)
        yield from self.turns.ask_path(self.log.first_failure(step))

    def _both_ways(self) -> Tasks[None]:
        """Measures a push and a pull at once, which slow each other unless the path is duplex."""
        usual = tcp.Setting(seconds=self.world.times().tcp, address=self.world.address)
        settings = [replace(self.world.apply_choices(usual), verb=verb) for verb in transfer.VERBS]
        seconds = settings[0].seconds + HOLD_SECONDS
        steps = [step_of("tcp", each, "client") for each in settings]
        results: tuple[Result | Exception, ...] = (Unavailable(NEEDS_AGENT),) * len(steps)
        if self.world.server is not None:
            self.log.tell("tcp both ways")
            results = yield tuple(
                Task(step, setting, self.world.caller, seconds, "server")
                for step, setting in zip(steps, settings, strict=True)
            )
        for step, ran in zip(steps, results, strict=True):
            with self.log.attempt(step, stage_text(step), BOTH_WAYS) as add_run:
                if isinstance(ran, Exception):
                    raise ran
                add_run(ran)

    def _fills(self, verb: str) -> bool:
        """Whether one stream fills a standard link in a direction, which is noted."""
        if self.world.options.budget_seconds >= LONG_BUDGET_SECONDS or self.world.is_only("tcp"):
            return False
        rate = plan.known_rates(self.log).get(f"tcp.{verb}")
        link = None if rate is None else link_that_fits(self.world, rate)
        if link is not None:
            self.log.note(f"tcp {verb} 4 connections: skipped: one stream fills the {link} link")
        return link is not None

    def _run_iperf3(self, peer: TcpPeer, each: tcp.Setting, seconds: float) -> Tasks[None]:
        """Makes one transfer with iperf3, whose host's load stays unknown."""
        usual = iperf3.Setting(each.verb, each.streams, seconds=seconds, peer=peer.name)
        setting = self.world.apply_choices(usual)
        step = Step("tcp", {**asdict(setting), "engine": "iperf3"}, "client")
        label = f"tcp {each.verb}{_connections_suffix(each)} iperf3"
        with self.log.attempt(step, label, WHYS[each.streams > 1]) as add_run:
            skipped = (e.reason for _, e in self.log.entries() if isinstance(e, Skipped))
            if silence := next((reason for reason in skipped if iperf3.SILENT in reason), ""):
                raise Unavailable(silence)
            there = Endpoint(host=peer.host, port=peer.port)
            limit = seconds + PEER_SECONDS
            ran = yield Task(step, setting, there, limit, both=False, engine="iperf3")
            add_run(ran, {"peer_is_target": self._is_target(peer)})

    def _is_target(self, peer: TcpPeer) -> bool:
        """Whether the peer runs on TARGET's host, and so measures the same path."""
        try:
            addresses = socket.getaddrinfo(peer.host, None, type=socket.SOCK_STREAM)
        except OSError:
            return False
        return self.world.address in {peers.zoned_address(each[4]) for each in addresses}
