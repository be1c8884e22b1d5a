"""Copies of a run: the first small one, and the room that its own files leave them."""

from __future__ import annotations

import os
import subprocess
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck.agents.hosts import AgentLost, PartlyRan, StageError
from bottleneck.run import plan
from bottleneck.run.bench import Bench
from bottleneck.run.steps import copies, copy_size, turns
from probes.core.records import Endpoint, Failed, Measured, Sample, Skipped
from probes.core.stage import Refused, Unavailable
from probes.files import free_space
from probes.programs.samba import private_samba
from tests.run.steps.benches import PASSWORD, begun, bench_of


@pytest.fixture
def tried(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets each run of a step end with an error; how often one was tried."""

    def go(error: Exception) -> tuple[int, Exception | None]:
        bench, runs = bench_of(dialect="3.1.1"), []

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


# -- copies that failed and may be made now -------------------------------------------------------


@pytest.fixture
def sizes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets the copies of a bench end with errors, one each, the last for ever; their sizes."""

    def go(copy: str, *errors: Exception, back: bool = False) -> tuple[Bench, list[int]]:
        bench, made, ends = bench_of(dialect="3.1.1"), [], list(errors)
        bench.source_bytes = 1 << 30

        def run(step: Any, setting: Any, *more: Any) -> None:
            made.append(setting.size_bytes)
            raise ends.pop(0) if len(ends) > 1 else ends[0]

        monkeypatch.setattr(bench, "run", run)
        bench.reopen = lambda: back
        monkeypatch.setattr(copies, "_answers", lambda bench: back)
        copies._copy(bench, "3.1.1", {}, copy, "memory", "")
        return bench, made

    return go


def full(moved_bytes: int) -> Refused:
    refused = Refused("space", "the server's disk is full, or a quota is reached")
    refused.samples = (Sample(0.0, 0), Sample(1.0, moved_bytes))
    return refused


def test_on_a_full_share_half_of_what_it_took_is_tried_once_and_then_nothing(sizes: Any) -> None:
    bench, made = sizes("push.cached", full(40 * MIB), full(9 * MIB))
    assert made == [plan.UNKNOWN_COPY_BYTES, plan.UNKNOWN_COPY_BYTES]
    assert bench.file_limit_bytes == 0
    copies._copy(bench, "3.1.1", {}, "push.uncached", "memory", "")
    assert len(made) == 2 and isinstance(bench.log.entries()[-1][1], Skipped)
    assert "a quota is reached" in bench.log.entries()[-1][1].reason
    assert sizes("push.cached", full(8 * MIB))[1] == [plan.UNKNOWN_COPY_BYTES, 4 * MIB]
    assert sizes("pull.cached", full(8 * MIB))[1] == [plan.UNKNOWN_COPY_BYTES], "this host's disk"


DOWN = Refused("unreachable", "nas port 445: connect: refused")
SLOW = Refused("unreachable", "nas: login: no answer in 10 s; run it again")
EMPTY = Refused("share", "//nas/media: open bottleneck-47: folder not found")
CUT = PartlyRan("push.cached failed: the server closed the connection", (), lost=False)
ENDED = PartlyRan("push.cached failed: STATUS_USER_SESSION_DELETED", (), lost=False)
LATE = PartlyRan("push.cached failed: it ran out of time", (), lost=False)


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("error", [DOWN, EMPTY, CUT, ENDED])
def test_a_copy_is_made_again_where_its_server_is_back(
    sizes: Any, error: Exception, back: bool
) -> None:
    bench, made = sizes("push.cached", error, back=back)
    assert len(made) == (copies.ATTEMPTS if back else 1)
    assert bool(bench.log.notes) == back


@pytest.mark.parametrize("error", [SLOW, LATE])
def test_what_another_try_would_only_repeat_is_not_tried_again(
    sizes: Any, error: Exception
) -> None:
    assert len(sizes("push.cached", error, back=True)[1]) == 1


def test_a_server_that_stays_away_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*given: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(copies, "first_to_answer", refused)
    monkeypatch.setattr(copies, "PAUSE_SECONDS", 0.0)
    bench = bench_of(dialect="3.1.1")
    bench.return_seconds = 0.01
    assert not copies._answers(bench) and bench.return_seconds == 0.0


# -- how often each is made, and which would only stall again --------------------------------------


class Explaining:
    """Stands for the stages that explain copies."""

    def __init__(self, made: list[str]) -> None:
        self.made = made

    def refine(self) -> None:
        pass

    def make(self, *left_out: str) -> None:
        self.made += ["explained", *left_out]


@pytest.mark.parametrize(
    ("budget", "order"),
    [
        (300.0, ["1", "2", "3", "4", "explained"]),
        (180.0, ["1", "explained", "2", "3", "4"]),
        (60.0, ["explained", "1", "2"]),
    ],
)
def test_a_thorough_run_makes_five_of_each_copy_before_what_explains_them(
    monkeypatch: pytest.MonkeyPatch, budget: float, order: list[str]
) -> None:
    """The advice "repeat with --thorough" promises them; the first round was made before."""
    made: list[str] = []
    monkeypatch.setattr(copies, "_round", lambda *given, **more: made.append(str(given[3])))
    monkeypatch.setattr(copies, "_smb1", lambda *given: None)
    monkeypatch.setattr(copies.schedule.Explanations, "of", lambda bench: Explaining(made))
    monkeypatch.setattr(copies.schedule, "in_doubt", lambda bench: None)
    copies._explained(bench_of(dialect="3.1.1", budget_seconds=budget), Endpoint(), {})
    assert made == order


@pytest.mark.parametrize(
    ("offered", "elapsed", "order"),
    [
        (True, 0.0, ["push.cached", "pull.cached", "explained", "smb1 uncached"]),
        (False, 0.0, ["explained"]),
        (True, 17.0, ["explained", "smb1"]),
    ],
)
def test_a_clear_case_has_time_for_two_copies_over_smb1(
    monkeypatch: pytest.MonkeyPatch, offered: bool, elapsed: float, order: list[str]
) -> None:
    """Those of a cached source; what is left out for that is told."""
    made: list[str] = []
    bench = bench_of(dialect="3.1.1")
    bench.source_bytes = 1 << 20
    bench.clock.began -= elapsed
    monkeypatch.setattr(copies, "_labels", lambda *given: {} if offered else None)
    monkeypatch.setattr(copy_size, "fits", lambda *given: True)
    monkeypatch.setattr(copies, "_copy", lambda *given: made.append(given[3]))
    monkeypatch.setattr(copies.schedule.Explanations, "of", lambda bench: Explaining(made))
    monkeypatch.setattr(copies.schedule, "in_doubt", lambda bench: ())
    copies._explained(bench, Endpoint(), {})
    assert made == order


def test_on_a_path_that_drops_full_packets_one_copy_is_tried_each_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, holes = bench_of(dialect="3.1.1"), {"push"}
    monkeypatch.setattr(copies.turns, "dropped", lambda on, verb: verb in holes)
    assert turns.in_vain(bench, "pull"), "there is nothing to be pulled"
    assert not turns.in_vain(bench, "push")
    step = copies._step(bench, "3.1.1", "push.cached", "memory", {})
    bench.log.add(step, Failed("the server stalled"))
    assert turns.in_vain(bench, "push")
    bench.source_bytes = MIB
    assert not turns.in_vain(bench, "pull")


@pytest.mark.parametrize(("trip", "seconds"), [(0.0, (3.0, 4.0)), (0.3, (1.0, 5.0))])
def test_each_copy_of_the_first_round_gets_its_share_of_a_slow_paths_time(
    monkeypatch: pytest.MonkeyPatch, trip: float, seconds: tuple[float, float]
) -> None:
    """What a login costs on a far path is no time for the copy itself."""
    bench = bench_of(dialect="3.1.1")
    bench.world.share.facts["connect_seconds"] = trip
    monkeypatch.setattr(copy_size, "bounding_rates", lambda on: {"tcp.push": 120e3})
    monkeypatch.setattr(copy_size, "room_bytes", lambda *given: 1 << 40)
    monkeypatch.setattr(bench.clock, "left", lambda: 36.0)
    size, _ = copy_size.copy_bytes(bench, "3.1.1", "push.cached", "folder")
    assert seconds[0] - 2.0 <= size / 120e3 <= seconds[1]


def test_a_named_size_that_the_time_left_has_no_room_for_is_none_of_the_copy_from_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`--size 1TB` took all of the budget for a push that no file's copy was as large as."""
    bench = bench_of(dialect="3.1.1", size_bytes=10**12)
    monkeypatch.setattr(bench, "source_bytes_of", lambda side: 300 * MIB)
    monkeypatch.setattr(copy_size.files, "room_bytes", lambda *given: 10**13)
    for end in ("folder", "memory"):
        assert copy_size.room_bytes(bench, "push.cached", end) == 300 * MIB


# -- a run's own files never take the room of its own copies ---------------------------------------

MIB = 1 << 20
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
        with (
            private_samba(shared, password=PASSWORD) as server,
            begun(bench := bench_of(server, own, agent="exec:")),
        ):
            labels = {"signing": None, "encryption": None}
            for copy, end in ENDS:
                copies._copy(bench, "3.1.1", labels, copy, end, "")
    finally:
        subprocess.run(["umount", shared], check=True)
    outcomes = [outcome for _, outcome in bench.report().entries]
    assert len(outcomes) == len(ENDS)
    assert all(isinstance(each, Measured) for each in outcomes), outcomes
    assert not [each for each in bench.log.notes if "free space" in each]


TIMES = replace(plan.times(60.0), copy=0.5, fill=5.0)
"""Enough for the files that are held to take all the room that they are given."""
