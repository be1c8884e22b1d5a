"""What a message costs between the hosts (stage latency)."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps.allowance import alone, seconds_for
from probes import latency
from probes.records import Endpoint
from probes.stage import Unavailable

USUAL_SECONDS = 3.0
LEAST_BUDGET_SECONDS = 45.0
"""A shorter run needs the time for the copies."""
LONGER = "give a larger --budget"
MOST_TIMES, MOST_TIMES_ALONE = 1.5, 4.0
"""How much longer a long path may make it, beside the copies and by itself."""
ROUND_TRIPS = 200
"""That the stage has time for at least: a long path needs them for the bandwidth to show."""
HOLD_SECONDS = 30.0
"""How much longer than its time a responder waits: a slow path needs it for the least there is."""


def measure_latency(bench: Bench) -> None:
    """Messages from the client to the server's agent."""
    by_itself = alone(bench, latency.NAME)
    if bench.options.budget_seconds < LEAST_BUDGET_SECONDS and not by_itself:
        bench.note(f"{latency.NAME}: left out, so that the copies get their time: {LONGER}")
        return
    trip = bench.share.facts.get("connect_seconds") or 0.0
    most = (MOST_TIMES_ALONE if by_itself else MOST_TIMES) * USUAL_SECONDS
    usual = max(USUAL_SECONDS, min(ROUND_TRIPS * float(trip), most))
    seconds = seconds_for(bench, latency.NAME, usual)
    if seconds is None:
        return
    setting = latency.Setting(seconds, address=bench.address)
    step = bench.step(latency.NAME, setting, "client")
    with bench.outcome(step, latency.NAME, optional=not by_itself):
        if bench.server is None:
            raise Unavailable(NEEDS_AGENT)
        lifetime = seconds + HOLD_SECONDS
        with bench.server.hold(latency.NAME, setting, Endpoint(), lifetime) as peer:
            bench.initiate(step, setting, replace(peer, host=bench.address), lifetime)
