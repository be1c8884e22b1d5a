"""TCP between the hosts in both directions, or with a peer that is no agent."""

from __future__ import annotations

import socket
from dataclasses import asdict, replace

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.report import Step
from bottleneck.steps.turns import HOLD_SECONDS, link_that_fits
from bottleneck.target import TcpPeer
from probes import tcp, tcp_by_ttcp
from probes.drivers import iperf3
from probes.records import Endpoint
from probes.stage import LONG_BUDGET_SECONDS, Unavailable

WHYS = ("what the network carries", "whether several streams carry more than one")
PEER_SECONDS = 40.0
"""The same of a peer that is no agent: it may be busy, or wait for somebody to start it."""
EXTRA_UNTIL_RATIO = 0.3
"""Of the budget: later than that, more streams would cost a copy."""
OR_PEER = f"{NEEDS_AGENT}, or a peer that is there already: --tcp-peer iperf3://HOST"


def measure_transfers(bench: Bench) -> None:
    """TCP between the agents, or with the peer that was named: one stream, then four.

    Several streams are left out where one fills a link of a standard rate: they carry no more.
    """
    for each in plan.TCP_STEPS:
        if each.streams > 1 and _fills(bench, each.verb):
            continue
        bench.ledger.why = WHYS[each.streams > 1]
        seconds = bench.times.tcp if each.streams == 1 else bench.times.tcp_many
        if bench.options.tcp_peer is not None:
            _with_peer(bench, bench.options.tcp_peer, each, seconds)
            continue
        setting = tcp.Setting(each.verb, each.streams, seconds=seconds, address=bench.address)
        step = bench.step("tcp", setting, "client")
        with bench.outcome(step, f"tcp {each.verb} x{each.streams}"):
            if bench.server is None:
                raise Unavailable(OR_PEER)
            if each.streams > 1:
                bench.keep_time(EXTRA_UNTIL_RATIO)
            with bench.server.hold("tcp", setting, bench.caller, seconds + HOLD_SECONDS) as peer:
                there = replace(peer, host=bench.address)
                bench.initiate(step, setting, there, seconds + HOLD_SECONDS)


def _fills(bench: Bench, verb: str) -> bool:
    """Whether one stream of a direction carried what a link of a standard rate does; noted."""
    if bench.options.budget_seconds >= LONG_BUDGET_SECONDS or bench.alone("tcp"):
        return False
    rate = plan.known_rates(bench.ledger).get(f"tcp.{verb}")
    link = None if rate is None else link_that_fits(bench, rate)
    if link is not None:
        bench.note(f"tcp {verb} x4: left out, since one stream fills a link of {link}")
    return link is not None


def _with_peer(bench: Bench, peer: TcpPeer, each: plan.TcpStep, seconds: float) -> None:
    """One transfer with a program that is no agent: what its host is busy with stays unknown."""
    if peer.engine == "ttcp" and each.streams > 1:
        return  # it knows one stream alone
    module = iperf3 if peer.engine == "iperf3" else tcp_by_ttcp
    setting = module.Setting(each.verb, each.streams, seconds=seconds, peer=peer.name)
    step = Step("tcp", {**asdict(setting), "engine": peer.engine}, "client")
    with bench.outcome(step, f"tcp {each.verb} x{each.streams} {peer.engine}"):
        there = Endpoint(host=peer.host, port=peer.port)
        if peer.engine == "ttcp" and each.verb == "pull":
            asked = f"waiting for {peer.host}: start there, towards this host: ttcp -t -s"
            bench.tell(asked, asks=True)
        ran = bench.run(
            step, setting, there, seconds + PEER_SECONDS, both=False, engine=peer.engine
        )
        bench.take(step, ran, {"peer_is_target": _is_target(bench, peer)})


def _is_target(bench: Bench, peer: TcpPeer) -> bool:
    """Whether the peer runs on TARGET's host: else it speaks of another path."""
    try:
        found = socket.getaddrinfo(peer.host, None, type=socket.SOCK_STREAM)
    except OSError:
        return False
    return bench.address in {str(each[4][0]) for each in found}
