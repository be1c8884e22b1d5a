"""Planted worlds, and all that is said of their copies, held against what is kept beside a test."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from bottleneck.analysis import diagnose
from bottleneck.analysis.finding import Ceiling, Named
from bottleneck.report import Report
from bottleneck.reports.units import rate_text


@pytest.fixture
def alone(empty_world: Callable[..., Any]) -> Any:
    """A client whose disks are fast, and no agent on the server."""
    made = empty_world(agent=False)
    made.loopback("client", 2100)
    made.disk("client", "read", (1480, 1500, 1510))
    made.disk("client", "write", (890, 900, 915))
    return made


@pytest.fixture
def between(empty_world: Callable[..., Any]) -> Callable[..., Any]:
    """Makes two hosts with disks of a rate, and a path of another between them.

    one, several: what one stream of TCP carries, and what four do; limits: of their connections.
    """

    def make(
        one: Any = 117.6, several: Any = None, disk: Any = 400, limits: Any = None, **more: Any
    ) -> Any:
        world = empty_world()
        for verb in ("pull", "push"):
            world.tcp(verb, one, limits=limits)
            if several is not None:
                world.tcp(verb, several, streams=4, limits=more.get("limits_of_several"))
        for side in ("client", "server"):
            for verb in ("read", "write"):
                world.disk(side, verb, disk)
        return world

    return make


def text(named: Named) -> str:
    """A verdict's words, as `disk/server/read` or `unknown/inconclusive`."""
    return "/".join(filter(None, named))


def level(ceiling: Ceiling) -> str:
    """A ceiling with its rate, and what it is from."""
    rate = rate_text(ceiling.bytes_per_second)
    steps = " ".join(map(str, ceiling.steps))
    return f"{text(ceiling.named)} {rate} {ceiling.standing} [{steps}]"


@pytest.fixture
def says(golden: Callable[[str], None]) -> Callable[..., None]:
    """Takes a world, what has to be named of its copies in turn, and more of its target; keeps all
    that is said of them.
    """

    def noted(world: Any, *expected: str, **target: Any) -> None:
        report = world if isinstance(world, Report) else world.report()
        report.target.update(target)
        found = diagnose(report).copies
        for each in found:
            golden(f"{text(each.verdict.named)} {each.verdict.confidence}")
            golden(f"  {each.verdict.sentence}")
            golden(f"  {'; '.join(map(level, each.ceilings))}")
            for line in (*each.evidence, *each.advice):
                golden(f"  - {line}")
        assert tuple(text(each.verdict.named) for each in found[: len(expected)]) == expected

    return noted
