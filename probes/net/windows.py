"""Chooses the windows, streams and buffers to try, their order, and those that suffice; pure."""

from __future__ import annotations

import math
from collections.abc import Container, Generator, Iterable, Mapping, Sequence
from typing import Any, Optional, TypeVar

from probes.core.records import Details

AUTOTUNED = 0
"""A window that the system chooses and grows; any other one switches its tuning off."""
SMALLEST_BYTES, LARGEST_BYTES = 16 << 10, 4 << 20
MOST_WINDOWS = 5
"""Windows beside the autotuned one."""
STREAMS = (1, 2, 4, 8)
ENOUGH_RATIO = 0.95
"""Share of the best rate that suffices: more window or streams are not worth it."""
GAIN_RATIO = 1.03
"""Smallest gain; where two in a row are smaller, the surface is flat."""
LEAST_AGAIN_RATIO = 0.8
"""Share of the best rate below which its second run was disturbed."""

Place = tuple[int, int]
"""Window and streams of a cell."""


def windows_for(bdp_bytes: float) -> tuple[int, ...]:
    """Returns the windows to try on a path with such a bandwidth-delay product; autotuned first.

    They grow by the same factor (2 or more, a power of it) from 16 KiB until one holds twice the
    product, which leaves room for recovery from a loss; 4 MiB at most.
    """
    top = 4 * SMALLEST_BYTES
    while top < min(2 * bdp_bytes, LARGEST_BYTES):
        top *= 2
    factor = 2
    while SMALLEST_BYTES * factor ** (MOST_WINDOWS - 1) < top:
        factor *= 2
    windows = [SMALLEST_BYTES]
    while windows[-1] < top:
        windows.append(min(top, windows[-1] * factor))
    return (AUTOTUNED, *windows)


def choose_next(
    windows: Sequence[int],
    streams: Sequence[int],
    cells: Mapping[Place, Details],
    broken: Container[Place] = (),
) -> Optional[Place]:
    """Returns the cell to measure next; None: no other would show anything new.

    The most telling ones come first, since the time may be short: the autotuned window, which shows
    what the path carries, then each window from the smallest up with the fewest streams, until two
    of them reach the best or one is granted no more than the one before it. Then more streams:
    first those which by rate <= streams x window / RTT are nearest to the best, as the knee is
    among them. A row ends when twice in it more streams gained less than 3 %.

    cells: those measured so far, with bytes_per_second, and granted_bytes where known. broken:
    those that failed; none is tried again, and cells that nothing predicts come last.
    """
    fewest, *more_streams = sorted(set(streams))
    rows = sorted(set(windows))
    for index, window in enumerate(rows):
        if _is_complete(rows[:index], fewest, cells):
            rows = rows[:index]
            break
        if (window, fewest) not in cells and (window, fewest) not in broken:
            return window, fewest
    if not cells:
        return None
    candidates = [
        (window, many)
        for window in rows
        for many in more_streams
        if (window, many) not in cells
        and (window, many) not in broken
        and not _flat(_row(window, many, cells))
    ]
    best = max(_rate(each) for each in cells.values())

    def nearness(place: Place) -> tuple[float, int, int]:
        window, many = place
        single = cells.get((window, fewest))
        expected = 0.0 if single is None else _rate(single) * many / fewest
        distance = abs(math.log(expected / best)) if expected > 0 and best > 0 else math.inf
        return round(distance, 3), many, window

    return min(candidates, key=nearness, default=None)


def _rate(cell: Details) -> float:
    return float(cell["bytes_per_second"])


def _row(window: int, below: int, cells: Mapping[Place, Details]) -> list[float]:
    """Returns the rates of a window's cells with fewer streams, in their order."""
    places = sorted(place for place in cells if place[0] == window and place[1] < below)
    return [_rate(cells[place]) for place in places]


def _flat(rates: Sequence[float]) -> bool:
    """Whether the last two rates gained nothing over the earlier ones."""
    return len(rates) > 2 and max(rates[-2:]) < GAIN_RATIO * max(rates[:-2])


def _is_complete(rows: Sequence[int], fewest: int, cells: Mapping[Place, Details]) -> bool:
    fixed = [window for window in rows if window != AUTOTUNED and (window, fewest) in cells]
    if len(fixed) < 2:
        return False
    previous, latest = (cells[window, fewest].get("granted_bytes") for window in fixed[-2:])
    if previous is not None and latest is not None and latest <= previous:
        return True
    best = max(_rate(each) for each in cells.values())
    return min(_rate(cells[window, fewest]) for window in fixed[-2:]) * GAIN_RATIO > best


def _best(cells: Iterable[Details], again_bytes_per_second: Optional[float]) -> float:
    """Returns the best rate or its second run's: the highest of scattered rates is too high."""
    best = max(map(_rate, cells))
    if again_bytes_per_second is None:
        return best
    return max(LEAST_AGAIN_RATIO * best, min(best, again_bytes_per_second))


def knee(
    cells: Iterable[Details], again_bytes_per_second: Optional[float] = None
) -> Optional[dict[str, int]]:
    """Returns the cheapest cell with 95 % of the best rate: by streams x window, then streams.

    It is an autotuned one only where no fixed window reaches that rate. None: no cells.
    again_bytes_per_second: the rate of the best cell's second run.
    """
    rows = list(cells)
    if not rows:
        return None
    best = _best(rows, again_bytes_per_second)
    enough = [each for each in rows if _rate(each) >= ENOUGH_RATIO * best]
    cheapest = min(enough, key=_cost)
    return {"window_bytes": cheapest["window_bytes"], "streams": cheapest["streams"]}


def _cost(cell: Details) -> tuple[bool, int, int]:
    window, streams = int(cell["window_bytes"]), int(cell["streams"])
    return window == AUTOTUNED, window * streams, streams


NOISE_RATIO = 0.9
"""Share of the best rate that suffices where the fastest of a point's runs has ENOUGH_RATIO."""


def smallest_buffer(
    points: Sequence[Details], again_bytes_per_second: Optional[float] = None
) -> Optional[int]:
    """Returns the smallest buffer_bytes that reaches 95 % of the best rate, or might, or None.

    points: buffer_bytes, bytes_per_second, high_bytes_per_second. again_bytes_per_second: the rate
    of the best point's second run.
    """
    if not points:
        return None
    best = _best(points, again_bytes_per_second)
    return min(int(each["buffer_bytes"]) for each in points if _enough_buffer(each, best))


def _enough_buffer(point: Details, best: float) -> bool:
    rate, high = float(point["bytes_per_second"]), float(point["high_bytes_per_second"])
    return rate >= ENOUGH_RATIO * best or (
        rate >= NOISE_RATIO * best and high >= ENOUGH_RATIO * best
    )


T = TypeVar("T")


def run_to_end(running: Generator[Any, None, T]) -> T:
    while True:
        try:
            next(running)
        except StopIteration as end:
            result: T = end.value
            return result
