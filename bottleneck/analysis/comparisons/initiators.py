"""The same bytes in the same direction, started by either host: is it worth to start it elsewhere?

The four combinations of direction and initiator, cached and not at the sender.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import mechanism
from bottleneck.analysis.comparisons.mechanism import Why
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.noise import differ, factor
from bottleneck.analysis.steps import CACHES, OURS, OWN, Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text, times_text
from probes.records import SIDES, Spread

DIRECTIONS = {"client": "client to server", "server": "server to client"}
"""By the sender."""


@dataclass(frozen=True)
class Pair:
    """One direction and cache, started by its sender and by its receiver."""

    sender: str
    cache: str
    dialect: str
    engine: str
    """Who moved the bytes of the server's copy."""
    pushed: Found
    """Started by the sender."""
    pulled: Found
    """Started by the receiver."""
    served_by: str | None
    """What served the client's share; None: not told."""
    durable: bool
    """Whether both rates end when the bytes are safe; else when they were acknowledged."""
    copies: tuple[Copy, Copy]
    """Of the sender, of the receiver."""

    @property
    def rates(self) -> tuple[Spread, Spread]:
        """Started by the sender, by the receiver: measured to the same end."""
        if self.durable:
            return self.pushed.rate, self.pulled.rate
        return _acknowledged(self.pushed), _acknowledged(self.pulled)

    @property
    def by_stand_in(self) -> bool:
        """Whether this tool itself served the client's share: that rate is the tool's."""
        return self.served_by in OURS

    @property
    def significant(self) -> bool:
        """Whether they differ by more than their noise, and not by what this tool can serve."""
        return differ(*self.rates) and not self.by_stand_in

    @property
    def better(self) -> str:
        """Who should start it: sender or receiver."""
        pushed, pulled = self.rates
        return "sender" if pushed.median > pulled.median else "receiver"

    @property
    def host(self) -> str:
        """The host that should start it."""
        return self.sender if self.better == "sender" else steps.other(self.sender)

    @property
    def ratio(self) -> float:
        """The faster over the slower."""
        pushed, pulled = self.rates
        return factor(pushed.median, pulled.median)

    def why(self, report: Report) -> Why | None:
        """What holds the slower one; None: they do not differ."""
        if not self.significant:
            return None
        at = 1 if self.better == "sender" else 0
        slow = (self.pushed, self.pulled)[at]
        return mechanism.why(report, self.copies[at], slow, self.rates[1 - at].median)


def compare(report: Report) -> Iterator[Comparison]:
    """One comparison of all the pairs that the report has both halves of."""
    pairs = tuple(_pairs(report))
    if not pairs:
        return
    telling = max(pairs, key=lambda each: (each.significant, each.ratio))
    whys = [each.why(report) for each in pairs]
    yield Comparison(
        about="initiator",
        sentence=(
            _sentence(pairs, telling)
            + _held(telling, whys[pairs.index(telling)])
            + _made_by(pairs, telling.significant)
            + _guarded(telling)
        ),
        rows=tuple(
            {
                "direction": DIRECTIONS[each.sender],
                "cache": each.cache,
                "dialect": each.dialect,
                "engine": each.engine,
                "engine_server": each.served_by,
                "sender_bytes_per_second": each.rates[0].median,
                "sender_runs": each.rates[0].runs,
                "receiver_bytes_per_second": each.rates[1].median,
                "receiver_runs": each.rates[1].runs,
                "durable": each.durable,
                "better": each.better if each.significant else None,
                "ratio": each.ratio,
                "significant": each.significant,
                **mechanism.row(why),
            }
            for each, why in zip(pairs, whys, strict=True)
        ),
        ratio=telling.ratio,
        significant=telling.significant,
        steps=tuple(index for each in pairs for index in (each.pushed.index, each.pulled.index)),
    )


