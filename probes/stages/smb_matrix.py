"""Request size x depth: the rate of clients with so many bytes in flight, and the RTT.

rate = min(ceiling, bytes in flight / RTT). From and to memory, without FLUSH: the question is the
protocol on this path and no disk. Runs on the client only (Python 3.11).
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from probes.core.field_types import Count, Seconds, Size, Text
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import NO_ROOM, Last, RunFacts, Running, Stage, Turn, Unavailable, no_agent
from probes.files import payload
from probes.smb import status
from probes.smb.frames import SmbError
from probes.smb.login import open_session
from probes.smb.pipe import IN_FLIGHT_LIMIT_BYTES, Pipe, round_trips
from probes.smb.run_folder import new_file, source_of
from probes.smb.session import Handle, Session
from probes.smb.transfer import BLOCK_BYTES, Transfer

STAGE = Stage(
    "smb-matrix",
    measures="other request sizes and depths",
    usual_seconds=2.3,
    needs=("share", "source"),
    writes=True,
    speaks_of=("smb/round-trips", "smb/dialect", "smb/server-software"),
    varying=("size_bytes",),
)
USUAL_SECONDS = 2.5
LEAST_BYTES = 1 << 20

VERBS: dict[str, Literal["read", "write"]] = {"pull": "read", "push": "write"}
KIB, MIB = 1 << 10, 1 << 20
REQUESTS = (64 * KIB, 256 * KIB, MIB, 4 * MIB, 8 * MIB)
SMALL_REQUESTS = (4 * KIB, 16 * KIB, 60 * KIB)
"""Request sizes for a server that takes at most 128 KiB; old clients of SMB1 use 60 KiB."""
FITTED_REQUEST_BYTES = 60 * KIB
DEPTHS = (1, 2, 4, 8, 16, 32)
CORNERS = ((64 * KIB, 1), (MIB, 1), (MIB, 8), (60 * KIB, 1), (64 * KIB, 32), (4 * MIB, 4))
"""Cells measured first: those of the slowest and the fastest clients."""

WINDOW_SHARE = 0.25
"""Share of the stage's time for the window, one more run of the best cell."""
ECHO_SHARE = 0.1
CELL_SECONDS = 0.04
MOST_CELL_SECONDS = 0.4
"""Time of a cell in a long run."""
MOST_OF_LEFT = 0.8
"""Share of the remaining time that two windows of a cell may take for it to be tried."""
CHECK_SHARE = 0.1
CHECK_SECONDS = 20.0
CHECKED_BLOCKS = 16
SAMPLE_SECONDS = 0.1
GRACE_SECONDS = 5.0
"""Additional time for the requests in flight when the time is over."""


@dataclass(frozen=True)
class Setting:
    """Direction, dialect, time, and limits of the cells."""

    verb: Text
    """pull: READs of the run's source file; push: WRITEs to a new file, removed at the end."""
    dialect: Text
    size_bytes: Size
    """Part of the file that is used, repeatedly."""
    seconds: Seconds
    """Time for all cells and the window."""
    seed: Text = ""
    """Seed of the payload, hex."""
    security: Text = ""
    """One of probes.smb.session.SECURITIES; "": what the server requires and no more."""
    request_bytes: Count = 0
    """The only request size, at most the server's longest; 0: several."""
    depth: Count = 0
    """The only number of requests in flight; 0: several."""


