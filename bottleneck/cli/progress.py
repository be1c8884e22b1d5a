"""What a person sees on stderr while a run is under way: the stage, its rate, the time left."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.text import Text

from bottleneck.bench import Event
from bottleneck.reports import units
from bottleneck.reports.safe import safe

STEP_COLUMNS = 28
"""As wide as most steps' names: the rates stand in one column."""
RATE_COLUMNS = 10
BAR_COLUMNS = 30
Tell = Callable[[Event], None]


@contextmanager
def watching(quiet: bool) -> Iterator[Tell]:
    """Yields where a session tells its events."""
    if quiet:
        yield lambda event: None
    elif not sys.stderr.isatty() or os.environ.get("TERM", "dumb") in {"dumb", "unknown"}:
        yield _while_read(_plain)
    else:
        with _bar() as tell:
            yield _while_read(tell)


def _while_read(tell: Tell) -> Tell:
    """The same until nobody reads it any more: no run ends for that."""
    read = [True]

    def told(event: Event) -> None:
        if read[0]:
            try:
                tell(event)
            except OSError:
                read[0] = False

    return told


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


def _line(step: str, rate: str) -> str:
    return safe(f"{step:<{STEP_COLUMNS}} {rate:>{RATE_COLUMNS}}")


def _finished(event: Event) -> Text:
    ending = _ending(event)
    if event.outcome == "measured" or len(ending) <= RATE_COLUMNS:
        return Text(_line(event.step, ending))
    return Text(safe(f"{event.step:<{STEP_COLUMNS}}  {ending}"))


@contextmanager
def _bar() -> Iterator[Tell]:
    console = Console(stderr=True, highlight=False)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(min(BAR_COLUMNS, max(4, console.width - 60))),
        TextColumn("{task.fields[left]}", markup=False),
    )
    with Progress(*columns, console=console, refresh_per_second=4, transient=True) as bars:
        task = bars.add_task(_line("starting", ""), total=1.0, left="")
        now = ["", ""]

        def tell(event: Event) -> None:
            left = max(0.0, event.budget_seconds - event.elapsed_seconds)
            if event.sample is None:
                now[:] = [event.step, ""]
            elif event.sample.elapsed_seconds > 0 and event.sample.moved_bytes:
                # A sample knows its stage alone; the step that it belongs to was told before.
                rate = event.sample.moved_bytes / event.sample.elapsed_seconds
                now[1] = units.rate_text(rate)
            bars.update(
                task,
                completed=min(1.0, event.elapsed_seconds / event.budget_seconds),
                description=_line(*now),
                left=f"{left:3.0f} s left",
            )
            if event.outcome:
                bars.console.print(_finished(event))

        yield tell
