"""Runs that have not begun, for the tests of what a run's steps do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bottleneck.run import plan, session
from bottleneck.run.bench import Bench, Event
from bottleneck.run.steps import disks
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
    bench = Bench(asked, Access(user, PASSWORD), watch, lambda report: None)
    if dialect:
        bench.share = Endpoint(facts={"dialect": dialect})
    return bench


@contextmanager
def begun(bench: Bench, share: bool = True) -> Iterator[ExitStack]:
    """The hosts reached and, unless nobody needs it, the share opened, as a run begins."""
    with ExitStack() as stack:
        if share:
            bench.address = "127.0.0.1"
        session._reach(bench, stack)
        if share:
            session._open_share(bench, stack)
            session._locate(bench)
        session._learn(bench)
        disks.hold_sources(bench, stack)
        yield stack
