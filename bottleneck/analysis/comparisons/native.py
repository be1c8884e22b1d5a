"""The operating system's own copy beside this tool's of the same file: a gap is a finding."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import mount, steps
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import differ, factor
from bottleneck.analysis.sentences import dialect_name
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, times_text

Pair = tuple[Copy, Found, Found]


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all copies that were made both ways from the same kind of source."""
    pairs = [
        (copy, copy.made, copy.beside)
        for copy in steps.copies(report)
        if copy.made is not None
        and copy.beside is not None
        and copy.made.intact
        and steps.alike_sources(copy.made, copy.beside)
    ]
    if not pairs:
        return
    telling = max(pairs, key=_telling)
    _, made, beside = telling
    yield Comparison(
        about="native",
        sentence=_sentence(*telling),
        rows=tuple(_row(*each) for each in pairs),
        ratio=factor(made.rate.median, beside.rate.median),
        significant=differ(made.rate, beside.rate),
        steps=tuple(found.index for _, *both in pairs for found in both),
    )


def _telling(pair: Pair) -> tuple[bool, float]:
    _, made, beside = pair
    return differ(made.rate, beside.rate), factor(made.rate.median, beside.rate.median)


def _verdict(copy: Copy, made: Found, beside: Found) -> dict[str, Any] | None:
    """What the gap means, in the contract's words; None: there is none."""
    if not differ(made.rate, beside.rate):
        return None
    if made.rate.median > beside.rate.median:
        return {"component": "instrument", "side": "client", "cause": "ceiling"}
    return {
        "component": "smb",
        "side": "client",
        "cause": mount.cause(made, beside),
        "advice": f"{mount.remedy(made, copy.verb)}: {rate_text(beside.rate.median)} is possible.",
    }


def _row(copy: Copy, made: Found, beside: Found) -> dict[str, Any]:
    details = made.outcome.details
    return {
        "copy": copy.name,
        "program": steps.word(details, "program"),
        "native_bytes_per_second": made.rate.median,
        "native_runs": made.rate.runs,
        "own_bytes_per_second": beside.rate.median,
        "own_runs": beside.rate.runs,
        "own_dialect": steps.word(beside.step.setting, "dialect"),
        "filesystem": steps.word(details, "mount", "filesystem"),
        "options": [text for text, _ in mount.slow_options(made, copy.verb)],
        "ratio": factor(made.rate.median, beside.rate.median),
        "significant": differ(made.rate, beside.rate),
        "verdict": _verdict(copy, made, beside),
    }


def _sentence(copy: Copy, made: Found, beside: Found) -> str:
    program = steps.word(made.outcome.details, "program") or "the system's own copy"
    dialect = dialect_name(steps.word(beside.step.setting, "dialect") or "")
    first, second = rate_text(made.rate.median), rate_text(beside.rate.median)
    rates = f"{copy.name}: {program} through the mount {first}, this tool by {dialect} {second}"
    if not differ(made.rate, beside.rate):
        return f"{rates}: no difference that these runs can tell."
    ratio = times_text(factor(made.rate.median, beside.rate.median))
    if made.rate.median > beside.rate.median:
        return (
            f"{rates}: the system's own copy is {ratio} as fast, so that where this tool's copy "
            "is capped it may be the tool itself; blame nobody by it."
        )
    options = [text for text, _ in mount.slow_options(made, copy.verb)]
    named = f" ({', '.join(options)})" if options else ""
    return (
        f"{rates}: the path carries {ratio} what the mount{named} makes of it. "
        f"{mount.remedy(made, copy.verb)} may close the gap."
    )
