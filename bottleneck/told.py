"""What an agent tells, checked: it may be another host's, and nothing is taken on trust.

Pure. Errors: ValueError, with where and what.
"""

from __future__ import annotations

from typing import Any

from bottleneck import typed, wire
from probes.records import Endpoint, Sample, run_rate
from probes.stage import Refused

REFUSALS = frozenset({"usage", "unreachable", "share", "login", "permission", "space"})
"""Kinds of probes.stage.Refused."""


def answer(reply: dict[str, Any]) -> Any:
    """What a question's reply answers; whoever asked knows what it must be."""
    if "answer" not in reply:
        raise typed.NotTyped("the reply holds no answer")
    return reply["answer"]


def endpoint(reply: dict[str, Any]) -> Endpoint:
    """Where what a host holds can be met."""
    if "endpoint" not in reply:
        raise typed.NotTyped("the reply holds no endpoint")
    return wire.from_plain(Endpoint, reply["endpoint"])


def refusal(value: object) -> Refused:
    """A refusal of a kind that exists, with its reason."""
    found = typed.mapping(value, "refused")
    kind = typed.text(found.get("kind"), "refused.kind")
    if kind not in REFUSALS:
        raise typed.NotTyped("refused.kind is unknown")
    return Refused(kind, words(typed.text(found.get("text"), "refused.text")))


def words(value: object) -> str:
    """Whatever is told as a reason, in one line."""
    return " ".join(str(value).split())


def sample(value: object) -> Sample:
    """A sample of two amounts, elapsed seconds and bytes moved so far."""
    told = typed.array(value, "sample")
    if len(told) != 2:
        raise typed.NotTyped("sample must be two numbers")
    moved = typed.number(told[1], "sample.moved_bytes")
    return Sample(typed.number(told[0], "sample.elapsed_seconds"), int(moved))


def is_window(samples: list[Sample]) -> bool:
    """Whether time passed, nothing ran backwards, and the rate is one that a report may hold."""
    pairs = list(zip(samples, samples[1:], strict=False))
    lasted = any(a.elapsed_seconds < b.elapsed_seconds for a, b in pairs) and all(
        a.elapsed_seconds <= b.elapsed_seconds and a.moved_bytes <= b.moved_bytes for a, b in pairs
    )
    return lasted and run_rate(tuple(samples)) <= typed.LARGEST


def details(value: object, where: str = "details") -> dict[str, Any]:
    """Details whose one key that rates() computes with is right; rules read the rest with care."""
    found = typed.mapping(value, where)
    name = "window_rates_bytes_per_second"
    for at, rate in enumerate(typed.array(found.get(name, []), f"{where}.{name}")):
        typed.number(rate, f"{where}.{name}[{at}]")
    return found