@dataclass(frozen=True)
class Cell:
    """One request size at one depth."""

    request_bytes: int
    depth: int
    """Requests that really were in flight at once: credits may allow fewer than planned."""
    bytes_per_second: float
    in_flight_bytes: int
    request_seconds_median: float
    """Time from sending a request to its full reply."""


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a pull; a push too where there is time for both."""
    verbs = ("pull", "push") if facts.thorough else ("pull",)
    for verb in verbs:
        yield Turn(
            f"requests {verb} {facts.dialect}",
            Setting(verb, facts.dialect, 0, 0.0, facts.seed),
            USUAL_SECONDS,
            parts=2 * len(verbs),
            peer="share",
            grace_seconds=GRACE_SECONDS,
        )


def fit_setting(setting: Setting, facts: RunFacts) -> Setting:
    """Sets size_bytes by the source file or the free space. Raises Unavailable where too small."""
    pulls = setting.verb == "pull"
    size = facts.source_bytes if pulls else min(IN_FLIGHT_LIMIT_BYTES, facts.room_bytes)
    if size < LEAST_BYTES:
        raise Unavailable(NO_ROOM)
    return replace(setting, size_bytes=size)


respond = no_agent


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Measures the cells, then runs the best one for the window and yields its samples.

    peer: host, port, share, access and folder, the run's. Returns the details: cells (only the
    measured ones), rtt_seconds (median of SMB ECHOs on the idle session), rtt_low_seconds, fit,
    hash_ok. Raises Refused, Unavailable, SmbError, ValueError for a senseless setting.
    """
    if setting.verb not in VERBS or setting.size_bytes < 1 or setting.seconds <= 0:
        raise ValueError(f"no such matrix: {setting.verb} of {setting.size_bytes} bytes")
    ring = payload.make_ring(bytes.fromhex(setting.seed))
    with open_session(peer, setting.dialect, setting.security) as session:
        handle = open_region(session, setting, peer)
        facts = session.facts
        what = f"{STAGE.name} {setting.verb} failed"
        with status.error_context(lambda: what, peer), session.pipe(handle) as pipe:
            verb = VERBS[setting.verb]
            transfer = Transfer(pipe, verb, setting.size_bytes, ring)
            pipe.limit(time.monotonic() + setting.seconds + GRACE_SECONDS)
            rtts = round_trips(pipe, ECHO_SHARE * setting.seconds)
            longest = facts.max_read_bytes if verb == "read" else facts.max_write_bytes
            cells = _cells(setting, pipe, transfer, longest, statistics.median(rtts))
            best = max(cells, key=lambda cell: cell.bytes_per_second)
            run_details = yield from _window(pipe, transfer, best, WINDOW_SHARE * setting.seconds)
            pipe.limit(time.monotonic() + CHECK_SECONDS)
            rtts += round_trips(pipe, ECHO_SHARE * setting.seconds)
            afforded = int(CHECK_SHARE * setting.seconds * best.bytes_per_second / BLOCK_BYTES)
            transfer.read_back(max(2, min(CHECKED_BLOCKS, afforded)))
    return {
        "cells": [asdict(cell) for cell in sorted(cells, key=_place)],
        "rtt_seconds": statistics.median(rtts),
        "rtt_low_seconds": min(rtts),
        "fit": asdict(_fit_large(cells)),
        **run_details,
        "hash_ok": transfer.intact,
        **facts.protocol_details,
    }


def choose(
    longest_bytes: int, region_bytes: int, request_bytes: int = 0, depth: int = 0
) -> list[tuple[int, int]]:
    """Returns request sizes and depths to try, in order, on a server that takes longest_bytes.

    The corners first, then from the fewest bytes in flight to the most; none is more than
    IN_FLIGHT_LIMIT_BYTES or the file. request_bytes, depth: the only ones, unless 0. Pure.
    """
    sizes = {size for size in REQUESTS if size <= longest_bytes}
    if longest_bytes < REQUESTS[1]:
        sizes |= {size for size in (*SMALL_REQUESTS, longest_bytes) if size <= longest_bytes}
    sizes = {min(request_bytes, longest_bytes)} if request_bytes else sizes
    depths = (depth,) if depth else DEPTHS
    fits = min(IN_FLIGHT_LIMIT_BYTES, region_bytes)
    pairs = [(size, depth) for size in sizes for depth in depths if size * depth <= fits]
    corners = [each for each in CORNERS if each in pairs]
    others = sorted(set(pairs) - set(corners), key=lambda each: (each[0] * each[1], each))
    return corners + others


