"""The same copy started by client and by server.

The four combinations of direction and initiator, cached and uncached at the sender; by figures, or
as a person reported without any.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.comparisons import pairs as paired
from bottleneck.analysis.comparisons.pairs import Axis, Half, Pair, Pairs
from bottleneck.analysis.finding import Comparison
from bottleneck.analysis.link_end import is_told
from bottleneck.analysis.steps import CACHES, OURS, OWN
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text, times_text
from probes.core.records import SIDES, Spread

DIRECTIONS = {"client": "client to server", "server": "server to client"}
"""By the sender."""
LONGEST_WORDS = 120


def _pairs(report: Report) -> Pairs:
    """Each copy that the server started with the client's own; first is the sender's."""
    made = (each for each in paired.halves(report) if not each.copy.native)
    ours = (each for each in made if each.copy.initiator == "server" or each.copy.engine == OWN)
    found = paired.paired(
        report,
        ours,
        lambda copy: copy.initiator == "server",
        lambda half: (half.copy.sender, half.copy.cache, half.copy.dialect, half.copy.of_file),
    )
    return sorted(
        (
            _by_sender(each)
            for each in found
            if steps.alike_sources(each.first.made, each.second.made)
        ),
        key=lambda each: (SIDES.index(_sender(each)), CACHES.index(each.first.copy.cache)),
    )


def _by_sender(found: Pair) -> Pair:
    """The one that its sender started first, both to the same end, and who served the other."""
    there, own = found.first, found.second
    if not paired.durable(there):
        own, there = (_acknowledged(each) for each in (own, there))
    served_by = there.made.details.engine_server
    first, second = (own, there) if own.copy.sender == "client" else (there, own)
    return Pair(found.report, first, second, ours=served_by in OURS)


def _acknowledged(half: Half) -> Half:
    """The rate until the last byte was acknowledged, of the one run that tells it."""
    rate = half.made.details.acknowledged_bytes_per_second
    if rate is None or not paired.durable(half):
        return half
    return Half(half.copy, half.made, Spread(rate, rate, rate, 1))


def _sender(pair: Pair) -> str:
    return pair.first.copy.sender


def _theirs(pair: Pair) -> Half:
    """The copy that the server started."""
    return pair.second if _sender(pair) == "client" else pair.first


def _better(pair: Pair) -> str:
    """Who should start it: sender or receiver."""
    return "sender" if pair.fast is pair.first else "receiver"


def _sentence(found: Pairs) -> str:
    most = paired.most_different(found)[0]
    told = _advice(found, most)
    if most.why is not None:
        told += f" Started by the {most.slow.copy.initiator}, the copy is slower{most.why.words}"
    return told + _made_by(found, most.significant) + _guarded(most)


def _advice(found: Pairs, most: Pair) -> str:
    if all(each.ours for each in found):
        return (
            "Not comparable: the client's share was served by this tool, which is slower than a "
            "file server. Install Samba on the client, or use --client-share."
        )
    told = [each for each in found if each.significant]
    if not told:
        return (
            "No significant difference between copies started by client and by server (at most "
            f"{times_text(most.ratio)}, {DIRECTIONS[_sender(most)]}, {most.first.copy.cache})."
        )
    ends, hosts = set(map(_better, told)), {each.fast.copy.initiator for each in told}
    start = "The better initiator depends on the copy: "
    for agreed in (ends, hosts):
        if len(agreed) == 1:
            start = f"Start the copy from the {agreed.pop()}: "
            break
    of_sender: dict[str, Pair] = {}
    for each in sorted(told, key=lambda each: -each.ratio):
        of_sender.setdefault(_sender(each), each)
    gains = [_gain(of_sender[each]) for each in dict.fromkeys(map(_sender, told))]
    gains[1:] = [each[:1].upper() + each[1:] for each in gains[1:]]
    same = len(found) - len(told)
    rest = f" No significant difference in the other {f'{same} cases' if same > 1 else 'case'}."
    return f"{start}{'. '.join(gains)}.{rest if same else ''}"


def _gain(pair: Pair) -> str:
    rates = f"{rate_text(pair.fast.rate)} instead of {rate_text(pair.slow.rate)}"
    acknowledged = "" if paired.durable(_theirs(pair)) else ", acknowledged"
    ratio = times_text(pair.ratio)
    return (
        f"{DIRECTIONS[_sender(pair)]} ({pair.first.copy.cache}) is {ratio} as fast "
        f"if the {pair.fast.copy.initiator} starts it ({rates}{acknowledged})"
    )


def _made_by(found: Pairs, significant: bool) -> str:
    """Another program's copies say something of that program as well."""
    engines = dict.fromkeys(_theirs(each).copy.engine for each in found)
    names = " and ".join(each for each in engines if each != OWN)
    if not names:
        return ""
    whose = "; this may cause a part of the difference" if significant else ""
    return f" The server's own copies were made by {names}, the client's by this tool{whose}."


def _guarded(pair: Pair) -> str:
    """Another share may sign or encrypt what TARGET does not: that costs, whoever starts it."""
    there = _theirs(pair)
    own = pair.first if there is pair.second else pair.second
    guards = [steps.security(each.made) for each in (own, there)]
    if None in guards or guards[0] == guards[1]:
        return ""
    return (
        f" The client's copies were {guards[0]}, the server's {guards[1]}; this may cause or hide "
        "a difference."
    )


INITIATOR = Axis(
    "initiator",
    ("sender", "receiver"),
    _pairs,
    _sentence,
    paired.most_different,
    head=lambda pair: {
        "direction": DIRECTIONS[_sender(pair)],
        "cache": pair.first.copy.cache,
        "dialect": _theirs(pair).copy.dialect,
        "engine": _theirs(pair).copy.engine,
        "engine_server": _theirs(pair).made.details.engine_server,
    },
    own=lambda pair: {
        "durable": paired.durable(_theirs(pair)),
        "better": _better(pair) if pair.significant else None,
    },
)


def told(report: Report) -> Iterator[Comparison]:
    """One comparison for each direction that a person reported without figures."""
    for each in steps.items(report.target, "starts") if is_told(report) else ():
        sender, better = (steps.word(each, name) for name in ("sender", "better"))
        if sender not in SIDES or better not in ("sender", "receiver"):
            continue
        host = sender if better == "sender" else steps.other(sender)
        words = (steps.word(each, "words") or "faster")[:LONGEST_WORDS]
        yield Comparison(
            about="initiator",
            sentence=(
                f"Start the copy from the {better}: {DIRECTIONS[sender]} was reported to be "
                f"{words} if the {host} starts the copy (no figures given)."
            ),
            significant=True,
        )
