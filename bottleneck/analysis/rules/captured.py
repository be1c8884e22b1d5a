"""Remarks and advice about a copy in a packet capture: figures that an expert reads from it.

Its cap follows from its time, as of any other copy (facts/captured.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.evidence.capture import Capture
from bottleneck.analysis.evidence.copies import Evidence
from bottleneck.analysis.facts.captured import UNSEEN_RATIO, capture_of
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from bottleneck.text.units import count_text, percent_text, rate_text, seconds_text, size_text
from probes.core.records import SIDES

MOST_ROWS = 3
"""Commands with a line of their own, those that the client waited for longest."""
CHATTY_RATIO, LEAST_CHATTER = 0.5, 20
"""Requests without data over all, and their count, from which on they are worth a line."""
LEAST_SIGNED = 5
"""Signed requests, from which on not only the login was signed."""
DATA = ("READ", "WRITE")
HANG_ADVICE = (
    "Large packets are dropped, or the server hangs: send it `ping -M do -s 1472` (on Windows "
    "`ping -f -l 1472`). Without replies set a smaller MTU on both hosts, or let ICMP "
    '"fragmentation needed" pass in routers and firewalls; with replies look at the server.'
)


def rule(evidence: Evidence) -> Iterator[str]:
    """Yields what a capture shows beside the shares of the time."""
    capture = capture_of(evidence.copy)
    if capture is None:
        return
    where = f"at the {capture.point}" if capture.point in SIDES else ""
    where = where or ("between the hosts" if capture.point else "near both hosts")
    start = "" if capture.has_syn else "; it lacks the start of the connection"
    yield f"Captured {where}{start}."
    if capture.is_unanswered:
        yield "A READ got no reply, and nothing large ever came."
    if capture.is_cut:
        yield "It is too long for all of its connections: the shares are of a part of the time."
    yield from _requests(capture)
    yield from _path(capture)
    moved_bytes = evidence.step.moved_bytes
    if capture.unseen_bytes > UNSEEN_RATIO * moved_bytes:
        size = size_text(capture.unseen_bytes)
        yield f"The capture itself lost {size} that were acknowledged: it was not fast enough."
    if capture.others_ratio is None:
        yield "No other traffic was captured: whether it shared the path is not known."
    elif round(capture.others_ratio, 2):
        yield f"Others had {percent_text(capture.others_ratio)} of the bytes on the copy's way."
    best = capture.best_bytes_per_second
    if best is not None and best > evidence.step.rate.median:
        yield f"The path carried {rate_text(best)} at its best."


def _requests(capture: Capture) -> Iterator[str]:
    if capture.depth and capture.request_bytes:
        size = size_text(capture.request_bytes)
        yield f"Requests: {size} each, {capture.depth:.0f} at a time."
    rows = sorted(capture.commands, key=lambda each: -(each.seconds or 0.0))
    for each in rows[:MOST_ROWS]:
        if each.seconds_median is not None and each.seconds_high is not None:
            yield (
                f"{each.command}: {count_text(each.requests)} answered after "
                f"{seconds_text(each.seconds_median)} (median), "
                f"{seconds_text(each.seconds_high)} (90%), {seconds_text(each.seconds)} in sum."
            )
    total = sum(each.requests for each in capture.commands)
    others = [each for each in capture.commands if each.command not in (*DATA, "?", "encrypted")]
    chatter = sum(each.requests for each in others)
    if chatter >= max(LEAST_CHATTER, CHATTY_RATIO * total):
        names = ", ".join(f"{each.requests:.0f} {each.command}" for each in others[:4])
        yield f"Between the data: {names}."
    if capture.encrypted or capture.signed >= LEAST_SIGNED:
        yield f"The messages were {'encrypted' if capture.encrypted else 'signed'}."


def _path(capture: Capture) -> Iterator[str]:
    if capture.rtt_seconds is not None:
        queue = capture.queue_seconds
        queued = f", {seconds_text(queue)} more in queues under load" if queue else ""
        yield f"Round trip: {seconds_text(capture.rtt_seconds)}{queued}."
    if capture.lost_segments:
        where = "before" if 2 * capture.lost_before > capture.lost_segments else "behind"
        share = percent_text(capture.lost_ratio)
        yield f"Lost: {share} of the segments, most of them {where} the point of the capture."
    if capture.largest_window_bytes is not None:
        zero = f"; shut {count_text(capture.zero_windows)} times" if capture.zero_windows else ""
        yield f"Receive window: at most {size_text(capture.largest_window_bytes)}{zero}."


def advice(report: Report, side: str | None) -> str:
    """Returns how to tell a host's disk from its CPU, which packets do not show."""
    return (
        f"Packets do not show whether the {side}'s disk or its CPU takes the time. Watch both "
        f"(`iostat -x 1`, `top`), or run `{_diagnose(report)}`."
    )


def hang_advice(copy: Copy) -> tuple[str, ...]:
    """Returns how to tell dropped packets from a server that hangs; empty: neither is in doubt."""
    capture = capture_of(copy)
    is_in_doubt = capture is not None and capture.is_unanswered and capture.loss_ratio > 0
    return (HANG_ADVICE,) if is_in_doubt else ()


def what_to_try(report: Report, capture: Capture) -> str:
    """Returns advice for a captured copy without a cap."""
    if capture.is_unanswered:
        return "Look at the server: it received a READ, and sent no reply."
    if not capture.has_syn:
        return "Capture again, and begin before the copy connects: the capture lacks the start."
    return f"Measure each component separately: `{_diagnose(report)}`."


def _diagnose(report: Report) -> str:
    share = str(report.target.get("share") or "//SERVER").removesuffix("/-")
    return f"bottleneck diagnose {share}/SHARE {steps.agent_option(report)}"
