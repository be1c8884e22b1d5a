"""Sentences of a diagnosis; every figure in them is formatted by text/units.py."""

from __future__ import annotations

import math
from collections.abc import Iterator

from bottleneck.analysis import model
from bottleneck.analysis.evidence.details import Cache
from bottleneck.analysis.finding import Ceiling, Claim, Next, Part, Words
from bottleneck.analysis.model import Band
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.steps import SMBCLIENT, Copy
from bottleneck.text.units import link_text, range_text, rate_text, times_text

LEAST_GAIN_RATIO = 1.15
"""Least predicted / present rate at which a change is worth its price."""
WIDE_RATIO = 1.5
"""Least ratio of highest to lowest expected rate at which the gain is a range, too."""
_FREED = {
    "network": "the same link without other traffic",
    "disk": "the same disk without other I/O",
    "cpu": "the same CPU without other processes",
}
_DOES = {"read": "reads", "write": "writes"}


def runs(copy: Copy, rate: float, how: str = "runs at") -> str:
    """Returns the first half of a verdict: the copy and its rate."""
    if copy.is_running or copy.is_captured:
        what = "copy between folders of one host" if copy.on_one_host else copy.verb
        return f"The observed {what} runs at {rate_text(rate)}"
    doing = "Pulling" if copy.verb == "pull" else "Pushing"
    by = ", started by the server," if copy.initiator == "server" else ""
    if by and copy.engine == SMBCLIENT:
        by = ", started by the server with smbclient,"
    over = " over SMB1" if copy.dialect == "smb1" else ""
    over = " with the operating system's copy" if copy.is_native else over
    where = "in" if copy.cache == "cached" else "not in"
    cache = Cache() if copy.step is None else copy.step.details.cache
    if cache.cold_source:
        where = "probably not in"
    elif copy.is_of_file and cache.proven is False and cache.cached_ratio_before is None:
        where = "perhaps in"
    file = f"a file that is {where} the {copy.sender}'s cache"
    return f"{doing} {file}{over}{by} {how} {rate_text(rate)}"


def cold_source(cache: Cache) -> Iterator[str]:
    """Yields how the source of a pull was read that was not proven to be uncached."""
    if cache.cold_source == "past-cache":
        yield "The test file was read with FILE_NO_INTERMEDIATE_BUFFERING, twice."
    if cache.cold_source and cache.cached_bytes_per_second is not None:
        rate = rate_text(cache.cached_bytes_per_second)
        yield f"A cached file was read at {rate} or more, before and after this copy."


def name(ceiling: Words) -> str:
    """Returns a component's noun phrase: "the server's disk"."""
    title = BY_WORDS[ceiling.component, ceiling.cause].title
    return f"the {ceiling.side}'s {title}" if title else part_name(ceiling.part)


def part_name(part: tuple[str, str | None]) -> str:
    """Returns the noun phrase of a component and its side."""
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


def name_with_verb(ceiling: Words) -> str:
    """Returns the noun phrase, with a disk's verb: "the server's disk (write)"."""
    does = f" ({ceiling.cause})" if ceiling.component == "disk" else ""
    return f"{name(ceiling)}{does}"


def advice(
    claim: Claim,
    following: Next | None,
    predicted: Band | None,
    rate: float,
    link_bits: int | None = None,
    missing: str = "",
) -> tuple[str, ...]:
    """Returns the remedy against a cap, then the expected gain and the next limit.

    link_bits: rate of the standard link that the prediction assumes instead.
    missing: reason for no prediction, a sentence.
    """
    cap = claim.ceiling
    if cap.component == "instrument":
        level = rate_text(cap.bytes_per_second)
        return (
            f"This tool itself is the limit on the {cap.side} ({level}). "
            "Repeat the run from a faster host.",
        )
    if predicted is not None and gains_little(predicted, rate):
        expected = range_text(predicted.low, predicted.high)
        gain = f"Removing this bottleneck alone gains less than 15%: expect {expected}."
        return (gain, *_outlook(cap, None, following, rate))
    step = _step(claim, following, rate, link_bits)
    # A configured limit may be raised to any rate: the next standard link's is assumed.
    link = link_text(link_bits) if claim.remedy and link_bits else ""
    where = f" if the link then carries {link}" if link else ""
    carried = model.link_payload(link_bits) if link and link_bits else math.inf
    return (f"{step}.", *_outlook(cap, predicted, following, rate, missing, where, carried))


def gains_little(predicted: Band | None, rate: float) -> bool:
    """Whether there is a prediction, and its gain is not worth the price."""
    return predicted is not None and predicted.median < LEAST_GAIN_RATIO * rate


