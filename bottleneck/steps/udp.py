"""Datagrams at a pace below what TCP carries: the path's own loss, order and jitter (stage udp)."""

from __future__ import annotations

from dataclasses import asdict, replace

from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps.allowance import alone, seconds_for
from bottleneck.steps.carried import carried
from bottleneck.steps.network import HOLD_SECONDS
from probes import udp
from probes.records import Endpoint
from probes.stage import Unavailable

USUAL_SECONDS = 1.5
SHARE_OF_TCP = 0.8
"""Below what the path carries: what is lost then is not lost to our own pressure."""
LEAST_DATAGRAMS = 20
MOST_BYTES_PER_SECOND = 100e6
"""More than that this tool cannot send in datagrams of a packet each on every host."""


def measure_datagrams(bench: Bench) -> None:
    """Both directions."""
    for at, verb in enumerate(udp.VERBS):
        seconds = seconds_for(bench, udp.NAME, USUAL_SECONDS, parts=len(udp.VERBS) - at + 1)
        if seconds is None:
            return
        _measure(bench, verb, seconds)


def _measure(bench: Bench, verb: str, seconds: float) -> None:
    setting = udp.Setting(verb, seconds=seconds, address=bench.address)
    step = bench.step(udp.NAME, setting, "client")
    with bench.outcome(step, f"datagrams {verb}", optional=not alone(bench, udp.NAME)):
        if bench.server is None:
            raise Unavailable(NEEDS_AGENT)
        pace = min(MOST_BYTES_PER_SECOND, SHARE_OF_TCP * carried(bench, verb).bytes_per_second)
        if pace * seconds < LEAST_DATAGRAMS * setting.payload_bytes:
            raise Unavailable("TCP carries too little that way for datagrams to tell anything")
        setting = replace(setting, bytes_per_second=pace)
        # the pace is not chosen before TCP's is known
        step.setting.update(asdict(setting))
        most_seconds = seconds + HOLD_SECONDS
        with bench.server.hold(udp.NAME, setting, Endpoint(), most_seconds) as peer:
            there = replace(peer, host=bench.address)
            bench.initiate(step, setting, there, most_seconds)
