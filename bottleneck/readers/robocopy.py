"""robocopy's log: bytes over the time from Started to Ended.

Its own "Speed" adds up the threads of /MT, and leaves out the time between files. The labels are in
the language of Windows: lines are found by what they hold.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from bottleneck.estimate.observations import Copy
from bottleneck.readers.figure import Figure, NotTold, Output, binary, positive
from bottleneck.report.report import ReportError

DAY_SECONDS = 86_400
_CLOCK = re.compile(r"^ *[^\d\n:]+: .*?(\d{1,2}):(\d\d):(\d\d)( ?[AaPp]\.?[Mm])?", re.M)
_TIMES = re.compile(r"^ *[^\d\n:]+: +(\d{1,9}):(\d\d):(\d\d) +(\d{1,9}):(\d\d):(\d\d)", re.M)
_BYTES = re.compile(r"^ *Byte?s? *: +([\d.,]+)(?: ([kmgt]))? +([\d.,]+)(?: ([kmgt]))?(?= )", re.M)
_PLACE = re.compile(r"^ *[^\n:]+? : ((?:\\\\|[A-Za-z]:)\S.*)$", re.M)


def recognizes(text: str) -> bool:
    return "ROBOCOPY" in text or bool(_BYTES.search(text) and _TIMES.search(text))


def read(output: Output) -> Iterator[Figure]:
    """Yields the copy. Errors: ReportError."""
    size_row, times = _BYTES.search(output.text), _TIMES.search(output.text)
    if size_row is None or times is None:
        raise ReportError("robocopy's summary (Bytes, Times) is missing: it ended early")
    copied = binary(size_row[3], size_row[4] or "")
    clocks = [e for e in _CLOCK.finditer(output.text) if e.start() != times.start()]
    seconds = _seconds(times.groups()[:3])
    if len(clocks) >= 2:
        span = (_seconds_of_day(clocks[-1]) - _seconds_of_day(clocks[0])) % DAY_SECONDS
        seconds = max(span, 0) or seconds
    rate = positive(copied / seconds if seconds else 0, "robocopy's rate")
    places = [each[1] for each in _PLACE.finditer(output.text)][:2]
    remote = [each.startswith("\\\\") for each in places]
    if len(places) < 2 or remote[0] == remote[1]:
        raise NotTold(
            "did robocopy copy to the server or from it? Say --copy 'push "
            f"{rate / 1e6:.3g}MB/s robocopy', or pull"
        )
    yield Copy(
        f"{'pull' if remote[0] else 'push'}.uncached", rate, size=round(copied), tool="robocopy"
    )


def _seconds(fields: tuple[str | None, ...]) -> int:
    hours, minutes, seconds = (int(each or 0) for each in fields)
    return 3600 * hours + 60 * minutes + seconds


def _seconds_of_day(clock: re.Match[str]) -> int:
    seconds, half = _seconds(clock.groups()[:3]), (clock[4] or "").strip().lower()[:1]
    if half:
        seconds = seconds % 43_200 + (43_200 if half == "p" else 0)
    return seconds
