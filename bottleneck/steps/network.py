"""The network's steps: each host's loopback, then TCP between the hosts in both directions."""

from __future__ import annotations

from dataclasses import replace

from bottleneck import plan
from bottleneck.bench import NEEDS_AGENT, Bench
from probes import loopback, tcp
from probes.records import Endpoint
from probes.stage import Unavailable

HOLD_SECONDS = 30.0
"""How much longer than its transfer a responder waits."""


EXTRA_UNTIL_RATIO = 0.4
"""Of the budget: later than that, more streams would cost a copy."""


def measure_loopbacks(bench: Bench) -> None:
    """TCP to oneself on each host that has an agent."""
    seconds = bench.times.loopback
    for side, host in bench.reached.items():
        setting = loopback.Setting("push", 1, seconds=seconds)
        step = bench.step("loopback", setting, side)
        with (
            bench.outcome(step, f"loopback {side}"),
            host.hold("loopback", setting, Endpoint(), seconds + HOLD_SECONDS) as peer,
        ):
            bench.initiate(step, setting, peer, seconds + HOLD_SECONDS, both=False)


def measure_transfers(bench: Bench) -> None:
    """TCP between the agents: one stream, then four."""
    for each in plan.TCP_STEPS:
        seconds = bench.times.tcp if each.streams == 1 else bench.times.tcp_many
        setting = tcp.Setting(each.verb, each.streams, seconds=seconds, address=bench.address)
        step = bench.step("tcp", setting, "client")
        with bench.outcome(step, f"tcp {each.verb} x{each.streams}"):
            if bench.server is None:
                raise Unavailable(NEEDS_AGENT)
            if each.streams > 1:
                bench.keep_time(EXTRA_UNTIL_RATIO)
            with bench.server.hold("tcp", setting, Endpoint(), seconds + HOLD_SECONDS) as peer:
                there = replace(peer, host=bench.address)
                bench.initiate(step, setting, there, seconds + HOLD_SECONDS)
