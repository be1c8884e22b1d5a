"""Rule network/loss without an agent: what the client's socket tells of lost packets, by their law.

Of a push its own kernel counts what it sends again. Of a pull it sees the packets that came after a
hole: about a window of them for each loss. Nothing shows here that several connections would carry
more, so that a link whose queue is too short (a policer) may look the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import loss, model, one_end, steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.loss import HIGH_TOLERANCE, LEAST_SEGMENTS, LOW_TOLERANCE, Bracket
from bottleneck.analysis.steps import Copy, Found
from bottleneck.analysis.tcp_evidence import Connection
from bottleneck.report import Report, median_run
from bottleneck.reports.units import range_text, seconds_text, share_text

LEAST_RATIO = 4e-3
"""Of the packets: less than that any full link drops now and then."""
SHORT_SECONDS = 2e-3
PUSH_TRUST, PULL_TRUST = 0.7, 0.6
USUAL_CONTROL = "cubic"
"""Of a server that nobody looked at: the usual one, whose law reaches higher."""
POLICER = (
    "A link with a queue that is too short drops packets at the same law: an agent on the server "
    "(--agent) tells it from loss, by several connections at once."
)


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The rate of a copy whose lost packets explain it."""
    made = copy.made
    if made is None or not one_end.lone(report, copy):
        return
    seen = Connection(made, made.outcome.details.get("sockets"), own=True)
    known = _of_push(seen) if copy.verb == "push" else _of_pull(report, made, seen)
    if known is None:
        return
    lost, trip, allowed = known
    rate = made.rate
    fits = allowed.low / LOW_TOLERANCE <= rate.median <= allowed.high * HIGH_TOLERANCE
    standard = model.looks_like(rate.median, steps.mtu_bytes(report)) is not None
    if lost < LEAST_RATIO or trip < SHORT_SECONDS or standard or not fits:
        return
    yield Claim(
        Ceiling(
            component="network",
            side="path",
            cause="loss",
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(made.index,),
            standing="inferred",
        ),
        words=f"the path loses about {share_text(lost)} of its packets",
        reached=True,
        trust=PUSH_TRUST if copy.verb == "push" else PULL_TRUST,
        evidence=(
            f"At a round trip of {seconds_text(trip)} so much loss allows one connection "
            f"{range_text(allowed.low, allowed.high)}.",
            POLICER,
        ),
        remedy="A path that loses no packets (cable, plug, radio, a queue that is too short)",
    )


def _of_push(seen: Connection) -> tuple[float, float, Bracket] | None:
    """Share of lost packets, round trip and what both allow; None: it did not lose, or queued."""
    lost, trip = seen.figure("loss_ratio"), seen.figure("rtt_seconds_median")
    allowed = None if lost is None or trip is None else loss.lossy(seen, lost)
    return None if lost is None or trip is None or allowed is None else (lost, trip, allowed)


def _of_pull(report: Report, made: Found, seen: Connection) -> tuple[float, float, Bracket] | None:
    """The same from the packets that came after a hole, if the client took what came at once."""
    trip = seen.figure("receiver_rtt_seconds_median")
    late = seen.share("out_of_order_segments")
    unread = steps.amount(seen.told, "unread_bytes_median")
    window = seen.figure("own_window_bytes_median")
    if trip is None or unread is None or window is None:
        return None
    run = median_run(made.outcome)
    segment = model.payload_bytes(steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES)
    flying = made.rate.median * trip
    events = late / max(1.0, flying / segment)
    if events < LEAST_SEGMENTS or flying * loss.SCARCE_RATIO > window or unread > flying:
        return None
    lost = events * segment / (run[-1].moved_bytes - run[0].moved_bytes)
    return lost, trip, loss.bracket(segment, trip, lost, USUAL_CONTROL)
