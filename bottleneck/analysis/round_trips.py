"""Rule smb/round-trips: too few bytes in flight for the round-trip time.

Each request waits for its reply, so that no more than what is in flight arrives per round trip
(Little's law). The request's own time on the link comes on top: it shares no round trip. Where the
same requests were measured alone, and more of them were faster, that rate is the ceiling.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.noise import SINGLE_RATIO
from bottleneck.analysis.rtt import Rtt, rtt
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import rate_text, seconds_text, size_text

SHORT_SECONDS = 1e-3
"""Below it the server's own work on a request is no longer small beside the round trip."""
STALLED_RATIO = 0.05
"""Share of the requests that only credits kept back, from which on the server is the limit."""
USUAL_REQUEST_BYTES = 1 << 20
ECHO_TRUST = 0.9
CONNECT_TRUST = 0.7
PLAUSIBLE_RATIO = 0.6
"""Requests alone that are further below what the round trip allows were held by something else."""
FULL_RATIO = 0.5
"""Share of the requests that waited for credits, from which on the window was always full."""
WAITING_RATIO = 0.7
"""Share of a request's time that is the idle round trip: no link, disk or core takes the rest."""
NEAR_RATIO = 2.0
"""One connect is a rough figure: further above the copy its ceiling says nothing."""


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """What the bytes that the copy kept in flight carry at the round-trip time of the path."""
    made = copy.made
    if made is None:
        return
    in_flight = steps.positive(made.outcome.details, "in_flight_bytes")
    if in_flight is None:
        return
    stalled = stalls(made)
    if stalled:
        yield (
            f"With {size_text(in_flight)} in flight the server had no {_room(copy)} left for the "
            f"next request, {stalled:.0f} times."
        )
    seen = rtt(report, made)
    if seen is None or (seen.seconds < SHORT_SECONDS and not stalled):
        return
    level = _level(report, copy, made, seen, in_flight)
    if not seen.echoed and level.median > NEAR_RATIO * made.rate.median:
        return
    yield _claim(report, copy, made, seen, in_flight, level)


def _room(copy: Copy) -> str:
    return "room (MaxMpxCount)" if copy.dialect == "smb1" else "credits"


def stalls(made: Found) -> float:
    """How often the server's credits alone kept a request back; 0: too seldom to matter."""
    details = made.outcome.details
    count = steps.amount(details, "credit_stalls") or 0.0
    requests = steps.amount(details, "requests") or 0.0
    return count if count > STALLED_RATIO * requests else 0.0


@dataclass(frozen=True)
class Level:
    """What the bytes in flight carry, bytes per second, and where that is from."""

    median: float
    high: float
    standing: Standing
    steps: tuple[int, ...]


def _level(report: Report, copy: Copy, made: Found, seen: Rtt, in_flight: float) -> Level:
    own = _own_seconds(report, copy)
    told = Level(
        in_flight / (seen.seconds + own), in_flight / (seen.low_seconds + own), "inferred", ()
    )
    alone = _alone(report, copy, made)
    if alone is not None and alone.rate >= PLAUSIBLE_RATIO * told.median:
        told = Level(alone.rate, max(alone.rate, told.high), "measured", (alone.step,))
    if copy.verb == "pull":
        return told
    # The FLUSH at a push's end is a round trip with nothing in flight.
    run = median_run(made.outcome)
    moved = run[-1].moved_bytes - run[0].moved_bytes
    return replace(
        told,
        median=moved / (moved / told.median + seen.seconds),
        high=moved / (moved / told.high + seen.low_seconds),
    )


class Alone(NamedTuple):
    """The copy's own shape of requests, from and to memory."""

    rate: float
    step: int


