"""The back of the envelope: ceilings, the rate to expect and the likely cap; nothing measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import model
from bottleneck.analysis.estimate.envelope import DiskKind, Envelope
from bottleneck.analysis.finding import Ceiling, Claim, Verdict
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.steps import dialect_name
from bottleneck.units import (
    count_text,
    fine_rate_text,
    link_text,
    range_text,
    rate_text,
    seconds_text,
    size_text,
)

STAGES = ("disk", "network", "bus", "memory")
"""Components that all bytes pass one after the other."""
NEAR_RATIO, CLEAR_RATIO = 1.1, 1.5
CLEAR_TRUST, FAIR_TRUST, NEAR_TRUST = 0.6, 0.5, 0.4
"""Nothing of it was measured: never more, and the last where the next is near or a part unknown."""
INITIAL_SEGMENTS = 10
"""What TCP sends before the first acknowledgement (RFC 6928)."""
LOGIN_ROUND_TRIPS = 5
"""TCP connect, NEGOTIATE, SESSION_SETUP twice (NTLMSSP), TREE_CONNECT."""
FILE_ROUND_TRIPS = {"pull": 2, "push": 3}
"""CREATE and CLOSE; FLUSH where the server is written to."""
HISTORY = {10_000_000: 1e6, 100_000_000: 10e6, 1_000_000_000: 30e6}
"""What PCs of 2005 got over such a link, by a rule of thumb of that year."""
HISTORY_YEAR = 2005
MATHIS_LOW, MATHIS_HIGH = 0.7, math.sqrt(1.5)
"""The constant of Mathis et al. 1997: 1.22 without delayed acknowledgements; 0.7 by pathdiag."""
TRUST = 0.75
"""Figures that nobody measured in this run."""


@dataclass(frozen=True)
class Missing:
    """A ceiling that is not known."""

    component: str
    side: str | None
    needs: str
    """What would have to be given."""
    required: bool = False
    """Whether every byte passes it: as long as it is not known, it may be the cap."""


@dataclass(frozen=True)
class Likely:
    """The lowest of some ceilings."""

    claim: Claim
    rival: Claim | None
    """Another part's, so near that it may as well be this one."""
    following: Claim | None
    """The next part's."""
    ratio: float
    """The next part's ceiling over it; infinite where there is none."""


