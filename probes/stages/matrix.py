"""TCP windows x streams: the rate and the round trips of each pair, and the cheapest that suffices.

rate <= streams x window / RTT until the path itself is full. Each cell is a transfer of its own,
its windows set on both ends before the handshake; the best one is run once more for the stage's
rate. Round trips are TCP handshakes with the responder's port, timed by the kernel: before a cell
on the idle path, and during it.
"""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Dict, Iterable, Iterator, List, Mapping, Optional, Tuple

from probes.core.field_types import Address, Count, Seconds, Text
from probes.core.records import Details, Endpoint, run_rate, window_rates
from probes.core.stage import LONG_BUDGET_SECONDS, RunFacts, Running, Stage, Turn, Unavailable
from probes.net import rtt, transfer
from probes.net.transfer import Shape, Transfer
from probes.net.windows import AUTOTUNED, STREAMS, Place, choose_next, knee, windows_for

STAGE = Stage(
    "matrix",
    measures="TCP windows and streams",
    usual_seconds=8.0,
    needs=("server", "rate"),
    by_agent=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
)
USUAL_SECONDS = 6.0
LEAST_CELL_SECONDS = 0.3
LEAST_CELLS = 14
ROUND_TRIPS = 25
"""Shortest time of a cell in round trips: a slow start takes ten."""
USUAL_RTT_SECONDS = 0.001
"""Round trip that is assumed where the sockets report none."""

KIB, MIB = 1 << 10, 1 << 20
BUFFER_BYTES = 256 * KIB
"""Buffer of a call, at most the window: one call must not outlast a cell on a long path."""
FINAL_TIMES = 2
"""Duration of the best cell's second run as a multiple of the first's."""
HANDSHAKES = 3
"""Handshakes before each cell."""
PACE_SECONDS = 0.02
LOADED_PACE_SECONDS = 0.05
MOST_HANDSHAKES = 10_000
ANSWER_SECONDS = 1.0
"""Longest wait for the handshakes before a cell."""
SETTLED_RATIO = 1.2
"""Multiple of the lowest round trip, above which the previous cell's queue is still draining."""
MOST_LOOKS = 4
MOST_WINDOWS = 16
SLOW_START_ROUND_TRIPS = 10
OVERHEAD_SECONDS = 0.2
"""Time of a cell beside its transfer: connecting, handshakes, draining."""


_ALWAYS = ("granted_bytes", "rtt_unloaded_seconds", "rtt_loaded_seconds")
"""Keys that each cell has, known or not."""


