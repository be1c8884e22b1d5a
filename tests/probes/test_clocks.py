"""No time is told by a clock that somebody may set, and none is the difference of two hosts'."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from probes.net import datagrams
from tests import living

ROOT = Path(__file__).parents[2]
WALL = re.compile(r"(time|ctime|localtime|gmtime|now|utcnow|today)(_ns)?")
OF_CLOCKS = frozenset(("time", "datetime", "date"))
WALL_NAMES = frozenset(("CLOCK_REALTIME", "CLOCK_REALTIME_COARSE", "CLOCK_TAI"))
NEEDED = {
    ("probes/files/journal.py", "time"): "how old an entry is, over restarts of its host",
    ("probes/files/leftovers.py", "time"): "how old a file is, which has its time from that clock",
    ("probes/files/layers.py", "time"): "how old a status file is, by the same clock",
    ("probes/host/facts.py", "time"): "what this host's clock says is the question",
    ("probes/system/psutil_counters.py", "time"): "psutil tells by it when a process began",
    ("probes/net/datagrams.py", "time"): "the kernel's own stamp of a datagram is by it",
    ("probes/smb/kerberos.py", "time"): "a ticket says by it until when it is valid",
}
"""Uses of the wall clock, by file and name, that no duration comes of alone; each with its why."""


def wall_clocks(source):
    """Names by which a module asks for the time of day."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Attribute):
            continue
        owner = node.value
        owner_name = owner.id if isinstance(owner, ast.Name) else getattr(owner, "attr", None)
        wall = WALL.fullmatch(node.attr) if owner_name in OF_CLOCKS else None
        if wall or node.attr in WALL_NAMES:
            yield wall[1] if wall else node.attr


def test_no_probe_times_anything_by_the_wall_clock():
    readings = {
        (path.relative_to(ROOT).as_posix(), name)
        for path in (ROOT / "probes").rglob("*.py")
        for name in wall_clocks(path.read_text(encoding="utf-8"))
    }
    assert readings == set(NEEDED)
    for code in ("import time\nx = time.ctime()", "datetime.datetime.now()", "time.CLOCK_REALTIME"):
        assert list(wall_clocks(code))


class Clocks(living.FakeClock):
    """A host's clocks, of which somebody has set the one on the wall."""

    def __init__(self, wall_ns):
        super().__init__()
        self.wall_ns = wall_ns

    def time_ns(self):
        return self.wall_ns

    def monotonic_ns(self):
        return int(self.time) * 10**9


@pytest.mark.parametrize(("wall_ns", "waited"), [(0, 0), (2**63, 1)], ids=["back", "ahead"])
def test_a_wall_clock_that_is_set_meanwhile_moves_a_datagram_by_a_second_at_most(
    monkeypatch, wall_ns, waited
):
    """Its stamp is by that clock; nothing but the time since then is taken from it."""
    with (
        living.connected() as (far, control),
        datagrams.open_beside(control) as receiver,
        datagrams.open_beside(far) as sender,
    ):
        datagrams.connect(sender, far, receiver.getsockname()[1])
        monkeypatch.setattr(datagrams, "time", Clocks(wall_ns))
        assert datagrams.send(sender, bytearray(b"x"))
        got = []
        assert living.until(
            lambda: got.append(datagrams.receive(receiver, bytearray(10))) or got[-1][0] > 0
        )
    assert got[-1] == (1, (1000 - waited) * 10**9)
