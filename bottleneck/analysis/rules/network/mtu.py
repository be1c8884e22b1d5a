"""network/mtu: packets that are too long for the path vanish, and nobody tells the sender.

A path MTU black hole (RFC 2923 section 2.1): the connection is made and stalls at its first full
segment, until the sender gives up or finds out by itself (RFC 4821, net.ipv4.tcp_mtu_probing).
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
    *("network", "mtu", "MTU"),
    stays=True,
    remedy='Let ICMP "fragmentation needed" pass in routers and firewalls, or set a smaller MTU on '
    "both hosts (`ip link set dev NAME mtu 1400`)",
)
PROVEN_TRUST = 0.98
"""Of a hole that was seen in the direction of a copy that stalled."""
STALLED_RATIO = 0.1
"""Share of the copy that its sender waited for retransmission timers."""
Hole = tuple[float, float, int]
"""The longest IP packet that passes, one that vanishes, and the step that found both."""


def hole(report: Report, sender: str) -> Hole | None:
    """The black hole for what a side sends; None: the path stage found none, or was not run."""
    for index, (step, outcome) in enumerate(report.entries):
        if step.stage != "path" or not isinstance(outcome, Measured):
            continue
        told = lenient.record(PathDetails, outcome.details)
        found = (told.push if step.initiator == sender else told.pull).black_hole
        if found.passes_bytes is not None and found.stalls_bytes is not None:
            return found.passes_bytes, found.stalls_bytes, index
    return None


def remarks(report: Report, sender: str) -> Iterator[str]:
    """What a black hole does to all that a side sends, copies that never ended included."""
    found = hole(report, sender)
    if found is not None:
        yield (
            f"From the {sender}, {_words(found)}. Each new connection stalls at its first full "
            f"packet. {_remedy(report, found, sender)}."
        )


def stopped(report: Report, copy: Copy) -> CopyDiagnosis | None:
    """A copy that was not made because full-size packets are dropped; None: they are not.

    A pull whose file could not be pushed there is stopped by what stopped the push; that its own
    packets vanish too is no more than likely, and refuted where both hosts tried it.
    """
    told = copy.outcome
    failed = isinstance(told, Failed)
    if not failed and not (isinstance(told, Skipped) and told.reason.startswith(DROPS)):
        return None
    own = hole(report, copy.sender)
    guessed = not failed and report.server is None
    found = own or (hole(report, copy.receiver) if guessed else None)
    if found is None:
        return None
    sender = copy.sender if own else copy.receiver
    words = _words(found)
    what = "The copy stalled" if failed else "The copy was not made, as the one before it stalled,"
    error = (f"The copy failed: {told.error}",) if isinstance(told, Failed) else ()
    trust = PROVEN_TRUST if own else GAP
    verdict = Verdict(*("network", "path", "mtu"), trust, None, f"{what} because {words}.")
    return CopyDiagnosis(
        copy.name,
        copy.initiator,
        copy.dialect,
        None,
        verdict,
        evidence=(*error, *remarks(report, sender)),
        advice=(f"{_remedy(report, found, sender)}. Then run this command again.",),
    )


def rule(given: Evidence) -> Iterator[Claim | str]:
    """A copy that waited for retransmissions on such a path; the hole itself is always told."""
    found = hole(given.report, given.sender)
    if found is None:
        return
    told, usage = given.details.sockets, given.step.usage(given.copy.initiator)
    waited, again = told.rto_seconds, told.retransmitted_segments
    wall = usage.wall_seconds if usage is not None else 0.0
    if not again or wall <= 0 or waited < STALLED_RATIO * wall:
        yield from remarks(given.report, given.sender)
        return
    why = (
        f"The connection waited {seconds_text(waited)} ({percent_text(min(1.0, waited / wall))} of "
        f"the copy) for retransmission timeouts and retransmitted {again:.0f} segments."
    )
    yield _held(given, found, why)


def _held(given: Evidence, found: Hole, why: str) -> Claim:
    return claim(
        CAUSE,
        "path",
        given.step,
        _words(found),
        steps=(given.step.index, found[2]),
        standing="inferred",
        reached=True,
        evidence=(why,),
        remedy=_remedy(given.report, found, given.sender),
    )


def _words(found: Hole) -> str:
    passes, stalls, _ = found
    return (
        f"the path silently drops packets of {stalls:.0f} bytes; packets of {passes:.0f} bytes "
        "pass (MTU black hole)"
    )


def _remedy(report: Report, found: Hole, sender: str) -> str:
    link = dict(hardware_limits.interfaces(report)).get(sender)
    how = "" if link is None else f" (`ip link set dev {link.name} mtu {found[0]:.0f}`)"
    return (
        'Let ICMP "fragmentation needed" pass in routers and firewalls, or set an MTU of '
        f"{found[0]:.0f} on the {sender}{how}"
    )
