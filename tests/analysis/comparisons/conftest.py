"""Planted worlds, and what their comparisons say, held against what is kept beside the tests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.analysis.finding import Comparison


def spread(rate: float) -> tuple[float, float, float]:
    """Three quiet runs."""
    return 0.99 * rate, rate, 1.01 * rate


def plan(*steps: Any) -> tuple[Any, ...]:
    return steps


@pytest.fixture
def plant() -> Callable[..., Any]:
    """Adds steps to a world by its methods; a rate in a list is of three quiet runs."""

    def planted(world: Any, *steps: tuple[Any, ...]) -> Any:
        for name, *arguments in steps:
            options = arguments.pop() if isinstance(arguments[-1], dict) else {}
            runs = (spread(*each) if isinstance(each, list) else each for each in arguments)
            getattr(world, name)(*runs, **options)
        return world

    return planted


@pytest.fixture
def hosts(empty_world: Callable[..., Any]) -> Any:
    """Two hosts of which nothing is known yet."""
    return empty_world()


@pytest.fixture
def path(hosts: Any) -> Any:
    """Two hosts with a path of 1 Gbit/s between them, and without disks yet."""
    hosts.tcp("push", 117.6)
    hosts.tcp("pull", 117.5)
    return hosts


def lines(comparison: Comparison) -> Iterator[str]:
    """A comparison with all that it tells; what is not known is left out of a row."""
    ratio = "no ratio" if comparison.ratio is None else f"{comparison.ratio:.4g}x"
    real = "significant" if comparison.significant else "no significant difference"
    steps = " ".join(map(str, comparison.steps))
    yield f"{comparison.about}: {ratio}, {real}, steps {steps}".rstrip()
    yield f"  {comparison.sentence}"
    for row in comparison.rows:
        assert row.keys() == comparison.rows[0].keys()
        cells = {name: value for name, value in row.items() if value is not None}
        yield f"  {json.dumps(cells, allow_nan=False)}"


@pytest.fixture
def store(request: pytest.FixtureRequest, golden: Callable[[str], None]) -> Callable[..., None]:
    """Keeps what the comparisons of a world say, of those that the test's module is about."""

    def noted(world: Any, **changes: Any) -> None:
        comparisons = diagnose(world.report(**changes)).comparisons
        matches = [each for each in comparisons if each.about in request.module.ABOUT]
        for line in [line for each in matches for line in lines(each)] or ["nothing"]:
            golden(line)

    return noted
