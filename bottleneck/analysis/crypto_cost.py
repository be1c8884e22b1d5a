"""What signing or encryption takes of the CPU time of the file server's host, per byte of a copy.

Told by the same bytes without it, where the server allows them. Where it insists, by its pulls: a
file server that reads from RAM and sends does what TCP alone does, and once more as much.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from bottleneck.analysis import steps, tcp_evidence
from bottleneck.analysis.noise import differ
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import cost_text

PLAIN = "plain"
NOUNS = {"signed": "signing", "encrypted": "encryption"}
"""The contract's word for what a session does, by steps.security."""
PLAIN_TIMES = 2.0
"""CPU time of a plain pull over that of TCP alone: measured are 1.3 where cores are full, and 3
where packets come slowly."""
SHORT_BYTES = 64 << 10
"""Requests of that size cost as much again; longer and shorter ones in proportion."""
CLEAR_RATIO = 2.25
"""Over what a plain pull takes, from which on the rest can only be the crypto."""
LEAST_SECONDS = 0.03
"""CPU time is told in ticks of 10 ms: a difference of less is none."""


@dataclass(frozen=True)
class CryptoCost:
    """CPU time that signing or encryption takes."""

    seconds_per_byte: float
    compared: bool
    """Whether the same bytes were moved without it; else it is what nothing else explains."""
    evidence: str
    steps: tuple[int, ...]


def cpu_seconds_per_byte(found: Found, side: str) -> float | None:
    """CPU time of the copy's processes on a host, per byte that was moved; None: not told."""
    usage, moved = found.usage(side), moved_bytes(found)
    return None if usage is None or moved < 1 else usage.copy_cpu_seconds / moved


def moved_bytes(found: Found) -> int:
    """Payload of the run that the usage is of."""
    run = median_run(found.outcome)
    return run[-1].moved_bytes - run[0].moved_bytes


def algorithm(found: Found) -> str | None:
    """What a session signed or encrypted with: "aes-128-gcm"; None: it did neither."""
    details = found.outcome.details
    return steps.word(details, "encryption") or steps.word(details, "signing")


def crypto_cost(report: Report, copy: Copy) -> CryptoCost | None:
    """What the copy's signing or encryption takes on the host of its file server.

    None: it did neither, or nothing tells. The initiator's is not told: its programs differ.
    """
    made = copy.made
    kind = None if made is None else steps.security(made)
    if made is None or kind not in NOUNS:
        return None
    return _by_plain(report, copy, kind) or _by_tcp(report, copy, made, kind)


def _by_plain(report: Report, copy: Copy, kind: str) -> CryptoCost | None:
    """From the same bytes with and without, where they were really slower with it."""
    side = steps.other(copy.initiator)
    found = {
        steps.security(each): each
        for each in steps.measured(report, "smb-tax")
        if each.intact
        and each.step.initiator == copy.initiator
        and each.step.setting.get("dialect") == copy.dialect
        and each.step.setting.get("verb") == copy.verb
    }
    plain, guarded = found.get(PLAIN), found.get(kind)
    if plain is None or guarded is None:
        return None
    less, more = (cpu_seconds_per_byte(each, side) for each in (plain, guarded))
    if less is None or more is None or (more - less) * moved_bytes(guarded) < LEAST_SECONDS:
        return None
    if plain.rate.median < guarded.rate.median or not differ(plain.rate, guarded.rate):
        return None
    return CryptoCost(
        more - less,
        True,
        f"The same bytes take {cost_text(more)} of the {side}'s CPU {kind} and {cost_text(less)} "
        "plain.",
        (plain.index, guarded.index),
    )


def _by_tcp(report: Report, copy: Copy, made: Found, kind: str) -> CryptoCost | None:
    """What pulls cost beyond what they would without it.

    To sign or encrypt costs the same both ways; what a disk adds to a push is not known.
    """
    side = steps.other(copy.initiator)
    alone = [cpu_seconds_per_byte(each, side) for each in tcp_evidence.transfers(report, side)]
    sending = max((each for each in alone if each is not None), default=None)
    pulls = [
        (cost, each)
        for each in _pulls(report, copy, made, kind)
        if (cost := cpu_seconds_per_byte(each, side)) is not None
    ]
    if sending is None or not pulls:
        return None
    cost, pull = min(pulls, key=lambda each: each[0])
    size = steps.positive(pull.outcome.details, "request_bytes") or SHORT_BYTES
    plain = sending * PLAIN_TIMES * (1 + SHORT_BYTES / size)
    if cost < CLEAR_RATIO * plain or (cost - plain) * moved_bytes(pull) < LEAST_SECONDS:
        return None
    return CryptoCost(
        cost - plain,
        False,
        f"A pull takes {cost_text(cost)} of the {side}'s CPU {kind}; TCP alone takes "
        f"{cost_text(sending)} there, and a plain pull about {cost_text(plain)}.",
        (pull.index,),
    )


def _pulls(report: Report, copy: Copy, made: Found, kind: str) -> Iterator[Found]:
    """Pulls from the same file server by the same initiator, secured alike."""
    for stage in ("smb-copy", "smb-tax"):
        for each in steps.measured(report, stage):
            setting = each.step.setting
            name = steps.word(setting, "copy") or steps.word(setting, "verb") or ""
            if (
                "pull" in name
                and each.intact
                and each.step.initiator == copy.initiator
                and setting.get("dialect") == copy.dialect
                and steps.security(each) == kind
                and algorithm(each) == algorithm(made)
            ):
                yield each
