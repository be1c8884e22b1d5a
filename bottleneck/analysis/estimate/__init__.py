"""The back of the envelope: limits, the rate to expect and the lowest limit; nothing measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import model
from bottleneck.analysis.estimate.envelope import DiskKind, Envelope, Window
from bottleneck.analysis.finding import Ceiling, Claim, Verdict
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.socket_buffers import RECEIVE
from bottleneck.analysis.steps import dialect_name
from bottleneck.text.units import (
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
"""Nothing was measured: never more, and the last where the next is near or a part unknown."""
INITIAL_SEGMENTS = 10
"""What TCP sends before the first acknowledgement (RFC 6928)."""
LOGIN_ROUND_TRIPS = 5
"""TCP connect, NEGOTIATE, SESSION_SETUP twice (NTLMSSP), TREE_CONNECT."""
FILE_ROUND_TRIPS = {"pull": 2, "push": 3}
"""CREATE and CLOSE; FLUSH where the server is written to."""
MATHIS_LOW, MATHIS_HIGH = 0.7, math.sqrt(1.5)
"""The constant of Mathis et al. 1997: 1.22 without delayed acknowledgements; 0.7 by pathdiag."""
MOSTLY_BYTES_RATIO = 0.8
"""Share of the messages' bandwidth from which on requests wait for the link and not for replies."""
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
    summary: str
    """The rate to expect and its limit, without a full stop."""
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
    rtt, lowest = given.rtt_seconds, likely(claims)
    partly = any(each.required for each in missing)
    summary = _summary(lowest, partly, in_turn, overlapped)
    return Estimate(
        given=given,
        claims=tuple(claims),
        missing=missing,
        summary=summary,
        verdict=_verdict(lowest, partly, summary),
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


def _summary(
    found: Likely | None, partly: bool, in_turn: float | None, overlapped: float | None
) -> str:
    """`Expected: 112\u2013118 MB/s, limited by the network (1 Gbit/s link)`."""
    if found is None or in_turn is None or overlapped is None:
        return "Expected: unknown, because no limit is known"
    rate = f"at most {rate_text(overlapped)}" if partly else range_text(in_turn, overlapped)
    names = (_name(each) for each in (found.claim, found.rival) if each is not None)
    return f"Expected: {rate}, limited by {' or '.join(names)}"


def _name(claim: Claim) -> str:
    detail = f" ({claim.detail})" if claim.detail else ""
    return f"{name_with_verb(claim.ceiling)}{detail}"


def _verdict(found: Likely | None, partly: bool, summary: str) -> Verdict:
    if found is None:
        return Verdict("unknown", None, "not-measured", 0.0, None, f"{summary}.")
    ceiling = found.claim.ceiling
    clear = CLEAR_TRUST if found.ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = NEAR_TRUST if found.rival is not None or partly else clear
    told = f"{summary}."
    if found.rival is None and found.following is not None:
        level = rate_text(found.following.ceiling.bytes_per_second)
        told += f" The next limit is {name_with_verb(found.following.ceiling)}, {level}."
    if partly:
        told += " Another component may be slower: not all of them are known."
    named = ceiling.component, ceiling.side, ceiling.cause
    return Verdict(*named, trust, ceiling.bytes_per_second, told, found.claim.detail)


# -- each ceiling that a few figures give, with the rule that it was computed by as its evidence,
# -- a sentence without its full stop

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
    words = f"a {link_text(bits)} link carries at most {rate_text(payload)}"
    yield _claim(
        *("network", given.link_side, "link-rate", payload, words),
        f"{given.segment_bytes}/{wire} of {link_text(bits)} = {fine_rate_text(payload)} "
        f"({', '.join(what)}; RFC 6349)",
        detail=f"{link_text(bits)} link",
    )


def window(given: Envelope) -> Found:
    """At most the window of an end is in flight in a round trip."""
    if not given.windows or given.rtt_seconds is None:
        figures = (("--window", given.windows), ("--rtt", given.rtt_seconds))
        lacks = " and ".join(name for name, figure in figures if not figure)
        yield Missing("tcp", given.receiver, lacks)
        return
    trip = seconds_text(given.rtt_seconds)
    for each in given.windows:
        side = given.receiver if each.kind is RECEIVE else given.sender
        size, name = size_text(each.size_bytes), each.kind.name
        level = given.streams * each.size_bytes / given.rtt_seconds
        fills, needs = "", None
        if given.link_payload is not None:
            needs = given.link_payload * given.rtt_seconds / given.streams
            link = link_text(given.link_bits_per_second or 0)
            fills = f"; {link} needs {size_text(needs)}{_each(given)}"
        many = "" if given.streams == 1 else f"{count_text(given.streams)} x "
        yield _claim(
            *("tcp", side, each.kind.cause, level),
            f"a {name} of {size}{_each(given)} on the {side} allows at most {rate_text(level)} at "
            f"an RTT of {trip}{fills if each.is_kernels else ''}",
            f"window / RTT: {many}{size} / {trip} = {rate_text(level)}{fills}",
            detail=f"{name} of {size}",
            remedy=_larger(given, side, each, needs),
        )


def _larger(given: Envelope, side: str, window: Window, needs: float | None) -> str:
    """Returns what window to set; empty: the link is not known, or needs no more."""
    if needs is None or needs <= window.size_bytes:
        return ""
    name, size = window.kind.name, size_text(needs)
    if not window.is_kernels:
        return f"Set a TCP {name} of {size} or more on the {side}{_each(given)} (rate x RTT)"
    one = "The" if given.streams == 1 else "Each"
    return (
        f"Set the third value of {window.kind.sysctl} on the {side} to {round(2 * needs)} or more "
        f"(now {window.size_bytes:.0f}). {one} connection needs a {name} of {size}, the "
        "bandwidth-delay product"
    )


def _each(given: Envelope) -> str:
    return "" if given.streams == 1 else f" for each of {count_text(given.streams)} connections"


def round_trips(given: Envelope) -> Found:
    """Requests that wait for their replies: bytes in flight over the time that each takes."""
    if given.request_bytes is None and not given.assumes_requests:
        return
    if given.rtt_seconds is None and given.response_seconds is None:
        yield Missing("smb", "path", "--rtt")
        return
    size, depth = given.shape
    payload, trip = given.link_payload, given.rtt_seconds or 0.0
    own = 0.0 if payload is None or given.response_seconds else size / payload
    taken = given.response_seconds or trip + own
    level = size * depth / taken
    bandwidth, half_size = given.fit.bandwidth_bytes_per_second, given.fit.n_half_bytes
    if bandwidth is not None and level >= MOSTLY_BYTES_RATIO * bandwidth:
        return
    is_usual = given.request_bytes is None or given.depth is None
    whose = f" (usual for {dialect_name(given.dialect)})" if is_usual else ""
    many = f"{count_text(depth)} request{'' if depth == 1 else 's'} of {size_text(size)}"
    time = f"({seconds_text(trip)} + {seconds_text(own)} on the link)" if own else ""
    half, enough = "", "longer requests or more of them"
    if half_size is not None and bandwidth is not None:
        enough = f"requests of {size_text(half_size)} reach half of {rate_text(bandwidth)}"
    elif payload is not None:
        half = f"; with 1 in flight, {size_text(trip * payload)} reach half of the link rate"
    yield _claim(
        *("smb", "path", "round-trips", level),
        f"{many} in flight {'carries' if depth == 1 else 'carry'} at most {rate_text(level)} where "
        f"each takes {seconds_text(taken)}",
        f"{many}{whose} / {time or seconds_text(taken)} = {rate_text(level)}{half}",
        detail=f"{many} in flight",
        remedy=f"Keep more than {size_text(size * depth)} in flight ({enough})",
    )


def loss(given: Envelope) -> Found:
    """What a congestion control that backs off at each loss leaves: Mathis et al. 1997."""
    if not given.loss_ratio or given.rtt_seconds is None:
        needs = "--rtt" if given.loss_ratio else "--loss"
        if given.loss_ratio != 0:
            yield Missing("network", "path", f"{needs} (cost of packet loss)")
        return
    base = given.streams * given.segment_bytes / given.rtt_seconds / math.sqrt(given.loss_ratio)
    low, high = MATHIS_LOW * base, MATHIS_HIGH * base
    level = math.sqrt(low * high)
    often = count_text(1 / given.loss_ratio)
    yield _claim(
        *("network", "path", "loss", level),
        f"a packet loss of 1 in {often} limits a loss-based congestion control to about "
        f"{rate_text(level)}",
        f"0.7 to 1.22 x segment / RTT / sqrt(loss) = {range_text(low, high)} (Mathis 1997); CUBIC "
        "and BBR reach more",
        detail=f"packet loss of 1 in {often}",
        ends=(low, high),
        remedy="Reduce the packet loss (a quarter of the loss doubles the rate), or use BBR",
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
            f"{size} do not fit in the {given.sender}'s memory ({ram}), and its disk reads at most "
            f"{rate_text(given.read.usual)}"
        )
        rule = f"{size} do not fit in {ram} of memory, and the disk reads {given.read.rule}"
        yield _of_disk(given.read, "memory", given.sender, "cache-size", words, rule)
        return
    words = f"the {given.sender}'s disk reads at most {rate_text(given.read.usual)}"
    yield _of_disk(given.read, "disk", given.sender, "read", words, f"reads {given.read.rule}")


def receiver_disk(given: Envelope) -> Found:
    """What the copy is written to, and flushed to at its end."""
    if given.write is None:
        yield Missing("disk", given.receiver, "--disk-write", required=True)
        return
    words = f"the {given.receiver}'s disk writes at most {rate_text(given.write.usual)}"
    rule = f"writes {given.write.rule}"
    yield _of_disk(given.write, "disk", given.receiver, "write", words, rule)


def _of_disk(disk: DiskKind, component: str, side: str, cause: str, words: str, rule: str) -> Claim:
    detail = "file larger than memory" if component == "memory" else ""
    if disk.cause is not None and component == "disk":
        component, cause, detail = "bus", disk.cause, "USB"
        words = words.replace(" at most", " at most (USB)")
    ends = (disk.low, disk.high)
    return _claim(component, side, cause, disk.usual, words, rule, ends=ends, detail=detail)


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
    detail: str = "",
) -> Claim:
    low, high = ends or (level, level)
    ceiling = Ceiling(component, side, cause, level, low, high, steps=(), standing="inferred")
    return Claim(ceiling, words=words, trust=TRUST, evidence=(rule,), remedy=remedy, detail=detail)


WAYS: tuple[Callable[[Envelope], Found], ...] = (
    link,
    window,
    round_trips,
    loss,
    sender_disk,
    receiver_disk,
)
"""Every component that a few figures give a limit of."""