def _fit_large(cells: list[Cell]) -> Fit:
    """Fits the large requests: the rate of shorter ones is limited by the cost of each."""
    large = [cell for cell in cells if cell.request_bytes >= FITTED_REQUEST_BYTES]
    return fit([(cell.in_flight_bytes, cell.bytes_per_second) for cell in large])


def _place(cell: Cell) -> tuple[int, int]:
    return cell.request_bytes, cell.depth


def open_region(session: Session, setting: Setting, peer: Endpoint) -> Handle:
    """Opens the file to read or write."""
    if setting.verb == "push":
        return new_file(session, peer)
    return source_of(session, peer, setting.size_bytes, "read")


def _cells(
    setting: Setting, pipe: Pipe, transfer: Transfer, longest_bytes: int, rtt_seconds: float
) -> list[Cell]:
    """Measures every cell that the time allows; those that would take too long are left out."""
    began = time.monotonic()
    until = began + (1 - WINDOW_SHARE - 2 * ECHO_SHARE) * setting.seconds
    cells: dict[tuple[int, int], Cell] = {}
    plan = choose(longest_bytes, setting.size_bytes, setting.request_bytes, setting.depth)
    if not plan:
        limit_mib = min(IN_FLIGHT_LIMIT_BYTES, setting.size_bytes) >> 20
        raise Unavailable(
            f"more than {limit_mib} MiB in flight; use a smaller --depth or --request-size"
        )
    each_seconds = min(MOST_CELL_SECONDS, max(CELL_SECONDS, (until - began) / (2 * len(plan))))
    ceiling = float("inf")
    granted: dict[int, int] = {}
    for request_bytes, depth in plan:
        if depth > granted.get(request_bytes, depth):
            continue
        remaining = until - time.monotonic()
        flight = request_bytes * depth
        windows_seconds = 2 * flight / min(flight / rtt_seconds, ceiling)
        if cells and windows_seconds > MOST_OF_LEFT * remaining:
            continue
        cell = _cell(pipe, transfer, (request_bytes, depth), each_seconds, until)
        if cell is None:
            continue
        cells.setdefault(_place(cell), cell)
        if cell.depth < depth:
            granted[request_bytes] = cell.depth
        if cell.bytes_per_second < 0.5 * cell.in_flight_bytes / rtt_seconds:
            # Round trips are no longer the limit: more in flight will not be much faster.
            ceiling = max(each.bytes_per_second for each in cells.values())
    if not cells:
        raise SmbError(f"no request size was answered in full within {setting.seconds:.1f} s")
    return list(cells.values())


def _cell(
    pipe: Pipe, transfer: Transfer, shape: tuple[int, int], seconds: float, until: float
) -> Cell | None:
    """Measures a cell; None: the server does not grant or fill such requests, or time is over."""
    request_bytes, depth = shape
    if pipe.prepare(transfer.verb, request_bytes, depth) != shape:
        return None
    counters = pipe.counters
    counters.in_flight_bytes = 0
    counters.request_seconds.clear()
    short_before = counters.short_replies
    pace = transfer.measure_pace(request_bytes, depth, seconds, until)
    if pace is None or counters.short_replies > short_before:
        return None
    return Cell(
        request_bytes,
        counters.in_flight_bytes // request_bytes,
        pace.bytes_per_second,
        counters.in_flight_bytes,
        statistics.median(counters.request_seconds),
    )


