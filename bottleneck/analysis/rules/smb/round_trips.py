"""smb/round-trips: too few bytes in flight for the round-trip time.

Each request waits for its reply, so that no more than the bytes in flight arrives per round trip
(Little's law). The request's own time on the link is added to the round trip. Where the same
requests were measured alone, and more of them were faster, that rate is the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import steps, transfer_rates
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, foreign_rate
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rtt import Rtt, rtt
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.text.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    "smb",
    "round-trips",
    "requests in flight",
    remedy="Run several copies in parallel, so that more is in flight",
)
IN_PARALLEL = "Run several copies in parallel, so that more than {} is in flight"
SHORT_SECONDS = 1e-3
"""Least RTT beside which the server's own work on a request is small."""
STALLED_RATIO = 0.05
"""Least share of requests waiting only for credits at which the server is the limit."""
USUAL_REQUEST_BYTES = 1 << 20
MOSTLY_RATIO = 0.85
"""A copy at this share of the rate of its replies spends its time waiting for them."""
FULL_RATIO = 0.5
"""Least share of requests waiting for credits at which the window was always full."""
WAITING_RATIO = 0.7
"""Share of a request's time that is the idle round trip, so that no link, disk or core matters."""
LONG_DIGITS = 10
"""More digits than a setting of an smb.conf has."""
NEAR_RATIO = 2.0
"""A ceiling from the TCP connect's rough RTT counts up to so many times the copy's rate."""


def rule(evidence: Evidence) -> Iterator[Claim | str]:
    """Yields the rate of the bytes that the copy may keep in flight, by the idle path's RTT."""
    in_flight, stalled = evidence.details.in_flight_bytes, stalls(evidence.step)
    if in_flight is None:
        return
    # Fewer bytes in flight because of another limit are no limit: then the depth counts.
    requested = (evidence.details.request_bytes or 0.0) * (evidence.details.depth or 0.0)
    ran_out = bool(stalled) or in_flight >= requested
    window = in_flight if ran_out else requested
    if stalled:
        room = "slot (MaxMpxCount)" if evidence.copy.dialect == "smb1" else "credit"
        yield (
            f"The server had no {room} left for the next request {stalled:.0f} times, with "
            f"{size_text(in_flight)} in flight."
        )
    idle = rtt(evidence.report, evidence.step)
    if idle is None or (idle.seconds < SHORT_SECONDS and not stalled):
        return
    limit = _claim(evidence, idle, window, ran_out)
    if not idle.is_echo and limit.ceiling.bytes_per_second > NEAR_RATIO * evidence.rate.median:
        return
    sides = (evidence.sender, evidence.receiver)
    busy = any(foreign_rate(evidence.report, evidence.step, side) for side in sides)
    if busy and not limit.reached:
        # The RTT includes the queue of others' traffic: the path was never idle.
        limit = replace(limit, ceiling=replace(limit.ceiling, standing="at-least"))
    yield limit


def is_starved(evidence: Evidence) -> bool:
    """Whether credits ran out all the time, while requests spent their time on the path."""
    idle, took = rtt(evidence.report, evidence.step), evidence.details.request_seconds_median
    if idle is None or took is None or not idle.is_echo or idle.seconds < SHORT_SECONDS:
        return False
    full = 0 < FULL_RATIO * evidence.details.requests <= stalls(evidence.step)
    return full and idle.seconds >= WAITING_RATIO * took


def stalls(step: MeasuredStep) -> float:
    """Returns how often a request waited only for the server's credits; 0: too seldom to matter."""
    count = step.details.credit_stalls
    return count if count > STALLED_RATIO * step.details.requests else 0.0


