"""Refines verdicts on supplied figures.

A copy without a rate gets its upper limit. A copy below all known limits gets the limits that the
other figures rule out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from bottleneck.analysis import cap as caps
from bottleneck.analysis import hardware_limits, model, sentences, steps
from bottleneck.analysis.decision.limit import ladder_of
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.estimate import likely
from bottleneck.analysis.evidence.copies import host
from bottleneck.analysis.facts.record import NETWORK
from bottleneck.analysis.finding import (
    Ceiling,
    Claim,
    CopyDiagnosis,
    Ladder,
    Next,
    Suspect,
    Verdict,
)
from bottleneck.analysis.link_end import claimed_payload, is_supplied, slower_link
from bottleneck.analysis.noise import SINGLE_RATIO, factor
from bottleneck.analysis.rtt import rtt
from bottleneck.analysis.rules.disk.alone import DOES
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.analysis.supplied import place_text
from bottleneck.report.report import Report
from bottleneck.text.safe import safe
from bottleneck.text.units import count_text, link_text, percent_text, rate_text, size_text

CLEAR_TRUST, FAIR_TRUST, NEAR_TRUST = 0.7, 0.6, 0.5
"""Confidence in the limit of a copy without a rate: if the next is far, near, or about equal."""
NEAR_RATIO, CLEAR_RATIO = 1.1, 1.5
JUMBO_BYTES = 9000
JUMBO_RATIO = 0.8
"""Least share of the slower link's rate at which jumbo frames are mentioned."""
ROUND_LOW_RATIO, ROUND_HIGH_RATIO = 0.9, 1.03
"""Least and most rounded rate / a link's payload at which the rate may be that link's."""


def refined_diagnoses(
    report: Report, copies: Sequence[Copy], diagnosed: Sequence[CopyDiagnosis]
) -> list[CopyDiagnosis]:
    """Returns the diagnoses, refined if the report's figures were supplied."""
    if not is_supplied(report):
        return list(diagnosed)
    return [
        *(
            _bounded_diagnosis(report, copy, each)
            if copy.step is None
            else _diagnosis_of_rate(report, copies, copy, each)
            for copy, each in zip(copies, diagnosed, strict=False)
        ),
        *diagnosed[len(copies) :],
    ]


# -- copies without a rate ---------------------------------------------------------------------


def _bounded_diagnosis(report: Report, copy: Copy, case: CopyDiagnosis) -> CopyDiagnosis:
    ladder = ladder_of(report, copy)
    claims = ladder.valid
    lowest = likely(claims)
    if lowest is None:
        text = f"{case.verdict.sentence[0].upper()}{case.verdict.sentence[1:]}, nor what bounds it."
        return replace(case, verdict=replace(case.verdict, sentence=text))
    ceiling = lowest.claim.ceiling
    level = ceiling.bytes_per_second
    near = "" if lowest.rival is None else f". Equally likely: {lowest.rival.words}"
    following = None
    if lowest.following is not None:
        limit = lowest.following.ceiling
        following = Next(*limit.key, limit.bytes_per_second)
    subject = sentences.runs(copy, level, f"{_shape(copy)}can run at most at")
    return replace(
        case,
        verdict=Verdict(
            *ceiling.key,
            _bound_trust(copy, ladder, lowest.claim, lowest.ratio),
            level,
            f"{subject} because {lowest.claim.words}{near}.",
            lowest.claim.detail,
        ),
        ceilings=tuple(each.ceiling for each in claims),
        next=following,
        evidence=(
            "The rate of the copy was not given. This is its upper limit; the copy may be slower "
            "for another reason.",
            *dict.fromkeys(text for each in claims for text in each.evidence),
            *ladder.remarks,
        ),
        advice=(
            *sentences.advice(lowest.claim, following, None, level),
            *_jumbo(report, ceiling, level),
        ),
    )