def _window(
    pipe: Pipe, transfer: Transfer, cell: Cell, seconds: float
) -> Generator[Sample, None, Details]:
    """Runs the best cell once more; yields samples, returns the window's figures."""
    counters = pipe.counters
    counters.request_seconds.clear()
    start = (counters.credit_stalls, counters.pending_replies, counters.requests)
    moved_bytes, last = 0, 0.0
    yield Sample(0.0, 0)
    opened = time.monotonic()
    pipe.limit(opened + seconds + GRACE_SECONDS)

    def may_send(sent: int) -> bool:
        # At least two windows: too slow a cell is to be measured as well.
        return sent < 2 * cell.depth or time.monotonic() - opened < seconds

    for reply in transfer.replies(cell.request_bytes, cell.depth, may_send):
        moved_bytes += reply.moved_bytes
        elapsed = time.monotonic() - opened
        if elapsed - last >= SAMPLE_SECONDS:
            last = elapsed
            yield Sample(elapsed, moved_bytes)
    if not moved_bytes:
        raise SmbError("the server left this session without credits for its requests")
    yield Last(time.monotonic() - opened, moved_bytes)
    return {
        "request_bytes": cell.request_bytes,
        "depth": cell.depth,
        "in_flight_bytes": cell.in_flight_bytes,
        "credit_stalls": counters.credit_stalls - start[0],
        "pending_replies": counters.pending_replies - start[1],
        "requests": counters.requests - start[2],
        "request_seconds_median": statistics.median(counters.request_seconds),
    }


CLEAR_RATIO = 1.25
"""Distance of the knee, ceiling x round trip, from the first and last point, to be significant."""


@dataclass(frozen=True)
class Fit:
    """The curve that is nearest to all points, their rates taken as ratios (least squares of log).

    A part of the curve without a point is None, unknown. All is None where all points have the same
    bytes in flight, or there is no point.
    """

    ceiling_bytes_per_second: float | None
    """Asymptotic rate, which more bytes in flight do not raise."""
    rtt_seconds: float | None
    """Effective round trip, the server's work included."""
    worst_residual_ratio: float | None
    """The largest of |measured / fitted - 1|."""

    def rate(self, in_flight_bytes: float) -> float:
        """Predicts bytes per second with that much in flight. Raises ValueError: no curve."""
        bounds = []
        if self.ceiling_bytes_per_second is not None:
            bounds.append(self.ceiling_bytes_per_second)
        if self.rtt_seconds is not None:
            bounds.append(in_flight_bytes / self.rtt_seconds)
        return min(bounds)


def fit(points: Sequence[tuple[float, float]]) -> Fit:
    """Fits points (bytes in flight, bytes per second), both > 0.

    Every split into points on the slope (fewest bytes in flight) and points at the ceiling is
    candidates: within a part the best value is the mean of the logarithms.
    """
    if len({flight for flight, _ in points}) < 2:
        return Fit(None, None, None)
    ordered = sorted((math.log(flight), math.log(rate)) for flight, rate in points)
    flights = [flight for flight, _ in ordered]
    # A split between two points of the same bytes in flight would put one point on both parts.
    splits = [i for i in range(len(ordered) + 1) if i in (0, len(ordered)) or _grows(flights, i)]
    candidates = [_fit_split(ordered, i) for i in splits]
    best = min(candidates, key=lambda each: _error(each, ordered))
    if best.ceiling_bytes_per_second is not None and best.rtt_seconds is not None:
        knee = best.ceiling_bytes_per_second * best.rtt_seconds
        if knee * CLEAR_RATIO > math.exp(flights[-1]):
            best = _fit_split(ordered, len(ordered))
        elif knee < CLEAR_RATIO * math.exp(flights[0]):
            best = _fit_split(ordered, 0)
    worst = max(abs(rate / best.rate(flight) - 1) for flight, rate in points)
    return Fit(best.ceiling_bytes_per_second, best.rtt_seconds, worst)


def _grows(flights: Sequence[float], i: int) -> bool:
    return flights[i] > flights[i - 1]


def _fit_split(ordered: Sequence[tuple[float, float]], i: int) -> Fit:
    slope, flat = ordered[:i], ordered[i:]
    ceiling = math.exp(sum(rate for _, rate in flat) / len(flat)) if flat else None
    rtt = math.exp(sum(flight - rate for flight, rate in slope) / len(slope)) if slope else None
    return Fit(ceiling, rtt, None)


def _error(fitted: Fit, ordered: Sequence[tuple[float, float]]) -> float:
    return sum((rate - math.log(fitted.rate(math.exp(flight)))) ** 2 for flight, rate in ordered)