@dataclass(frozen=True)
class Estimate:
    """What follows from an envelope; rates in bytes per second."""

    given: Envelope
    claims: tuple[Claim, ...]
    """Lowest ceiling first; the evidence of each is the rule of thumb that it rests on."""
    missing: tuple[Missing, ...]
    verdict: Verdict
    in_turn: float | None
    """Where each stage waits for the one before it; None: no ceiling is known."""
    overlapped: float | None
    """Where all stages work at once."""
    cold_round_trips: int
    """Connect, login, open and close, and the slow start."""
    cold_seconds: float | None
    """What those take; None: the round trip is not known."""

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Shortest and longest time of the copy, from its connect on; None: not known."""
        size = self.given.size_bytes
        if size is None or self.in_turn is None or self.overlapped is None:
            return None
        cold = self.cold_seconds or 0.0
        return cold + size / self.overlapped, cold + size / self.in_turn

    @property
    def history(self) -> float | None:
        """What PCs of HISTORY_YEAR got over this link."""
        return HISTORY.get(round(self.given.link_bits_per_second or 0))


def estimate(given: Envelope) -> Estimate:
    """Every ceiling of an envelope, and what a copy below all of them can be expected to do."""
    found = tuple(each for way in WAYS for each in way(given))
    missing = tuple(each for each in found if isinstance(each, Missing))
    claims = [each for each in found if isinstance(each, Claim)]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    overlapped = in_turn = None
    if claims:
        overlapped = model.overlapped([each.ceiling.bytes_per_second for each in claims])
        stages = _stages(claims)
        in_turn = min(overlapped, model.in_turn(stages)) if stages else overlapped
    trips = LOGIN_ROUND_TRIPS + FILE_ROUND_TRIPS[given.verb] + _slow_start(given, overlapped)
    rtt = given.rtt_seconds
    return Estimate(
        given=given,
        claims=tuple(claims),
        missing=missing,
        verdict=_verdict(likely(claims), missing, in_turn, overlapped),
        in_turn=in_turn,
        overlapped=overlapped,
        cold_round_trips=trips,
        cold_seconds=None if rtt is None else trips * rtt,
    )


def _stages(claims: Sequence[Claim]) -> list[float]:
    """The lowest rate of each stage."""
    found: dict[tuple[str, str | None], float] = {}
    for each in claims:
        if each.ceiling.component in STAGES:
            found.setdefault(each.ceiling.part, each.ceiling.bytes_per_second)
    return list(found.values())


def likely(claims: Sequence[Claim]) -> Likely | None:
    """The lowest ceiling of those that are sorted, lowest first; None: there is none."""
    if not claims:
        return None
    first = claims[0]
    following = next((e for e in claims if e.ceiling.part != first.ceiling.part), None)
    if following is None:
        return Likely(first, None, None, math.inf)
    ratio = following.ceiling.bytes_per_second / first.ceiling.bytes_per_second
    return Likely(first, following if ratio < NEAR_RATIO else None, following, ratio)


def _slow_start(given: Envelope, rate: float | None) -> int:
    """Round trips until the congestion window holds what the path can have in flight."""
    if rate is None or given.rtt_seconds is None:
        return 0
    first = INITIAL_SEGMENTS * given.segment_bytes * given.streams
    return max(0, math.ceil(math.log2(rate * given.rtt_seconds / first)))


def _verdict(
    found: Likely | None,
    missing: Sequence[Missing],
    in_turn: float | None,
    overlapped: float | None,
) -> Verdict:
    if found is None or in_turn is None or overlapped is None:
        text = "Nothing is known that would bound this copy."
        return Verdict("unknown", None, "not-measured", 0.0, None, text)
    ceiling = found.claim.ceiling
    on_the_way = any(each.required for each in missing)
    clear = CLEAR_TRUST if found.ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = NEAR_TRUST if found.rival is not None or on_the_way else clear
    near = "" if found.rival is None else f"; too close to tell from it: {found.rival.words}"
    after = ""
    if found.rival is None and found.following is not None:
        level = rate_text(found.following.ceiling.bytes_per_second)
        after = f" After it comes {name_with_verb(found.following.ceiling)} ({level})."
    open_parts = " Not all of its way is known: something else may hold it." if on_the_way else ""
    expected = f"can be expected to run at {range_text(in_turn, overlapped)}"
    if on_the_way:
        expected = f"can run at no more than {rate_text(overlapped)}"
    return Verdict(
        *(ceiling.component, ceiling.side, ceiling.cause, trust, ceiling.bytes_per_second),
        f"Such a copy {expected}: {found.claim.words}{near}.{after}{open_parts}",
    )


# -- each ceiling that a few figures give, with the rule of thumb that it rests on as its evidence,
# -- a sentence without its dot

Found = Iterator[Claim | Missing]


def link(given: Envelope) -> Found:
    """Payload of the link in full frames: RFC 6349 section 4.1.1."""
    payload, bits = given.link_payload, given.link_bits_per_second
    if payload is None or bits is None:
        yield Missing("network", "path", "--link", required=True)
        return
    wire = round(given.segment_bytes / given.link_efficiency)
    what = [f"MTU {given.mtu_bytes}"]
    what += ["IPv6"] if given.ipv6 else []
    what += ["TCP timestamps"]
    what += ["a VLAN tag"] if given.vlan_tags else []
    words = f"a {link_text(bits)} link carries no more than {rate_text(payload)} of payload"
    yield _claim(
        *("network", given.link_side, "link-rate", payload, words),
        f"{link_text(bits)} with {', '.join(what)} carries {fine_rate_text(payload)} of payload: "
        f"{given.segment_bytes}/{wire} of its bits (RFC 6349, 4.1.1)",
    )


def window(given: Envelope) -> Found:
    """No more than the receiver's window arrives in a round trip."""
    if given.window_bytes is None or given.rtt_seconds is None:
        figures = (("--window", given.window_bytes), ("--rtt", given.rtt_seconds))
        lacks = " and ".join(name for name, told in figures if told is None)
        yield Missing("tcp", given.receiver, lacks)
        return
    level = given.streams * given.window_bytes / given.rtt_seconds
    trip, size = seconds_text(given.rtt_seconds), size_text(given.window_bytes)
    fills, needs = "", None
    if given.link_payload is not None:
        needs = given.link_payload * given.rtt_seconds / given.streams
        fills = (
            f"; {link_text(given.link_bits_per_second or 0)} needs {size_text(needs)} of window"
            f"{_each(given)}"
        )
    many = "" if given.streams == 1 else f"{count_text(given.streams)} x "
    yield _claim(
        *("tcp", given.receiver, "receive-window", level),
        f"a receive window of {size}{_each(given)} carries no more than {rate_text(level)} at a "
        f"round trip of {trip}",
        f"window / round trip: {many}{size} / {trip} = {rate_text(level)}{fills}",
        remedy=""
        if needs is None or needs <= given.window_bytes
        else f"A receive window of {size_text(needs)} or more on the {given.receiver}"
        f"{_each(given)} (rate x round trip)",
    )


def _each(given: Envelope) -> str:
    return "" if given.streams == 1 else f" for each of {count_text(given.streams)} streams"