@dataclass(frozen=True)
class Setting:
    """Direction, time, and the cells to choose from."""

    verb: Text = "push"
    """push: the initiator sends; pull: it receives."""
    seconds: Seconds = 0.3
    """Time of each cell, warm-up included."""
    windows: Tuple[Count, ...] = (AUTOTUNED, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
    """Bytes to request at both ends; 0: the system tunes it."""
    streams: Tuple[Count, ...] = STREAMS
    most_seconds: Seconds = 12.0
    """Time of the whole stage; cells that do not fit into it are left out."""
    address: Address = ""
    """The responder's address to listen on; empty, or another host's: every address."""

    def __post_init__(self) -> None:
        if not self.windows or not self.streams or len(self.windows) > MOST_WINDOWS:
            raise ValueError(f"no such matrix: {self.windows} x {self.streams}")
        for window in self.windows:
            for streams in self.streams:
                self.shape((window, streams), self.seconds)

    def shape(self, place: Place, seconds: float) -> Shape:
        """Returns the transfer of one cell."""
        window, streams = place
        buffer_bytes = min(BUFFER_BYTES, window or BUFFER_BYTES)
        return Shape(self.verb, streams, buffer_bytes, seconds, window_bytes=window)


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a push; a pull too where there is time for both, or this stage alone runs."""
    verbs = ("push", "pull") if facts.thorough else ("push",)
    for index, verb in enumerate(verbs):
        yield Turn(
            f"windows {verb}",
            Setting(verb, address=facts.address),
            USUAL_SECONDS,
            parts=len(verbs) - index + 1,
            timed=("most_seconds", 1.0),
            peer="agent",
        )


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Fits the windows and the time of a cell to the path.

    A direction that already carries a standard link's payload is left out, unless this stage alone
    runs.
    """
    if facts.link and not facts.is_only:
        raise Unavailable(f"TCP fills the {facts.link} link without a larger window")
    trip = facts.rtt_seconds or USUAL_RTT_SECONDS
    needed = max(LEAST_CELL_SECONDS, ROUND_TRIPS * trip)
    return replace(
        setting,
        windows=windows_for(facts.bytes_per_second * trip),
        seconds=min(needed, setting.most_seconds / LEAST_CELLS),
    )


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Answers the cells' transfers, on a port for each window, which is set before a connection.

    The endpoint's nonce holds those of all ports, its facts["ports"] the ports, as in windows.
    """
    most_seconds = FINAL_TIMES * setting.seconds
    with ExitStack() as stack:
        ends = [
            stack.enter_context(transfer.respond(setting.address, most_seconds, window))
            for window in setting.windows
        ]
        nonces, ports = " ".join(each.nonce for each in ends), [each.port for each in ends]
        yield Endpoint(host=setting.address, port=ports[0], nonce=nonces, facts={"ports": ports})


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Measures the cells, then runs the best one again for the window and yields its samples.

    Returns cells (window_bytes as requested, granted_bytes at the end that got less, streams,
    bytes_per_second (after the slow start), rtt_unloaded_seconds (lowest of the handshakes before:
    a queue may still have been draining), rtt_loaded_seconds (median of those during it; None: none
    was answered in time), cpu_seconds (the initiator's host, all cores),
    retransmitted_segments, peer_window_bytes (advertised by the receiver, median),
    bound_bytes_per_second (streams x effective window / unloaded RTT)), knee (window_bytes,
    streams: the cheapest that reaches 95 %), bdp_bytes (of the best cell's rate),
    rtt_seconds (unloaded, lowest), left_out (whether time was short), broken (cells whose
    transfer broke: window_bytes, streams, reason; absent: none did), and of the last run
    window_bytes, streams, limits, congestion_control, window_rates_bytes_per_second.

    Raises as transfer.initiate does.
    """
    ports = dict(zip(setting.windows, _ports(peer)))
    final_seconds = FINAL_TIMES * setting.seconds
    until = time.monotonic() + setting.most_seconds - final_seconds - OVERHEAD_SECONDS
    cells, broken, left_out = _cells(setting, ports, until)
    if not cells:
        raise RuntimeError(next(iter(broken.values())))
    best = max(cells, key=lambda each: float(cells[each]["bytes_per_second"]))
    again = setting.shape(best, final_seconds)
    last_run = yield from transfer.initiate(again, ports[again.window_bytes])
    rows = [cells[each] for each in sorted(cells)]
    trips = [each["rtt_unloaded_seconds"] for each in rows]
    trip = min((each for each in trips if each is not None), default=None)
    best_rate = max(float(each["bytes_per_second"]) for each in rows)
    return {
        "cells": rows,
        "knee": knee(rows, run_rate(last_run.samples)),
        **({"rtt_seconds": trip, "bdp_bytes": best_rate * trip} if trip else {}),
        "left_out": left_out,
        **({"broken": _broken_rows(broken)} if broken else {}),
        "window_bytes": best[0],
        "streams": best[1],
        "limits": last_run.limits,
        "congestion_control": last_run.congestion_control,
        "window_rates_bytes_per_second": [
            cells[best]["bytes_per_second"],
            *window_rates(last_run.samples),
        ],
    }


def _cells(
    setting: Setting, ports: Mapping[int, Endpoint], until: float
) -> Tuple[Dict[Place, Details], Dict[Place, str], bool]:
    """Measures cells; returns them, why others broke, and whether the time ended too early."""
    cells: Dict[Place, Details] = {}
    broken: Dict[Place, str] = {}
    while True:
        place = choose_next(setting.windows, setting.streams, cells, broken)
        if place is None:
            return cells, broken, False
        if (cells or broken) and time.monotonic() + setting.seconds + OVERHEAD_SECONDS > until:
            return cells, broken, True
        shape = setting.shape(place, setting.seconds)
        try:
            cells[place] = _cell(shape, ports[shape.window_bytes], cells.values())
        except RuntimeError as error:
            # A short transfer can get no CPU time where cores are full: the others suffice.
            broken[place] = str(error)


def _ports(peer: Endpoint) -> List[Endpoint]:
    """Returns the port of each window, in their order."""
    return [
        replace(peer, port=int(port), nonce=nonce, facts={})
        for port, nonce in zip(peer.facts["ports"], peer.nonce.split())
    ]


def _broken_rows(broken: Mapping[Place, str]) -> List[Details]:
    return [
        {"window_bytes": window, "streams": streams, "reason": why}
        for (window, streams), why in sorted(broken.items())
    ]


def _unloaded_seconds(peer: Endpoint, cells: Iterable[Details]) -> Optional[float]:
    """Measures the idle path's round trip; None: no handshake was answered."""
    earlier = [each["rtt_unloaded_seconds"] for each in cells]
    lowest = min((each for each in earlier if each is not None), default=None)
    times: List[float] = []
    for _ in range(MOST_LOOKS):
        series = rtt.measure_handshakes(
            peer.host, peer.port, HANDSHAKES, PACE_SECONDS, ANSWER_SECONDS
        )
        times += series.seconds
        if times and (lowest is None or min(times) <= SETTLED_RATIO * lowest):
            break
    return min(times, default=None)


def _cell(shape: Shape, peer: Endpoint, cells: Iterable[Details]) -> Details:
    """Runs one transfer; returns its figures and the round trips before and during it."""
    unloaded = _unloaded_seconds(peer, cells)
    outcome, trips = rtt.transfer_with_handshakes(shape, peer, MOST_HANDSHAKES, LOADED_PACE_SECONDS)
    details: Details = {
        "window_bytes": shape.window_bytes,
        "granted_bytes": _granted_bytes(outcome),
        "streams": shape.streams,
        "bytes_per_second": _settled_rate(outcome, shape, unloaded or 0.0),
        "rtt_unloaded_seconds": unloaded,
        "rtt_loaded_seconds": trips.spread().get("median_seconds"),
        "cpu_seconds": (outcome.sender if shape.verb == "push" else outcome.receiver).get(
            "cpu_seconds"
        ),
        "retransmitted_segments": outcome.limits.get("retransmitted_segments"),
        "peer_window_bytes": outcome.limits.get("peer_window_bytes_median"),
        "bound_bytes_per_second": _rate_bound(outcome, shape.streams, unloaded),
    }
    return {name: value for name, value in details.items() if value is not None or name in _ALWAYS}


def _settled_rate(outcome: Transfer, shape: Shape, trip_seconds: float) -> float:
    """Returns bytes per second after the slow start, which on a long path outlasts the warm-up.

    At least the last half of the window counts.
    """
    warm_up = min(transfer.MAX_WARM_UP_SECONDS, transfer.WARM_UP_RATIO * shape.seconds)
    samples = outcome.samples
    skipped = min(SLOW_START_ROUND_TRIPS * trip_seconds - warm_up, samples[-1].elapsed_seconds / 2)
    start = 0
    while samples[start + 1].elapsed_seconds <= skipped:
        start += 1
    return run_rate(samples[start:])


def _granted_bytes(outcome: Transfer) -> Optional[int]:
    """Returns the smaller buffer of the two ends; Linux reports twice what it uses."""
    granted = [end.get("granted_bytes") for end in (outcome.sender, outcome.receiver)]
    return min((int(each) for each in granted if each is not None), default=None)


def _rate_bound(outcome: Transfer, streams: int, trip_seconds: Optional[float]) -> Optional[float]:
    """Returns the rate that the observed windows allow; None: a figure for it is missing."""
    window = outcome.limits.get("peer_window_bytes_median")
    send_buffer = outcome.sender.get("granted_bytes")
    if not window or not send_buffer or not trip_seconds:
        return None
    return streams * min(float(window), float(send_buffer)) / trip_seconds