def _alone(report: Report, copy: Copy, made: Found) -> Alone | None:
    """What the copy's requests carry alone, where the path carries more; None: not known."""
    names = ("request_bytes", "depth")
    shape = tuple(steps.positive(made.outcome.details, name) for name in names)
    for each in steps.measured(report, "smb-matrix"):
        setting = each.step.setting
        same = (setting.get("verb"), setting.get("dialect")) == (copy.verb, copy.dialect)
        if not same or not each.intact:
            continue
        rates = [
            (tuple(steps.positive(cell, name) for name in names), rate)
            for cell in steps.items(each.outcome.details, "cells")
            if (rate := steps.positive(cell, "bytes_per_second")) is not None
        ]
        found = next((rate for at, rate in rates if at == shape), None)
        if found is not None and max(rate for _, rate in rates) > SINGLE_RATIO * found:
            return Alone(found, each.index)
    return None


def _own_seconds(report: Report, copy: Copy) -> float:
    """Time of one request on the link, by the most that TCP carried; 0 where it was not measured.

    What the path really carries is no less, so that the ceiling is never set too high by it.
    """
    assert copy.made is not None
    size = steps.amount(copy.made.outcome.details, "request_bytes") or 0.0
    carried = [
        each.rate.median
        for each in steps.measured(report, "tcp")
        if steps.sender(steps.word(each.step.setting, "verb") or "", each.step.initiator)
        == copy.sender
    ]
    return size / max(carried) if carried else 0.0


def _claim(
    report: Report, copy: Copy, made: Found, seen: Rtt, in_flight: float, level: Level
) -> Claim:
    by_server = bool(stalls(made)) or _short_of(report, copy)
    took = steps.positive(made.outcome.details, "request_seconds_median")
    waits = took is not None and _waits(made, seen, took)
    if waits and took is not None and made.rate.median * took < in_flight:
        # The most that ever was in flight is told; what mostly was follows by Little's law.
        in_flight = made.rate.median * took
        most = max(made.rate.median, in_flight / seen.seconds)
        level = Level(most, max(most, in_flight / seen.low_seconds), "inferred", level.steps)
    size, trip = size_text(in_flight), seconds_text(seen.seconds)
    allowed = ", all that the server allows," if by_server else ""
    how = "SMB ECHO" if seen.echoed else "the TCP connect, a rough figure"
    took_text = f"; a request of the copy took {seconds_text(took)}" if took else ""
    return Claim(
        Ceiling(
            component="smb",
            side="server" if by_server else "path",
            cause="round-trips",
            bytes_per_second=level.median,
            low_bytes_per_second=level.median,
            high_bytes_per_second=level.high,
            steps=tuple(dict.fromkeys((made.index, *seen.steps, *level.steps))),
            standing=level.standing,
        ),
        words=(
            f"{size} in flight{allowed} at a round trip of {trip} carry no more than "
            f"{rate_text(level.median)}"
        ),
        reached=True if waits else None,
        trust=ECHO_TRUST if seen.echoed else CONNECT_TRUST,
        evidence=(f"The idle path's round trip is {trip} (by {how}){took_text}.",),
        remedy=(
            f"A server that lets more than {size} be in flight (Samba: smb2 max credits, smb2 max "
            "read, smb2 max write; SMB1: max mux)"
            if by_server
            else f"More than {size} in flight, as several copies at once keep,"
        ),
    )


def _waits(made: Found, seen: Rtt, took: float) -> bool:
    """Whether the window was always full, of requests that did little but travel: the cap."""
    requests = steps.amount(made.outcome.details, "requests") or 0.0
    full = 0 < FULL_RATIO * requests <= stalls(made)
    long = seen.echoed and seen.seconds >= SHORT_SECONDS
    return full and long and seen.seconds >= WAITING_RATIO * took


def _short_of(report: Report, copy: Copy) -> bool:
    """Whether the server's own limits keep requests short: its longest, or SMB1's MaxMpxCount."""
    if copy.dialect == "smb1":
        return True
    if steps.word(report.target, "dialect") != copy.dialect:
        return False
    name = "max_read_bytes" if copy.verb == "pull" else "max_write_bytes"
    most = steps.positive(report.target, name)
    return most is not None and most < USUAL_REQUEST_BYTES
