"""Estimates a copy without measuring: its limits, the rate to expect and the lowest limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import model
from bottleneck.analysis.estimate.envelope import DiskKind, Envelope, Window
from bottleneck.analysis.finding import Ceiling, Claim, Named, Verdict
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
"""Confidence without a measurement: the next limit is far; fair; near, or unknown."""
INITIAL_SEGMENTS = 10
"""Segments that TCP sends before the first acknowledgement (RFC 6928)."""
LOGIN_ROUND_TRIPS = 5
"""TCP connect, NEGOTIATE, SESSION_SETUP twice (NTLMSSP), TREE_CONNECT."""
FILE_ROUND_TRIPS = {"pull": 2, "push": 3}
"""CREATE and CLOSE; also FLUSH in a push."""
MATHIS_LOW, MATHIS_HIGH = 0.7, math.sqrt(1.5)
"""Constant of Mathis et al. 1997: 1.22 without delayed acknowledgements; 0.7 by pathdiag."""
MOSTLY_BYTES_RATIO = 0.8
"""Least share of the messages' bandwidth at which requests wait for the link, not for replies."""
TRUST = 0.75
"""Confidence in figures that were not measured in this run."""


@dataclass(frozen=True)
class Missing:
    """A ceiling that is not known."""

    component: str
    side: str | None
    needs: str
    """Options that would give it."""
    required: bool = False
    """Whether every byte passes the component, so that it may be the cap while unknown."""


@dataclass(frozen=True)
class Likely:
    """The lowest of some ceilings."""

    claim: Claim
    rival: Claim | None
    """Ceiling of another part, so near that it may be the lowest."""
    following: Claim | None
    """Ceiling of the next part."""
    ratio: float
    """Next part's ceiling over the lowest; infinite if there is none."""


@dataclass(frozen=True)
class Estimate:
    """Result of an envelope; rates in bytes per second."""

    setup: Envelope
    claims: tuple[Claim, ...]
    """Lowest ceiling first; the evidence of each is the rule of thumb that it rests on."""
    missing: tuple[Missing, ...]
    summary: str
    """Rate to expect and its limit, without a full stop."""
    verdict: Verdict
    in_turn: float | None
    """Rate if each stage waits for the one before it; None: no ceiling is known."""
    overlapped: float | None
    """Rate if all stages work at once."""
    cold_round_trips: int
    """Round trips to connect, log in, open and close, and of the slow start."""
    cold_seconds: float | None
    """Time of those round trips; None: the RTT is not known."""

    @property
    def seconds(self) -> tuple[float, float] | None:
        """Shortest and longest time of the copy, from its connect on; None: not known."""
        size = self.setup.size_bytes
        if size is None or self.in_turn is None or self.overlapped is None:
            return None
        cold = self.cold_seconds or 0.0
        return cold + size / self.overlapped, cold + size / self.in_turn