def _claim(evidence: Evidence, idle: Rtt, in_flight: float, ran_out: bool) -> Claim:
    step, by_server = evidence.step, bool(stalls(evidence.step)) or _keeps_requests_short(evidence)
    took, is_starved_copy = step.details.request_seconds_median, is_starved(evidence)
    reached_otherwise = None if ran_out else False
    # A FLUSH at the end has no request beside it.
    rate = max(step.rate.median, step.details.acknowledged_bytes_per_second or 0.0)
    # A request takes no longer on the link than at the path's measured rate. For a window that
    # another limit leaves empty, the limit is computed without a link.
    carried = evidence.path_rate if ran_out else None
    link_seconds = (evidence.details.request_bytes or 0.0) / carried if carried else 0.0
    level, high = (in_flight / (each + link_seconds) for each in (idle.seconds, idle.low_seconds))
    if is_starved_copy and took is not None:
        # Only the maximum in flight is reported; the usual value follows from Little's law.
        in_flight = min(in_flight, rate * took)
        # Rates of transfers with as few requests at other times are possible, too.
        moves = transfer_rates.transfers_from(evidence.report, evidence.sender)
        similar = (e for e in moves if transfer_rates.has_no_larger_window(evidence.copy, e))
        level = max(rate, in_flight / idle.seconds, *(each.bytes_per_second for each in similar))
        in_flight = max(in_flight, level * idle.seconds)
    size, trip = size_text(in_flight), seconds_text(idle.seconds)
    words = f"only {size} of SMB data is in flight"
    if by_server:
        words = f"the server allows {size} of SMB data in flight"
    how = "SMB ECHO" if idle.is_echo else "the TCP connect, a rough figure"
    took_text = f"; a request of the copy took {seconds_text(took)}" if took else ""
    detail, remedy = (
        _low_setting(evidence, size, in_flight, idle.seconds)
        if by_server
        else ("", IN_PARALLEL.format(size))
    )
    return claim(
        CAUSE,
        "server" if by_server else "path",
        None,
        f"{words}, at most {rate_text(level)} at an RTT of {trip}",
        level=level,
        high=max(level, high),
        steps=tuple(dict.fromkeys((step.index, *idle.step_indices))),
        standing="inferred",
        reached=(is_starved_copy and step.rate.median >= MOSTLY_RATIO * rate) or reached_otherwise,
        evidence=(f"The RTT of the idle path was {trip} (by {how}){took_text}.",),
        remedy=remedy,
        detail=detail,
    )


def _low_setting(evidence: Evidence, size: str, in_flight: float, trip: float) -> tuple[str, str]:
    """Returns the setting that keeps so few bytes in flight (empty: not known), and a remedy."""
    needed = (evidence.path_rate or 0.0) * trip
    needs = f"; the path needs {size_text(needed)} in flight" if needed > in_flight else ""
    does = "read" if evidence.copy.verb == "pull" else "write"
    old = evidence.copy.dialect == "smb1"
    options = ["max mux"] if old else ["smb2 max credits", f"smb2 max {does}"]
    lines = [each for each in evidence.smb_conf("server") if each.option in options]
    if lines:
        names = " and ".join(f"`{each.option}`" for each in lines)
        now = lines[0].value
        is_number = now.isascii() and now.isdecimal() and len(now) < LONG_DIGITS
        minimum = (
            math.ceil(int(now) * needed / in_flight)
            if needs and is_number and len(lines) == 1
            else 0
        )
        target = f" to {minimum} or more" if minimum else ""
        return (
            f"`{lines[0].option} = {now}`",
            f"Raise {names} in the server's smb.conf{target} (now {now}){needs}",
        )
    names = " and ".join(f"`{each}`" for each in options)
    return "", f"Allow more than {size} in flight on the server (Samba: {names} in smb.conf)"


def _keeps_requests_short(evidence: Evidence) -> bool:
    """Whether the server keeps requests short: by its maximum size, or SMB1's MaxMpxCount."""
    if evidence.copy.dialect == "smb1":
        return True
    target = steps.target_of(evidence.report)
    longest = target.max_read_bytes if evidence.copy.verb == "pull" else target.max_write_bytes
    is_short = longest is not None and longest < USUAL_REQUEST_BYTES
    return is_short and target.dialect == evidence.copy.dialect