def _bound_trust(copy: Copy, ladder: Ladder, claim: Claim, ratio: float) -> float:
    clear = CLEAR_TRUST if ratio >= CLEAR_RATIO else FAIR_TRUST
    trust = clear if ratio >= NEAR_RATIO else NEAR_TRUST
    is_complete = not caps.unknown_parts(copy, ladder, claim.ceiling.bytes_per_second)
    return min(claim.trust, trust if is_complete else min(trust, FAIR_TRUST))


def _shape(copy: Copy) -> str:
    """Returns a copy's settings in words: `with 120 streams `, `from the inner edge `."""
    streams, size = copy.setting.streams, copy.setting.request_bytes
    text = ""
    if streams is not None and streams > 1:
        text += f"with {count_text(streams)} streams "
    if size is not None:
        text += f"in requests of {size_text(size)} "
    place = copy.setting.from_place_ratio
    if place is not None:
        text += f"from {place_text(min(1.0, place))} "
    return text


# -- copies with a rate ------------------------------------------------------------------------


def _diagnosis_of_rate(
    report: Report, copies: Sequence[Copy], copy: Copy, case: CopyDiagnosis
) -> CopyDiagnosis:
    verdict = case.verdict
    if verdict.component == "unknown":
        return _unexplained_diagnosis(report, copies, copy, case)
    notes = _jumbo(report, verdict, verdict.ceiling_bytes_per_second)
    return replace(case, advice=(*case.advice, *notes))


def _jumbo(report: Report, ceiling: Ceiling | Verdict, level: float | None) -> Iterator[str]:
    """Yields the gain of jumbo frames over a full link."""
    mtu, slow = steps.mtu_bytes(report), slower_link(report)
    if slow is None or mtu is None or not 576 <= mtu <= model.ETHERNET_MTU_BYTES:
        return
    if not ceiling.is_link or level is None or level < JUMBO_RATIO * claimed_payload(report):
        return
    usual, jumbo = (model.payload_efficiency(each) for each in (mtu, JUMBO_BYTES))
    carried = rate_text(slow.bits_per_second / 8 * jumbo)
    fewer = factor(model.payload_bytes(JUMBO_BYTES), model.payload_bytes(mtu))
    yield (
        f"Jumbo frames (MTU {JUMBO_BYTES} at both hosts and on every switch between) carry "
        f"{percent_text(jumbo / usual - 1)} more, {carried}, with {fewer:.0f} times fewer packets "
        "for both CPUs."
    )


# -- copies that reach nothing known -------------------------------------------------------------


def _unexplained_diagnosis(
    report: Report, copies: Sequence[Copy], copy: Copy, case: CopyDiagnosis
) -> CopyDiagnosis:
    """Returns a copy below all known limits with the limits ruled out, and the next tests."""
    assert copy.step is not None
    rate = copy.step.rate.median
    reasons = tuple(_ruled_out(report, copies, copy, rate))
    sentence = case.verdict.sentence
    if reasons:
        sentence = f"{sentences.runs(copy, rate)}. {' '.join(reasons)}"
    tests = list(_missing_tests(report, copy, case.suspects))
    return replace(
        case,
        verdict=replace(case.verdict, sentence=sentence),
        evidence=(*reasons, *case.evidence),
        advice=tuple(tests[:MOST_TESTS]) or tuple(_what_would_tell(report, copies, copy)),
    )


def _ruled_out(report: Report, copies: Sequence[Copy], copy: Copy, rate: float) -> Iterator[str]:
    tests = hardware_limits.believed_steps(report, copy.sender)
    tcp_rate = max((each.rate.median for each in tests), default=0.0)
    back = _opposite(copies, copy)
    if tcp_rate >= SINGLE_RATIO * rate:
        yield (
            f"The network is not the bottleneck: TCP by itself moved {rate_text(tcp_rate)} from "
            f"the {copy.sender} to the {copy.receiver}."
        )
    elif back is not None and back.rate.median >= SINGLE_RATIO * rate:
        yield (
            f"The link speed is not the bottleneck: the network carried "
            f"{rate_text(back.rate.median)} the other way."
        )
        if copy.cache == "cached":
            yield f"The {copy.sender}'s disk is not either: the source was in that host's cache."
    yield from _faster_disks(report, copy, rate)
    slow = _looks_like(rate)
    highest = max(tcp_rate, claimed_payload(report))
    if slow is not None and not highest:
        yield f"The rate is about that of a {link_text(slow)} link (no link rate was given)."
    elif slow is not None and highest >= SINGLE_RATIO * model.link_payload(slow):
        link = link_text(slow)
        yield (
            f"The rate is about that of a {link} link. Check whether the copy took a slower path "
            f"than the one of {rate_text(highest)} (a {link} port, an access point, another card)."
        )


