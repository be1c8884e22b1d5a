"""Two copies that differ in one thing: which is slower, by how much, and what limits it.

Its own limit explains the slower one where it is below the other copy's rate. A flush that takes
the whole difference explains it too. All else is not explained, and said to be; never a guess.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from bottleneck.analysis import cap as caps
from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.cap import Cap
from bottleneck.analysis.cap_by_time import decide
from bottleneck.analysis.finding import Ceiling, Comparison, Ladder
from bottleneck.analysis.noise import SINGLE_RATIO, differ, factor
from bottleneck.analysis.sentences import name_with_verb, part_name
from bottleneck.analysis.steps import OWN, Copy, Found, dialect_name
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text, seconds_text
from probes.core.records import Spread

Row = dict[str, Any]
MOST_NAMED = 4
"""Components that are listed as not the cause."""


@dataclass(frozen=True)
class Half:
    """A copy with what was measured of it."""

    copy: Copy
    made: Found
    spread: Spread
    """To the end that both halves of a pair have: when the bytes were safe, or acknowledged."""

    @property
    def rate(self) -> float:
        """Median, bytes per second."""
        return self.spread.median


@dataclass(frozen=True)
class Why:
    """What makes a copy slower than another."""

    mechanism: str
    """ceiling, flush or unexplained."""
    words: str
    """What follows the rates: ` because ...`, or that nothing explains it; with its full stop."""
    ceiling: Ceiling | None = None
    """What limits the slower copy; None: not identified."""


@dataclass(frozen=True)
class Pair:
    """Two copies; `first` and `second` are what an axis calls its two ends."""

    report: Report
    first: Half
    second: Half
    ours: bool = False
    """Whether this tool itself is one of the file servers, so that a difference is its own."""

    @property
    def slow(self) -> Half:
        """The slower one."""
        return min(self.first, self.second, key=lambda each: each.rate)

    @property
    def fast(self) -> Half:
        """The other one."""
        return self.second if self.slow is self.first else self.first

    @property
    def ratio(self) -> float:
        """The faster over the slower."""
        return factor(self.first.rate, self.second.rate)

    @property
    def significant(self) -> bool:
        """Whether they differ by more than their noise, and not by what this tool can serve."""
        return differ(self.first.spread, self.second.spread) and not self.ours

    @property
    def difference(self) -> tuple[bool, float]:
        """What pairs are ordered by: how far they are apart, beyond the noise or not."""
        return self.significant, self.ratio

    @cached_property
    def why(self) -> Why | None:
        """What makes the slower one slower; None: they do not differ."""
        if not self.significant:
            return None
        return _why(self.report, self.slow.copy, self.slow.made, self.fast.rate)

    @property
    def held(self) -> Row:
        """What a row says of why; all None where there is no difference to explain."""
        why = self.why
        held = (None, None, None) if why is None or why.ceiling is None else why.ceiling.named
        names = ("component", "side", "cause")
        mechanism = None if why is None else why.mechanism
        return {"mechanism": mechanism, **dict(zip(names, held, strict=True))}


Pairs = Sequence[Pair]


def most_different(found: Pairs) -> Pairs:
    """The same, the pair that differs most first."""
    return sorted(found, key=lambda each: each.difference, reverse=True)


def leading(found: Pairs) -> Pairs:
    """Of the client's copies the mount's or newest dialect's, the one that differs most first."""
    chosen = next((each for each in found if each.first.copy.initiator == "client"), found[0])
    return most_different(
        [each for each in found if who(each.first.copy) == who(chosen.first.copy)]
    )


@dataclass(frozen=True)
class Axis:
    """One thing that two copies of a report may differ in."""

    about: str
    names: tuple[str, str]
    """What a row calls its two ends."""
    pairs: Callable[[Report], Pairs]
    sentence: Callable[[Pairs], str]
    """Of all pairs."""
    telling: Callable[[Pairs], Pairs]
    """Those that the sentence speaks of, the one that differs most first."""
    head: Callable[[Pair], Row]
    """A row's words of which pair it is of."""
    own: Callable[[Pair], Row]
    """What only this axis says beside the rates."""
    end: Callable[[Pair], Row] = lambda pair: pair.held

    def compare(self, report: Report) -> Iterator[Comparison]:
        """One comparison of all the pairs that the report has both halves of."""
        found = self.pairs(report)
        if found:
            most = self.telling(found)[0]
            halves = (half for each in found for half in (each.first, each.second))
            yield Comparison(
                about=self.about,
                sentence=self.sentence(found),
                rows=tuple(map(self._row, found)),
                ratio=most.ratio,
                significant=most.significant,
                steps=tuple(half.made.index for half in halves),
            )

    def _row(self, pair: Pair) -> Row:
        row = self.head(pair)
        for name, half in zip(self.names, (pair.first, pair.second), strict=True):
            row[f"{name}_bytes_per_second"] = half.rate
        apart = {"ratio": pair.ratio, "significant": pair.significant}
        return {**row, **self.own(pair), **apart, **self.end(pair)}


