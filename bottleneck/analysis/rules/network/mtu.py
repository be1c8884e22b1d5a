"""network/mtu: packets that are too long for the path vanish without a message to the sender.

A path MTU black hole (RFC 2923 section 2.1): the connection is made and stalls at its first full
segment, until the sender gives up or probes smaller ones (RFC 4821, net.ipv4.tcp_mtu_probing).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits
from bottleneck.analysis.claim import GAP, Cause, claim
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.evidence.details import PathDetails
from bottleneck.analysis.finding import Claim, CopyDiagnosis, Verdict
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text
from probes.core import lenient
from probes.core.records import DROPS, Failed, Measured, Skipped

CAUSE = Cause(
    "network",
    "mtu",
    "MTU",
    limits_without_fault=True,
    remedy='Let ICMP "fragmentation needed" pass in routers and firewalls, or set a smaller MTU on '
    "both hosts (`ip link set dev NAME mtu 1400`)",
)
PROVEN_TRUST = 0.98
"""Confidence in a hole in the direction of a copy that stalled."""
STALLED_RATIO = 0.1
"""Share of the copy that its sender waited for retransmission timers."""
Hole = tuple[float, float, int]
"""Bytes of the longest IP packet that passes, of one that vanishes, and the step's index."""


def hole(report: Report, sender: str) -> Hole | None:
    """Returns the black hole for a side's packets; None: none found, or not tested."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage != "path" or not isinstance(outcome, Measured):
            continue
        details = lenient.record(PathDetails, outcome.details)
        black_hole = (details.push if step.initiator == sender else details.pull).black_hole
        if black_hole.passes_bytes is not None and black_hole.stalls_bytes is not None:
            return black_hole.passes_bytes, black_hole.stalls_bytes, index
    return None


def remarks(report: Report, sender: str) -> Iterator[str]:
    """Yields the effect of a black hole on all connections that a side sends over."""
    black_hole = hole(report, sender)
    if black_hole is not None:
        yield (
            f"From the {sender}, {_words(black_hole)}. Each new connection stalls at its first "
            f"full packet. {_remedy(report, black_hole, sender)}."
        )


def diagnose_stopped_copy(report: Report, copy: Copy) -> CopyDiagnosis | None:
    """Diagnoses a copy that was not made because full-size packets vanish; None: they do not.

    A pull whose file could not be pushed there has the push's cause; that its own packets vanish
    too is only likely, and refuted where both hosts tested the path.
    """
    outcome = copy.outcome
    failed = isinstance(outcome, Failed)
    if not failed and not (isinstance(outcome, Skipped) and outcome.reason.startswith(DROPS)):
        return None
    sender_hole = hole(report, copy.sender)
    guessed = not failed and report.server is None
    black_hole = sender_hole or (hole(report, copy.receiver) if guessed else None)
    if black_hole is None:
        return None
    sender = copy.sender if sender_hole else copy.receiver
    words = _words(black_hole)
    what = "The copy stalled" if failed else "The copy was not made, as the one before it stalled,"
    error = (f"The copy failed: {outcome.error}",) if isinstance(outcome, Failed) else ()
    trust = PROVEN_TRUST if sender_hole else GAP
    return CopyDiagnosis(
        copy.name,
        copy.initiator,
        copy.dialect,
        None,
        Verdict("network", "path", "mtu", trust, None, f"{what} because {words}."),
        evidence=(*error, *remarks(report, sender)),
        advice=(f"{_remedy(report, black_hole, sender)}. Then run this command again.",),
    )


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the claim for a copy that waited for retransmissions, else remarks about the hole."""
    black_hole = hole(evidence.report, evidence.sender)
    if black_hole is None:
        return
    sockets, usage = evidence.details.sockets, evidence.step.usage(evidence.copy.initiator)
    waited, again = sockets.rto_seconds, sockets.retransmitted_segments
    wall = usage.wall_seconds if usage is not None else 0.0
    if not again or wall <= 0 or waited < STALLED_RATIO * wall:
        yield from remarks(evidence.report, evidence.sender)
        return
    why = (
        f"The connection waited {seconds_text(waited)} ({percent_text(min(1.0, waited / wall))} of "
        f"the copy) for retransmission timeouts and retransmitted {again:.0f} segments."
    )
    yield claim(
        CAUSE,
        "path",
        evidence.step,
        _words(black_hole),
        steps=(evidence.step.index, black_hole[2]),
        standing="inferred",
        reached=True,
        evidence=(why,),
        remedy=_remedy(evidence.report, black_hole, evidence.sender),
    )


def _words(black_hole: Hole) -> str:
    passes, stalls, _ = black_hole
    return (
        f"the path silently drops packets of {stalls:.0f} bytes; packets of {passes:.0f} bytes "
        "pass (MTU black hole)"
    )


def _remedy(report: Report, black_hole: Hole, sender: str) -> str:
    link = dict(hardware_limits.interfaces(report)).get(sender)
    how = "" if link is None else f" (`ip link set dev {link.name} mtu {black_hole[0]:.0f}`)"
    return (
        'Let ICMP "fragmentation needed" pass in routers and firewalls, or set an MTU of '
        f"{black_hole[0]:.0f} on the {sender}{how}"
    )
