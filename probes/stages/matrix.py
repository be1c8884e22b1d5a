"""TCP windows x streams: what each pair carries, how long its round trips become, what is enough.

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

from probes.core.meaning import Address, Count, Seconds, Text
from probes.core.records import Details, Endpoint, run_rate, window_rates
from probes.core.stage import LONG_BUDGET_SECONDS, Known, Running, Stage, Turn, Unavailable
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
"""Of a cell at least: a slow start takes ten."""
USUAL_RTT_SECONDS = 0.001
"""Where the sockets tell none."""

KIB, MIB = 1 << 10, 1 << 20
BUFFER_BYTES = 256 * KIB
"""Of a call; less where the window is: one call must not outlast a cell on a long path."""
FINAL_TIMES = 2
"""The best cell's second run takes so many times as long as the first."""
HANDSHAKES = 3
"""Before each cell."""
PACE_SECONDS = 0.02
LOADED_PACE_SECONDS = 0.05
MOST_HANDSHAKES = 10_000
ANSWER_SECONDS = 1.0
"""A handshake that takes longer is not waited for."""
SETTLED_RATIO = 1.2
"""Of the least round trip: until then the queue of the cell before is given time to drain."""
MOST_LOOKS = 4
MOST_WINDOWS = 16
SLOW_START_ROUND_TRIPS = 10
OVERHEAD_SECONDS = 0.2
"""Of a cell, beside its transfer: connecting, handshakes, draining."""


_ALWAYS = ("granted_bytes", "rtt_unloaded_seconds", "rtt_loaded_seconds")
"""Keys that each cell has, known or not."""


@dataclass(frozen=True)
class Setting:
    """Which way, how long, and the cells to choose from."""

    verb: Text = "push"
    """push: the initiator sends; pull: it receives."""
    seconds: Seconds = 0.3
    """Of each cell, warm-up included."""
    windows: Tuple[Count, ...] = (AUTOTUNED, 16 * KIB, 64 * KIB, 256 * KIB, MIB, 4 * MIB)
    """Bytes to ask for at both ends; 0: the system tunes it."""
    streams: Tuple[Count, ...] = STREAMS
    most_seconds: Seconds = 12.0
    """For the whole stage; cells that do not fit into it are left out."""
    address: Address = ""
    """The responder's address to listen on; empty, or not one of its own: every address."""

    def __post_init__(self) -> None:
        if not self.windows or not self.streams or len(self.windows) > MOST_WINDOWS:
            raise ValueError(f"no such matrix: {self.windows} x {self.streams}")
        for window in self.windows:
            for streams in self.streams:
                self.shape((window, streams), self.seconds)

    def shape(self, place: Place, seconds: float) -> Shape:
        """The transfer of one cell."""
        window, streams = place
        buffer_bytes = min(BUFFER_BYTES, window or BUFFER_BYTES)
        return Shape(self.verb, streams, buffer_bytes, seconds, window_bytes=window)


def turns(known: Known) -> Iterator[Turn]:
    """Pushes; pulls too where there is time for both, or nothing else is asked for."""
    verbs = ("push", "pull") if known.thorough else ("push",)
    for at, verb in enumerate(verbs):
        yield Turn(
            f"windows {verb}",
            Setting(verb, address=known.address),
            USUAL_SECONDS,
            parts=len(verbs) - at + 1,
            timed=("most_seconds", 1.0),
            peer="agent",
        )


def fitted(setting: Setting, known: Known) -> Setting:
    """The windows and the time of a cell that suit the path.

    A direction that already carries a standard link's payload is left out, unless the stage is all
    that was asked for.
    """
    if known.link and not known.is_only:
        raise Unavailable(f"TCP fills the {known.link} link without a larger window")
    trip = known.rtt_seconds or USUAL_RTT_SECONDS
    wanted = max(LEAST_CELL_SECONDS, ROUND_TRIPS * trip)
    return replace(
        setting,
        windows=windows_for(known.bytes_per_second * trip),
        seconds=min(wanted, setting.most_seconds / LEAST_CELLS),
    )