def _faster_disks(report: Report, copy: Copy, rate: float) -> Iterator[str]:
    ends = (("read", copy.sender), ("write", copy.receiver))
    for verb, side in ends if copy.cache == "uncached" else ends[1:]:
        disk = steps.fastest(disk_steps(report, side, verb, "told"))
        if disk is not None and disk.rate.median >= SINGLE_RATIO * rate:
            does = f"it {DOES[verb]} {rate_text(disk.rate.median)}"
            yield f"The {side}'s disk is not the bottleneck: {does} by itself."


def _looks_like(rate: float) -> int | None:
    """Returns the standard link whose payload a rounded rate may be; None: none."""
    for bits in model.LINK_BITS_PER_SECOND:
        if ROUND_LOW_RATIO <= rate / model.link_payload(bits) <= ROUND_HIGH_RATIO:
            return bits
    return None


def _opposite(copies: Sequence[Copy], copy: Copy) -> MeasuredStep | None:
    kind = (copy.cache, copy.dialect, copy.initiator)
    return steps.fastest(
        each.step
        for each in copies
        if each.step is not None
        and each.sender == copy.receiver
        and (each.cache, each.dialect, each.initiator) == kind
    )


def _what_would_tell(report: Report, copies: Sequence[Copy], copy: Copy) -> Iterator[str]:
    """Yields further steps for a copy whose measurable figures are all known."""
    started = {each.initiator for each in copies if each.sender == copy.sender}
    if len(started) == 1:
        other = steps.other(copy.initiator)
        yield f"Start the same copy at the {other}. That shows if it matters who starts it."
    yield "`bottleneck diagnose` measures all components in 60 s."


MOST_TESTS = 2
FIO = "`fio --name=test --rw={} --bs=1M --size=4G {} --unlink=1`"
DISKSPD = "`diskspd -c4G -b1M -d20 -o8 {} -Sh test.dat`, then delete test.dat"


def _missing_tests(report: Report, copy: Copy, suspects: Sequence[Suspect]) -> Iterator[str]:
    parts = [each.part for each in suspects]
    if not hardware_limits.believed_steps(report, copy.sender):
        parts.insert(0, NETWORK)  # it separates the path from all others
    for part in dict.fromkeys(parts):
        component, side = part[0], str(part[1])
        match component:
            case "disk":
                verb = "read" if side == copy.sender else "write"
                if not any(disk_steps(report, side, verb, "told")):
                    yield f"On the {side}, in the folder of the copy: {_test(report, side, verb)}."
            case "network" if not hardware_limits.believed_steps(report, copy.sender):
                way = " -R" if copy.sender == "server" else ""
                server = host(report, "server")
                name = server.name if server is not None and server.name else "SERVER"
                yield (
                    f"Run `iperf3 -s` on the server and `iperf3 -c {safe(name)}{way}` on the "
                    "client."
                )
            case "tcp" | "smb" if rtt(report) is None:
                yield "Run `ping` from the client to the server: 20 packets."
            case "cpu":
                yield (
                    f"Note the busiest core of the {side} during the copy (`top` and 1 on Linux, "
                    f"Task Manager on Windows), and add it to --copy: '{side}-cpu=95%'."
                )


def _test(report: Report, side: str, verb: str) -> str:
    facts = host(report, side)
    if facts is not None and "windows" in (facts.system or "").casefold():
        return DISKSPD.format("-w0" if verb == "read" else "-w100")
    return FIO.format(verb, "--direct=1" if verb == "read" else "--end_fsync=1")
