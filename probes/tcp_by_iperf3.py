"""The tcp stage's transfer to an iperf3 server, where no agent can run.

The receiver's count is iperf3's own; what the far host was busy with stays unknown.
"""

from __future__ import annotations

from dataclasses import dataclass

from probes.drivers import iperf3
from probes.meaning import Count, Seconds, Text
from probes.records import Details, Endpoint, Sample
from probes.stage import Last, Running

WARM_UP_SECONDS = 0.3


@dataclass(frozen=True)
class Setting:
    """One transfer; seconds is its whole time, and iperf3 knows whole seconds alone."""

    verb: Text = "push"
    streams: Count = 1
    buffer_bytes: Count = 128 << 10
    seconds: Seconds = 2.0
    peer: Text = ""
    """As the user named it."""


def initiate(setting: Setting, peer: Endpoint) -> Running:
    """Moves payload; the samples come after the transfer, for iperf3 reports at its end.

    peer: host and port of the iperf3 server. Returns the details of the tcp stage, as far as
    iperf3 knows them. Raises Unavailable and RuntimeError as iperf3.run.
    """
    job = iperf3.Job(
        host=peer.host,
        port=peer.port or iperf3.PORT,
        verb=setting.verb,
        streams=setting.streams,
        buffer_bytes=setting.buffer_bytes,
        seconds=setting.seconds,
    )
    yield Sample(0.0, 0)
    found = iperf3.run(job)
    for each in found.intervals:
        if each.elapsed_seconds < found.elapsed_seconds and each.moved_bytes <= found.moved_bytes:
            yield Sample(each.elapsed_seconds, each.moved_bytes)
    yield Last(found.elapsed_seconds, found.moved_bytes)
    return _details(found)


def _details(found: iperf3.Result) -> Details:
    limits: Details = {"by": "unknown"}
    if found.retransmitted_segments is not None:
        limits["retransmitted_segments"] = found.retransmitted_segments
    if found.rtt_seconds is not None:
        limits["rtt_seconds_median"] = found.rtt_seconds
    return {
        "engine": found.version or "iperf3",
        "limits": limits,
        "congestion_control": found.congestion_control,
        "window_rates_bytes_per_second": window_rates(found.intervals),
    }


def window_rates(intervals: tuple[iperf3.Interval, ...], windows: int = 3) -> list[float]:
    """Bytes per second of consecutive parts, the start of TCP left out; none where too short."""
    after = [each for each in intervals if each.elapsed_seconds >= WARM_UP_SECONDS]
    if len(after) < 3 * windows:
        return []
    size = len(after) // windows
    edges = [*(after[i * size] for i in range(windows)), after[-1]]
    return [
        (b.moved_bytes - a.moved_bytes) / (b.elapsed_seconds - a.elapsed_seconds)
        for a, b in zip(edges, edges[1:], strict=False)
        if b.elapsed_seconds > a.elapsed_seconds
    ]
