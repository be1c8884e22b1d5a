"""Facts of a pull, as a report would tell them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from bottleneck.analysis.facts.record import BUSY, NETWORK, CopyFacts, Fact, Kind, Level, Part
from bottleneck.analysis.finding import Part as Component

SENDER: Component = ("disk", "server")
RECEIVER: Component = ("disk", "client")
CORE: Component = ("cpu", "server")
WINDOW: Component = ("tcp", "client")
REQUESTS: Component = ("smb", "server")
AFTER_NETWORK: tuple[Component, ...] = (WINDOW, REQUESTS, ("cpu", "client"), RECEIVER)
CHAIN = (SENDER, CORE, ("tcp", "server"), NETWORK, *AFTER_NETWORK)


def fact(part: Part, kind: Kind, level: float, is_of_twin: bool = False) -> Fact:
    """A rate in MB/s, or a utilization as looks at it tell it."""
    if kind == BUSY:
        return Fact(part, BUSY, Level(level - 0.05, level, level + 0.05), "looks")
    rate = Level.with_spread(level * 1e6, 0.98, 1.02)
    return Fact(part, kind, rate, "another step", is_of_twin=is_of_twin)


def copy(rate: float, *facts: Fact, **extra: Any) -> CopyFacts:
    """A pull of so many MB/s over a short path, whose time nobody watched unless told."""
    level = Level.with_spread(rate * 1e6)
    base = CopyFacts(
        "pull.uncached", "3.1.1", "own", "client", "server", "client", level, CHAIN, facts, ()
    )
    return replace(base, **{"rtt_seconds": 2e-4, **extra})
