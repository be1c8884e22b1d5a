"""Copies that differ in direction, source, program or dialect; acknowledged and durable rates."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import pairs as paired
from bottleneck.analysis.comparisons.pairs import Axis, Half, Pair, Pairs, Row
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.smb import mount
from bottleneck.analysis.steps import OWN, Found, dialect_name, security
from bottleneck.report.report import Report, median_run
from bottleneck.text.units import count_text, rate_text, seconds_text, size_text, times_text
from probes.core.records import run_rate

DOING = {"push": "pushing", "pull": "pulling"}
EXPLAINED_RATIO = 1.5
"""A ceiling further above the rate, and above the faster dialect's, explains nothing."""
LEAST_LATE_RATIO = 1.1
"""Acknowledged over durable: of one run, so that no noise is between; less is not reported."""


# -- push against pull -------------------------------------------------------------------------


def _directions(report: Report) -> Pairs:
    """Both directions of sources that are the same, and proven alike to be; first is the push."""
    return paired.paired(
        report,
        paired.sound_halves(report),
        lambda copy: copy.verb == "push",
        lambda half: (
            paired.who(half.copy),
            half.copy.cache,
            half.made.details.cache.proven,
            half.copy.of_file,
        ),
    )


def _direction_sentence(found: Pairs) -> str:
    """One sentence a pair; a cause of several of them is written once."""
    seen: set[tuple[Any, ...]] = set()
    told = []
    for each in paired.leading(found):
        cache, why = each.first.copy.cache.capitalize(), each.why
        key = why and why.ceiling and (each.slow.copy.verb, *why.ceiling.named)
        push, pull = rate_text(each.first.rate), rate_text(each.second.rate)
        rates = f"push {push}, pull {pull}, {paired.by(each.slow.copy)}"
        if key in seen:
            rate = rate_text(each.slow.rate)
            told.append(f"{cache}: the same cause ({rate}, {times_text(each.ratio)}).")
        elif why is None:
            told.append(f"{cache}: no significant difference ({rates}).")
        else:
            doing, other = DOING[each.slow.copy.verb], DOING[each.fast.copy.verb]
            slower = f"{doing} is {times_text(each.ratio)} slower than {other}"
            told.append(f"{cache}: {slower} ({rates}){why.words}")
        if key:
            seen.add(key)
    return " ".join(told)


DIRECTION = Axis(
    "direction",
    ("push", "pull"),
    _directions,
    _direction_sentence,
    paired.leading,
    head=lambda pair: {**paired.who(pair.first.copy), "cache": pair.first.copy.cache},
    own=lambda pair: {"slower": pair.slow.copy.verb if pair.significant else None},
)


# -- cached against uncached at the sender -----------------------------------------------------


def _caches(report: Report) -> Pairs:
    """Cached and uncached; where one may have been the other, their difference is none."""
    found = paired.paired(
        report,
        paired.sound_halves(report),
        lambda copy: copy.cache == "cached",
        lambda half: (paired.who(half.copy), half.copy.verb, half.copy.of_file),
    )
    return tuple(
        each
        for each in found
        if all(half.made.details.cache.proven for half in (each.first, each.second))
    )


def _cache_sentence(found: Pairs) -> str:
    return " ".join(map(_cache_words, paired.leading(found)))


def _cache_words(pair: Pair) -> str:
    """Which is slower and why, or that there is no difference."""
    copy, why = pair.slow.copy, pair.why
    what = f"{DOING[copy.verb].capitalize()} {'the file' if copy.of_file else 'a file'}"
    cached, uncached = rate_text(pair.first.rate), rate_text(pair.second.rate)
    rates = f"cached {cached}, uncached {uncached}, {paired.by(copy)}"
    if why is None:
        return f"{what}: no significant difference ({rates})."
    source, other = ("disk", "cache") if copy.cache == "uncached" else ("cache", "disk")
    alone = ""
    if why.ceiling is None and copy.cache == "uncached":
        alone = f" Only the {copy.sender}'s disk differs between the two copies."
    return (
        f"{what} is {times_text(pair.ratio)} slower from the {copy.sender}'s {source} than from "
        f"its {other} ({rates}){why.words}{alone}"
    )


