"""Progress of a run on stderr for a person: a line for each step, and a live one.

On a terminal all of it is gone at the end: the answer stands alone there.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import IO, Any, cast

from rich.console import Console, ConsoleOptions, ConsoleRenderable, RenderResult
from rich.control import Control
from rich.live import Live
from rich.segment import ControlCode, ControlType
from rich.text import Text

from bottleneck.analysis.phrases import busy_text
from bottleneck.cli import exits
from bottleneck.documents import terminal
from bottleneck.documents.terminal import GAP, Signs
from bottleneck.run.log import Event
from bottleneck.text import units
from bottleneck.text.safe import safe
from probes.core.records import Sample
from probes.host.counters import read_cores
from probes.host.memory import read_memory
from probes.system.proc import CoreTimes

STEP_COLUMNS = 27
"""Width of most steps' names: the rates stand in one column."""
RATE_COLUMNS = 11
LOAD_SECONDS = 1.0
LOAD_COLUMNS = 14
"""Width of `100%* 1.17 GiB`."""
BOTH_COLUMNS = STEP_COLUMNS + 1 + RATE_COLUMNS + 2 * (len(GAP) + LOAD_COLUMNS)
"""Width with the load of both hosts."""
LEAST_BAR_COLUMNS, MOST_BAR_COLUMNS = 6, 48
FRAMES_PER_SECOND = 2.0
"""Few: drawing takes time from a copy on a host with one core."""
LONGEST_ENDING = 600
HALF_SAMPLE_SECONDS = 0.05
"""Seconds that a sample may come too early and still end an interval."""
ECHO_COLUMNS = 2
"""Width of the ^C that a terminal writes behind the live line: wrapped, that line would stay."""
_UP = re.compile(r"\x1b\[(\d*)A")
Tell = Callable[[Event], None]


@contextmanager
def show_progress(
    quiet: bool, style: units.Style = "si", intervals: Intervals | None = None
) -> Iterator[Tell]:
    """Yields a function that takes a session's events; rates are shown in that style.

    intervals: lines that are to stay, in place of all others.
    """
    if quiet:
        yield lambda event: None
        return
    if intervals is not None:
        yield _styled_tell(intervals.take, style)
        return
    console = terminal.console(stderr=True)
    if moves(console):
        with _board(console) as tell:
            yield _styled_tell(tell, style)
    elif console.file.isatty():
        board = Board(terminal.signs_of(console))
        yield _styled_tell(lambda event: _show(event, board, console), style)
    else:
        yield _styled_tell(_plain, style)


def moves(console: Console) -> bool:
    """Whether lines of it can be drawn anew: a real terminal that understands how, and no log."""
    return console.file.isatty() and console.is_interactive and console.is_terminal


def _styled_tell(tell: Tell, style: units.Style) -> Tell:
    def tell_styled(event: Event) -> None:
        # Around each event alone: the documents that a run saves on its way have no style.
        with units.shown_as(style):
            tell(event)

    return tell_styled


# -- without a terminal --------------------------------------------------------------------------


def _plain(event: Event) -> None:
    """Prints a line for each step that ended."""
    if not event.outcome:
        return
    text = f"{event.step}: {_outcome_text(event)}"
    for side, usage in (("client", event.client), ("server", event.server)):
        core, _, memory = busy_text(usage).partition(" ")
        text += f"; {side} CPU {core}" if core else ""
        text += f", RAM {memory}" if memory else ""
    rest = f"{max(0.0, event.budget_seconds - event.elapsed_seconds):.0f} s left"
    line = f"{event.elapsed_seconds:5.1f} s  {text}  ({rest})"
    # Nobody may read it any more: no run ends for that.
    print(safe(line, LONGEST_ENDING), file=cast(IO[str], _LossyStream(sys.stderr)), flush=True)


def _outcome_text(event: Event) -> str:
    rate = event.bytes_per_second
    return units.rate_text(rate) if rate and event.outcome == "measured" else event.outcome


