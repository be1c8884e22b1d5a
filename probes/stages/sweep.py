"""Buffer size of each call: what a program gets that sends and receives so much at once.

Each call costs its own time in the kernel, however little it carries: a program that sends 512
bytes at once is capped by that and not by the network. Every size is tried several times, up and
down the scale in turns, so that what disturbs one pass does not bend the curve; the best one is run
once more for the stage's rate.
"""

from __future__ import annotations

import statistics
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple

from probes.core.meaning import Address, Seconds, Text
from probes.core.records import Details, Endpoint, run_rate, window_rates
from probes.core.stage import LONG_BUDGET_SECONDS, Known, Running, Stage, Turn
from probes.net import transfer
from probes.net.transfer import Shape, Transfer
from probes.net.windows import run_to_end, smallest_buffer
from probes.stages import loopback

STAGE = Stage(
    "sweep",
    measures="the effect of the buffer size",
    usual_seconds=5.0,
    by_agent=True,
    optional=True,
    from_budget_seconds=LONG_BUDGET_SECONDS,
)

USUAL_SECONDS = 4.0
"""Of one sweep."""
BESIDE = 2
"""Buffer sizes' worth of time for the first look and the window."""
GRACE_SECONDS = 40.0
"""A long path needs it for the least there is."""
OVER = ("loopback", "tcp")
KIB, MIB = 1 << 10, 1 << 20
BUFFERS = (
    *(512, 1460),
    *(4 * KIB, 8 * KIB, 16 * KIB, 32 * KIB, 64 * KIB, 128 * KIB, 256 * KIB),
    *(MIB, 4 * MIB),
)
MOST_TELLING = (256 * KIB, 8 * KIB, 64 * KIB, 512, MIB, 32 * KIB, 4 * KIB, 16 * KIB, 128 * KIB)
"""Where there is no time for all: in this order."""
FEWEST = 4
FIRST_LOOK_BYTES = 256 * KIB
MOST_PASSES = 3
SHORTEST_SECONDS = 0.15
LONGEST_SECONDS = 2.0
ROUND_TRIPS = 30
"""Of a transfer at least: a third of them opens the congestion window."""


@dataclass(frozen=True)
class Setting:
    """Over what, which way, and how long."""

    over: Text = "tcp"
    """loopback: to this same host; tcp: to the other."""
    verb: Text = "push"
    """push: the initiator sends; pull: it receives."""
    seconds: Seconds = 0.45
    """Of each buffer size, all its passes together."""
    address: Address = ""
    """The responder's address to listen on; empty, or not one of its own: every address."""

    def __post_init__(self) -> None:
        if self.over not in OVER:
            raise ValueError(f"no such sweep: over {self.over}")
        Shape(self.verb, seconds=self.seconds)


def turns(known: Known) -> Iterator[Turn]:
    """Between the hosts, and with the time for it each host alone."""
    on_hosts = [("client", "loopback", "push"), ("server", "loopback", "push")]
    between = [("client", "tcp", "push"), ("client", "tcp", "pull")]
    if not known.agent:
        made = on_hosts[:1]
    else:
        made = [*on_hosts, *between] if known.thorough else between[:1]
    for side, over, verb in made:
        yield Turn(
            f"sweep {over} {side if over == 'loopback' else verb}",
            Setting(over, verb, address=known.address),
            USUAL_SECONDS,
            parts=len(made),
            timed=("seconds", 1 / (len(BUFFERS) + BESIDE)),
            initiator=side,
            peer="own" if over == "loopback" else "agent",
            grace_seconds=GRACE_SECONDS,
        )


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Answers the transfers of all buffer sizes."""
    address = loopback.ADDRESS if setting.over == "loopback" else setting.address
    return transfer.respond(address, max(setting.seconds, LONGEST_SECONDS))


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Measures each buffer size, then runs the best one for the window and yields its samples.

    Returns:
        points: of each buffer size buffer_bytes, bytes_per_second (median of its passes),
            low_bytes_per_second, high_bytes_per_second, passes; of the sender calls,
            seconds_per_call, calls_per_second, cpu_seconds (its host, all cores, by whomever);
            sender_cpu_seconds_per_byte, receiver_cpu_seconds_per_byte. Over loopback both ends are
            one host, and so is their CPU time. A size whose transfers all broke is not there.
        knee_bytes: the smallest buffer that reaches 95 % of the best.
        limits, congestion_control, window_rates_bytes_per_second: of the best buffer's window.
        rtt_seconds: the path's own, where known.

    Raises as transfer.initiate does.
    """
    trip = _round_trip(setting, peer) if setting.over == "tcp" else None
    buffers, passes, seconds = planned(setting.seconds, trip or 0.0)
    points = {size: _Point(size) for size in buffers}
    trouble = ""
    for number in range(passes):
        for size in buffers if number % 2 == 0 else buffers[::-1]:
            try:
                shape = Shape(setting.verb, 1, size, seconds, copies=True)
                moved = run_to_end(transfer.initiate(shape, peer))
            except RuntimeError as error:
                # So short a one can be starved where cores are full: the others tell enough.
                trouble = str(error)
            else:
                points[size].add(moved)
    found = [points[size].told() for size in buffers if points[size].rates]
    if not found:
        raise RuntimeError(trouble)
    best = max(found, key=lambda each: float(each["bytes_per_second"]))
    size, longer = int(best["buffer_bytes"]), max(setting.seconds, seconds)
    again = yield from transfer.initiate(Shape(setting.verb, 1, size, longer, copies=True), peer)
    return {
        "points": found,
        "knee_bytes": smallest_buffer(found, run_rate(again.samples)),
        "limits": again.limits,
        "congestion_control": again.congestion_control,
        "window_rates_bytes_per_second": [best["bytes_per_second"], *window_rates(again.samples)],
        **({} if trip is None else {"rtt_seconds": trip}),
    }