CACHE = Axis(
    "cache",
    ("cached", "uncached"),
    _caches,
    _cache_sentence,
    paired.leading,
    head=lambda pair: {
        "copy": pair.second.copy.name,
        **paired.who(pair.first.copy),
        "sender": pair.first.copy.sender,
    },
    own=lambda pair: {"slower": pair.slow.copy.cache if pair.significant else None},
)


# -- the operating system's own copy beside this tool's ----------------------------------------


def _natives(report: Report) -> Pairs:
    """The mount's copies, each with the fastest that this tool made of the same source."""
    made = list(paired.halves(report))
    return tuple(
        Pair(report, each, other)
        for each in made
        for other in made
        if each.copy.beside is not None
        and other.made.index == each.copy.beside.index
        and steps.alike_sources(each.made, other.made)
    )


def _native_sentence(found: Pairs) -> str:
    pair = paired.most_different(found)[0]
    mounted, copy = pair.first.made, pair.first.copy
    program = steps.word(mounted.outcome.details, "program") or "the operating system's copy"
    first, second = rate_text(pair.first.rate), rate_text(pair.second.rate)
    dialect = dialect_name(pair.second.copy.dialect)
    rates = f"{program} through the mount {first}, this tool over {dialect} {second}"
    if not pair.significant:
        return f"{copy.name}: no significant difference ({rates})."
    ratio = times_text(pair.ratio)
    if pair.fast is pair.first:
        return (
            f"{copy.name}: the operating system's copy is {ratio} as fast ({rates}). This tool "
            "itself may limit its own copies."
        )
    options = ", ".join(_slow_options(pair))
    named = f" with {options}" if options else ""
    return (
        f"{copy.name}: the mount{named} is {ratio} slower than this tool ({rates}). "
        f"{mount.remedy(mounted, copy.verb)}."
    )


def _slow_options(pair: Pair) -> list[str]:
    return [text for text, _ in mount.slow_options(pair.first.made, pair.first.copy.verb)]


def _native_verdict(pair: Pair) -> dict[str, Any] | None:
    """What the gap means, in the contract's words; None: there is none."""
    if not pair.significant:
        return None
    if pair.fast is pair.first:
        return {"component": "instrument", "side": "client", "cause": "ceiling"}
    mounted, own = pair.first.made, pair.second
    remedy = mount.remedy(mounted, pair.first.copy.verb)
    return {
        "component": "smb",
        "side": "client",
        "cause": mount.cause(mounted, own.made).word,
        "advice": f"{remedy}. Expected: up to {rate_text(own.rate)}.",
    }


NATIVE = Axis(
    "native",
    ("native", "own"),
    _natives,
    _native_sentence,
    paired.most_different,
    head=lambda pair: {
        "copy": pair.first.copy.name,
        "program": steps.word(pair.first.made.outcome.details, "program"),
    },
    own=lambda pair: {
        "filesystem": steps.word(pair.first.made.outcome.details, "mount", "filesystem"),
        "options": _slow_options(pair),
    },
    end=lambda pair: {"verdict": _native_verdict(pair)},
)


# -- one dialect against another ---------------------------------------------------------------


def dialects(report: Report) -> Iterator[Comparison]:
    """One comparison of all dialects; its sentence is about the copy that tells most."""
    made: dict[str, list[Half]] = {}
    for each in paired.halves(report):
        if each.copy.initiator == "client" and each.copy.engine == OWN:
            made.setdefault(each.copy.name, []).append(each)
    groups = [each for each in made.values() if len(each) > 1]
    if groups:
        groups.sort(key=lambda each: _ends(report, each).difference, reverse=True)
        ends = _ends(report, groups[0])
        rows = [half for each in groups for half in each]
        yield Comparison(
            about="dialect",
            sentence=_dialect_sentence(ends, groups[0]),
            rows=tuple(map(_dialect_row, rows)),
            ratio=ends.ratio,
            significant=ends.significant,
            steps=tuple(each.made.index for each in rows),
        )


def _ends(report: Report, made: list[Half]) -> Pair:
    """The slowest and the fastest of a copy's dialects."""
    ordered = sorted(made, key=lambda each: each.rate)
    return Pair(report, ordered[0], ordered[-1])


