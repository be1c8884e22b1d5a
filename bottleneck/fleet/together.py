"""Several clients that copy from, or to, one server at once: what each gets, and what limits all.

A client by itself gets the least of its own limits and of those that all share. While all copy,
each gets the least of its own limits and of what is left of the shared ones. So the sum is that of
the clients by themselves where nothing shared is reached, and else the shared limit. Pure.

Units: bytes per second, seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bottleneck.analysis.finding import Words
from bottleneck.analysis.model import looks_like
from bottleneck.fleet.culprit import SLOW, by_pair
from bottleneck.fleet.records import NAMED, Fleet, Node, Pair, Seen, Suspect, Taken, Together
from bottleneck.report.report import Report
from probes.core.records import Measured

LEAST_AT_ONCE = 2
"""Clients."""
DOUBT = 0.05
"""Around SLOW of what the clients get by themselves: such a sum is neither all of it nor less."""
STARVED = 0.4
"""Of an equal share: a client below it is starved; for seconds TCP by itself leaves one a half."""
MARGIN_SECONDS = 0.5
"""At each end of the time in which all copy: when an answer came is known no better."""
LEAST_SECONDS = 1.0
"""Of the time in which all copy, without its margins: in less the rates are by chance."""
LAST_SAMPLES = 2
"""Of a copy: its last replies, and its end when all is flushed."""
LINK, TOO_SHORT = Words("network", "server", "link-rate"), "the copies did not overlap for long"
LOOKS_LIKE_CONFIDENCE = 0.8
"""Of the link for each client without a verdict, where the sum is what a standard link carries."""
MOST_CONFIDENCE = 0.95
LINK_CAUSES = ("link-rate", "contention", "duplex", "wrong-path")
"""What all connections of a link share; packets are lost, and windows are filled, by each."""


class Track(NamedTuple):
    """What a client's copy had moved at each moment, by one clock for all clients."""

    moments: tuple[float, ...]
    moved_bytes: tuple[int, ...]

    def moved(self, moment: float) -> float:
        """Bytes by a moment within the copy, between two samples in proportion."""
        before = 0
        for at, when in enumerate(self.moments):
            if when >= moment:
                first, here = self.moments[before], self.moved_bytes[before]
                share = (moment - first) / (when - first) if when > first else 1.0
                return here + share * (self.moved_bytes[at] - here)
            before = at
        return float(self.moved_bytes[-1])


def track(known: Report, copy: str, answered_seconds: float) -> Track | None:
    """A client's copy on the clock by which its answer came; None: its report does not tell.

    From its first reply on, and without its last ones: what was in flight is acknowledged at once.
    """
    for step, outcome in known.entries:
        if (step.setting.get("copy"), step.setting.get("end")) == (copy, "folder"):
            opened = getattr(outcome, "details", {}).get("opened_after_seconds")
            if isinstance(outcome, Measured) and isinstance(opened, (int, float)):
                began = answered_seconds - known.elapsed_seconds + opened
                run = outcome.runs[-1][1:-LAST_SAMPLES]
                if not run:
                    return None
                moments = tuple(began + each.elapsed_seconds for each in run)
                return Track(moments, tuple(each.moved_bytes for each in run))
    return None


def judge(
    fleet: Fleet,
    copy: str,
    alone: Sequence[Seen],
    tracks: Mapping[Pair, Track],
    at_once: Sequence[Seen] = (),
) -> Together:
    """What the clients got at once, beside what each got by itself.

    fleet: its one server, and the clients that were asked for. alone: of each by itself; at_once:
    what the reports of the copies at once say, whose verdicts are evidence too.
    """
    known = Together(copy, fleet.servers[0], len(fleet.clients))
    by_itself = {pair: each for pair, each in by_pair(alone).items() if not each.at_most}
    pairs = sorted(tracks.keys() & by_itself.keys())
    if len(pairs) < LEAST_AT_ONCE:
        return replace(known, reason=f"{len(pairs)} of {known.wanted} clients were measured")
    opened = max(tracks[pair].moments[0] for pair in pairs) + MARGIN_SECONDS
    closed = min(tracks[pair].moments[-1] for pair in pairs) - MARGIN_SECONDS
    if closed - opened < LEAST_SECONDS:
        return replace(known, reason=TOO_SHORT)
    rates = {
        pair: (tracks[pair].moved(closed) - tracks[pair].moved(opened)) / (closed - opened)
        for pair in pairs
    }
    level = _level([by_itself[pair].bytes_per_second for pair in pairs], sum(rates.values()))
    taken = tuple(_taken(by_itself[pair], rates[pair], level) for pair in pairs)
    seen = replace(known, taken=taken, seconds=closed - opened)
    return _concluded(seen, fleet, [by_itself[pair] for pair in pairs], at_once)


def _taken(seen: Seen, rate: float, level: float) -> Taken:
    fair = min(seen.bytes_per_second, level)
    verdict = seen.verdict if seen.confidence >= NAMED else None
    return Taken(seen.pair, seen.bytes_per_second, rate, fair, rate < STARVED * fair, verdict)


