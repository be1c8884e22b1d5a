"""diskspd's text: a Windows disk by itself.

Source: the wiki of microsoft/diskspd, "Customizing tests" and "Sample output".
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.estimate.observations import Disk
from bottleneck.readers.figure import Figure, Output, number, positive
from bottleneck.report.report import ReportError

_TOTAL = re.compile(r"^total: *(\d{1,18}) *\| *[\d.,]+ *\| *([\d.,]+) *\|", re.M)
_COMMAND = re.compile(r"^Command Line: (.*)$", re.M)


def recognizes(text: str) -> bool:
    return "diskspd" in text.lower() and ("Command Line:" in text or "Total IO" in text)


def read(output: Output) -> Iterator[Figure]:
    """Yields the rate of sequential reads and writes. Errors: ReportError."""
    command = _COMMAND.search(output.text)
    options = command[1].split() if command else []
    if "Total IO" not in output.text:
        raise ReportError("diskspd's results (Total IO) are missing: paste it to its end")
    has_results = False
    for name, verb in (("Read", "read"), ("Write", "write")):
        total = _TOTAL.search(output.text.partition(f"\n{name} IO")[2])
        if total is None or int(total[1]) == 0:
            continue
        has_results = True
        if any(re.fullmatch(r"-r\w*", each) for each in options):
            yield f"diskspd's {verb}s were random: they tell nothing of a copy."
        elif not any(each.startswith(("-S", "-h")) for each in options):
            yield f"diskspd's {verb}s went through the cache (no -Sh). They do not count."
        else:
            rate = positive(number(total[2]) * 2**20, "diskspd's rate")
            yield Disk(output.host(), verb, rate, "diskspd")
    if not has_results:
        raise ReportError("diskspd read and wrote nothing")