def round_trips(given: Envelope) -> Found:
    """Requests that wait for their replies: bytes in flight over the time that each takes."""
    if given.rtt_seconds is None:
        yield Missing("smb", "path", "--rtt")
        return
    size, depth = given.shape
    payload = given.link_payload
    own = 0.0 if payload is None else size / payload
    level = size * depth / (given.rtt_seconds + own)
    trip = seconds_text(given.rtt_seconds)
    assumed = given.request_bytes is None or given.depth is None
    whose = f" (assumed, as usual for {dialect_name(given.dialect)})" if assumed else ""
    one = depth == 1
    many = f"{count_text(depth)} request{'' if one else 's'} of {size_text(size)}"
    time = f"({trip} + {seconds_text(own)} on the link)" if own else trip
    half = ""
    if payload is not None:
        need = given.rtt_seconds * payload
        half = f"; one at a time, half of the link takes requests of {size_text(need)}"
    yield _claim(
        *("smb", "path", "round-trips", level),
        f"{many} at a time {'carries' if one else 'carry'} no more than {rate_text(level)} "
        f"at a round trip of {trip}",
        f"in flight / time of a request: {many}{whose} / {time} = {rate_text(level)}{half}",
        remedy=f"More than {size_text(size * depth)} in flight (longer requests, or more of "
        "them at a time)",
    )


def loss(given: Envelope) -> Found:
    """What a congestion control that backs off at each loss leaves: Mathis et al. 1997."""
    if not given.loss_ratio or given.rtt_seconds is None:
        needs = "--rtt" if given.loss_ratio else "--loss"
        if given.loss_ratio != 0:
            yield Missing("network", "path", f"{needs} (what losses cost)")
        return
    base = given.streams * given.segment_bytes / given.rtt_seconds / math.sqrt(given.loss_ratio)
    low, high = MATHIS_LOW * base, MATHIS_HIGH * base
    level = math.sqrt(low * high)
    often = count_text(1 / given.loss_ratio)
    yield _claim(
        *("network", "path", "loss", level),
        f"one lost packet in {often} leaves a loss-based congestion control about "
        f"{rate_text(level)}",
        f"segment / round trip x C / sqrt(loss), C from 0.7 to 1.22 (Mathis 1997; reno, CUBIC is "
        f"above it, BBR far above): {range_text(low, high)} at one lost packet in {often}",
        ends=(low, high),
        remedy="A path that loses less (a quarter of the losses is twice the rate), or BBR",
    )


def sender_disk(given: Envelope) -> Found:
    """What the source is read from."""
    if not given.reads_disk:
        return
    if given.read is None:
        yield Missing("disk", given.sender, "--disk-read", required=True)
        return
    if given.cached:
        ram, size = size_text(given.ram_bytes or 0), size_text(given.size_bytes or 0)
        words = (
            f"{size} do not stay in the {given.sender}'s RAM of {ram}, and its disk reads "
            f"{rate_text(given.read.usual)}"
        )
        rule = f"a file of {size} is not cached in {ram} of RAM: its disk reads {given.read.rule}"
        yield _of_disk(given.read, "memory", given.sender, "cache-size", words, rule)
        return
    words = f"the {given.sender}'s disk reads no faster than {rate_text(given.read.usual)}"
    yield _of_disk(given.read, "disk", given.sender, "read", words, f"it reads {given.read.rule}")


def receiver_disk(given: Envelope) -> Found:
    """What the copy is written to, and flushed to at its end."""
    if given.write is None:
        yield Missing("disk", given.receiver, "--disk-write", required=True)
        return
    words = f"the {given.receiver}'s disk writes no faster than {rate_text(given.write.usual)}"
    rule = f"it writes {given.write.rule}"
    yield _of_disk(given.write, "disk", given.receiver, "write", words, rule)


def _of_disk(disk: DiskKind, component: str, side: str, cause: str, words: str, rule: str) -> Claim:
    if disk.cause is not None and component == "disk":
        component, cause = "bus", disk.cause
        words = words.replace(" no faster than", " over USB no faster than")
    ends = (disk.low, disk.high)
    return _claim(component, side, cause, disk.usual, words, rule, ends=ends)


def _claim(
    component: str,
    side: str,
    cause: str,
    level: float,
    words: str,
    rule: str,
    *,
    ends: tuple[float, float] | None = None,
    remedy: str = "",
) -> Claim:
    low, high = ends or (level, level)
    ceiling = Ceiling(component, side, cause, level, low, high, steps=(), standing="inferred")
    return Claim(ceiling, words=words, trust=TRUST, evidence=(rule,), remedy=remedy)


WAYS: tuple[Callable[[Envelope], Found], ...] = (
    link,
    window,
    round_trips,
    loss,
    sender_disk,
    receiver_disk,
)
"""Every part of the way that a few figures say something of."""