def _level(wanted: Iterable[float], total: float) -> float:
    """The most that each gets where a total is shared equally among those that can use it."""
    left = sorted(wanted)
    while left and left[0] * len(left) <= total:
        total -= left.pop(0)
    return total / len(left) if left else float("inf")


def _concluded(
    seen: Together, fleet: Fleet, alone: Sequence[Seen], at_once: Sequence[Seen]
) -> Together:
    """Whether something shared limits the sum, and what."""
    ratio = seen.total / sum(each.alone_bytes_per_second for each in seen.taken)
    if ratio > SLOW + DOUBT:
        return replace(seen, kind="none", confidence=min(1.0, ratio))
    starved = [each for each in seen.taken if each.starved]
    others = [each for each in seen.taken if not each.starved]
    if starved and all(
        e.bytes_per_second > (SLOW + DOUBT) * e.alone_bytes_per_second for e in others
    ):
        nodes = [Node("client", each.pair.client) for each in starved]
        nodes.append(Node("server", seen.server))
        why = "the other clients get what they get by themselves"
        return replace(seen, suspects=tuple(map(Suspect, nodes)), reason=why)
    if ratio > SLOW - DOUBT:
        return replace(seen, reason="the sum is hardly less than what the clients get one by one")
    link = looks_like(seen.total)
    seen = replace(seen, link_bits_per_second=link.bits_per_second if link else None)
    suspects, confidence = _suspects(seen, fleet, alone, at_once)
    return replace(seen, kind="shared", suspects=suspects, confidence=confidence)


def _suspects(
    seen: Together, fleet: Fleet, alone: Sequence[Seen], at_once: Sequence[Seen]
) -> tuple[tuple[Suspect, ...], float]:
    """What limits the sum, by the verdicts of those that it limits; all that may, where none does.

    By itself a client is limited by what limits the sum only where it reaches about the sum.
    """
    near = [each for each in alone if each.bytes_per_second >= SLOW * seen.total]
    votes: dict[Words, float] = {}
    for each in (*near, *at_once):
        if (words := _shared(each)) is not None:
            votes[words] = votes.get(words, 0.0) + each.confidence
    every = _places(LINK, seen, fleet) + _other_parts(seen)
    silent = sum(each.verdict is None for each in near) if near else 1
    if silent and seen.link_bits_per_second is not None and votes.keys() <= {LINK}:
        votes[LINK] = votes.get(LINK, 0.0) + LOOKS_LIKE_CONFIDENCE * silent
    if not votes:
        return every, 0.0
    (first, most), *rest = sorted(votes.items(), key=lambda each: -each[1])
    others = [words for words, count in rest if 2 * count >= most]
    suspects = tuple(place for words in (first, *others) for place in _places(words, seen, fleet))
    voters = max(1, len(near) + sum(_shared(each) is not None for each in at_once))
    sure = min(MOST_CONFIDENCE, most / voters) * most / sum(votes.values())
    if sure < NAMED and len(suspects) == 1:
        suspects = tuple(dict.fromkeys((*suspects, *every)))
    return suspects, sure / len(suspects)


def _shared(seen: Seen) -> Words | None:
    """What a verdict names that clients share; any of the path is their link to the server."""
    words = seen.verdict
    if words is None or seen.confidence < NAMED or words.side == "client":
        return None
    if words.component == "network":
        return LINK if words.cause in LINK_CAUSES else None
    return words if words.component in ("disk", "cpu") else None


def _places(words: Words, seen: Together, fleet: Fleet) -> tuple[Suspect, ...]:
    """Where a part is: the server's own, or, of a link, that and each uplink that all pass."""
    found = [Suspect(Node("server", seen.server), words)]
    if words == LINK:
        passed = [set(fleet.nodes(each.pair)) for each in seen.taken]
        shared = set.intersection(*passed)
        found += [Suspect(each, LINK) for each in sorted(shared) if each.kind == "uplink"]
    return tuple(found)


def _other_parts(seen: Together) -> tuple[Suspect, ...]:
    verb = "read" if seen.copy.startswith("pull") else "write"
    parts = (Words("disk", "server", verb), Words("cpu", "server", "all-cores"))
    return tuple(Suspect(Node("server", seen.server), each) for each in parts)


def by_themselves(seen: Mapping[str, Sequence[Seen]], copy: str) -> list[Seen]:
    """What each client got alone of a copy; of one whose time was too short, uncached."""
    rated = [each for each in seen.get(copy, ()) if not each.at_most]
    known = {each.pair for each in rated}
    other = seen.get(copy.replace(".cached", ".uncached"), ())
    return [*rated, *(each for each in other if each.pair not in known and not each.at_most)]


def of_reports(
    fleet: Fleet,
    copy: str,
    alone: Sequence[Seen],
    reports: Mapping[Pair, tuple[Report, float]],
    at_once: Sequence[Seen],
) -> Together:
    """The same of the reports of the copies at once, each with the moment when it came."""
    found = {pair: track(known, copy, when) for pair, (known, when) in reports.items()}
    tracks = {pair: each for pair, each in found.items() if each is not None}
    return judge(fleet, copy, alone, tracks, at_once)
