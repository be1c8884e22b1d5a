"""Runs that have not begun, for the tests of what a run's steps do."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from bottleneck.login.target import parse
from bottleneck.run import plan, world
from bottleneck.run.execution import Session
from bottleneck.run.log import Event
from bottleneck.run.steps.copies import Copies
from bottleneck.run.steps.schedule import Schedule
from probes.core.records import Access, Endpoint
from probes.programs.samba import Samba

PASSWORD, HERE = "correct horse 47", "127.0.0.1"


def session_of(
    target: str | Samba = "//nas/media",
    folder: str | Path = "/tmp",
    watch: Callable[[Event], None] = lambda event: None,
    dialect: str = "",
    **options: Any,
) -> Session:
    """Makes a session by a target's words or a server's share; dialect: that of its share."""
    user = "bottleneck"
    if isinstance(target, Samba):
        user, target = target.username, f"//{target.host}:{target.port}/{target.share}"
    run_options = plan.Options(target=parse(target), folder=str(folder), **options)
    session = Session(run_options, Access(user, PASSWORD), watch, lambda report: None)
    session.files.share = Endpoint(facts={"dialect": dialect} if dialect else {})
    return session


def update_world(session: Session, **keywords: Any) -> Session:
    session.world = replace(session.world, **keywords)
    return session


def order_of(on: Session, stack: ExitStack | None = None) -> Schedule:
    """Returns the schedule of a session; stack: closes held resources."""
    return Schedule(on.world, on.clock, on.log, on.files, stack or ExitStack())


def copies_of(order: Schedule, dialect: str = "3.1.1", **protection: Any) -> Copies:
    parts = order.world, order.clock, order.log, order.files, order.sources
    return Copies(*parts, order.sizes, order.turns, order.disks, dialect, protection)


def reach(session: Session, stack: ExitStack, share: bool = True, address: str = HERE) -> None:
    """The hosts reached and, unless nobody needs it, the share opened."""
    there = world.client_of(replace(session.world, address=address), stack)
    session.world = world.server_of(there, stack, session.log)
    if share:
        session.world = session._open_share(stack)
    *_, session.world = world.learn_facts(session.world, session.files)


@contextmanager
def begun(session: Session, share: bool = True) -> Iterator[Schedule]:
    """The hosts reached and, unless nobody needs it, the share opened, as a run begins."""
    with ExitStack() as stack:
        reach(session, stack, share, HERE if share else "")
        order = order_of(session, stack)
        order.disks.hold_sources(stack)
        yield order