def estimate(setup: Envelope) -> Estimate:
    """Returns every ceiling of an setup, and the rate to expect of a copy below them."""
    results = tuple(each for way in WAYS for each in way(setup))
    missing = tuple(each for each in results if isinstance(each, Missing))
    claims = [each for each in results if isinstance(each, Claim)]
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    overlapped = in_turn = None
    if claims:
        overlapped = min(each.ceiling.bytes_per_second for each in claims)
        stages = _stages(claims)
        in_turn = min(overlapped, model.in_turn(stages)) if stages else overlapped
    trips = LOGIN_ROUND_TRIPS + FILE_ROUND_TRIPS[setup.verb] + _slow_start(setup, overlapped)
    rtt, lowest = setup.rtt_seconds, likely(claims)
    partly = any(each.required for each in missing)
    summary = _summary(lowest, partly, in_turn, overlapped)
    return Estimate(
        setup=setup,
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
    rates: dict[tuple[str, str | None], float] = {}
    for each in claims:
        if each.ceiling.component in STAGES:
            rates.setdefault(each.ceiling.part, each.ceiling.bytes_per_second)
    return list(rates.values())


def likely(claims: Sequence[Claim]) -> Likely | None:
    """Returns the lowest of claims that are sorted by their ceilings; None: there is none."""
    if not claims:
        return None
    first = claims[0]
    following = next((e for e in claims if e.ceiling.part != first.ceiling.part), None)
    if following is None:
        return Likely(first, None, None, math.inf)
    ratio = following.ceiling.bytes_per_second / first.ceiling.bytes_per_second
    return Likely(first, following if ratio < NEAR_RATIO else None, following, ratio)


def _slow_start(setup: Envelope, rate: float | None) -> int:
    """Returns the round trips until the congestion window holds rate times RTT."""
    if rate is None or setup.rtt_seconds is None:
        return 0
    first = INITIAL_SEGMENTS * setup.segment_bytes * setup.streams
    return max(0, math.ceil(math.log2(rate * setup.rtt_seconds / first)))


def _summary(
    lowest: Likely | None, partly: bool, in_turn: float | None, overlapped: float | None
) -> str:
    """Returns for example `Expected: 112\u2013118 MB/s, limited by the network (1 Gbit/s link)`."""
    if lowest is None or in_turn is None or overlapped is None:
        return "Expected: unknown, because no limit is known"
    rate = f"at most {rate_text(overlapped)}" if partly else range_text(in_turn, overlapped)
    names = (_name(each) for each in (lowest.claim, lowest.rival) if each is not None)
    return f"Expected: {rate}, limited by {' or '.join(names)}"


def _name(claim: Claim) -> str:
    detail = f" ({claim.detail})" if claim.detail else ""
    return f"{name_with_verb(claim.ceiling)}{detail}"


def _verdict(lowest: Likely | None, partly: bool, summary: str) -> Verdict:
    if lowest is None:
        return Verdict("unknown", None, "not-measured", 0.0, None, f"{summary}.")
    ceiling = lowest.claim.ceiling
    clear = CLEAR_TRUST if lowest.ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = NEAR_TRUST if lowest.rival is not None or partly else clear
    sentence = f"{summary}."
    if lowest.rival is None and lowest.following is not None:
        level = rate_text(lowest.following.ceiling.bytes_per_second)
        sentence += f" The next limit is {name_with_verb(lowest.following.ceiling)}, {level}."
    if partly:
        sentence += " Another component may be slower: not all of them are known."
    key = ceiling.component, ceiling.side, ceiling.cause
    return Verdict(*key, trust, ceiling.bytes_per_second, sentence, lowest.claim.detail)


# -- ceilings, each with the rule that computes it as its evidence, a sentence without full stop

Limits = Iterator[Claim | Missing]


def link(setup: Envelope) -> Limits:
    """Yields the link's payload in full frames: RFC 6349 section 4.1.1."""
    payload, bits = setup.link_payload, setup.link_bits_per_second
    if payload is None or bits is None:
        yield Missing("network", "path", "--link", required=True)
        return
    wire = round(setup.segment_bytes / setup.link_efficiency)
    what = [f"MTU {setup.mtu_bytes}"]
    what += ["IPv6"] if setup.ipv6 else []
    what += ["TCP timestamps"]
    what += ["a VLAN tag"] if setup.vlan_tags else []
    yield _claim(
        ("network", setup.link_side, "link-rate"),
        payload,
        f"a {link_text(bits)} link carries at most {rate_text(payload)}",
        f"{setup.segment_bytes}/{wire} of {link_text(bits)} = {fine_rate_text(payload)} "
        f"({', '.join(what)}; RFC 6349)",
        detail=f"{link_text(bits)} link",
    )


def window(setup: Envelope) -> Limits:
    """Yields one window per round trip for each end, the most that can be in flight."""
    if not setup.windows or setup.rtt_seconds is None:
        figures = (("--window", setup.windows), ("--rtt", setup.rtt_seconds))
        lacks = " and ".join(name for name, figure in figures if not figure)
        yield Missing("tcp", setup.receiver, lacks)
        return
    trip = seconds_text(setup.rtt_seconds)
    for each in setup.windows:
        side = setup.receiver if each.kind is RECEIVE else setup.sender
        size, name = size_text(each.size_bytes), each.kind.name
        level = setup.streams * each.size_bytes / setup.rtt_seconds
        fills, needs = "", None
        if setup.link_payload is not None:
            needs = setup.link_payload * setup.rtt_seconds / setup.streams
            link = link_text(setup.link_bits_per_second or 0)
            fills = f"; {link} needs {size_text(needs)}{_each(setup)}"
        many = "" if setup.streams == 1 else f"{count_text(setup.streams)} x "
        yield _claim(
            ("tcp", side, each.kind.cause),
            level,
            f"a {name} of {size}{_each(setup)} on the {side} allows at most {rate_text(level)} at "
            f"an RTT of {trip}{fills if each.is_kernels else ''}",
            f"window / RTT: {many}{size} / {trip} = {rate_text(level)}{fills}",
            detail=f"{name} of {size}",
            remedy=_larger(setup, side, each, needs),
        )


def _larger(setup: Envelope, side: str, window: Window, needs: float | None) -> str:
    """Returns how to set a larger window; empty: the link is not known, or needs no more."""
    if needs is None or needs <= window.size_bytes:
        return ""
    name, size = window.kind.name, size_text(needs)
    if not window.is_kernels:
        return f"Set a TCP {name} of {size} or more on the {side}{_each(setup)} (rate x RTT)"
    one = "The" if setup.streams == 1 else "Each"
    return (
        f"Set the third value of {window.kind.sysctl} on the {side} to {round(2 * needs)} or more "
        f"(now {window.size_bytes:.0f}). {one} connection needs a {name} of {size}, the "
        "bandwidth-delay product"
    )


def _each(setup: Envelope) -> str:
    return "" if setup.streams == 1 else f" for each of {count_text(setup.streams)} connections"


def round_trips(setup: Envelope) -> Limits:
    """Yields the rate of requests in flight: their bytes over the time that each takes."""
    if setup.request_bytes is None and not setup.assumes_requests:
        return
    if setup.rtt_seconds is None and setup.response_seconds is None:
        yield Missing("smb", "path", "--rtt")
        return
    size, depth = setup.shape
    payload, trip = setup.link_payload, setup.rtt_seconds or 0.0
    link_time = 0.0 if payload is None or setup.response_seconds else size / payload
    taken = setup.response_seconds or trip + link_time
    level = size * depth / taken
    bandwidth, half_size = setup.fit.bandwidth_bytes_per_second, setup.fit.n_half_bytes
    if bandwidth is not None and level >= MOSTLY_BYTES_RATIO * bandwidth:
        return
    is_usual = setup.request_bytes is None or setup.depth is None
    whose = f" (usual for {dialect_name(setup.dialect)})" if is_usual else ""
    many = f"{count_text(depth)} request{'' if depth == 1 else 's'} of {size_text(size)}"
    time = f"({seconds_text(trip)} + {seconds_text(link_time)} on the link)" if link_time else ""
    half, enough = "", "longer requests or more of them"
    if half_size is not None and bandwidth is not None:
        enough = f"requests of {size_text(half_size)} reach half of {rate_text(bandwidth)}"
    elif payload is not None:
        half = f"; with 1 in flight, {size_text(trip * payload)} reach half of the link rate"
    yield _claim(
        ("smb", "path", "round-trips"),
        level,
        f"{many} in flight {'carries' if depth == 1 else 'carry'} at most {rate_text(level)} where "
        f"each takes {seconds_text(taken)}",
        f"{many}{whose} / {time or seconds_text(taken)} = {rate_text(level)}{half}",
        detail=f"{many} in flight",
        remedy=f"Keep more than {size_text(size * depth)} in flight ({enough})",
    )


def loss(setup: Envelope) -> Limits:
    """Yields the rate of a congestion control that backs off at each loss: Mathis et al. 1997."""
    if not setup.loss_ratio or setup.rtt_seconds is None:
        needs = "--rtt" if setup.loss_ratio else "--loss"
        if setup.loss_ratio != 0:
            yield Missing("network", "path", f"{needs} (cost of packet loss)")
        return
    base = setup.streams * setup.segment_bytes / setup.rtt_seconds / math.sqrt(setup.loss_ratio)
    low, high = MATHIS_LOW * base, MATHIS_HIGH * base
    level = math.sqrt(low * high)
    often = count_text(1 / setup.loss_ratio)
    yield _claim(
        ("network", "path", "loss"),
        level,
        f"a packet loss of 1 in {often} limits a loss-based congestion control to about "
        f"{rate_text(level)}",
        f"0.7 to 1.22 x segment / RTT / sqrt(loss) = {range_text(low, high)} (Mathis 1997); CUBIC "
        "and BBR reach more",
        detail=f"packet loss of 1 in {often}",
        ends=(low, high),
        remedy="Reduce the packet loss (a quarter of the loss doubles the rate), or use BBR",
    )


def sender_disk(setup: Envelope) -> Limits:
    """Yields the rate of the disk that the source is read from."""
    if not setup.reads_disk:
        return
    if setup.read is None:
        yield Missing("disk", setup.sender, "--disk-read", required=True)
        return
    if setup.cached:
        ram, size = size_text(setup.ram_bytes or 0), size_text(setup.size_bytes or 0)
        words = (
            f"{size} do not fit in the {setup.sender}'s memory ({ram}), and its disk reads at most "
            f"{rate_text(setup.read.usual)}"
        )
        rule = f"{size} do not fit in {ram} of memory, and the disk reads {setup.read.rule}"
        yield _disk_claim(setup.read, "memory", setup.sender, "cache-size", words, rule)
        return
    words = f"the {setup.sender}'s disk reads at most {rate_text(setup.read.usual)}"
    yield _disk_claim(setup.read, "disk", setup.sender, "read", words, f"reads {setup.read.rule}")


def receiver_disk(setup: Envelope) -> Limits:
    """Yields the rate of the disk that the copy is written to and flushed to."""
    if setup.write is None:
        yield Missing("disk", setup.receiver, "--disk-write", required=True)
        return
    words = f"the {setup.receiver}'s disk writes at most {rate_text(setup.write.usual)}"
    rule = f"writes {setup.write.rule}"
    yield _disk_claim(setup.write, "disk", setup.receiver, "write", words, rule)


def _disk_claim(
    disk: DiskKind, component: str, side: str, cause: str, words: str, rule: str
) -> Claim:
    detail = "file larger than memory" if component == "memory" else ""
    if disk.cause is not None and component == "disk":
        component, cause, detail = "bus", disk.cause, "USB"
        words = words.replace(" at most", " at most (USB)")
    ends = (disk.low, disk.high)
    return _claim((component, side, cause), disk.usual, words, rule, ends=ends, detail=detail)


def _claim(
    key: Named,
    level: float,
    words: str,
    rule: str,
    *,
    ends: tuple[float, float] | None = None,
    remedy: str = "",
    detail: str = "",
) -> Claim:
    low, high = ends or (level, level)
    ceiling = Ceiling(*key, level, low, high, steps=(), standing="inferred")
    return Claim(ceiling, words=words, trust=TRUST, evidence=(rule,), remedy=remedy, detail=detail)


WAYS: tuple[Callable[[Envelope], Limits], ...] = (
    link,
    window,
    round_trips,
    loss,
    sender_disk,
    receiver_disk,
)
"""Every component whose limit follows from a few figures."""
