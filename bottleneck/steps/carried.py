"""What TCP carries between the hosts by the system's own tuning: it sizes what comes after it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps.network import HOLD_SECONDS
from probes import tcp
from probes.records import Details, Endpoint, Measured, rates, run_rate
from probes.stage import Unavailable

TASTE_SECONDS, MOST_TASTE_SECONDS = 0.6, 4.0
ROUND_TRIPS = 25
"""That a transfer needs at least to show what the path carries: a slow start takes ten."""


@dataclass(frozen=True)
class Carried:
    """One direction of the path."""

    bytes_per_second: float
    rtt_seconds: float | None
    """Least of its sockets; None: their system does not tell."""


def carried(bench: Bench, verb: str) -> Carried:
    """By the run's own tcp steps, the fastest of them; where there are none, by a short taste.

    Raises Unavailable without an agent on the server, StageError where the taste breaks.
    """
    found = [
        Carried(rates(outcome).median, _rtt_seconds(outcome.details))
        for step, outcome in bench.ledger.entries()
        if isinstance(outcome, Measured)
        and (step.stage, step.initiator) == (tcp.NAME, "client")
        and (step.setting.get("verb"), step.setting.get("engine")) == (verb, None)
    ]
    if found:
        return max(found, key=lambda each: each.bytes_per_second)
    return _taste(bench, verb)


def _taste(bench: Bench, verb: str) -> Carried:
    """A short one, and where round trips are long a longer one: the first is their slow start."""
    first = _transfer(bench, verb, TASTE_SECONDS)
    needed = min(MOST_TASTE_SECONDS, ROUND_TRIPS * (first.rtt_seconds or 0.0))
    return first if needed <= TASTE_SECONDS else _transfer(bench, verb, needed)


def _transfer(bench: Bench, verb: str, seconds: float) -> Carried:
    if bench.server is None:
        raise Unavailable(NEEDS_AGENT)
    setting = tcp.Setting(verb, seconds=seconds, address=bench.address)
    most_seconds = seconds + HOLD_SECONDS
    with bench.server.hold(tcp.NAME, setting, Endpoint(), most_seconds) as peer:
        there = replace(peer, host=bench.address)
        ran = bench.run(bench.step(tcp.NAME, setting, "client"), setting, there, most_seconds)
    return Carried(run_rate(ran.samples), _rtt_seconds(ran.details))


def _rtt_seconds(details: Details) -> float | None:
    limits = details.get("limits")
    told = limits.get("min_rtt_seconds") if isinstance(limits, dict) else None
    return told if isinstance(told, float) and told > 0 else None
