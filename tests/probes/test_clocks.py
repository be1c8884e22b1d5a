"""No time is told by a clock that somebody may set, and none is the difference of two hosts'."""

from __future__ import annotations

import ast
import time
from pathlib import Path

from probes.net import datagrams

ROOT = Path(__file__).parents[2]
WALL = frozenset(("time", "time_ns", "ctime", "localtime", "gmtime", "now", "utcnow", "today"))
OF_CLOCKS = frozenset(("time", "datetime", "date"))
WALL_NAMES = frozenset(("CLOCK_REALTIME", "CLOCK_REALTIME_COARSE", "CLOCK_TAI"))
NEEDED = {
    ("probes/host/journal.py", "time"): "how old an entry is, over restarts of its host",
    ("probes/host/leftovers.py", "time"): "how old a file is, which has its time from that clock",
    ("probes/host/facts.py", "time"): "what this host's clock says is the question",
    ("probes/host/psutil_counters.py", "time"): "psutil tells by it when a process began",
    ("probes/net/datagrams.py", "time_ns"): "the kernel's own stamp of a datagram is by it",
    ("probes/smb/kerberos.py", "time"): "a ticket says by it until when it is valid",
}
"""Where the wall clock is the matter itself, and no duration comes of it alone."""


def wall_clocks(source):
    """Names by which a module asks for the time of day."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        known = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", None)
        if (known in OF_CLOCKS and node.attr in WALL) or node.attr in WALL_NAMES:
            yield node.attr


def test_no_probe_times_anything_by_the_wall_clock():
    found = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / "probes").rglob("*.py")
        for name in wall_clocks(path.read_text(encoding="utf-8"))
    }
    assert found == set(NEEDED)
    for told in ("import time\nx = time.time()", "datetime.datetime.now()", "time.CLOCK_REALTIME"):
        assert list(wall_clocks(told))


def test_a_wall_clock_that_is_set_meanwhile_moves_a_datagram_by_a_second_at_most(monkeypatch):
    """Its stamp is by that clock; nothing but the time since then is taken from it."""
    import socket

    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as control,
        listener.accept()[0] as far,
        datagrams.beside(control) as receiver,
        datagrams.beside(far) as sender,
    ):
        datagrams.connect(sender, far, receiver.getsockname()[1])
        wall = time.time_ns
        for shift_ns in (0, 3600 * 10**9, -3600 * 10**9):
            monkeypatch.setattr(time, "time_ns", lambda shift=shift_ns: wall() + shift)
            before = time.monotonic_ns()
            assert datagrams.send(sender, bytearray(b"x"))
            size, arrived_ns = -1, 0
            while size < 0 and time.monotonic_ns() < before + 10 * 10**9:
                size, arrived_ns = datagrams.receive(receiver, bytearray(10))
            assert size == 1
            assert before - 10**9 <= arrived_ns <= time.monotonic_ns()
