"""`ss -ti`: a TCP connection as its host sees it.

Source: ss(8), misc/ss.c of iproute2; figures of struct tcp_info.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.readers.figure import Figure, Output, number, path
from bottleneck.report.report import ReportError

_TRIP = re.compile(r"\bminrtt:([\d.]+)|\brtt:([\d.]+)/")
_FIELD = re.compile(r"\b(bytes_sent|bytes_acked|bytes_retrans):(\d{1,18})")
_LIMITED = re.compile(r"\b(rwnd_limited|sndbuf_limited):\d+ms\(([\d.]+)%\)")
LIMITS = {"rwnd_limited": "the receiver's window", "sndbuf_limited": "the sender's buffer"}
MOSTLY_PERCENT = 50.0


def recognizes(text: str) -> bool:
    is_table = re.match(r"(?:Netid +)?State +Recv-Q", text)
    return bool(is_table or (re.search(r"\bcwnd:\d+", text) and _TRIP.search(text)))


def read(output: Output) -> Iterator[Figure]:
    """Yields the shortest round trip, and the losses of the busiest connection."""
    lines = [each for each in output.text.splitlines() if _TRIP.search(each)]
    counts = {each: {k: int(v) for k, v in _FIELD.findall(each)} for each in lines}

    def sent_bytes(line: str) -> int:
        counters = counts[line]
        return counters.get("bytes_sent") or counters.get("bytes_acked") or 0

    line = max(lines, key=sent_bytes, default=None)
    if line is None:
        raise ReportError("ss shows no TCP connection with a round trip")
    trips = {bool(shortest): number(shortest or usual) for shortest, usual in _TRIP.findall(line)}
    again = counts[line].get("bytes_retrans", 0)
    loss = float(min(1, again / sent_bytes(line))) if 0 < again <= sent_bytes(line) else None
    yield path(trips.get(True, trips.get(False, 0.0)) / 1e3, loss)
    for name, percent in _LIMITED.findall(line):
        if number(percent) >= MOSTLY_PERCENT:
            yield f"ss: for {number(percent):.0f}% of its time it waited for {LIMITS[name]}."
