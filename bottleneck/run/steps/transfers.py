"""TCP between the hosts, or with a peer that is no agent: one stream, then four."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, replace
from functools import partial

from bottleneck.agents.hosts import Ran, StageError
from bottleneck.analysis.phrases import stage_text
from bottleneck.report.report import Step
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, Bench
from bottleneck.run.steps import turns
from bottleneck.target.target import TcpPeer
from probes.core.records import DROPS, Endpoint, Sample, Skipped
from probes.core.stage import LONG_BUDGET_SECONDS, Unavailable
from probes.net import transfer
from probes.programs import iperf3
from probes.stages import tcp

WHYS = ("what the network carries", "whether several connections carry more than one")
BOTH_WAYS = "what both directions carry at once"
PEER_SECONDS = 25.0
"""The same of one that is no agent: it may be busy."""
OR_PEER = "needs an agent on the server (use --agent ssh://HOST, or --tcp-peer iperf3://HOST)"
FAR_TIMES = 4.0
"""One stream's time over that of several: most of the first is its slow start."""
LEAST_BYTES, SLOW_SECONDS = 512 << 10, 6.0
"""A transfer that moved less says little of its path, and gets so much time."""


def measure_transfers(bench: Bench, clear: bool = False) -> None:
    """TCP between the agents, or with the peer that was named: one stream, then four.

    Several streams are left out where one fills a link of a standard rate: they carry no more.
    clear: the copies' own time says what holds them, so that several streams decide nothing.
    """
    for each in dict.fromkeys(map(bench.world.chosen, plan.TCP_STEPS)):
        several = each.streams > 1 and not bench.world.options.settings
        if several and (clear or _fills(bench, each.verb)):
            continue
        seconds = bench.world.times().tcp if each.streams == 1 else bench.world.times().tcp_many
        if bench.world.options.tcp_peer is not None:
            _with_peer(bench, bench.world.options.tcp_peer, each, seconds)
            continue
        _between_agents(bench, each, seconds)
    if bench.world.options.settings.get("both_ways"):
        _both_ways(bench)


def _between_agents(bench: Bench, each: tcp.Setting, seconds: float) -> None:
    """One transfer; on a slow path again, for as long as it takes to move enough."""
    setting = replace(each, seconds=seconds, address=bench.world.address, both_ways=False)
    step = bench.step("tcp", setting, "client")
    with bench.outcome(step, f"tcp {each.verb}{_many(each)}", WHYS[each.streams > 1]) as take:
        if bench.world.server is None:
            raise Unavailable(OR_PEER)
        if turns.dropped(bench, each.verb):
            raise Unavailable(f"{DROPS} in that direction")
        if not bench.world.alone("tcp"):
            bench.clock.need(seconds)
            # On the longest paths several streams would end within their slow start.
            if each.streams > 1 and bench.world.times().tcp > FAR_TIMES * seconds:
                raise Unavailable("out of time on a far path (use a larger --budget)")
        most_seconds = seconds + turns.HOLD_SECONDS
        with bench.world.server.hold("tcp", setting, bench.world.caller, most_seconds) as peer:
            there = replace(peer, host=bench.world.address)
            ran = bench.run(step, setting, there, most_seconds)
        few = each.streams == 1 and ran.samples[-1].moved_bytes < LEAST_BYTES
        few = few and not bench.world.options.settings
        if few and seconds < SLOW_SECONDS < turns.SHARE_OF_LEFT * bench.clock.left():
            _between_agents(bench, each, SLOW_SECONDS)
        else:
            take(ran)
    turns.ask_path(bench, bench.log.failed(step))


def _both_ways(bench: Bench) -> None:
    """A push and a pull at once: on a path that is not full duplex they take from each other."""
    usual = tcp.Setting(seconds=bench.world.times().tcp, address=bench.world.address)
    settings = [replace(bench.world.chosen(usual), verb=verb) for verb in transfer.VERBS]
    try:
        found = _at_once(bench, settings)
    except (StageError, Unavailable) as error:
        found = [error] * len(settings)
    for setting, ran in zip(settings, found, strict=True):
        step = bench.step("tcp", setting, "client")
        with bench.outcome(step, stage_text(step), BOTH_WAYS) as take:
            if isinstance(ran, Exception):
                raise ran
            take(ran)


def _at_once(bench: Bench, settings: Sequence[tcp.Setting]) -> list[Ran | Exception]:
    """What transfers from this host came to that were made at the same time, in their order."""
    if bench.world.server is None:
        raise Unavailable(NEEDS_AGENT)
    seconds = settings[0].seconds + turns.HOLD_SECONDS
    ended: list[queue.SimpleQueue[Ran | Exception]] = []
    with ExitStack() as stack:
        held = [
            bench.world.server.hold("tcp", each, bench.world.caller, seconds) for each in settings
        ]
        peers = [replace(stack.enter_context(each), host=bench.world.address) for each in held]
        bench.tell("tcp both ways")
        for setting, peer in zip(settings, peers, strict=True):
            ended.append(queue.SimpleQueue())
            told = partial(_told, bench, setting.verb)
            make = partial(
                bench.world.client.initiate, "tcp", setting, peer, seconds, bench.world.server, told
            )
            # Nobody waits for a thread where the run is interrupted.
            threading.Thread(target=_put, args=(make, ended[-1]), daemon=True).start()
        return [each.get() for each in ended]


def _told(bench: Bench, verb: str, sample: Sample) -> None:
    bench.tell(tcp.STAGE.name, sample=sample, part=verb)


def _put(make: Callable[[], Ran], into: queue.SimpleQueue[Ran | Exception]) -> None:
    try:
        into.put(make())
    except Exception as error:  # whatever it is, it is that transfer's end
        into.put(error)


def _fills(bench: Bench, verb: str) -> bool:
    """Whether one stream of a direction carried what a link of a standard rate does; noted."""
    if bench.world.options.budget_seconds >= LONG_BUDGET_SECONDS or bench.world.alone("tcp"):
        return False
    rate = plan.known_rates(bench.log).get(f"tcp.{verb}")
    link = None if rate is None else turns.link_that_fits(bench, rate)
    if link is not None:
        bench.note(f"tcp {verb} 4 connections: skipped: one stream fills the {link} link")
    return link is not None


def _many(wanted: tcp.Setting) -> str:
    return "" if wanted.streams == 1 else f" {wanted.streams} connections"


def _with_peer(bench: Bench, peer: TcpPeer, each: tcp.Setting, seconds: float) -> None:
    """One transfer with a program that is no agent: what its host is busy with stays unknown."""
    usual = iperf3.Setting(each.verb, each.streams, seconds=seconds, peer=peer.name)
    setting = bench.world.chosen(usual)
    step = Step("tcp", {**asdict(setting), "engine": "iperf3"}, "client")
    label = f"tcp {each.verb}{_many(each)} iperf3"
    with bench.outcome(step, label, WHYS[each.streams > 1]) as take:
        skipped = (made.reason for _, made in bench.log.entries() if isinstance(made, Skipped))
        if silence := next((reason for reason in skipped if iperf3.SILENT in reason), ""):
            raise Unavailable(silence)
        there = Endpoint(host=peer.host, port=peer.port)
        ran = bench.run(step, setting, there, seconds + PEER_SECONDS, both=False, engine="iperf3")
        take(ran, {"peer_is_target": _is_target(bench, peer)})


def _is_target(bench: Bench, peer: TcpPeer) -> bool:
    """Whether the peer runs on TARGET's host: else it speaks of another path."""
    try:
        found = socket.getaddrinfo(peer.host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bench.world.address in {str(each[4][0]) for each in found}
