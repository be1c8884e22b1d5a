"""Planted worlds that the rules' tests begin with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


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
