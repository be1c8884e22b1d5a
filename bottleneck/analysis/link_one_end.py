"""What the link carries where TCP alone was not measured: read off copies that touch no disk.

A copy that reaches the payload of a standard link to 3 % is held by such a link. At another rate
(a shaper, a radio link) the client's own socket has to show that its packets queue on the path.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import (
    interface_facts,
    loss,
    model,
    one_end,
    physics,
    server_stops,
    steps,
    tcp_evidence,
)
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import link_text, rate_text, seconds_text

INFERRED_TRUST, QUEUED_TRUST = 0.8, 0.7
WITHOUT_DISK_RATIO = 0.95
"""Of the fastest, which something without a disk has to reach: else a disk may be what it is."""
STEADY_RATIO = 0.9
"""Of the fastest, which all that a link caps reaches, whatever it moves."""
LEAST_ALIKE = 3
DOUBTED_TRUST = 0.6
OTHER_WAY_RATIO = 1.1
STANDING_SECONDS = 1e-3
FULL_RATIO = 0.5
"""Of the looks at the send queue."""


def inferred(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The link's payload rate, inferred from what this client moved over SMB that way."""
    if steps.on_one_host(report):
        return
    found = [
        each
        for each in one_end.alike(report, copy.sender)
        if physics.impossible(report, each) is None
    ]
    best = max(filter(_diskless, found), key=one_end.steady_rate, default=None)
    if best is None:
        return
    rate = one_end.steady_rate(best)
    most = max(each.rate.median for each in found)
    if rate < WITHOUT_DISK_RATIO * most or one_end.bound(best):
        return
    match = model.looks_like(rate, steps.mtu_bytes(report))
    if match is not None:
        yield Claim(
            _ceiling(best, rate),
            words=(
                f"without the client's disk it reaches {rate_text(rate)}{likeness(match)} "
                "(inferred: the network alone was not measured)"
            ),
            trust=_trust(report, copy, rate),
            evidence=tuple(interface_facts.told(report, best, copy, match)),
        )
    elif one_end.lone(report, copy) and _queues(report, copy) and _steady(report, found, rate):
        seconds = seconds_text(steps.amount(_told(copy), "rtt_seconds_median") or 0.0)
        least = seconds_text(steps.amount(_told(copy), "min_rtt_seconds") or 0.0)
        yield Claim(
            _ceiling(best, rate),
            words=(
                f"its packets queue on the path (a round trip of {seconds} where {least} is "
                f"possible), which lets {rate_text(rate)} through"
            ),
            reached=True,
            trust=QUEUED_TRUST,
            evidence=(
                "All copies that way, with a disk and without, end at the same rate, with more "
                "waiting to be sent. An agent on the server (--agent) measures the network alone.",
            ),
        )


def _trust(report: Report, copy: Copy, rate: float) -> float:
    """How far a likeness is believed: a server's disk may happen to write what a link carries.

    Less where the client had nothing left to send, and where the other way carries more.
    """
    idle = steps.word(_told(copy), "by") == "sender"
    back = one_end.best(report, copy.receiver)
    more = back is not None and one_end.steady_rate(back) > OTHER_WAY_RATIO * rate
    doubted = idle or (more and not _queues(report, copy))
    return DOUBTED_TRUST if doubted else INFERRED_TRUST


def likeness(match: model.LinkMatch | None) -> str:
    """The second half of a sentence about a rate; empty where it is no standard link's."""
    if match is None:
        return ""
    return f", a {link_text(match.bits_per_second)} link's payload at MTU {match.mtu_bytes}"


def _ceiling(best: Found, rate: float) -> Ceiling:
    return Ceiling(
        component="network",
        side="path",
        cause="link-rate",
        bytes_per_second=rate,
        low_bytes_per_second=best.rate.low,
        high_bytes_per_second=max(rate, best.rate.high),
        steps=(best.index,),
        standing="inferred",
    )


def _diskless(found: Found) -> bool:
    """Whether it touched no disk of the client's."""
    return found.step.stage != "smb-copy" or found.step.setting.get("end") == "memory"


def _told(copy: Copy) -> object:
    return None if copy.made is None else copy.made.outcome.details.get("sockets")


def _queues(report: Report, copy: Copy) -> bool:
    """Whether a push's packets stand in a queue, with more behind them that has to wait."""
    seen = tcp_evidence.connection(report, copy)
    if seen is None or not seen.own or seen.figure("rtt_seconds_median") is None:
        return False
    waited = seen.share("rtt_seconds_median") - seen.share("min_rtt_seconds")
    segment = seen.share("segment_bytes")
    backlog = seen.share("unsent_bytes_median") >= max(1.0, loss.BACKLOG_SEGMENTS * segment)
    full = seen.share("send_queue_full_ratio") >= FULL_RATIO
    by_path = steps.word(seen.told, "by") == "network"
    return by_path and seen.queued and waited >= STANDING_SECONDS and backlog and full


def _steady(report: Report, found: list[Found], rate: float) -> bool:
    """Whether all copies that way came to the same rate, evenly."""
    copies = [each for each in found if each.step.stage == "smb-copy"]
    alike = all(one_end.steady_rate(each) >= STEADY_RATIO * rate for each in copies)
    even = not any(server_stops.stopped(report, each) for each in copies)
    return alike and even and len(copies) >= LEAST_ALIKE
