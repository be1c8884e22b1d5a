"""Judges clients that copy from, or to, one server at once: rate of each, and the shared limit.

A client by itself gets the least of its own limits and the shared ones. While all copy, each gets
the least of its own limits and its part of the shared ones. So the sum is that of the clients by
themselves if no shared limit is reached, else the shared limit. Pure.

Units: bytes per second, seconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from bottleneck.analysis.finding import Words
from bottleneck.analysis.model import looks_like
from bottleneck.fleet.culprit import SLOW, middle_runs
from bottleneck.fleet.records import NAMED, ClientRates, Fleet, Node, Pair, Rate, Suspect, Together
from bottleneck.report.report import Report
from probes.core.records import Measured

LEAST_AT_ONCE = 2
"""Least number of clients."""
DOUBT = 0.05
"""Range around SLOW in which a sum is neither clearly all of the single rates nor less."""
STARVED = 0.4
"""Share of the fair rate below which a client starves; TCP itself leaves one half for seconds."""
MARGIN_SECONDS = 0.5
"""Margin at each end of the common time: the arrival of an answer is known no better."""
LEAST_SECONDS = 1.0
"""Least common time without its margins: in less the rates are random."""
LAST_SAMPLES = 2
"""Last samples of a copy that are left out: its last replies, and its flushed end."""
LINK, TOO_SHORT = Words("network", "server", "link-rate"), "the copies did not overlap for long"
LOOKS_LIKE_CONFIDENCE = 0.8
"""Vote for the link of each client without a verdict, if the sum looks like a standard link."""
MOST_CONFIDENCE = 0.95
LINK_CAUSES = ("link-rate", "contention", "duplex", "wrong-path")
"""Causes that all connections of a link share; loss and windows belong to each connection."""


class Track(NamedTuple):
    """Bytes that a client's copy had moved at each moment, by one clock for all clients."""

    moments: tuple[float, ...]
    moved_bytes: tuple[int, ...]

    def bytes_by(self, moment: float) -> float:
        """Returns the bytes moved by a moment of the copy, interpolated between samples."""
        previous = 0
        for i, when in enumerate(self.moments):
            if when >= moment:
                first, here = self.moments[previous], self.moved_bytes[previous]
                share = (moment - first) / (when - first) if when > first else 1.0
                return here + share * (self.moved_bytes[i] - here)
            previous = i
        return float(self.moved_bytes[-1])


def track(loaded: Report, copy: str, answered_seconds: float) -> Track | None:
    """Returns a client's copy on the clock of its answer; None: its report lacks the time.

    Without the first sample and the last ones: bytes in flight are acknowledged at once.
    """
    for step, outcome in loaded.entries:
        if (step.setting.get("copy"), step.setting.get("end")) == (copy, "folder"):
            opened = getattr(outcome, "details", {}).get("opened_after_seconds")
            if isinstance(outcome, Measured) and isinstance(opened, (int, float)):
                began = answered_seconds - loaded.elapsed_seconds + opened
                run = outcome.runs[-1][1:-LAST_SAMPLES]
                if not run:
                    return None
                moments = tuple(began + each.elapsed_seconds for each in run)
                return Track(moments, tuple(each.moved_bytes for each in run))
    return None


def judge(
    fleet: Fleet,
    copy: str,
    single: Sequence[Rate],
    tracks: Mapping[Pair, Track],
    at_once: Sequence[Rate] = (),
) -> Together:
    """Compares the clients' rates at once with those by themselves.

    fleet: its one server and the requested clients. single: rates of each by itself; at_once:
    rates in the reports of the copies at once, whose verdicts are evidence too.
    """
    answer = Together(copy, fleet.servers[0], len(fleet.clients))
    by_itself = {pair: each for pair, each in middle_runs(single).items() if not each.at_most}
    pairs = sorted(tracks.keys() & by_itself.keys())
    if len(pairs) < LEAST_AT_ONCE:
        return replace(answer, reason=f"{len(pairs)} of {answer.requested} clients were measured")
    opened = max(tracks[pair].moments[0] for pair in pairs) + MARGIN_SECONDS
    closed = min(tracks[pair].moments[-1] for pair in pairs) - MARGIN_SECONDS
    if closed - opened < LEAST_SECONDS:
        return replace(answer, reason=TOO_SHORT)
    rates = {
        pair: (tracks[pair].bytes_by(closed) - tracks[pair].bytes_by(opened)) / (closed - opened)
        for pair in pairs
    }
    level = _level([by_itself[pair].bytes_per_second for pair in pairs], sum(rates.values()))
    taken = tuple(_client_rates(by_itself[pair], rates[pair], level) for pair in pairs)
    measured = replace(answer, clients=taken, seconds=closed - opened)
    return _conclude(measured, fleet, [by_itself[pair] for pair in pairs], at_once)


def _client_rates(single: Rate, rate: float, level: float) -> ClientRates:
    single_rate = single.bytes_per_second
    fair = min(single_rate, level)
    verdict = single.verdict if single.confidence >= NAMED else None
    return ClientRates(single.pair, single_rate, rate, fair, rate < STARVED * fair, verdict)


