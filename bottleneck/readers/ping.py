"""ping of Linux, BSD, macOS and Windows, in any language: round trip and losses.

Sources: ping(8) of iputils; ICMP's figures stand in the same places whatever the words are.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.readers.figure import Figure, Output, number, path
from bottleneck.report.report import ReportError

LEAST_SENT = 100
"""Least packets whose share of lost ones tells something."""
WINDOWS_SECONDS = 5e-4
"""Round trip that Windows shows as 0 ms."""
_UNIX = re.compile(r"= ([\d.,]+)/([\d.,]+)/([\d.,]+)(?:/[\d.,]+)? (ms|us)")
_WINDOWS = re.compile(r"= ?(\d+) ?ms,.*?= ?(\d+) ?ms,.*?= ?(\d+) ?ms")
_SENT = re.compile(r"^[^\d\n]*(\d+)[^\d\n]+(\d+).*?([\d.,]+)\s?%", re.M)
_STARTS = re.compile(
    r"^(?:PING|[ \t]*Ping|[ \t]*Reply from|\d+ bytes from)|\bicmp_seq[= ]\d|TTL=\d+", re.M
)


def recognizes(text: str) -> bool:
    return bool(_STARTS.search(text) or _UNIX.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields the round trip and the losses. Errors: ReportError."""
    unix, windows = _UNIX.search(output.text), _WINDOWS.search(output.text)
    _, line, summary = output.text.rpartition(" ---\n")
    counts = _SENT.finditer(summary if line else output.text)
    sent = next((each for each in counts if line or "=" in each[0]), None)
    lost = number(sent[3]) / 100 if sent is not None and number(sent[1]) >= LEAST_SENT else None
    if unix is not None:
        seconds = number(unix[1]) / (1e3 if unix[4] == "ms" else 1e6)
        yield path(seconds, lost)
    elif windows is not None:
        yield path(number(windows[1]) / 1e3 or WINDOWS_SECONDS, lost)
    elif sent is not None and number(sent[3]) >= 100:
        raise ReportError("ping got no reply: the host is down, or drops pings")
    else:
        raise ReportError("ping's summary (min/avg/max) is missing: paste it to its end")
