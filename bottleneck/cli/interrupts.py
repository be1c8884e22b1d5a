"""SIGINT, SIGTERM and SIGHUP as KeyboardInterrupt, but never where it would break something.

They are held while modules are imported (an interrupted import prints a traceback and may swallow
the interrupt) and while the last words are written; the first one that came is kept, a second
one goes through at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from probes.system.waiting import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _State:
    held: bool = False
    came: bool = False


_state = _State()


def _interrupt(number: int, frame: object) -> None:
    if _state.held and not _state.came:
        _state.came = True
        return
    raise KeyboardInterrupt


def hold() -> None:
    """Takes the signals over, held from now on."""
    _state.held, _state.came = True, False
    for each in SIGNALS:
        # nohup(1) has SIGHUP ignored, and means it.
        if each != signal.SIGHUP or signal.getsignal(each) is not signal.SIG_IGN:
            signal.signal(each, _interrupt)


def ignore() -> None:
    """Lets none through any more."""
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


def is_behind(error: BaseException) -> bool:
    """Whether an error came up while an interrupt unwound: what broke then is its consequence."""
    todo: list[BaseException | None] = [error]
    seen: set[int] = set()
    while todo:
        each = todo.pop()
        if isinstance(each, KeyboardInterrupt):
            return True
        if each is not None and id(each) not in seen:
            seen.add(id(each))
            # Both: what an error was raised from hides what it was raised in.
            todo += [each.__cause__, each.__context__]
    return False


@contextmanager
def let_through() -> Iterator[None]:
    """A block that they may interrupt.

    Errors: KeyboardInterrupt: one comes, or came while they were held.
    """
    before, _state.held = _state.held, False
    try:
        if _state.came:
            _state.came = False
            raise KeyboardInterrupt
        yield
    finally:
        _state.held = before


@contextmanager
def held() -> Iterator[None]:
    """A block that they may not interrupt; what came is raised behind it.

    Errors: KeyboardInterrupt: one came, unless the block stands in another held one.
    """
    before, _state.held = _state.held, True
    try:
        yield
    finally:
        _state.held = before
    if _state.came and not before:
        _state.came = False
        raise KeyboardInterrupt


@contextmanager
def ended_by(seconds: float, again_seconds: float) -> Iterator[list[bool]]:
    """A block that is interrupted after so many seconds, and what it closes then, again and again,
    each time that it waits longer; the list has an item for each.

    A server that hangs has time-outs of its own, which are longer than who waits for us waits.
    """
    late: list[bool] = []

    def end(number: int, frame: object) -> None:
        late.append(True)
        # As if somebody had asked for it: hosts are closed, and what is held stays held.
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, again_seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