def _pairs(report: Report) -> Iterator[Pair]:
    made = [
        (copy, copy.made)
        for copy in steps.copies(report)
        if copy.made is not None and copy.made.intact and not copy.native
    ]
    by_client = [(copy, found) for copy, found in made if copy.initiator == "client"]
    by_server = [(copy, found) for copy, found in made if copy.initiator == "server"]
    for sender in SIDES:
        for cache in CACHES:
            for copy, found in by_server:
                twin = next(
                    (
                        (other, each)
                        for other, each in by_client
                        if (other.sender, other.cache, other.dialect, other.engine)
                        == (sender, cache, copy.dialect, OWN)
                    ),
                    None,
                )
                if (copy.sender, copy.cache) != (sender, cache) or twin is None:
                    continue
                own, half = twin
                if not steps.alike_sources(found, half):
                    continue
                by_sender = sender == "client"
                yield Pair(
                    sender=sender,
                    cache=cache,
                    dialect=copy.dialect,
                    engine=copy.engine,
                    pushed=half if by_sender else found,
                    pulled=found if by_sender else half,
                    served_by=steps.word(found.outcome.details, "engine_server"),
                    durable=_durable(found),
                    copies=(own, copy) if by_sender else (copy, own),
                )


def _durable(found: Found) -> bool:
    told = steps.flag(found.outcome.details, "flushed")
    return told is not False


def _acknowledged(found: Found) -> Spread:
    """The rate until the last byte was acknowledged, of the one run that tells it."""
    told = steps.positive(found.outcome.details, "acknowledged_bytes_per_second")
    if told is None or not _durable(found):
        return found.rate
    return Spread(told, told, told, 1)


def _sentence(pairs: tuple[Pair, ...], telling: Pair) -> str:
    told = [each for each in pairs if each.significant]
    if all(each.by_stand_in for each in pairs):
        return (
            "Who should start the copy cannot be told: the client's share was served by this "
            "tool's own stand-in, which is slower than a file server (install Samba there, or "
            "give --client-share)."
        )
    if not told:
        return (
            "It makes no difference that these runs can tell who starts the copy (at most "
            f"{times_text(telling.ratio)}, {DIRECTIONS[telling.sender]}, {telling.cache})."
        )
    if len({each.better for each in told}) == 1:
        start = f"Start it from the {told[0].better}: "
    elif len({each.host for each in told}) == 1:
        start = f"Start it from the {told[0].host}: "
    else:
        start = "Who should start it depends: "
    told_most = [
        max((each for each in told if each.sender == sender), key=lambda each: each.ratio)
        for sender in dict.fromkeys(each.sender for each in told)
    ]
    same = len(pairs) - len(told)
    rest = f"; no difference that can be told in the other {same}" if same > 1 else ""
    rest = "; no difference that can be told in the other one" if same == 1 else rest
    return f"{start}{'; '.join(map(_gain, told_most))}{rest}."


def _gain(pair: Pair) -> str:
    pushed, pulled = (each.median for each in pair.rates)
    rates = f"{rate_text(max(pushed, pulled))} against {rate_text(min(pushed, pulled))}"
    acknowledged = "" if pair.durable else ", as acknowledged"
    return (
        f"{times_text(pair.ratio)} {DIRECTIONS[pair.sender]} {pair.cache} when the {pair.host} "
        f"starts it ({rates}{acknowledged})"
    )


def _held(pair: Pair, found: Why | None) -> str:
    """What holds the slower half of the pair that differs most; empty where none differs."""
    if found is None:
        return ""
    return f" Started by the {steps.other(pair.host)} that copy is slower: {found.words}."


def _made_by(pairs: tuple[Pair, ...], significant: bool) -> str:
    """Another program's copies say something of that program as well."""
    engines = dict.fromkeys(each.engine for each in pairs if each.engine != OWN)
    if not engines:
        return ""
    names = " and ".join(engines)
    whose = ": a part of the difference may be theirs" if significant else ""
    return f" The server's own copies were made by {names}, the client's by this tool{whose}."


def _guarded(pair: Pair) -> str:
    """Another share may sign or encrypt what TARGET does not: that costs, whoever starts it."""
    halves = (pair.pushed, pair.pulled) if pair.sender == "client" else (pair.pulled, pair.pushed)
    own, there = map(steps.security, halves)
    if own is None or there is None or own == there:
        return ""
    return (
        f" The copies that the client started were {own}, the server's {there}: that may be a part "
        "of it, or hide it."
    )
