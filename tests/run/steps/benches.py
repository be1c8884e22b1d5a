"""Runs that have not begun, for the tests of what a run's steps do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bottleneck.run import plan, session, world
from bottleneck.run.bench import Bench, Event
from bottleneck.run.steps import disks
from bottleneck.run.world import World
from bottleneck.target.target import parse
from probes.core.records import Access, Endpoint
from probes.programs.samba import Samba

PASSWORD = "correct horse 47"


def bench_of(
    target: str | Samba = "//nas/media",
    folder: str | Path = "/tmp",
    watch: Callable[[Event], None] = lambda event: None,
    dialect: str = "",
    **options: Any,
) -> Bench:
    """Of a target by its words, or of a server's share; dialect: its share is taken for open."""
    user = "bottleneck"
    if isinstance(target, Samba):
        user, target = target.username, f"//{target.host}:{target.port}/{target.share}"
    asked = plan.Options(target=parse(target), folder=str(folder), **options)
    share = Endpoint(facts={"dialect": dialect} if dialect else {})
    there = World(asked, Access(user, PASSWORD), share=share)
    return Bench(there, watch, lambda report: None)


def knowing(bench: Bench, **found: Any) -> Bench:
    """The same with that in its world."""
    bench.world = replace(bench.world, **found)
    return bench


def reached(bench: Bench, stack: ExitStack, share: bool = True, address: str = "127.0.0.1") -> None:
    """The hosts reached and, unless nobody needs it, the share opened."""
    there = world.client_of(replace(bench.world, address=address), stack)
    bench.world = world.server_of(there, stack, bench.log)
    if share:
        session._open(bench, stack)
    for side in bench.world.hosts:
        bench.world = world.learned(bench.world, side)


@contextmanager
def begun(bench: Bench, share: bool = True) -> Iterator[ExitStack]:
    """The hosts reached and, unless nobody needs it, the share opened, as a run begins."""
    with ExitStack() as stack:
        reached(bench, stack, share, "127.0.0.1" if share else "")
        disks.hold_sources(bench, stack)
        yield stack
