"""`bottleneck watch --live`: a line for each running copy, drawn anew each second, like top."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console
from rich.control import Control

from bottleneck.analysis.phrases import time_text
from bottleneck.cli import exits, interrupts, progress
from bottleneck.documents import document, terminal
from bottleneck.documents.document import COMMON, Bar, Column, Table, Text
from bottleneck.run import live
from bottleneck.run.live import Feed, Line
from bottleneck.text.units import rate_text, share_text
from probes.system.waiting import select

NOTHING = "No SMB copy is running."
CLEAR_LINE, CLEAR_BELOW = "\x1b[K", "\x1b[J"
BESIDE_BARS, LONGEST_BAR = 90, 40
"""Columns of a terminal that the rest of a line takes, and of a bar at most."""


@dataclass
class View:
    """View that a person chose by keys."""

    frozen: bool = False
    by_name: bool = False
    over: bool = False

    def press(self, keys: bytes) -> None:
        """Takes keys: q quits, space freezes, s sorts."""
        for key in keys.lower():
            self.over |= key == ord("q")
            self.frozen ^= key == ord(" ")
            self.by_name ^= key == ord("s")

    def ordered_lines(self, lines: Sequence[Line]) -> list[Line]:
        """Returns the lines, the fastest first, or by name."""
        return sorted(lines, key=lambda e: (e.name if self.by_name else "", -e.bytes_per_second))


def show(pid: int, address: str, seconds: float | None) -> int:
    """Watches until a key, an interrupt or the end of the seconds; returns the exit code.

    Raises:
        Refused, Unavailable: no such process, or this system does not tell.
    """
    console, view = terminal.console(), View()
    until = None if seconds is None else time.monotonic() + seconds
    is_screen = progress.moves(console)
    with live.open_feed(pid, address) as feed, _open_screen(console, is_screen) as keys:
        try:
            with interrupts.let_through():
                idle = False
                for lines in _seconds(feed, view, keys, until):
                    if is_screen:
                        _draw(console, _blocks(feed, view, lines))
                    elif lines or not idle:
                        # An idle host is reported once, until something is copied.
                        _print(lines)
                        idle = not lines
        except KeyboardInterrupt:
            return exits.INTERRUPTED
        if not is_screen and feed.used:
            print(_cost(feed), file=sys.stderr)
    return exits.DONE


def _cost(feed: Feed) -> str:
    return f"This watch takes {share_text(feed.cost_ratio)} of a core."


def _seconds(feed: Feed, view: View, keys: list[int], until: float | None) -> Iterator[list[Line]]:
    """Yields the lines of each second, and once more where a key was pressed."""
    lines: list[Line] = []
    while not view.over:
        rest = None if until is None else until - time.monotonic()
        if rest is not None and rest <= 0:
            return
        ready, _, _ = select.select([feed.child.events_fd, *keys], [], [], rest)
        if set(keys) & set(ready):
            pressed = os.read(keys[0], 64)
            # At the end of stdin there are no more.
            keys = keys if pressed else []
            view.press(pressed)
        copies = feed.take() if feed.child.events_fd in ready else None
        if copies is not None and not view.frozen:
            lines = copies
        if feed.ended:
            return
        if ready and not view.over:
            yield view.ordered_lines(lines)


@contextlib.contextmanager
def _open_screen(console: Console, is_screen: bool) -> Iterator[list[int]]:
    """Opens a screen without a cursor, where keys are read as they are pressed; then restores all.

    Yields the descriptors that keys come from.
    """
    if not is_screen:
        yield []
        return
    with console.screen(), contextlib.ExitStack() as stack:
        yield [stack.enter_context(_keys())] if sys.stdin.isatty() else []


@contextlib.contextmanager
def _keys() -> Iterator[int]:
    import termios
    import tty

    fd = sys.stdin.fileno()
    original = termios.tcgetattr(fd)
    try:
        tty.setcbreak(fd)
        mode = termios.tcgetattr(fd)
        # Stopped (Ctrl-Z), it would leave its screen to the shell.
        mode[6][termios.VSUSP] = b"\0"
        termios.tcsetattr(fd, termios.TCSANOW, mode)
        yield fd
    finally:
        # A terminal that is gone has no state.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(fd, termios.TCSADRAIN, original)


def _draw(console: Console, blocks: Iterator[document.Block]) -> None:
    """Writes blocks over what the screen shows, at once: nothing flickers."""
    with console.capture() as captured:
        terminal.show(console, blocks)
    lines = captured.get().splitlines()[: console.height - 1]
    console.control(Control.home())
    text = "".join(f"{each}{CLEAR_LINE}\n" for each in lines)
    console.file.write(text + CLEAR_BELOW)
    console.file.flush()


def _blocks(feed: Feed, view: View, lines: list[Line]) -> Iterator[document.Block]:
    total = rate_text(sum(each.bytes_per_second for each in lines))
    beside = f" and {feed.unwatched} more" if feed.unwatched else ""
    count = f"{len(lines)} {'copy' if len(lines) == 1 else 'copies'}{beside}, {total}"
    state = ", frozen" if view.frozen else ""
    yield Text(f"{count}{state}. {_cost(feed)}", "strong")
    wide = Table("", _columns(), [document.Row(_cells(each, 3)) for each in lines])
    narrow = Table("", _columns(), [document.Row(_cells(each, 1)) for each in lines])
    wide.narrower, wide.least_columns = narrow, COMMON
    yield wide if lines else Text(NOTHING)
    order = "rate" if view.by_name else "name"
    freeze = "go on" if view.frozen else "freeze"
    yield Text(f"q: quit, space: {freeze}, s: sort by {order}", "quiet", apart=True)


def _columns() -> tuple[Column, ...]:
    bar = Column("", bar=lambda width: max(8, min(LONGEST_BAR, width - BESIDE_BARS)))
    return Column("copy"), Column("rate", right=True), bar, Column("where its time went")


def _cells(line: Line, parts: int) -> tuple[document.Cell, ...]:
    bar = Bar(line.time[0].ratio, 1.0) if line.time else ""
    return line.name, rate_text(line.bytes_per_second), bar, time_text(line.time, parts)


def _print(lines: list[Line]) -> None:
    """Prints a line for each copy, for a log."""
    now = time.strftime("%H:%M:%S")
    for each in lines:
        went = f", {time_text(each.time)}" if each.time else ""
        print(f"{now}  {each.name}: {rate_text(each.bytes_per_second)}{went}", flush=True)
    if not lines:
        print(f"{now}  {NOTHING}", flush=True)
