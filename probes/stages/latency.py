"""Measures the time of a message on this path: t(n) = latency + n / bandwidth, cold and warm.

A message of n bytes goes out and a small answer comes back, so that the latency is a whole round
trip. On one warm connection the times lie on a line, whose fit is the result. On a new connection
for each run they include TCP's handshake and slow start, as short programs see them: they are
shown, but a line through them would be wrong (at 10 ms its latency is twice the path's).
"""

from __future__ import annotations

import socket
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Dict, Generator, Iterator, List

from probes.core.field_types import Address, Seconds
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, RunFacts, Running, Stage, Turn
from probes.net import exchange, fit, port, warm
from probes.net.exchange import DECADES, LEAST_TIMES, Times, percentiles, quick, table
from probes.net.port import Meeting
from probes.net.warm import Cold, Trips, Warm
from probes.sockets import tcp_info

STAGE = Stage(
    "latency",
    measures="the time of a request and its response",
    usual_seconds=2.2,
    needs=("server",),
    by_agent=True,
    optional=True,
    least_budget_seconds=45.0,
    speaks_of=("network/delay", "smb/round-trips"),
)
USUAL_SECONDS = 3.0
MOST_TIMES, MOST_TIMES_ALONE = 1.5, 4.0
"""Longest time on a long path as a multiple of USUAL_SECONDS, beside the copies and by itself."""
ROUND_TRIPS = 200
"""Round trips to allow time for: a long path needs them for the bandwidth to show."""

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Setting:
    """Time and address; sizes that a path needs longer for are left out."""

    seconds: Seconds = 3.0
    address: Address = ""
    """The responder's address to listen on; empty, or another host's: every address."""

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"no such time: {self.seconds} s")


def turns(facts: RunFacts) -> Iterator[Turn]:
    """Yields a turn with messages from the client to the server's agent."""
    longest = (MOST_TIMES_ALONE if facts.is_only else MOST_TIMES) * USUAL_SECONDS
    usual = max(USUAL_SECONDS, min(ROUND_TRIPS * facts.connect_seconds, longest))
    yield Turn(STAGE.name, Setting(address=facts.address), usual, peer="agent")


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Answers messages until closed."""

    def serve(meeting: Meeting) -> None:
        (connection,) = meeting.connections
        with warm.accept_cold(connection) as (number, token):
            meeting.tell({"port": number, "token": token})
            exchange.answer(connection)

    return port.listen(setting.address, serve)


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Times messages; in the window the longest is sent repeatedly.

    Returns:
        fit: latency_seconds, bandwidth_bytes_per_second, n_half_bytes, worst_residual_ratio; or
            `refused`, the reason why there is none.
        cold_fit: such a line through cold connections, only for comparison; cold_trouble: the error
            that ended them, if any.
        table: message_bytes, round_trips, connection ("cold": with connect and close, "warm"),
            seconds (the median), low_seconds, high_seconds, p95_seconds (of 20 or more), count.
        percentiles: of the warm exchange of 1 byte, p50_seconds, p90_seconds ..., count.
        nagle: 100 bytes written apart from their length, with TCP_NODELAY off: seconds, and
            plain_seconds in one write; ratio, count.
        congestion_control, segment_bytes: of the warm connection, as it sends.

    Raises Unavailable where the port cannot be reached, RuntimeError where an answer is missing.
    """
    meeting = port.meet(peer, {"exchange": "messages"}, 1)
    try:
        reply = meeting.hear(port.CONNECT_SECONDS)
        cold = Cold(peer.host, int(reply["port"]), str(reply["token"]).encode())
        return (yield from _measure(Warm(meeting.connections[0], setting.seconds), cold))
    except (EOFError, OSError) as error:
        too_late = isinstance(error, (BlockingIOError, TimeoutError))
        why = "no answer in time" if too_late else str(error)
        raise RuntimeError(f"{peer.host}: the messages failed: {why}") from None
    finally:
        meeting.close()


def _measure(link: Warm, cold: Cold) -> Running:
    longest, expected = warm.grow(link)
    largest = yield from _window(link, longest, warm.WINDOW_SHARE * link.seconds)
    by_size: Dict[int, Times] = {longest: largest}
    sizes = warm.choose_sizes(longest, expected, warm.SIZES_SHARE * link.seconds)
    # From long to short: an idle congestion window shrinks.
    for size in sizes:
        by_size[size] = link.times(size, warm.SIZES_SHARE * link.seconds / len(sizes))
    pings = by_size[1] = link.times(1, warm.PING_SHARE * link.seconds, warm.MOST_PINGS)
    if len(pings.one) < LEAST_TIMES:
        raise RuntimeError(
            f"a request and response of 1 byte take {1000 * expected[1]:.0f} ms: out of time "
            "for more"
        )
    sockets = _socket_facts(link.connection)
    nagle = warm.nagle(link)
    enough = {size: times for size, times in by_size.items() if len(times.one) >= LEAST_TIMES}
    by_trips: Dict[Trips, List[float]] = {}
    medians = {s: times.median for s, times in enough.items() if s in DECADES}
    why = warm.time_cold(link, cold, medians, by_trips)
    segment_bytes = int(sockets.get("segment_bytes", 0))
    details = {
        "fit": fit.fit([(size, quick(times.one)) for size, times in enough.items()], segment_bytes),
        "table": table(enough, by_trips),
        "percentiles": percentiles(pings.one),
        **sockets,
    }
    once = {size: each for (size, trips), each in by_trips.items() if trips == 1}
    cold_line = fit.line([(size, quick(each)) for size, each in once.items()], segment_bytes)
    if cold_line is not None and len(once) >= fit.LEAST_SIZES:
        details["cold_fit"] = cold_line
    if nagle is not None:
        details["nagle"] = nagle
    if why:
        details["cold_trouble"] = why
    return details


def _window(link: Warm, size: int, seconds: float) -> Generator[Sample, None, Times]:
    """Exchanges the longest message repeatedly; yields samples, returns the times."""
    request, times = link.message(size), Times()
    yield Sample(0.0, 0)
    opened = time.monotonic()
    elapsed = last = 0.0
    while len(times.one) < LEAST_TIMES or elapsed < seconds:
        began = time.monotonic()
        times.one.append(link.exchange(request))
        times.one.append(link.exchange(request))
        times.two.append(time.monotonic() - began)
        elapsed = time.monotonic() - opened
        if link.is_late():
            break
        if elapsed - last >= SAMPLE_SECONDS:
            last = elapsed
            yield Sample(elapsed, size * len(times.one))
    yield Last(elapsed, size * len(times.one))
    return times


def _socket_facts(connection: socket.socket) -> Details:
    details: Details = {}
    name = tcp_info.congestion_control(connection)
    if name is not None:
        details["congestion_control"] = name
    figures = tcp_info.read(connection)
    for key in ("segment_bytes", "min_rtt_seconds"):
        if key in figures:
            details[key] = figures[key]
    return details