def planned(seconds: float, rtt_seconds: float) -> Tuple[Tuple[int, ...], int, float]:
    """Buffer sizes, passes and the seconds of each transfer, for so many seconds a size; pure.

    A long path needs longer transfers, since each starts anew: there the passes go first, then
    those sizes that tell least; never fewer than FEWEST.
    """
    needed = min(LONGEST_SECONDS, max(SHORTEST_SECONDS, ROUND_TRIPS * rtt_seconds))
    if needed <= seconds:
        passes = min(MOST_PASSES, int(seconds / needed))
        return BUFFERS, passes, min(seconds / passes, LONGEST_SECONDS)
    many = max(FEWEST, int(len(BUFFERS) * seconds / needed))
    if many >= len(BUFFERS):
        return BUFFERS, 1, needed
    rest = [size for size in BUFFERS if size not in MOST_TELLING]
    return tuple(sorted((*MOST_TELLING, *rest)[:many])), 1, needed


def _round_trip(setting: Setting, peer: Endpoint) -> Optional[float]:
    """The path's own, seconds, by a first short transfer; None: the kernel does not tell."""
    shape = Shape(setting.verb, 1, FIRST_LOOK_BYTES, SHORTEST_SECONDS)
    return run_to_end(transfer.initiate(shape, peer)).rtt_unloaded_seconds


@dataclass
class _Point:
    """One buffer size, pass by pass."""

    buffer_bytes: int
    rates: List[float] = field(default_factory=list)
    ends: Dict[str, List[Details]] = field(default_factory=lambda: {"sender": [], "receiver": []})

    def add(self, moved: Transfer) -> None:
        """One more pass."""
        self.rates.append(run_rate(moved.samples))
        self.ends["sender"].append(moved.sender)
        self.ends["receiver"].append(moved.receiver)

    def told(self) -> Details:
        """As initiate describes a point; what is not known is absent."""
        sender = self.ends["sender"]
        calls = sum(int(each["calls"]) for each in sender)
        seconds = sum(float(each["seconds"]) for each in sender)
        told: Details = {
            "buffer_bytes": self.buffer_bytes,
            "bytes_per_second": statistics.median(self.rates),
            "low_bytes_per_second": min(self.rates),
            "high_bytes_per_second": max(self.rates),
            "passes": len(self.rates),
            "calls": calls,
        }
        if calls and seconds > 0:
            told["seconds_per_call"] = seconds / calls
            told["calls_per_second"] = calls / seconds
        for name, ends in self.ends.items():
            known = [each for each in ends if "cpu_seconds" in each]
            moved = sum(int(each["moved_bytes"]) for each in known)
            if moved:
                spent = sum(float(each["cpu_seconds"]) for each in known)
                told[f"{name}_cpu_seconds_per_byte"] = spent / moved
        if "sender_cpu_seconds_per_byte" in told:
            # Also of the passes that were too short for the kernel's clock.
            sent = sum(int(each["moved_bytes"]) for each in sender)
            told["cpu_seconds"] = told["sender_cpu_seconds_per_byte"] * sent
        return told
