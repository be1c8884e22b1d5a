"""What a message costs on this path: t(n) = latency + n / bandwidth, cold and warm.

A message of n bytes goes out and a small answer comes back, so that the latency is a whole round
trip. On one warm connection the times lie on a line, whose fit is the result; on a new connection
for each run TCP's handshake and slow start are in them, which is what short programs see: they are
shown, and a line through them would be wrong (at 10 ms its latency is twice the path's).
"""

from __future__ import annotations

import socket
import time
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Dict, Generator, Iterator, List

from probes.core.meaning import Address, Seconds
from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Known, Last, Running, Stage, Turn
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
"""How much longer a long path may make it, beside the copies and by itself."""
ROUND_TRIPS = 200
"""That there is time for at least: a long path needs them for the bandwidth to show."""

SAMPLE_SECONDS = 0.1


@dataclass(frozen=True)
class Setting:
    """For how long; a path that needs longer for a size leaves it out."""

    seconds: Seconds = 3.0
    address: Address = ""
    """The responder's address to listen on; empty, or not one of its own: every address."""

    def __post_init__(self) -> None:
        if not self.seconds > 0:
            raise ValueError(f"no such time: {self.seconds} s")


def turns(known: Known) -> Iterator[Turn]:
    """Messages from the client to the server's agent."""
    most = (MOST_TIMES_ALONE if known.is_only else MOST_TIMES) * USUAL_SECONDS
    usual = max(USUAL_SECONDS, min(ROUND_TRIPS * known.connect_seconds, most))
    yield Turn(STAGE.name, Setting(address=known.address), usual, peer="agent")


def respond(setting: Setting) -> AbstractContextManager[Endpoint]:
    """Answers messages until closed."""

    def serve(meeting: Meeting) -> None:
        (connection,) = meeting.connections
        with warm.accept_cold(connection) as (number, token):
            meeting.tell({"port": number, "token": token})
            exchange.answer(connection)

    return port.listen(setting.address, serve)


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Times messages; the window is the longest of them, one after the other.

    Returns:
        fit: latency_seconds, bandwidth_bytes_per_second, n_half_bytes, worst_residual_ratio; or
            `refused`, why there is none.
        cold_fit: the same line through cold connections, for comparison alone; cold_trouble: why
            they were broken off, where they were.
        table: message_bytes, round_trips, connection ("cold": connect and close are in it, "warm"),
            seconds (the median), low_seconds, high_seconds, p95_seconds (of 20 or more), count.
        percentiles: of the warm exchange of 1 byte, p50_seconds, p90_seconds ..., count.
        nagle: 100 bytes whose head and body are written apart, with TCP_NODELAY off: seconds, and
            plain_seconds in one write; ratio, count.
        congestion_control, segment_bytes: of the warm connection, as it sends.

    Raises Unavailable where the port cannot be reached, RuntimeError where an answer stays out.
    """
    meeting = port.meet(peer, {"exchange": "messages"}, 1)
    try:
        told = meeting.hear(port.CONNECT_SECONDS)
        beside = Cold(peer.host, int(told["port"]), str(told["token"]).encode())
        return (yield from _measure(Warm(meeting.connections[0], setting.seconds), beside))
    except (EOFError, OSError) as error:
        why = (
            "no answer in time"
            if isinstance(error, (BlockingIOError, TimeoutError))
            else str(error)
        )
        raise RuntimeError(f"{peer.host}: the messages failed: {why}") from None
    finally:
        meeting.close()


def _measure(own: Warm, beside: Cold) -> Running:
    longest, expected = warm.grow(own)
    largest = yield from _window(own, longest, warm.WINDOW_SHARE * own.seconds)
    by_size: Dict[int, Times] = {longest: largest}
    wanted = warm.choose_sizes(longest, expected, warm.SIZES_SHARE * own.seconds)
    # From long to short: the congestion window shrinks while it is not used.
    for size in wanted:
        by_size[size] = own.times(size, warm.SIZES_SHARE * own.seconds / len(wanted))
    pings = by_size[1] = own.times(1, warm.PING_SHARE * own.seconds, warm.MOST_PINGS)
    if len(pings.one) < LEAST_TIMES:
        raise RuntimeError(
            f"a request and response of 1 byte take {1000 * expected[1]:.0f} ms: out of time "
            "for more"
        )
    sockets = _socket_facts(own.connection)
    nagle = warm.nagle(own)
    enough = {size: times for size, times in by_size.items() if len(times.one) >= LEAST_TIMES}
    by_trips: Dict[Trips, List[float]] = {}
    medians = {s: times.median for s, times in enough.items() if s in DECADES}
    why = warm.time_cold(own, beside, medians, by_trips)
    segment_bytes = int(sockets.get("segment_bytes", 0))
    told = {
        "fit": fit.fit([(size, quick(times.one)) for size, times in enough.items()], segment_bytes),
        "table": table(enough, by_trips),
        "percentiles": percentiles(pings.one),
        **sockets,
    }
    once = {size: each for (size, trips), each in by_trips.items() if trips == 1}
    cold_line = fit.line([(size, quick(each)) for size, each in once.items()], segment_bytes)
    if cold_line is not None and len(once) >= fit.LEAST_SIZES:
        told["cold_fit"] = cold_line
    if nagle is not None:
        told["nagle"] = nagle
    if why:
        told["cold_trouble"] = why
    return told


def _window(own: Warm, size: int, seconds: float) -> Generator[Sample, None, Times]:
    """The longest message over and over, with samples."""
    sent, times = own.message(size), Times()
    yield Sample(0.0, 0)
    opened = time.monotonic()
    elapsed = last = 0.0
    while len(times.one) < LEAST_TIMES or elapsed < seconds:
        began = time.monotonic()
        times.one.append(own.exchange(sent))
        times.one.append(own.exchange(sent))
        times.two.append(time.monotonic() - began)
        elapsed = time.monotonic() - opened
        if own.is_late():
            break
        if elapsed - last >= SAMPLE_SECONDS:
            last = elapsed
            yield Sample(elapsed, size * len(times.one))
    yield Last(elapsed, size * len(times.one))
    return times


def _socket_facts(connection: socket.socket) -> Details:
    told: Details = {}
    name = tcp_info.congestion_control(connection)
    if name is not None:
        told["congestion_control"] = name
    figures = tcp_info.read(connection)
    for known in ("segment_bytes", "min_rtt_seconds"):
        if known in figures:
            told[known] = figures[known]
    return told
