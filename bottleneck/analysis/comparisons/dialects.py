"""The same copy in several dialects: which is faster, and how much each keeps in flight."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import mechanism
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import differ, factor
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.sentences import dialect_name
from bottleneck.analysis.steps import OWN, Copy, Found, security
from bottleneck.report import Report
from bottleneck.reports.units import count_text, rate_text, seconds_text, size_text

EXPLAINED_RATIO = 1.5
"""A ceiling further above the rate, and above the faster dialect's, explains nothing."""
Made = tuple[Copy, Found]


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all dialects; its sentence is about the copy that tells most."""
    groups: dict[str, list[Made]] = {}
    for copy in steps.copies(report):
        made = copy.made
        if made is not None and made.intact and _comparable(copy):
            groups.setdefault(copy.name, []).append((copy, made))
    groups = {name: made for name, made in groups.items() if len(made) > 1}
    if not groups:
        return
    ordered = sorted(groups.values(), key=lambda made: _telling(_ends(made)), reverse=True)
    slow, fast = _ends(ordered[0])
    significant = differ(slow[1].rate, fast[1].rate)
    yield Comparison(
        about="dialect",
        sentence=_sentence(report, ordered[0], slow, fast, significant),
        rows=tuple(_row(report, each) for made in ordered for each in made),
        ratio=factor(slow[1].rate.median, fast[1].rate.median),
        significant=significant,
        steps=tuple(each.index for made in ordered for _, each in made),
    )


def _comparable(copy: Copy) -> bool:
    return copy.initiator == "client" and copy.engine == OWN


def _ends(made: list[Made]) -> tuple[Made, Made]:
    """The slowest and the fastest of a copy's dialects."""
    ordered = sorted(made, key=lambda each: each[1].rate.median)
    return ordered[0], ordered[-1]


def _telling(ends: tuple[Made, Made]) -> tuple[bool, float]:
    slow, fast = (each.rate for _, each in ends)
    return differ(slow, fast), factor(slow.median, fast.median)


def _row(report: Report, each: Made) -> dict[str, Any]:
    copy, made = each
    details = made.outcome.details
    return {
        "copy": copy.name,
        "dialect": copy.dialect,
        "bytes_per_second": made.rate.median,
        "low_bytes_per_second": made.rate.low,
        "high_bytes_per_second": made.rate.high,
        "runs": made.rate.runs,
        "request_bytes": steps.positive(details, "request_bytes"),
        "depth": steps.positive(details, "depth"),
        "in_flight_bytes": steps.positive(details, "in_flight_bytes"),
        "in_flight_per_rtt_bytes_per_second": _window_rate(report, made),
        "security": security(made),
    }


def _window_rate(report: Report, made: Found) -> float | None:
    """What the bytes in flight carry at the path's round trip; None: one of both is not known."""
    in_flight = steps.positive(made.outcome.details, "in_flight_bytes")
    seen = rtt(report, made)
    return None if in_flight is None or seen is None else in_flight / seen.seconds


def _sentence(report: Report, made: list[Made], slow: Made, fast: Made, significant: bool) -> str:
    ordered = sorted(made, key=lambda each: steps.age(each[0].dialect))
    rates = ", ".join(
        f"{dialect_name(copy.dialect)} {rate_text(each.rate.median)}" for copy, each in ordered
    )
    told = f"{rates} on this path ({slow[0].name})"
    if not significant:
        return f"{told}: no difference that these runs can tell."
    first, second = _flight(slow[1]), _flight(fast[1])
    if first and second and first != second:
        told += f": {first} against {second}"
    told += _explained(report, slow, fast) or _held(report, slow, fast)
    told += _guarded(slow, fast)
    return f"{told}."


def _flight(made: Found) -> str:
    """What a copy kept in flight, in words; empty where it does not tell."""
    details = made.outcome.details
    size, depth, total = (
        steps.positive(details, name) for name in ("request_bytes", "depth", "in_flight_bytes")
    )
    if size is None or depth is None or total is None:
        return ""
    requests = "request" if depth == 1 else "requests"
    return f"{count_text(depth)} {requests} of {size_text(size)} in flight ({size_text(total)})"


def _explained(report: Report, slow: Made, fast: Made) -> str:
    """What the round trips leave of the slower one, where that is less than the faster one does.

    Nothing where it ran faster than that: then the round trip is wrong.
    """
    copy, made = slow
    seen, most = rtt(report, made), _window_rate(report, made)
    bound = max(EXPLAINED_RATIO * made.rate.median, fast[1].rate.median)
    if seen is None or most is None or not made.rate.high <= most <= bound:
        return ""
    trip = f"{'' if seen.echoed else 'about '}{seconds_text(seen.seconds)}"
    return f"; at an RTT of {trip} {dialect_name(copy.dialect)} cannot pass {rate_text(most)}"


def _held(report: Report, slow: Made, fast: Made) -> str:
    """What else holds the slower one and not the faster one, where its round trips do not."""
    found = mechanism.why(report, *slow, fast[1].rate.median)
    return f"; {dialect_name(slow[0].dialect)}: {found.words}"


def _guarded(slow: Made, fast: Made) -> str:
    """Where one of both was signed or encrypted and the other was not, that it was."""
    first, second = security(slow[1]), security(fast[1])
    if first is None or second is None or first == second:
        return ""
    names = [dialect_name(copy.dialect) for copy, _ in (slow, fast)]
    return f"; {names[0]} was {first}, {names[1]} {second}"
