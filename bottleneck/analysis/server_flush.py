"""Rule disk/server/write and sync without an agent: what a push's client sees of the disk there.

A FLUSH is answered when the server has made durable what it holds (MS-SMB2 3.3.5.11). Where all
bytes were acknowledged long before, its time is the disk's. A server that forces each write
(Samba: sync always) has nothing left to flush: each WRITE waits instead, and READs do not.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import one_end, server_stops, steps
from bottleneck.analysis.finding import Ceiling, Claim
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import percent_text, rate_text, seconds_text

MOSTLY_RATIO = 0.5
"""Share of a push's time that FLUSHes take, from which on they are what it waits for."""
SELDOM_RATIO = 0.1
ARRIVED_RATIO = 1.25
"""Acknowledged over durable rate, from which on the bytes were there and the disk alone was not."""
CLOSE_RATIO = 0.7
"""Rate over what the FLUSHes leave: what came before the first one is no time of the disk."""
LIKE_RATIO, LIKE_OTHER_RATIO = 1.2, 1.5
"""No push that is not flushed may be so much faster where each write is forced; and in another
dialect, whose requests are longer."""
FASTER_RATIO = 3.0
STEADY_RATIO = 0.3
LEAST_WAIT_SECONDS, LEAST_TRIPS = 0.01, 10.0
LITTLE_BYTES = 64 << 10
WRITE_TRUST, SYNC_TRUST = 0.75, 0.65
SAME = (
    "From the client alone a slow disk, a bad place on it and somebody else's I/O look the same: "
    "an agent on the server (--agent) tells which of the 3 it is."
)


@dataclass(frozen=True)
class Flushed:
    """The FLUSHes of one push."""

    seconds: float
    """What they took beyond what a WRITE sent at the same moment takes."""
    ratio: float
    """That over the time of the push."""
    bytes_per_second: float
    """What was made durable in that time."""


def rule(report: Report, copy: Copy) -> Iterator[Claim | str]:
    """The server's disk as a push shows it that waits for its FLUSHes, or for each WRITE."""
    if copy.made is None or copy.verb != "push" or not one_end.lone(report, copy):
        return
    seen = flushed(copy.made)
    if seen is None:
        return
    if seen.ratio >= MOSTLY_RATIO:
        yield _write(copy.made, seen)
    elif seen.ratio <= SELDOM_RATIO and _forced(report, copy, copy.made):
        yield _sync(report, copy.made)


def flushed(made: Found) -> Flushed | None:
    """What the FLUSHes of a push took; None: nothing tells, or they took no time."""
    details, run = made.outcome.details, median_run(made.outcome)
    moved = run[-1].moved_bytes - run[0].moved_bytes
    elapsed = run[-1].elapsed_seconds - run[0].elapsed_seconds
    last = steps.amount(details, "flush_seconds")
    if last is None:
        return None
    all_of_them = steps.amount(details, "flushing_seconds") or last
    before = max(0.0, (steps.amount(details, "flushes") or 1) - 1)
    usual = steps.amount(details, "request_seconds_median") or 0.0
    # One on the way stands behind the WRITEs before it, as a WRITE would.
    own = min(elapsed, last + max(0.0, all_of_them - last - before * usual))
    return Flushed(own, own / elapsed, moved / own) if own >= steps.LEAST else None


def _write(made: Found, seen: Flushed) -> Claim:
    rate = made.rate
    arrived = steps.amount(made.outcome.details, "acknowledged_bytes_per_second") or 0.0
    level = max(rate.median, seen.bytes_per_second)
    waited = arrived >= ARRIVED_RATIO * rate.median and rate.median >= CLOSE_RATIO * level
    return Claim(
        Ceiling(
            component="disk",
            side="server",
            cause="write",
            bytes_per_second=level,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=max(level, rate.high),
            steps=(made.index,),
            standing="inferred",
        ),
        words=(
            f"the server needs {seconds_text(seen.seconds)} to make it durable, which is its disk "
            f"writing about {rate_text(level)}"
        ),
        reached=True if waited else None,
        trust=WRITE_TRUST,
        evidence=(
            f"It waited {percent_text(seen.ratio)} of its time for the server to flush what it "
            "already had.",
            SAME,
        ),
    )


def _forced(report: Report, copy: Copy, made: Found) -> bool:
    """Whether each WRITE waits at the server from the first one on, flushed or not."""
    details, rate = made.outcome.details, made.rate.median
    waits = steps.amount(details, "request_seconds_median") or 0.0
    trip = steps.amount(details, "rtt_seconds") or 0.0
    # The server's kernel has everything: the client has nothing left to send.
    idle = steps.word(details, "sockets", "by") == "sender"
    left = steps.amount(details, "sockets", "unsent_bytes_median")
    if not idle or left is None or left > LITTLE_BYTES or one_end.bound(made):
        return False
    if waits < max(LEAST_WAIT_SECONDS, LEAST_TRIPS * trip):
        return False
    if copy.memory is not None and copy.memory.rate.median > LIKE_RATIO * rate:
        return False
    if server_stops.seen_in(report) or made.rate.high - made.rate.low > STEADY_RATIO * rate:
        return False
    unflushed = list(_unflushed(report, copy.dialect))
    back = one_end.best(report, "server")
    return bool(
        unflushed
        and max(unflushed) <= rate
        and back is not None
        and back.rate.median >= FASTER_RATIO * rate
    )


def _unflushed(report: Report, dialect: str) -> Iterator[float]:
    """What a push that nobody flushes reached, as much less as it may be faster."""
    for found in one_end.alike(report, "client"):
        if found.step.stage in ("smb-tax", "smb-matrix"):
            same = found.step.setting.get("dialect") == dialect
            yield found.rate.median / (LIKE_RATIO if same else LIKE_OTHER_RATIO)


def _sync(report: Report, made: Found) -> Claim:
    rate = made.rate
    back = one_end.best(report, "server")
    assert back is not None
    waits = seconds_text(steps.amount(made.outcome.details, "request_seconds_median") or 0.0)
    return Claim(
        Ceiling(
            component="disk",
            side="server",
            cause="sync",
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(made.index, back.index),
            standing="inferred",
        ),
        words=(
            f"each write waits {waits} at the server before it is answered, from the first one on, "
            f"while reads come back at {rate_text(back.rate.median)}: it seems to force each write "
            "to its disk"
        ),
        trust=SYNC_TRUST,
        evidence=(
            "Writes that nobody flushes are as slow, and the last FLUSH found nothing to do.",
            "Software on the server that looks at each write would look the same: an agent there "
            "(--agent) reads its settings and measures forced writes alone.",
        ),
        remedy=(
            "sync always = no, if that is what its smb.conf says (a power cut may take what was "
            "not flushed),"
        ),
    )