@dataclass
class Intervals:
    """A line for each interval of a transfer, as iperf3 prints them: its time, bytes and rate."""

    seconds: float
    """Least length of an interval: samples come every 0.1 s."""
    stream: IO[str]
    step: str = ""
    last: dict[str, Sample] = field(default_factory=dict)
    """Last sample by the part of the step."""

    def take(self, event: Event) -> None:
        """Prints what the event completes."""
        now = event.sample
        if now is None:
            self.step, self.last = event.step, {}
            _plain(event)
            return
        last = self.last.setdefault(event.part, Sample(0.0, 0))
        elapsed = now.elapsed_seconds - last.elapsed_seconds
        if elapsed < 0:
            self.last[event.part] = now
        elif elapsed > 0 and elapsed >= self.seconds - HALF_SAMPLE_SECONDS:
            moved_bytes = now.moved_bytes - last.moved_bytes
            step = f"{self.step} {event.part}".rstrip()
            line = (
                f"{last.elapsed_seconds:6.1f} to {now.elapsed_seconds:6.1f} s  {step}  "
                f"{units.size_text(moved_bytes)}  {units.rate_text(moved_bytes / elapsed)}"
            )
            stream = cast(IO[str], _LossyStream(self.stream))
            print(safe(line, LONGEST_ENDING), file=stream, flush=True)
            self.last[event.part] = now


# -- what this host is busy with -----------------------------------------------------------------
#
# Two small files of /proc at most once a second, read by the coordinator: the processes that move
# bytes are not asked. Elsewhere than on Linux nothing is known.


@dataclass
class OwnLoad:
    """Load of this host between two readings."""

    read_at: float = 0.0
    cores: dict[int, CoreTimes] = field(default_factory=dict)
    last_text: str = ""

    def text(self) -> str:
        """Returns the busiest core over the last second or more, and RAM in use: `31% 1 GiB`."""
        moment = time.monotonic()
        if moment - self.read_at >= LOAD_SECONDS:
            cores, memory = read_cores() or {}, read_memory()
            core = _busiest(self.cores, cores)
            words = [] if core is None else [units.percent_text(min(1.0, core)).replace(" ", "")]
            words += [] if memory is None else [units.size_text(memory.used_bytes)]
            self.last_text, self.read_at, self.cores = " ".join(words), moment, cores
        return self.last_text


def _busiest(old: dict[int, CoreTimes], new: dict[int, CoreTimes]) -> float | None:
    ratios = [
        (now.busy_seconds - was.busy_seconds) / (now.total_seconds - was.total_seconds)
        for number, now in new.items()
        if (was := old.get(number)) and now.total_seconds > was.total_seconds
    ]
    # The kernel's hundredths add up to a hair more than the whole.
    return min(1.0, max(ratios)) if ratios else None


# -- on a terminal -------------------------------------------------------------------------------


