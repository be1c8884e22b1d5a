"""Waiting on a call that may not come back: its value, its error, or a sentence in time."""

import threading
import time

import pytest

from probes.host.child import NoAnswer, answered, is_held


def test_what_a_call_returns_or_raises_comes_through():
    until = time.monotonic() + 30
    assert answered("here", until, lambda: 7) == 7
    assert answered("here", until, lambda: None) is None
    with pytest.raises(OSError, match="stale"):
        answered("here", until, lambda: (_ for _ in ()).throw(OSError("stale")).send(None))


def test_a_call_that_does_not_come_back_is_left_behind_and_named():
    release = threading.Event()
    with pytest.raises(NoAnswer, match=r"/mnt/media: no answer within 0\.\d s\Z"):
        answered("/mnt/media", time.monotonic() + 0.05, release.wait)
    release.set()


def test_a_deadline_that_is_over_waits_no_longer():
    release = threading.Event()
    with pytest.raises(NoAnswer):
        answered("here", time.monotonic() - 5, release.wait)
    release.set()


def test_neither_a_sleeping_process_nor_none_is_held():
    assert not is_held("1")
    assert not is_held("nothing")
