"""The path between the hosts: round trip, routers, packets that pass, queues (stage path)."""

from __future__ import annotations

from contextlib import ExitStack

from bottleneck.bench import Bench
from bottleneck.steps import allowance
from probes import path
from probes.records import Endpoint
from probes.smb.session import SMB_PORT
from probes.stage import Unavailable

USUAL_SECONDS = 3.0
LEAST_SECONDS, MOST_SECONDS = 1.0, 5.0
GRACE_SECONDS = 40.0
"""Where packets vanish, their size is looked for; lost ones are waited for."""


def measure_path(bench: Bench) -> None:
    """From the client to the share's port, and back where an agent looks from there."""
    step = bench.step(path.NAME, _setting(bench), "client")
    with bench.outcome(step, "path"), ExitStack() as stack:
        if not bench.address:
            raise Unavailable("the server's address is not known: name TARGET as //host/share")
        setting = _setting(bench)
        limit = setting.seconds + GRACE_SECONDS
        peer = Endpoint()
        if bench.server is not None:
            peer = stack.enter_context(bench.server.hold(path.NAME, setting, Endpoint(), limit))
        bench.initiate(step, setting, peer, limit)


def _setting(bench: Bench) -> path.Setting:
    """A short run leaves out the load: the copies need its time."""
    budget = bench.options.budget_seconds
    seconds = USUAL_SECONDS * budget / allowance.USUAL_BUDGET_SECONDS
    return path.Setting(
        host=bench.address,
        port=bench.options.target.port or SMB_PORT,
        seconds=min(MOST_SECONDS, max(LEAST_SECONDS, seconds)),
        load=budget >= allowance.LEAST_BUDGET_SECONDS or allowance.alone(bench, path.NAME),
    )