@dataclass
class Board:
    """The live line: the step that runs, its rate, the run's progress, this host, the time left."""

    signs: Signs
    step: str = "starting"
    rate: str = ""
    elapsed_seconds: float = 0.0
    budget_seconds: float = 0.0
    updated_at: float = field(default_factory=time.monotonic)
    load: OwnLoad = field(default_factory=OwnLoad)
    headed: bool = False
    """Whether the columns' titles are written."""
    characters: int = 0
    """Characters of the live line as it was drawn last."""

    def take(self, event: Event) -> None:
        """Takes an event into the live line."""
        self.elapsed_seconds, self.budget_seconds = event.elapsed_seconds, event.budget_seconds
        self.updated_at = time.monotonic()
        if event.outcome:
            self.step, self.rate = "", ""
        elif event.sample is None:
            self.step, self.rate = event.step, ""
        elif event.sample.elapsed_seconds > 0 and event.sample.moved_bytes:
            # A sample knows its stage alone; the step that it belongs to was told before.
            self.rate = units.rate_text(event.sample.moved_bytes / event.sample.elapsed_seconds)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the live line within the width that the terminal has now."""
        elapsed = self.elapsed_seconds + time.monotonic() - self.updated_at
        rest = max(0.0, self.budget_seconds - elapsed)
        width = bar_columns(options.max_width)
        done = elapsed / self.budget_seconds if self.budget_seconds else 0.0
        bar = terminal.bar(max(0.0, min(1.0, done)), 1.0, width, self.signs) if width else ""
        time_left = f"{rest:.0f} s left" if self.budget_seconds else ""
        room = options.max_width - 1 - ECHO_COLUMNS
        cells = (self.load.text(), time_left) if room >= BOTH_COLUMNS else (time_left,)
        text = row(self.step, self.rate, bar, cells, options.max_width, ECHO_COLUMNS)
        self.characters = len(text)
        yield Text(
            terminal.printable(text, console), style="bold", no_wrap=True, overflow="crop", end=""
        )


def bar_columns(width: int) -> int:
    """Returns the characters of a bar on a terminal of that width; 0: there is no room for one."""
    rest = width - 1 - BOTH_COLUMNS - len(GAP)
    return min(MOST_BAR_COLUMNS, rest) if rest >= LEAST_BAR_COLUMNS else 0


def row(step: str, rate: str, bar: str, cells: tuple[str, ...], width: int, spare: int = 0) -> str:
    """Returns one line in the columns that all lines share, shorter than the width; safe to print.

    spare: characters that stay free behind it.

    Where it is too narrow for all of them the bar goes first, then the cells from the last on.
    """
    room = bar_columns(width)
    limit = width - 1 - spare
    name = safe(step, STEP_COLUMNS)
    head = f"{name:<{STEP_COLUMNS}} {rate:>{RATE_COLUMNS}}"
    if room:
        head += f"{GAP}{bar:<{room}}"
    # By the width alone: a short figure of the second host would stand where no title is.
    for count in range(len(cells) if width > BOTH_COLUMNS else 1, 0, -1):
        line = head + "".join(f"{GAP}{each:<{LOAD_COLUMNS}}" for each in cells[:count])
        if len(line.rstrip()) <= limit:
            return line.rstrip()
    return head.rstrip()[:limit]


def titles(width: int) -> str:
    """Returns the titles of the columns of finished steps."""
    scale = units.scale_text(bar_columns(width))
    return row("step", "rate", scale, ("client CPU RAM", "server CPU RAM"), width)


def finished_line(event: Event, signs: Signs, width: int) -> str:
    """Returns the line of a step that was measured: rate, its bar, and both hosts."""
    rate = event.bytes_per_second or 0.0
    room = bar_columns(width)
    share = units.log_share(rate) if rate and room else 0.0
    bar = terminal.bar(share, 1.0, room, signs) if share > 0 else ""
    cells = tuple(busy_text(usage) or signs.none for usage in (event.client, event.server))
    return row(event.step, _outcome_text(event), bar, cells, width)


def _show(event: Event, board: Board, console: Console) -> None:
    board.take(event)
    if not event.outcome:
        return
    if event.outcome != "measured":
        hanging = f"{safe(event.step, STEP_COLUMNS):<{STEP_COLUMNS}}{GAP}"
        terminal.paragraph(console, safe(event.outcome, LONGEST_ENDING), "", hanging)
        return
    if not board.headed:
        board.headed = True
        terminal.line(console, titles(console.width), "dim")
    terminal.line(console, finished_line(event, board.signs, console.width))


@contextmanager
def _board(console: Console) -> Iterator[Tell]:
    # Where the terminal goes away while the run goes on, the run is not to end for that.
    stream = _LossyStream(console.file)
    console.file = cast(IO[str], stream)
    board = Board(terminal.signs_of(console))
    live = _Live(
        board,
        console=console,
        refresh_per_second=FRAMES_PER_SECOND,
        transient=True,
        redirect_stdout=False,
    )
    try:
        with live:
            # Whoever is killed or stopped (Ctrl-Z) leaves a cursor that can be seen.
            console.show_cursor(True)
            yield lambda event: _show(event, board, console)
    finally:
        # Up to the row where it began, or the screen's first one, and erased from there on.
        stream.write("\r" + "\x1b[1A" * min(stream.rows, console.height - 1) + "\x1b[J")
        stream.flush()


class _Live(Live):
    """A live line that leaves nothing behind where the terminal became narrower and wrapped it."""

    def process_renderables(self, renderables: list[ConsoleRenderable]) -> list[ConsoleRenderable]:
        """Writes above the live line, which rich draws anew below it."""
        board = self.get_renderable()
        rows = -(-board.characters // self.console.width) if isinstance(board, Board) else 1
        up: list[ControlCode] = [
            (ControlType.CARRIAGE_RETURN,),
            (ControlType.ERASE_IN_LINE, 2),
            (ControlType.CURSOR_UP, 1),
        ]
        return [Control(*up * max(0, rows - 1)), *super().process_renderables(renderables)]


class _LossyStream:
    """A stream whose reader may go away: what is written then is lost."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream
        self.rows = 0
        """Rows from the first one down to the cursor."""

    def write(self, text: str) -> int:
        self.rows += text.count("\n") - sum(int(up or 1) for up in _UP.findall(text))
        try:
            return self._stream.write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            exits.abandon(self._stream.fileno())

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)