@contextmanager
def respond(setting: Setting) -> Iterator[Endpoint]:
    """Answers the transfers of the cells: a port a window, which is set before a connection is.

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

    Returns cells (window_bytes as asked for, granted_bytes at the end that got less, streams,
    bytes_per_second (after the slow start), rtt_unloaded_seconds (least of the handshakes before: a
    queue may still have been draining), rtt_loaded_seconds (median of those during it; None: none
    was answered in time), cpu_seconds (the initiator's host, all cores),
    retransmitted_segments, peer_window_bytes (advertised by the receiver, median),
    bound_bytes_per_second (streams x effective window / unloaded RTT)), knee (window_bytes,
    streams: the cheapest that reaches 95 %), bdp_bytes (of the best cell's rate),
    rtt_seconds (unloaded, least), left_out (whether time was short), broken (cells whose
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
    moved = yield from transfer.initiate(again, ports[again.window_bytes])
    found = [cells[each] for each in sorted(cells)]
    trips = [each["rtt_unloaded_seconds"] for each in found]
    trip = min((each for each in trips if each is not None), default=None)
    most = max(float(each["bytes_per_second"]) for each in found)
    return {
        "cells": found,
        "knee": knee(found, run_rate(moved.samples)),
        **({"rtt_seconds": trip, "bdp_bytes": most * trip} if trip else {}),
        "left_out": left_out,
        **({"broken": _told(broken)} if broken else {}),
        "window_bytes": best[0],
        "streams": best[1],
        "limits": moved.limits,
        "congestion_control": moved.congestion_control,
        "window_rates_bytes_per_second": [
            cells[best]["bytes_per_second"],
            *window_rates(moved.samples),
        ],
    }


def _cells(
    setting: Setting, ports: Mapping[int, Endpoint], until: float
) -> Tuple[Dict[Place, Details], Dict[Place, str], bool]:
    """The cells measured (one at least), why others broke, whether the time ended too early."""
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
            # So short a one can be starved where cores are full: the others tell enough.
            broken[place] = str(error)


def _ports(peer: Endpoint) -> List[Endpoint]:
    """The port of each window, in their order."""
    nonces = peer.nonce.split()
    return [
        replace(peer, port=int(port), nonce=nonce, facts={})
        for port, nonce in zip(peer.facts["ports"], nonces)
    ]


def _told(broken: Mapping[Place, str]) -> List[Details]:
    return [
        {"window_bytes": window, "streams": streams, "reason": why}
        for (window, streams), why in sorted(broken.items())
    ]


def _unloaded_seconds(peer: Endpoint, known: Iterable[Details]) -> Optional[float]:
    """The idle path's round trip; None: not one handshake was answered."""
    before = [each["rtt_unloaded_seconds"] for each in known]
    least = min((each for each in before if each is not None), default=None)
    found: List[float] = []
    for _ in range(MOST_LOOKS):
        seen = rtt.measure_handshakes(
            peer.host, peer.port, HANDSHAKES, PACE_SECONDS, ANSWER_SECONDS
        )
        found += seen.seconds
        if found and (least is None or min(found) <= SETTLED_RATIO * least):
            break
    return min(found, default=None)


def _cell(shape: Shape, peer: Endpoint, known: Iterable[Details]) -> Details:
    """One transfer, with the round trips before and during it."""
    unloaded = _unloaded_seconds(peer, known)
    moved, seen = rtt.transfer_with_handshakes(shape, peer, MOST_HANDSHAKES, LOADED_PACE_SECONDS)
    loaded = seen.spread()
    told: Details = {
        "window_bytes": shape.window_bytes,
        "granted_bytes": _granted(moved),
        "streams": shape.streams,
        "bytes_per_second": _settled_rate(moved, shape, unloaded or 0.0),
        "rtt_unloaded_seconds": unloaded,
        "rtt_loaded_seconds": loaded.get("median_seconds"),
        "cpu_seconds": (moved.sender if shape.verb == "push" else moved.receiver).get(
            "cpu_seconds"
        ),
        "retransmitted_segments": moved.limits.get("retransmitted_segments"),
        "peer_window_bytes": moved.limits.get("peer_window_bytes_median"),
        "bound_bytes_per_second": _bound(moved, shape.streams, unloaded),
    }
    return {name: value for name, value in told.items() if value is not None or name in _ALWAYS}


def _settled_rate(moved: Transfer, shape: Shape, trip_seconds: float) -> float:
    """Bytes per second after the slow start, which on a long path outlasts the warm-up.

    At least the last half of the window is what counts.
    """
    warm_up = min(transfer.MAX_WARM_UP_SECONDS, transfer.WARM_UP_RATIO * shape.seconds)
    samples = moved.samples
    skipped = min(SLOW_START_ROUND_TRIPS * trip_seconds - warm_up, samples[-1].elapsed_seconds / 2)
    start = 0
    while samples[start + 1].elapsed_seconds <= skipped:
        start += 1
    return run_rate(samples[start:])


def _granted(moved: Transfer) -> Optional[int]:
    """What the end that got less has, as its system tells it; Linux tells twice what it uses."""
    granted = [end.get("granted_bytes") for end in (moved.sender, moved.receiver)]
    return min((int(each) for each in granted if each is not None), default=None)


def _bound(moved: Transfer, streams: int, trip_seconds: Optional[float]) -> Optional[float]:
    """What the windows as observed allow; None: a figure for it is missing."""
    window = moved.limits.get("peer_window_bytes_median")
    held = moved.sender.get("granted_bytes")
    if not window or not held or not trip_seconds:
        return None
    return streams * min(float(window), float(held)) / trip_seconds
