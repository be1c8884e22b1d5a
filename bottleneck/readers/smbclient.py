"""smbclient's lines of a transfer, and what they tell of the copy.

Source: source3/client/client.c: both rates count 1024 bytes as a kilobyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.estimate.observations import Copy
from bottleneck.readers.figure import Figure, Output, number, positive
from bottleneck.report.report import ReportError

_LINE = re.compile(
    r"^(?P<verb>getting|putting) file (?:.* of size (?P<size>\d{1,18}) )?.*?"
    r"\((?P<rate>[\d.,]+|-?nan|inf) (?:KiloBytes/sec|kb/s|kB/s)\)",
    re.M | re.I,
)
_ERROR = re.compile(r"NT_STATUS_\w+")


def recognizes(text: str) -> bool:
    return bool(re.search(r"^(?:getting|putting) file ", text, re.M) or _ERROR.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields a copy in each direction, by the largest or last file. Errors: ReportError."""
    lines = [each for each in _LINE.finditer(output.text) if each["rate"][:1].isdigit()]
    if not lines:
        failed = _ERROR.search(output.text)
        raise ReportError(f"smbclient moved no file{f' ({failed[0]})' if failed else ''}")
    started_by = "server." if output.side == "server" else ""
    for verb, name in (("getting", "pull"), ("putting", "push")):
        transfers = [each for each in lines if each["verb"].lower() == verb]
        if transfers:
            largest = max(transfers, key=lambda each: int(each["size"] or 0))
            line = largest if transfers[0]["size"] else transfers[-1]
            direction = name if not started_by else ("push" if name == "pull" else "pull")
            yield Copy(
                copy=f"{started_by}{direction}.uncached",
                rate=positive(1024 * number(line["rate"]), "smbclient's rate"),
                size=int(line["size"]) if line["size"] and int(line["size"]) else None,
                tool="smbclient",
            )
