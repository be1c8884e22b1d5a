"""smb/round-trips: too few bytes in flight for the round-trip time.

Each request waits for its reply, so that no more than what is in flight arrives per round trip
(Little's law). The request's own time on the link comes on top: it shares no round trip. Where the
same requests were measured alone, and more of them were faster, that rate is the ceiling.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from bottleneck.analysis import shown, steps
from bottleneck.analysis.claim import Cause, claim
from bottleneck.analysis.evidence.copies import Evidence, foreign_rate
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rtt import Rtt, rtt
from bottleneck.analysis.steps import Found
from bottleneck.text.units import rate_text, seconds_text, size_text

CAUSE = Cause(
    *("smb", "round-trips", "requests in flight"),
    remedy="Run several copies in parallel, so that more is in flight",
)
IN_PARALLEL = "Run several copies in parallel, so that more than {} is in flight"
SHORT_SECONDS = 1e-3
"""Below it the server's own work on a request is no longer small beside the round trip."""
STALLED_RATIO = 0.05
"""Share of the requests that only credits kept back, from which on the server is the limit."""
USUAL_REQUEST_BYTES = 1 << 20
MOSTLY_RATIO = 0.85
"""Of the rate at which its requests were answered, which a copy has that mostly waits for them."""
FULL_RATIO = 0.5
"""Share of the requests that waited for credits, from which on the window was always full."""
WAITING_RATIO = 0.7
"""Share of a request's time that is the idle round trip: no link, disk or core takes the rest."""
LONG_DIGITS = 10
"""No setting of an smb.conf has so many."""
NEAR_RATIO = 2.0
"""One connect is a rough figure: further above the copy its ceiling says nothing."""


def rule(given: Evidence) -> Iterator[Claim | str]:
    """What the bytes that the copy may keep in flight carry at the idle path's round trip."""
    in_flight, stalled = given.details.in_flight_bytes, stalls(given.step)
    if in_flight is None:
        return
    # What was in flight while something else throttled the copy is no limit: the depth is.
    asked = (given.details.request_bytes or 0.0) * (given.details.depth or 0.0)
    ran_out = bool(stalled) or in_flight >= asked
    window = in_flight if ran_out else asked
    if stalled:
        room = "slot (MaxMpxCount)" if given.copy.dialect == "smb1" else "credit"
        yield (
            f"The server had no {room} left for the next request {stalled:.0f} times, with "
            f"{size_text(in_flight)} in flight."
        )
    seen = rtt(given.report, given.step)
    if seen is None or (seen.seconds < SHORT_SECONDS and not stalled):
        return
    found = _claim(given, seen, window, ran_out)
    if not seen.echoed and found.ceiling.bytes_per_second > NEAR_RATIO * given.rate.median:
        return
    sides = (given.sender, given.receiver)
    busy = any(foreign_rate(given.report, given.step, side) for side in sides)
    if busy and not found.reached:
        # The round trip holds the queue of others' traffic: it was never seen idle.
        found = replace(found, ceiling=replace(found.ceiling, standing="at-least"))
    yield found


def starved(given: Evidence) -> bool:
    """Whether the credits ran out all the time, of requests that did little but travel."""
    seen, took = rtt(given.report, given.step), given.details.request_seconds_median
    if seen is None or took is None or not seen.echoed or seen.seconds < SHORT_SECONDS:
        return False
    full = 0 < FULL_RATIO * given.details.requests <= stalls(given.step)
    return full and seen.seconds >= WAITING_RATIO * took


def stalls(made: Found) -> float:
    """How often the server's credits alone kept a request back; 0: too seldom to matter."""
    count = made.details.credit_stalls
    return count if count > STALLED_RATIO * made.details.requests else 0.0


def _claim(given: Evidence, seen: Rtt, in_flight: float, ran_out: bool) -> Claim:
    made, by_server = given.step, bool(stalls(given.step)) or _short_of(given)
    took, waits = made.details.request_seconds_median, starved(given)
    unclear = None if ran_out else False
    # A FLUSH at the end has no request beside it.
    rate = max(made.rate.median, made.details.acknowledged_bytes_per_second or 0.0)
    # What the path really carries is no less, so that no request takes longer on it. A window that
    # something else leaves empty says what it would carry without that: over a link without end.
    carried = given.path_rate if ran_out else None
    own = (given.details.request_bytes or 0.0) / carried if carried else 0.0
    level, high = (in_flight / (each + own) for each in (seen.seconds, seen.low_seconds))
    if waits and took is not None:
        # The most that ever was in flight is told; what mostly was follows by Little's law.
        in_flight = min(in_flight, rate * took)
        # What as few requests moved at another time they can move.
        moved = shown.moved(given.report, given.sender)
        alike = (e.bytes_per_second for e in moved if shown.with_as_few(given.copy, e))
        level = max(rate, in_flight / seen.seconds, *alike)
        in_flight = max(in_flight, level * seen.seconds)
    size, trip = size_text(in_flight), seconds_text(seen.seconds)
    words = f"only {size} of SMB data is in flight"
    if by_server:
        words = f"the server allows {size} of SMB data in flight"
    how = "SMB ECHO" if seen.echoed else "the TCP connect, a rough figure"
    took_text = f"; a request of the copy took {seconds_text(took)}" if took else ""
    detail, remedy = (
        _setting(given, size, in_flight, seen.seconds)
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
        steps=tuple(dict.fromkeys((made.index, *seen.steps))),
        standing="inferred",
        reached=True if waits and made.rate.median >= MOSTLY_RATIO * rate else unclear,
        evidence=(f"The RTT of the idle path was {trip} (by {how}){took_text}.",),
        remedy=remedy,
        detail=detail,
    )


def _setting(given: Evidence, size: str, in_flight: float, rtt_seconds: float) -> tuple[str, str]:
    """The setting that keeps so few bytes in flight, empty: not known; and what to do."""
    wanted = (given.path_rate or 0.0) * rtt_seconds
    needs = f"; the path needs {size_text(wanted)} in flight" if wanted > in_flight else ""
    does = "read" if given.copy.verb == "pull" else "write"
    old = given.copy.dialect == "smb1"
    options = ["max mux"] if old else ["smb2 max credits", f"smb2 max {does}"]
    found = [each for each in given.smb_conf("server") if each.option in options]
    if found:
        named = " and ".join(f"`{each.option}`" for each in found)
        now = found[0].value
        counted = len(found) == 1 and now.isascii() and now.isdecimal() and len(now) < LONG_DIGITS
        least = math.ceil(int(now) * wanted / in_flight) if needs and counted else 0
        more = f" to {least} or more" if least else ""
        return (
            f"`{found[0].option} = {now}`",
            f"Raise {named} in the server's smb.conf{more} (now {now}){needs}",
        )
    named = " and ".join(f"`{each}`" for each in options)
    return "", f"Allow more than {size} in flight on the server (Samba: {named} in smb.conf)"


def _short_of(given: Evidence) -> bool:
    """Whether the server's own limits keep requests short: its longest, or SMB1's MaxMpxCount."""
    if given.copy.dialect == "smb1":
        return True
    target = steps.target_of(given.report)
    most = target.max_read_bytes if given.copy.verb == "pull" else target.max_write_bytes
    short = most is not None and most < USUAL_REQUEST_BYTES
    return short and target.dialect == given.copy.dialect
