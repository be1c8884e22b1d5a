"""Windows x streams: whether TCP's own tuning is in the way, and what would be enough."""

from __future__ import annotations

from dataclasses import asdict, replace

from bottleneck.analysis import model
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.reports.units import link_text
from bottleneck.steps.allowance import alone, seconds_for, thorough
from bottleneck.steps.carried import ROUND_TRIPS, Carried, carried
from bottleneck.steps.network import HOLD_SECONDS
from probes import matrix
from probes.net.windows import windows_for
from probes.records import Endpoint
from probes.stage import Unavailable

USUAL_SECONDS = 6.0
LEAST_CELL_SECONDS = 0.3
LEAST_CELLS = 14
USUAL_RTT_SECONDS = 0.001
"""Where the sockets tell none."""


def measure_windows(bench: Bench) -> None:
    """Pushes; pulls too where there is time for both, or nothing else is asked for.

    A direction that already carries a standard link's payload is left out, unless the stage is all
    that was asked for.
    """
    verbs = ("push", "pull") if thorough(bench, matrix.NAME) else ("push",)
    for at, verb in enumerate(verbs):
        seconds = seconds_for(bench, matrix.NAME, USUAL_SECONDS, parts=len(verbs) - at + 1)
        if seconds is None:
            return
        _measure(bench, verb, seconds)


def _measure(bench: Bench, verb: str, seconds: float) -> None:
    setting = matrix.Setting(verb, most_seconds=seconds, address=bench.address)
    step = bench.step(matrix.NAME, setting, "client")
    with bench.outcome(step, f"windows {verb}", optional=not alone(bench, matrix.NAME)):
        if bench.server is None:
            raise Unavailable(NEEDS_AGENT)
        known = carried(bench, verb)
        link = None if alone(bench, matrix.NAME) else _full_link(bench, known)
        if link is not None:
            raise Unavailable(f"left out: TCP fills a {link} link by the system's own tuning")
        setting = _fitted(setting, known)
        # what the cells are is not chosen before the path is known
        step.setting.update(asdict(setting))
        most_seconds = seconds + HOLD_SECONDS
        with bench.server.hold(matrix.NAME, setting, Endpoint(), most_seconds) as peer:
            there = replace(peer, host=bench.address)
            bench.initiate(step, setting, there, most_seconds)


def _full_link(bench: Bench, known: Carried) -> str | None:
    """The standard link whose payload TCP already carries."""
    match = model.looks_like(known.bytes_per_second, _mtu_bytes(bench))
    return None if match is None else link_text(match.bits_per_second)


def _mtu_bytes(bench: Bench) -> int | None:
    interfaces = (each.interface for each in bench.facts.values())
    sizes = [each.mtu_bytes for each in interfaces if each is not None and each.mtu_bytes]
    return min(sizes, default=None)


def _fitted(setting: matrix.Setting, known: Carried) -> matrix.Setting:
    """The windows and the time of a cell that suit the path."""
    trip = known.rtt_seconds or USUAL_RTT_SECONDS
    wanted = max(LEAST_CELL_SECONDS, ROUND_TRIPS * trip)
    return replace(
        setting,
        windows=windows_for(known.bytes_per_second * trip),
        seconds=min(wanted, setting.most_seconds / LEAST_CELLS),
    )
