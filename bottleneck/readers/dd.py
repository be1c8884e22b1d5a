"""dd: a disk by itself, where its command tells what it read and wrote.

Sources: dd(1) of coreutils, busybox and BSD: bytes, seconds, rate in the last line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.estimate.observations import Disk
from bottleneck.readers.figure import Figure, NotTold, Output, number, positive
from bottleneck.report.report import ReportError

_GNU = re.compile(r"^(\d{1,18}) \S+ \([^)]*\) \w+, ([\d.,]+) \w+, [\d.,]+ [kMGT]?B/\w+", re.M)
_BSD = re.compile(r"^(\d{1,18}) bytes transferred in ([\d.,]+) secs?", re.M)
_BUSY = re.compile(r"^(\d{1,18}) bytes \([^)]*\) copied, ([\d.,]+) seconds", re.M)
_COMMAND = re.compile(r"\bdd\b.*\b(if|of)=.*")
_FLUSHED = re.compile(r"conv=\S*sync|oflag=\S*(?:direct|sync)")
UNFLUSHED = (
    "dd's write was not flushed (no conv=fdatasync or oflag=direct), so it may be the speed of "
    "memory. It does not count."
)


def recognizes(text: str) -> bool:
    return any(each.search(text) for each in (_GNU, _BSD, _BUSY)) or bool(
        re.search(r"^dd: |records in$", text, re.M)
    )


def read(output: Output) -> Iterator[Figure]:
    """Yields the disk's rate. Errors: ReportError."""
    lines = [e for way in (_GNU, _BUSY, _BSD) for e in way.finditer(output.text)]
    if not lines:
        failed = re.search(r"^dd: (.+)$", output.text, re.M)
        why = f": {failed[1][:120]}" if failed else ""
        raise ReportError(f"dd's last line (bytes copied, seconds, rate) is missing{why}")
    seconds = positive(number(lines[-1][2]), "dd's time")
    rate = positive(int(lines[-1][1]) / seconds, "dd's rate")
    command = _COMMAND.search(output.text)
    text = command[0] if command else ""
    if "of=/dev/null" in text:
        yield Disk(output.host(), "read", rate, "dd")
    elif re.search(r"if=/dev/(?:u?random|zero)", text):
        yield Disk(output.host(), "write", rate, "dd") if _FLUSHED.search(text) else UNFLUSHED
    else:
        raise NotTold("did dd read or write the disk? Put its command into the file")
