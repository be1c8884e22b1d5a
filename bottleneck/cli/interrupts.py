"""SIGINT, SIGTERM and SIGHUP as KeyboardInterrupt, but never where it would break something.

They are deferred while modules are imported (an interrupted import prints a traceback and may
swallow the interrupt) and while the last words are written; the first one that comes is raised
later, a second one at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from probes.system.waiting import signal

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@dataclass
class _State:
    deferred: bool = False
    pending: bool = False


_state = _State()


def _interrupt(number: int, frame: object) -> None:
    if _state.deferred and not _state.pending:
        _state.pending = True
        return
    raise KeyboardInterrupt


def hold() -> None:
    """Takes the signals over, deferred from now on."""
    _state.deferred, _state.pending = True, False
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
    visited: set[int] = set()
    while todo:
        each = todo.pop()
        if isinstance(each, KeyboardInterrupt):
            return True
        if each is not None and id(each) not in visited:
            visited.add(id(each))
            # Both: what an error was raised from hides what it was raised in.
            todo += [each.__cause__, each.__context__]
    return False


@contextmanager
def let_through() -> Iterator[None]:
    """Runs a block that they may interrupt.

    Errors: KeyboardInterrupt: one comes, or came while they were held.
    """
    outer, _state.deferred = _state.deferred, False
    try:
        if _state.pending:
            _state.pending = False
            raise KeyboardInterrupt
        yield
    finally:
        _state.deferred = outer


@contextmanager
def defer() -> Iterator[None]:
    """Runs a block that they may not interrupt; one that comes is raised behind it.

    Errors: KeyboardInterrupt: one came, unless the block stands in another deferring one.
    """
    outer, _state.deferred = _state.deferred, True
    try:
        yield
    finally:
        _state.deferred = outer
    if _state.pending and not outer:
        _state.pending = False
        raise KeyboardInterrupt


@contextmanager
def ended_by(seconds: float, again_seconds: float) -> Iterator[list[bool]]:
    """Interrupts a block after `seconds`, and its closing again each `again_seconds`; the list gets
    an item for each time.

    A server that hangs has time-outs of its own, which are longer than the user waits.
    """
    late: list[bool] = []

    def end(number: int, frame: object) -> None:
        late.append(True)
        # As if the user had interrupted: hosts are closed, and deferring blocks stay so.
        signal.raise_signal(signal.SIGTERM)

    handler = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds, again_seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, handler)