def _dialect_row(each: Half) -> Row:
    flight = ("request_bytes", "depth", "in_flight_bytes")
    return {
        "copy": each.copy.name,
        "dialect": each.copy.dialect,
        "bytes_per_second": each.rate,
        "low_bytes_per_second": each.spread.low,
        "high_bytes_per_second": each.spread.high,
        "runs": each.spread.runs,
        **{name: getattr(each.made.details, name) for name in flight},
        "security": security(each.made),
    }


def _dialect_sentence(ends: Pair, made: list[Half]) -> str:
    slow, fast = ends.first, ends.second
    rates = ", ".join(
        f"{dialect_name(each.copy.dialect)} {rate_text(each.rate)}"
        for each in sorted(made, key=lambda each: steps.age(each.copy.dialect))
    )
    why = ends.why
    if why is None:
        return f"{slow.copy.name}: no significant difference ({rates})."
    names = [dialect_name(each.copy.dialect) for each in (slow, fast)]
    told = (
        f"{slow.copy.name}: {names[0]} is {times_text(ends.ratio)} slower than {names[1]} ({rates})"
    )
    first, second = _flight(slow.made), _flight(fast.made)
    # What the round trips leave of the slower one, where that is less than the faster one does;
    # nothing where it ran faster than that: then the round trip is wrong.
    trip, in_flight = rtt(ends.report, slow.made), slow.made.details.in_flight_bytes
    most = 0.0 if trip is None or in_flight is None else in_flight / trip.seconds
    bound = max(EXPLAINED_RATIO * slow.rate, fast.rate)
    if trip is not None and slow.spread.high <= most <= bound:
        seconds = f"{'' if trip.echoed else 'about '}{seconds_text(trip.seconds)}"
        told += f". At an RTT of {seconds}, {names[0]} allows at most {rate_text(most)}."
    else:
        told += why.words
    if first and second and first != second:
        told += f" {names[0]} keeps {first} in flight, {names[1]} {second}."
    guards = security(slow.made), security(fast.made)
    if None not in guards and guards[0] != guards[1]:
        told += f" {names[0]} was {guards[0]}, {names[1]} {guards[1]}."
    return told


def _flight(made: Found) -> str:
    """What a copy kept in flight, in words; empty where that is unknown."""
    size, depth = made.details.request_bytes, made.details.depth
    total = made.details.in_flight_bytes
    if size is None or depth is None or total is None:
        return ""
    requests = "requests" if depth > 1 else "request"
    return f"{count_text(depth)} {requests} of {size_text(size)} ({size_text(total)})"


# -- acknowledged against durable--------------------------------------------------------------


def durability(report: Report) -> Iterator[Comparison]:
    """One comparison of all pushes that were acknowledged faster than they were durable."""
    late = [(each.copy, row) for each in paired.halves(report) for row in _late(each)]
    if late:
        copy, most = max(late, key=lambda each: each[1]["ratio"])
        fast, safe = most["acknowledged_bytes_per_second"], most["durable_bytes_per_second"]
        yield Comparison(
            about="durability",
            sentence=(
                f"{copy.name} ({paired.by(copy)}) was acknowledged at {rate_text(fast)} but on the "
                f"{copy.receiver}'s disk at {rate_text(safe)}. A program that does not wait for "
                f"the flush shows at least {times_text(most['ratio'])} the real rate and finishes "
                f"{seconds_text(most['flush_seconds'])} too early."
            ),
            rows=tuple(row for _, row in late),
            ratio=most["ratio"],
            significant=True,
            steps=tuple(copy.index for copy, _ in late),
        )


def _late(each: Half) -> Iterator[Row]:
    """Both rates of the run that the details are of, where it was flushed and they differ."""
    acknowledged = each.made.details.acknowledged_bytes_per_second
    flush = each.made.details.flush_seconds
    asked = steps.flag(each.made.step.setting, "flushed") is not False
    if each.copy.verb != "push" or not (asked and paired.durable(each)):
        return
    safe = run_rate(median_run(each.made.outcome))
    if acknowledged and flush is not None and acknowledged >= LEAST_LATE_RATIO * safe:
        yield {
            "copy": each.copy.name,
            "dialect": each.copy.dialect,
            "acknowledged_bytes_per_second": acknowledged,
            "durable_bytes_per_second": safe,
            "flush_seconds": flush,
            "ratio": acknowledged / safe,
        }