def both_at_once(
    cap: Claim, rival: Claim, then: Next | None, both: Band | None, rate: float, bits: int | None
) -> tuple[str, ...]:
    """Returns the advice on two limits so close that removing one alone gains little."""
    steps = [_step(each, then, rate, bits) for each in (cap, rival)]
    gain = () if both is None else (_gain(both, then, rate, " without both"),)
    first = "Remove both limits, because one alone gains less than 15%."
    return (f"{first} {steps[0]}. {steps[1]}.", *gain)


def or_else(
    rival: Claim, following: Next | None, both: Band | None, rate: float, bits: int | None
) -> tuple[str, ...]:
    """Returns the advice on an equally likely cap; both: rate without the two of them."""
    step = _step(rival, following, rate, bits)
    expected = _outlook(rival.ceiling, both, following, rate, where=" without both")
    return f"Equally likely, if that gains nothing: {step[0].lower()}{step[1:]}.", *expected


def _step(claim: Claim, following: Next | None, rate: float, link_bits: int | None) -> str:
    link = link_bits if claim.ceiling.cause == "link-rate" else None
    exchange = None if link is None else f"Use a {link_text(link)} link"
    return claim.remedy or exchange or _measure(claim.ceiling, following, rate)


def not_predicted(part: Part, least_bytes_per_second: float, how: str = "") -> str:
    """Returns why nothing is predicted: a stage is not known beyond its highest observed rate.

    how: means to have it measured.
    """
    if not least_bytes_per_second:
        return f"Not predicted: {part_name(part)} was not measured{how and f' ({how})'}."
    rate = rate_text(least_bytes_per_second)
    return f"Not predicted: {part_name(part)} was measured only up to {rate}."


def _gain(predicted: Band, following: Next | None, rate: float, where: str = "") -> str:
    # Rates beyond the next limit are only noise.
    is_exact = following is not None and following.component not in ("cpu", "instrument")
    beyond = predicted.high
    if following is not None and is_exact:
        beyond = following.ceiling_bytes_per_second
    highest = min(predicted.high, max(predicted.median, beyond))
    gain = times_text(predicted.median / rate)
    if highest >= WIDE_RATIO * predicted.low:
        gain = f"{times_text(predicted.low / rate)} to {times_text(highest / rate)}"
    return f"Expected{where}: {range_text(predicted.low, highest)} ({gain})."


def _outlook(
    cap: Ceiling,
    predicted: Band | None,
    following: Next | None,
    rate: float,
    missing: str = "",
    where: str = "",
    link_bytes_per_second: float = math.inf,
) -> tuple[str, ...]:
    parts = [missing] if missing else []
    if predicted is not None:
        parts.append(_gain(predicted, following, rate, where))
    if following is not None:
        nearly = "about " if following.component in ("cpu", "instrument") else ""
        level = f"{nearly}{rate_text(following.ceiling_bytes_per_second)}"
        shared = cap.part == following.part and cap.cause == "contention"
        limit_name = _FREED[cap.component] if shared else name_with_verb(following)
        beyond = (
            predicted is not None and following.ceiling_bytes_per_second > link_bytes_per_second
        )
        which = "Beyond that link, the next" if beyond else "The next"
        parts.append(f"{which} {'known ' if missing else ''}limit is {limit_name}, {level}.")
    return (" ".join(parts),) if parts else ()


def _measure(cap: Ceiling, following: Next | None, rate: float) -> str:
    """Returns the remedy against a cap whose rule has none."""
    target = rate if following is None else following.ceiling_bytes_per_second
    times = _times(target / rate)
    match cap.component, cap.cause:
        case "disk", _ if following is None:
            return f"Use a faster disk on the {cap.side}"
        case "disk", verb:
            needed = rate_text(max(target, 1.1 * cap.bytes_per_second))
            does = _DOES.get(verb, "serves it at")
            return f"Use a disk on the {cap.side} that {does} {needed} or more"
        case "network", "link-rate":
            # A faster link for the last tenth of the next component's limit is not worth it.
            bits = model.faster_link(max(0.9 * target, 1.1 * cap.bytes_per_second))
            return f"Use a {link_text(bits)} link"
        case "cpu", "quota":
            return f"Raise the CPU quota on the {cap.side} to {times} its present value"
        case _:
            return f"Use a CPU on the {cap.side} that is {times} as fast, or reduce its other work"


def _times(ratio: float) -> str:
    if ratio < 1.1:
        return "twice"
    return f"{ratio:.1f} times" if ratio < 10 else f"{ratio:.0f} times"
