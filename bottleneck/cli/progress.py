"""What a person sees on stderr while a run is under way: the stage, its rate, the time left."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from bottleneck.bench import Event
from bottleneck.reports import units
from bottleneck.reports.safe import safe


@contextmanager
def watching(quiet: bool) -> Iterator[Callable[[Event], None]]:
    """Yields where a session tells its events."""
    if quiet:
        yield lambda event: None
    elif not sys.stderr.isatty():
        yield _plain
    else:
        with _bar() as tell:
            yield tell


def _ending(event: Event) -> str:
    rate = event.bytes_per_second
    return units.rate_text(rate) if rate and event.outcome == "measured" else event.outcome


def _plain(event: Event) -> None:
    if event.outcome:
        left = max(0.0, event.budget_seconds - event.elapsed_seconds)
        line = (
            f"{event.elapsed_seconds:5.1f} s  {event.step}: {_ending(event)}  ({left:.0f} s left)"
        )
        print(safe(line), file=sys.stderr, flush=True)


@contextmanager
def _bar() -> Iterator[Callable[[Event], None]]:
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Progress(
        *columns, console=Console(stderr=True), refresh_per_second=4, transient=True
    ) as bars:
        task = bars.add_task("starting", total=1.0, left="")

        def tell(event: Event) -> None:
            part = min(1.0, event.elapsed_seconds / event.budget_seconds)
            left = max(0.0, event.budget_seconds - event.elapsed_seconds)
            now = ""
            if event.sample is not None and event.sample.elapsed_seconds > 0:
                now = units.rate_text(event.sample.moved_bytes / event.sample.elapsed_seconds)
            bars.update(
                task,
                completed=part,
                description=safe(f"{event.step} {now}".strip()),
                left=f"{left:.0f} s left",
            )
            if event.outcome:
                bars.console.print(Text(safe(f"{event.step}: {_ending(event)}")))

        yield tell