def _level(rates: Iterable[float], total: float) -> float:
    """Returns the most that each gets if all share a total equally (max-min fairness)."""
    demands = sorted(rates)
    while demands and demands[0] * len(demands) <= total:
        total -= demands.pop(0)
    return total / len(demands) if demands else float("inf")


def _conclude(
    answer: Together, fleet: Fleet, single: Sequence[Rate], at_once: Sequence[Rate]
) -> Together:
    """Concludes whether a shared limit holds the sum, and which."""
    ratio = answer.total / sum(each.alone_bytes_per_second for each in answer.clients)
    if ratio > SLOW + DOUBT:
        return replace(answer, kind="none", confidence=min(1.0, ratio))
    starved = [each for each in answer.clients if each.is_starved]
    others = [each for each in answer.clients if not each.is_starved]
    if starved and all(
        e.bytes_per_second > (SLOW + DOUBT) * e.alone_bytes_per_second for e in others
    ):
        nodes = [Node("client", each.pair.client) for each in starved]
        nodes.append(Node("server", answer.server))
        why = "the other clients get what they get by themselves"
        return replace(answer, suspects=tuple(map(Suspect, nodes)), reason=why)
    if ratio > SLOW - DOUBT:
        return replace(answer, reason="the sum is hardly less than what the clients get one by one")
    link = looks_like(answer.total)
    answer = replace(answer, link_bits_per_second=link.bits_per_second if link else None)
    suspects, confidence = _suspects(answer, fleet, single, at_once)
    return replace(answer, kind="shared", suspects=suspects, confidence=confidence)


def _suspects(
    answer: Together, fleet: Fleet, single: Sequence[Rate], at_once: Sequence[Rate]
) -> tuple[tuple[Suspect, ...], float]:
    """Returns the limits of the sum by the limited clients' verdicts; without any all possible.

    A client by itself has the same limit as the sum only if it reaches about the sum.
    """
    near = [each for each in single if each.bytes_per_second >= SLOW * answer.total]
    votes: dict[Words, float] = {}
    for each in (*near, *at_once):
        if (words := _shared_part(each)) is not None:
            votes[words] = votes.get(words, 0.0) + each.confidence
    every = _places(LINK, answer, fleet) + _other_parts(answer)
    silent = sum(each.verdict is None for each in near) if near else 1
    if silent and answer.link_bits_per_second is not None and votes.keys() <= {LINK}:
        votes[LINK] = votes.get(LINK, 0.0) + LOOKS_LIKE_CONFIDENCE * silent
    if not votes:
        return every, 0.0
    (first, votes_of_first), *rest = sorted(votes.items(), key=lambda each: -each[1])
    others = [words for words, count in rest if 2 * count >= votes_of_first]
    suspects = tuple(place for words in (first, *others) for place in _places(words, answer, fleet))
    voters = max(1, len(near) + sum(_shared_part(each) is not None for each in at_once))
    sure = min(MOST_CONFIDENCE, votes_of_first / voters) * votes_of_first / sum(votes.values())
    if sure < NAMED and len(suspects) == 1:
        suspects = tuple(dict.fromkeys((*suspects, *every)))
    return suspects, sure / len(suspects)


def _shared_part(rate: Rate) -> Words | None:
    """Returns the shared part of a verdict; any part of the path is the link to the server."""
    words = rate.verdict
    if words is None or rate.confidence < NAMED or words.side == "client":
        return None
    if words.component == "network":
        return LINK if words.cause in LINK_CAUSES else None
    return words if words.component in ("disk", "cpu") else None


def _places(words: Words, answer: Together, fleet: Fleet) -> tuple[Suspect, ...]:
    """Returns the places of a part: the server's, and for a link each uplink that all pass."""
    suspects = [Suspect(Node("server", answer.server), words)]
    if words == LINK:
        shared = set.intersection(*[set(fleet.nodes(each.pair)) for each in answer.clients])
        suspects += [Suspect(each, LINK) for each in sorted(shared) if each.kind == "uplink"]
    return tuple(suspects)


def _other_parts(answer: Together) -> tuple[Suspect, ...]:
    verb = "read" if answer.copy.startswith("pull") else "write"
    parts = (Words("disk", "server", verb), Words("cpu", "server", "all-cores"))
    return tuple(Suspect(Node("server", answer.server), each) for each in parts)


def single_rates(by_copy: Mapping[str, Sequence[Rate]], copy: str) -> list[Rate]:
    """Returns each client's rate by itself; uncached if the cached copy lacked time."""
    rated = [each for each in by_copy.get(copy, ()) if not each.at_most]
    rated_pairs = {each.pair for each in rated}
    other = by_copy.get(copy.replace(".cached", ".uncached"), ())
    return [*rated, *(each for each in other if each.pair not in rated_pairs and not each.at_most)]


def judge_reports(
    fleet: Fleet,
    copy: str,
    single: Sequence[Rate],
    reports: Mapping[Pair, tuple[Report, float]],
    at_once: Sequence[Rate],
) -> Together:
    """Judges reports of the copies at once, each with the moment of its arrival."""
    by_pair_name = {pair: track(loaded, copy, when) for pair, (loaded, when) in reports.items()}
    tracks = {pair: each for pair, each in by_pair_name.items() if each is not None}
    return judge(fleet, copy, single, tracks, at_once)
