"""Copies of a run: the first small one, and the room that its own files leave them."""

from __future__ import annotations

import os
import subprocess
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck import plan, session
from bottleneck.bench import Bench
from bottleneck.hosts import AgentLost, PartlyRan, StageError
from bottleneck.steps import copies, disks
from bottleneck.target import parse
from probes.drivers.samba import private_samba
from probes.host import free_space
from probes.records import Access, Endpoint, Measured
from probes.stage import Refused, Unavailable


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets each run of a step end with an error; how often one was tried."""

    def go(error: Exception) -> tuple[int, Exception | None]:
        options = plan.Options(target=parse("//nas/media"), folder="/tmp")
        bench = Bench(options, Access("anna", "p"), lambda event: None, lambda report: None)
        bench.share = Endpoint(facts={"dialect": "3.1.1"})
        runs = []

        def run(*arguments: Any, **more: Any) -> None:
            runs.append(arguments)
            raise error

        monkeypatch.setattr(bench, "run", run)
        try:
            copies._calibrate(bench, "3.1.1")
        except (Refused, AgentLost) as ended:
            return len(runs), ended
        return len(runs), None

    return go


def test_a_login_that_is_refused_is_not_tried_again(tried: Any) -> None:
    """Each further try would be one more wrong login: accounts lock."""
    runs, ended = tried(Refused("login", "nas: wrong password"))
    assert runs == 1
    assert isinstance(ended, Refused) and ended.kind == "login"


def test_an_agent_that_is_gone_ends_the_run(tried: Any) -> None:
    assert isinstance(tried(PartlyRan("gone", (), lost=True))[1], AgentLost)


@pytest.mark.parametrize(
    "error",
    [
        StageError("broke"),
        Unavailable("cannot"),
        Refused("space", "full"),
        PartlyRan("broke", (), lost=False),
    ],
)
def test_what_the_copy_itself_will_say_is_left_to_it(tried: Any, error: Exception) -> None:
    assert tried(error) == (1, None)


# -- a run's own files never take the room of its own copies ---------------------------------------

MIB = 1 << 20
PASSWORD = "correct horse 47"
ENDS = [("push.cached", "memory"), ("push.uncached", "folder"), ("push.cached", "folder")]


@pytest.mark.long
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
    assert not [each for each in bench.ledger.notes if "free space" in each]


TIMES = replace(plan.times(60.0), copy=0.5, fill=5.0)
"""Enough for the files that are held to take all the room that they are given."""
