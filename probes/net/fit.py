"""The line t(n) = latency + n / bandwidth through the times that messages of n bytes took; pure.

Least squares with the weight 1 / t^2, so that what counts is how far off each time is in relation
to itself: without it the longest message alone decides, and the latency comes out at random.
Source: the latency and bandwidth model of Hockney; n1/2 is latency x bandwidth, the size at which
half of the bandwidth is reached.

A message shorter than one segment is not on the line of the longer ones: each switch takes a
segment in whole before it passes it on, or a shaper lets the first one pass at once. Where there
are times on both sides of a segment, what the first one takes besides is fitted as well; at
100 Mbit/s and 0.3 ms both latency and bandwidth would be 5 % off without it.

A path may have two regimes: a shaper lets a burst pass at the link's own rate, and only what is
longer waits. Where one line does not fit, two do: one up to a size, one from there.
"""

from __future__ import annotations

from typing import List, Optional, Sequence, Tuple

from probes.core.records import Details

LEAST_SIZES = 4
LEAST_PIECE = 3
"""Least number of sizes on each side of the size at which two lines meet."""
LEAST_AROUND = 2
"""Sizes up to a segment, and sizes above, for what the first one takes to be seen."""
MOST_RESIDUAL_RATIO = 0.15
"""Times that are further off are not on a line, and a line through them tells nothing."""

Line = Tuple[float, float, float]
Points = Sequence[Tuple[int, float]]
"""Message bytes, seconds."""


def line(points: Points, segment_bytes: int = 0) -> Optional[Details]:
    """The line of least squares, whatever it is worth; None: none rises from above 0.

    segment_bytes: payload of one segment; 0: not known.

    Returns latency_seconds, bandwidth_bytes_per_second, n_half_bytes and worst_residual_ratio: how
    far the worst time lies off, in relation to itself.
    """
    ordered = sorted((size, seconds) for size, seconds in points if seconds > 0)
    sizes = {size for size, _ in ordered}
    if len(sizes) < 2:
        return None
    longest = max(sizes)
    columns = [[1.0, size / longest] for size, _ in ordered]
    within = sum(size <= segment_bytes for size in sizes)
    around = min(within, len(sizes) - within)
    if around >= LEAST_AROUND and len(sizes) > LEAST_SIZES:
        for column, (size, _) in zip(columns, ordered):
            column.append(min(1.0, size / segment_bytes))
    times = [seconds for _, seconds in ordered]
    solution = _solve(columns, times)
    if solution is None or solution[0] <= 0 or solution[1] <= 0:
        return None
    bandwidth = longest / solution[1]
    return {
        "latency_seconds": solution[0],
        "bandwidth_bytes_per_second": bandwidth,
        "n_half_bytes": solution[0] * bandwidth,
        "worst_residual_ratio": max(
            abs(seconds - sum(part * each for part, each in zip(solution, column))) / seconds
            for column, seconds in zip(columns, times)
        ),
    }


def fit(points: Points, segment_bytes: int = 0) -> Details:
    """The line, where the times are on one; else `refused`, the reason as a part of a sentence.

    A line whose longest message got less than half of its bandwidth is refused as well: that
    bandwidth would be a guess. Of two lines the latency is the first one's, the bandwidth the
    second one's, and `pieces` has both: to_bytes (of the first), seconds (of no byte; below 0 where
    a burst passes), bandwidth_bytes_per_second (None: longer messages take no longer).
    """
    sizes = {size for size, _ in points}
    if len(sizes) < LEAST_SIZES:
        return {"refused": f"only {len(sizes)} sizes of messages could be timed"}
    best = line(points, segment_bytes)
    if best is None:
        return {"refused": "longer messages did not take longer"}
    residual = {"worst_residual_ratio": best["worst_residual_ratio"]}
    if best["worst_residual_ratio"] > MOST_RESIDUAL_RATIO:
        best = _two_lines(points) or best
    if best["worst_residual_ratio"] > MOST_RESIDUAL_RATIO:
        return {"refused": "the times do not fit a straight line", **residual}
    if max(sizes) < best["n_half_bytes"]:
        return {"refused": "out of time for messages that are long enough", **residual}
    return best


def _two_lines(points: Points) -> Optional[Details]:
    """The two that fit best, where each is as good as a line has to be; None: there are none."""
    ordered = sorted((size, seconds) for size, seconds in points if seconds > 0)
    best: Optional[Details] = None
    for cut in range(LEAST_PIECE, len(ordered) - LEAST_PIECE + 1):
        first, second = _straight(ordered[:cut]), _straight(ordered[cut:])
        if first is None or second is None or first[0] <= 0 or second[1] <= 0:
            continue
        worst = max(first[2], second[2])
        if best is None or worst < best["worst_residual_ratio"]:
            best = _two_line_details(first, second, ordered[cut - 1][0], worst)
    return best if best and best["worst_residual_ratio"] <= MOST_RESIDUAL_RATIO else None


def _two_line_details(first: Line, second: Line, to_bytes: int, worst: float) -> Details:
    half = second[0] / second[1]  # where n / t(n) is half of the second line's rate
    steeper = 2 * second[1] - first[1]
    if half <= to_bytes:
        half = min(first[0] / steeper, to_bytes) if steeper > 0 else to_bytes
    rate = 1 / first[1] if first[1] > 0 else None
    return {
        "latency_seconds": first[0],
        "bandwidth_bytes_per_second": 1 / second[1],
        "n_half_bytes": half,
        "worst_residual_ratio": worst,
        "pieces": [
            {"to_bytes": to_bytes, "seconds": first[0], "bandwidth_bytes_per_second": rate},
            {"seconds": second[0], "bandwidth_bytes_per_second": 1 / second[1]},
        ],
    }


def _straight(points: Points) -> Optional[Line]:
    """Seconds of no byte, seconds a byte, and how far off the worst time is."""
    longest = max(size for size, _ in points)
    columns, times = [[1.0, size / longest] for size, _ in points], [each for _, each in points]
    solution = _solve(columns, times)
    if solution is None:
        return None
    errors = (abs(t - solution[0] - solution[1] * c[1]) / t for c, t in zip(columns, times))
    return solution[0], solution[1] / longest, max(errors)


def _solve(columns: Sequence[Sequence[float]], times: Sequence[float]) -> Optional[List[float]]:
    """Weighted normal equations by elimination with pivots; None: they do not tell."""
    count = len(columns[0])
    rows = [
        [
            *(sum(c[i] * c[j] / t**2 for c, t in zip(columns, times)) for j in range(count)),
            sum(c[i] / t for c, t in zip(columns, times)),
        ]
        for i in range(count)
    ]
    for i in range(count):
        best = max(range(i, count), key=lambda k: abs(rows[k][i]))
        rows[i], rows[best] = rows[best], rows[i]
        if not rows[i][i]:
            return None
        for k in range(count):
            if k != i:
                factor = rows[k][i] / rows[i][i]
                rows[k] = [a - factor * b for a, b in zip(rows[k], rows[i])]
    return [rows[i][count] / rows[i][i] for i in range(count)]
