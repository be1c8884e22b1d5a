"""A run's own files never take the room of its own copies."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import plan, session
from bottleneck.bench import Bench
from bottleneck.steps import copies, disks
from bottleneck.target import parse
from probes.drivers.samba import private_samba
from probes.host import free_space
from probes.records import Access, Measured

pytestmark = pytest.mark.long

MIB = 1 << 20
PASSWORD = "correct horse 47"
ENDS = [("push.cached", "memory"), ("push.uncached", "folder"), ("push.cached", "folder")]


@pytest.mark.skipif(os.geteuid() != 0, reason="NOT RUN: mounting needs root")
def test_pushes_fit_on_a_disk_that_is_hardly_larger_than_its_reserve(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files that the run holds for the server's disk and for its pulls lie there too."""
    monkeypatch.setattr(plan, "times", lambda budget, trip=0.0: TIMES)
    shared, own = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    own.mkdir()
    size = free_space.reserve_bytes(0) + 96 * MIB
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", shared], check=True)
    try:
        with private_samba(shared, password=PASSWORD) as server, ExitStack() as stack:
            target = parse(f"//{server.host}:{server.port}/{server.share}")
            options = plan.Options(target=target, folder=str(own), agent="exec:")
            access = Access(server.username, PASSWORD)
            bench = Bench(options, access, lambda event: None, lambda report: None)
            bench.address = server.host
            session._reach(bench, stack)
            session._open_share(bench, stack)
            session._locate(bench)
            session._learn(bench)
            disks.hold_sources(bench, stack)
            labels = {"signing": None, "encryption": None}
            for copy, end in ENDS:
                copies._copy(bench, "3.1.1", labels, copy, end)
    finally:
        subprocess.run(["umount", shared], check=True)
    outcomes = [outcome for _, outcome in bench.report().entries]
    assert len(outcomes) == len(ENDS)
    assert all(isinstance(each, Measured) for each in outcomes), outcomes
    assert not [each for each in bench.ledger.notes if "room" in each]


TIMES = replace(plan.times(60.0), copy=0.5, fill=5.0)
"""Enough for the files that are held to take all the room that they are given."""
