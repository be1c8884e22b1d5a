"""rsync: --stats, or the last line of --info=progress2 and --progress.

Source: rsync(1); main.c and progress.c: a progress line counts 1024 bytes as a kilobyte.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.estimate.observations import Copy
from bottleneck.readers.figure import Figure, NotTold, Output, binary, number, positive
from bottleneck.report.report import ReportError

MOSTLY_TIMES = 10
"""Received over sent bytes of an rsync that pulled."""
_STATS = re.compile(
    r"sent ([\d.,]+)(\w?) bytes +received ([\d.,]+)(\w?) bytes +([\d.,]+)(\w?) bytes/sec"
)
_PROGRESS = re.compile(r"^ *([\d.,]+\w?) +100% +([\d.,]+)([kMGT]?)B/s", re.M)
_ERROR = re.compile(r"^rsync(?: error|: .*?): (.+)$", re.M)


def recognizes(text: str) -> bool:
    return bool(_STATS.search(text) or _PROGRESS.search(text) or _ERROR.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields the copy. Errors: ReportError."""
    stats = _STATS.search(output.text)
    progress = list(_PROGRESS.finditer(output.text))
    if stats is None and not progress:
        failed = _ERROR.search(output.text)
        raise ReportError(f"rsync ended early{f': {failed[1][:120]}' if failed else ''}")
    if progress:
        # What it says of a file leaves out the time to compare the folders.
        rate = binary(progress[-1][2], progress[-1][3])
    else:
        assert stats is not None
        rate = binary(stats[5], stats[6]) if stats[6] else number(stats[5])
    megabytes = positive(rate, "rsync's rate") / 1e6
    if stats is None or number(stats[3]) < MOSTLY_TIMES * number(stats[1]):
        raise NotTold(
            "did rsync copy to the server or from it? Say --copy 'push "
            f"{megabytes:.3g}MB/s rsync', or pull"
        )
    is_server = output.side == "server"
    yield Copy("server.push.uncached" if is_server else "pull.uncached", rate, tool="rsync")
