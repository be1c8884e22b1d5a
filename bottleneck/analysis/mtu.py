"""Rule network/mtu: packets that are too long for the path vanish, and nobody tells the sender.

A path MTU black hole (RFC 2923 section 2.1): the connection is made and stalls at its first full
segment, until the sender gives up or finds out by itself (RFC 4821, net.ipv4.tcp_mtu_probing).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report
from bottleneck.reports.units import percent_text, seconds_text
from probes.records import Measured

STALLED_RATIO = 0.1
"""Share of the copy that its sender waited for retransmission timers."""
OWN_TRUST = 0.9


@dataclass(frozen=True)
class Hole:
    """What the path stage found in one direction."""

    passes_bytes: float
    """The longest IP packet that is known to arrive."""
    stalls_bytes: float
    index: int

    @property
    def words(self) -> str:
        """The finding."""
        return (
            f"IP packets of {self.stalls_bytes:.0f} bytes vanish where those of "
            f"{self.passes_bytes:.0f} pass"
        )


def hole(report: Report, sender: str) -> Hole | None:
    """The black hole for what a side sends; None: the path stage found none, or was not run."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage != "path" or not isinstance(outcome, Measured):
            continue
        verb = "push" if step.initiator == sender else "pull"
        passes = steps.positive(outcome.details, verb, "black_hole", "passes_bytes")
        stalls = steps.positive(outcome.details, verb, "black_hole", "stalls_bytes")
        if passes is not None and stalls is not None:
            return Hole(passes, stalls, index)
    return None


def remarks(report: Report, sender: str) -> Iterator[str]:
    """What a black hole does to all that a side sends, copies that never ended included."""
    found = hole(report, sender)
    if found is not None:
        yield (
            f"From the {sender} {found.words}: each new connection stalls at its first full "
            f"packet, for seconds or for ever. {_remedy(found, sender)} would mend that."
        )


def _remedy(found: Hole, sender: str) -> str:
    return (
        f'Routers and firewalls that let ICMP "fragmentation needed" through, or an MTU of '
        f"{found.passes_bytes:.0f} on the {sender},"
    )


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """A copy that waited for retransmissions on such a path; the hole itself is always told."""
    found = hole(report, copy.sender)
    if found is None or copy.made is None:
        return
    waited = steps.amount(copy.made.outcome.details, "sockets", "rto_seconds") or 0.0
    again = steps.amount(copy.made.outcome.details, "sockets", "retransmitted_segments") or 0.0
    usage = copy.made.usage(copy.initiator)
    wall = usage.wall_seconds if usage is not None else 0.0
    if not again or wall <= 0 or waited < STALLED_RATIO * wall:
        yield from remarks(report, copy.sender)
        return
    rate = copy.made.rate
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="mtu",
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(copy.made.index, found.index),
            standing="inferred",
        ),
        words=f"the path swallows long packets: {found.words}",
        reached=True,
        trust=OWN_TRUST,
        evidence=(
            f"Its connection waited {seconds_text(waited)} ({percent_text(min(1.0, waited / wall))}"
            f" of the copy) for retransmission timers, and sent {again:.0f} segments again.",
        ),
        remedy=_remedy(found, copy.sender).rstrip(","),
    )
