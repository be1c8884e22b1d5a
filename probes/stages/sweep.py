"""Buffer size of each call: the rate of programs that send and receive so much at once.

Each call costs time in the kernel, however little it carries: a program that sends 512 bytes at
once is limited by that and not by the network. Every size is tried several times, up and down the
scale in turns, so that a disturbance of one pass does not bend the curve; the best one is run once
more for the stage's rate.
"""

from __future__ import annotations

import statistics
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Dict, Iterator, List, Optional, Tuple

from probes.core.field_types import Address, Seconds, Text
from probes.core.records import Details, Endpoint, run_rate, window_rates
from probes.core.stage import LONG_BUDGET_SECONDS, RunFacts, Running, Stage, Turn
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
"""Time of one sweep."""
BESIDE = 2
"""Time for the first transfer and the window, in buffer sizes."""
GRACE_SECONDS = 40.0
"""Additional time that a long path needs for the fewest sizes."""
KIB, MIB = 1 << 10, 1 << 20
BUFFERS = (512, 1460, *(KIB << power for power in range(2, 9)), MIB, 4 * MIB)
MOST_TELLING = (256 * KIB, 8 * KIB, 64 * KIB, 512, MIB, 32 * KIB, 4 * KIB, 16 * KIB, 128 * KIB)
"""Order of the sizes where there is no time for all."""
FEWEST = 4
FIRST_LOOK_BYTES = 256 * KIB
MOST_PASSES = 3
SHORTEST_SECONDS = 0.15
LONGEST_SECONDS = 2.0
ROUND_TRIPS = 30
"""Shortest transfer in round trips: a third of them opens the congestion window."""


@dataclass(frozen=True)
class Setting:
    """Destination, direction and time."""

    over: Text = "tcp"
    """loopback: to this same host; tcp: to the other."""
    verb: Text = "push"
    """push: the initiator sends; pull: it receives."""
    seconds: Seconds = 0.45
    """Time of each buffer size, all its passes together."""
    address: Address = ""
    """The responder's address to listen on; empty, or another host's: every address."""

    def __post_init__(self) -> None:
        if self.over not in ("loopback", "tcp"):
            raise ValueError(f"no such sweep: over {self.over}")
        Shape(self.verb, seconds=self.seconds)


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields sweeps between the hosts, and where there is time on each host's loopback."""
    on_hosts = [("client", "loopback", "push"), ("server", "loopback", "push")]
    between = [("client", "tcp", "push"), ("client", "tcp", "pull")]
    if not facts.agent:
        plans = on_hosts[:1]
    else:
        plans = [*on_hosts, *between] if facts.thorough else between[:1]
    for side, over, verb in plans:
        yield Turn(
            f"sweep {over} {side if over == 'loopback' else verb}",
            Setting(over, verb, address=facts.address),
            USUAL_SECONDS,
            parts=len(plans),
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
            seconds_per_call, calls_per_second, cpu_seconds (its host, all cores and processes);
            sender_cpu_seconds_per_byte, receiver_cpu_seconds_per_byte. Over loopback both ends are
            one host, and so is their CPU time. A size whose transfers all broke is left out.
        knee_bytes: the smallest buffer that reaches 95 % of the best.
        limits, congestion_control, window_rates_bytes_per_second: of the best buffer's window.
        rtt_seconds: the path's, without load, where known.

    Raises as transfer.initiate does.
    """
    trip = _round_trip(setting, peer) if setting.over == "tcp" else None
    buffers, passes, seconds = plan_passes(setting.seconds, trip or 0.0)
    points = {size: _Point(size) for size in buffers}
    trouble = ""
    for number in range(passes):
        for size in buffers if number % 2 == 0 else buffers[::-1]:
            try:
                shape = Shape(setting.verb, 1, size, seconds, copies=True)
                outcome = run_to_end(transfer.initiate(shape, peer))
            except RuntimeError as error:
                # A short transfer can get no CPU time where cores are full: the others suffice.
                trouble = str(error)
            else:
                points[size].add(outcome)
    rows = [points[size].describe() for size in buffers if points[size].rates]
    if not rows:
        raise RuntimeError(trouble)
    best = max(rows, key=lambda each: float(each["bytes_per_second"]))
    size, longer = int(best["buffer_bytes"]), max(setting.seconds, seconds)
    again = yield from transfer.initiate(Shape(setting.verb, 1, size, longer, copies=True), peer)
    return {
        "points": rows,
        "knee_bytes": smallest_buffer(rows, run_rate(again.samples)),
        "limits": again.limits,
        "congestion_control": again.congestion_control,
        "window_rates_bytes_per_second": [best["bytes_per_second"], *window_rates(again.samples)],
        **({} if trip is None else {"rtt_seconds": trip}),
    }


def plan_passes(seconds: float, rtt_seconds: float) -> Tuple[Tuple[int, ...], int, float]:
    """Returns buffer sizes, passes and a transfer's seconds, for so many seconds a size; pure.

    A long path needs longer transfers, since each begins with a slow start: there are then fewer
    passes, and next fewer sizes, by MOST_TELLING; never fewer than FEWEST.
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
    """Measures the path's round trip by a first short transfer; None: the kernel has none."""
    shape = Shape(setting.verb, 1, FIRST_LOOK_BYTES, SHORTEST_SECONDS)
    return run_to_end(transfer.initiate(shape, peer)).rtt_unloaded_seconds


@dataclass
class _Point:
    """One buffer size, pass by pass."""

    buffer_bytes: int
    rates: List[float] = field(default_factory=list)
    ends: Dict[str, List[Details]] = field(default_factory=lambda: {"sender": [], "receiver": []})

    def add(self, outcome: Transfer) -> None:
        self.rates.append(run_rate(outcome.samples))
        self.ends["sender"].append(outcome.sender)
        self.ends["receiver"].append(outcome.receiver)

    def describe(self) -> Details:
        """Returns a point as initiate describes it; unknown figures are absent."""
        sender = self.ends["sender"]
        calls = sum(int(each["calls"]) for each in sender)
        seconds = sum(float(each["seconds"]) for each in sender)
        details: Details = {
            "buffer_bytes": self.buffer_bytes,
            "bytes_per_second": statistics.median(self.rates),
            "low_bytes_per_second": min(self.rates),
            "high_bytes_per_second": max(self.rates),
            "passes": len(self.rates),
            "calls": calls,
        }
        if calls and seconds > 0:
            details["seconds_per_call"] = seconds / calls
            details["calls_per_second"] = calls / seconds
        for name, ends in self.ends.items():
            timed = [each for each in ends if "cpu_seconds" in each]
            moved_bytes = sum(int(each["moved_bytes"]) for each in timed)
            if moved_bytes:
                spent = sum(float(each["cpu_seconds"]) for each in timed)
                details[f"{name}_cpu_seconds_per_byte"] = spent / moved_bytes
        if "sender_cpu_seconds_per_byte" in details:
            # It includes the passes that were too short for the kernel's clock.
            sent = sum(int(each["moved_bytes"]) for each in sender)
            details["cpu_seconds"] = details["sender_cpu_seconds_per_byte"] * sent
        return details
