"""The sentences of a diagnosis; every figure in them comes through the units."""

from __future__ import annotations

from bottleneck.analysis import model
from bottleneck.analysis.finding import Ceiling, Claim, Next
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.steps import SMBCLIENT, Copy
from bottleneck.units import link_text, range_text, rate_text

_DOES = {"read": "reads", "write": "writes"}


def runs(copy: Copy, rate: float, how: str = "runs at") -> str:
    """The first half of a verdict: which copy, how fast."""
    if copy.running:
        return f"The {copy.verb} that was watched runs at {rate_text(rate)}"
    doing = "Pulling" if copy.verb == "pull" else "Pushing"
    by = ", started by the server," if copy.initiator == "server" else ""
    if by and copy.engine == SMBCLIENT:
        by = ", started by the server with smbclient,"
    over = " over SMB1" if copy.dialect == "smb1" else ""
    over = " by the system's own copy" if copy.native else over
    return f"{doing} this file {copy.cache}{over}{by} {how} {rate_text(rate)}"


def name(ceiling: Ceiling | Next) -> str:
    """A component as a person calls it: "the server's disk"."""
    title = BY_WORDS[ceiling.component, ceiling.cause].title
    if title:
        return f"the {ceiling.side}'s {title}"
    return part_name(ceiling.part)


def part_name(part: tuple[str, str | None]) -> str:
    """The same from a component and its side."""
    match part:
        case ("network", _):
            return "the network"
        case ("cpu", side):
            return f"the {side}'s CPU"
        case ("tcp", side):
            return f"the {side}'s TCP"
        case ("smb", "client"):
            return "the client's mount"
        case ("smb", _):
            return "the SMB window"
        case ("instrument", side):
            return f"this tool on the {side}"
        case _:
            return f"the {part[1]}'s {part[0]}"


def name_with_verb(ceiling: Ceiling | Next) -> str:
    """The name, with what a disk does: "the server's disk (write)"."""
    does = f" ({ceiling.cause})" if ceiling.component == "disk" else ""
    return f"{name(ceiling)}{does}"


def remedy(ceiling: Ceiling) -> str:
    """What lifts a ceiling: "a faster disk"."""
    return BY_WORDS[ceiling.component, ceiling.cause].remedy


def outlook(
    cap: Ceiling,
    following: Next | None,
    predicted: Band | None,
    rate: float,
    link_bits: int | None = None,
) -> str:
    """What comes next and what lifting the cap is worth; empty where neither is known.

    link_bits: the standard link that the prediction exchanges a link for.
    """
    parts = []
    if following is not None:
        about = "about " if following.component in ("cpu", "instrument") else ""
        told = f"{about}{rate_text(following.ceiling_bytes_per_second)}"
        parts.append(f"Next is {name_with_verb(following)} ({told})")
    if predicted is not None:
        text = remedy(cap) if link_bits is None else f"a {link_text(link_bits)} link"
        if predicted.median < 1.1 * rate:
            parts.append(f"{text} alone would give hardly more")
        else:
            parts.append(f"{text} would give about {rate_text(predicted.median)}")
    sentence = "; ".join(parts)
    return f" {sentence[0].upper()}{sentence[1:]}." if sentence else ""


def advice(
    claim: Claim,
    following: Next | None,
    predicted: Band | None,
    rate: float,
    link_bits: int | None = None,
) -> str:
    """What to do about a cap, with a number; link_bits as above."""
    cap = claim.ceiling
    if cap.component == "instrument":
        return (
            f"This tool cannot move more than {rate_text(cap.bytes_per_second)} on the {cap.side}: "
            "repeat it from a faster host to see what caps the path."
        )
    does = (
        "lifts this cap"
        if predicted is None
        else f"would lift this copy to {range_text(predicted.low, predicted.high)}"
    )
    beyond = "" if following is None else f"; beyond that {name_with_verb(following)} caps it"
    link = None if link_bits is None else f"A {link_text(link_bits)} link"
    return f"{claim.remedy or link or _measure(cap, following, rate)} {does}{beyond}."


def _measure(cap: Ceiling, following: Next | None, rate: float) -> str:
    """What has to change, as the subject of a sentence."""
    target = rate if following is None else following.ceiling_bytes_per_second
    times = _times(target / rate)
    match cap.component, cap.cause:
        case "disk", verb:
            needed = rate_text(max(target, 1.1 * cap.bytes_per_second))
            return (
                f"A disk on the {cap.side} that {_DOES.get(verb, 'serves it')} at {needed} or more"
            )
        case "network", "link-rate":
            # One step more for the last tenth of what the next component allows is not advice.
            bits = model.faster_link(max(0.9 * target, 1.1 * cap.bytes_per_second))
            return f"A {link_text(bits)} link"
        case "network", _:
            return f"More than the {rate_text(rate)} that the others' traffic leaves"
        case "cpu", "quota":
            return f"A CPU quota on the {cap.side} {times} as large"
        case "cpu", "contention":
            return f"More of the {cap.side}'s CPU than the other processes leave ({times} as much)"
        case _:
            return f"A CPU on the {cap.side} {times} as fast"


def _times(ratio: float) -> str:
    if ratio < 1.1:
        return "twice"
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"