def halves(report: Report) -> Iterator[Half]:
    """Every copy that was made and arrived as it was sent."""
    for copy in steps.copies(report):
        if copy.made is not None and copy.made.intact:
            yield Half(copy, copy.made, copy.made.rate)


def sound_halves(report: Report) -> Iterator[Half]:
    """Those whose rate is one: durable at its end, and within physics."""
    for half in halves(report):
        if hardware_limits.impossible(report, half.made) is None and durable(half):
            yield half


def durable(half: Half) -> bool:
    """Whether its bytes were safe at its end, as far as it tells."""
    return half.made.details.flushed is not False


def paired(
    report: Report,
    among: Iterable[Half],
    is_first: Callable[[Copy], bool],
    alike: Callable[[Half], Any],
) -> Pairs:
    """The copies that are alike but for one thing, in the report's order of copies."""
    known = list(among)
    return tuple(
        Pair(report, each, other)
        for each in known
        if is_first(each.copy)
        for other in known
        if not is_first(other.copy) and alike(each) == alike(other)
    )


def who(copy: Copy) -> Row:
    """Who made a copy, and how."""
    return {"initiator": copy.initiator, "dialect": copy.dialect, "engine": copy.engine}


def by(copy: Copy) -> str:
    """The same in words."""
    what = "the operating system's copy" if copy.native else dialect_name(copy.dialect)
    program = "" if copy.native or copy.engine == OWN else f" with {copy.engine}"
    starts = ", started by the server" if copy.initiator == "server" else ""
    return f"{what}{program}{starts}"


def _why(report: Report, slow: Copy, made: Found, fast_rate: float) -> Why:
    """What holds a copy below a rate, bytes per second, that another like it reached."""
    decision = decide(report, slow)
    cap, ladder = decision.cap, decision.ladder
    late = _flush(slow, made, fast_rate)
    # A ceiling that lets the faster rate pass is no reason, unless the copy's own time names it.
    part = (decision.time.component, decision.time.side) if decision.time else None
    low = cap is not None and cap.claim.ceiling.bytes_per_second < fast_rate
    if cap is not None and (low or cap.claim.ceiling.part == part):
        also = f" In addition, {late}." if late else ""
        return Why("ceiling", f" because {_words(cap)}.{also}", cap.claim.ceiling)
    if late:
        return Why("flush", f" because {late}.")
    return Why("unexplained", _unexplained(slow, ladder, fast_rate))


def _words(cap: Cap) -> str:
    words = cap.claim.words
    return words if cap.rival is None else f"{words}. Equally likely: {cap.rival.words}"


def _level(ceiling: Ceiling, at: str = "at ") -> str:
    return f"{name_with_verb(ceiling)} {at}{rate_text(ceiling.bytes_per_second)}"


def _flush(slow: Copy, made: Found, fast_rate: float) -> str:
    """The flush at the end, where without it the copy would run like the other; else empty."""
    flush = made.details.flush_seconds
    acknowledged = made.details.acknowledged_bytes_per_second
    if not flush or acknowledged is None:
        return ""
    if acknowledged * SINGLE_RATIO < fast_rate or acknowledged < SINGLE_RATIO * made.rate.median:
        return ""
    return (
        f"the final flush to the {slow.receiver}'s disk took {seconds_text(flush)} after all data "
        f"was acknowledged at {rate_text(acknowledged)}"
    )


STAGES = ("disk", "network", "tcp")
"""Components that all bytes pass."""


def _unexplained(slow: Copy, ladder: Ladder, fast_rate: float) -> str:
    """That nothing explains it, what would allow the faster rate, and what was not measured."""
    allowing: dict[tuple[str, str | None], str] = {}
    between = ""
    known = [claim.ceiling for claim in ladder.claims if not claim.ceiling.tool]
    # What every byte passes comes first.
    for each in sorted(known, key=lambda each: each.component not in STAGES):
        if each.bytes_per_second >= fast_rate:
            allowing.setdefault(each.part, _level(each, ""))
        elif each.standing != "at-least" and not between:
            between = f" The lowest known limit, {_level(each)}, was not reached."
    told = ", not explained by any measurement."
    named = list(allowing.values())[:MOST_NAMED]
    if named:
        told += f" Higher limits: {_listed(named)}."
    missing = caps.unknown_parts(slow, ladder, fast_rate)
    if missing:
        told += f" Not measured: {_listed([part_name(part) for part in missing])}."
    return f"{told}{between}"


def _listed(names: list[str]) -> str:
    return " and ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
