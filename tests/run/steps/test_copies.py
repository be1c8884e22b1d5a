"""Copies of a run: the first small one, and the room that its own files leave them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck.agents.hosts import AgentLost, PartlyRan, Result, StageError
from bottleneck.run import plan
from bottleneck.run.execution import carried_out
from bottleneck.run.log import Log, Task, Tasks
from bottleneck.run.steps import copies
from bottleneck.run.steps.copies import ATTEMPTS, Copies
from bottleneck.run.steps.copy_size import Sizes
from bottleneck.run.steps.schedule import Schedule
from bottleneck.run.steps.sources import Sources
from probes.core.records import Failed, Measured, Sample, Skipped
from probes.core.stage import Refused, Unavailable
from probes.files import free_space
from probes.programs.samba import private_samba
from tests.run.steps.sessions import PASSWORD, begun, copies_of, order_of, session_of, update_world


def count_tries(error: Exception) -> tuple[int, Exception | None]:
    """Lets each run of a step end with an error; how often one was tried."""
    runs: list[Task] = []

    def answer(task: Task) -> Result:
        runs.append(task)
        raise error

    try:
        carried_out(copies_of(order_of(session_of(dialect="3.1.1"))).calibrate(), answer)
    except (Refused, AgentLost) as ended:
        return len(runs), ended
    return len(runs), None


def test_a_login_that_is_refused_is_not_tried_again() -> None:
    """Each further try would be one more wrong login: accounts lock."""
    runs, ended = count_tries(Refused("login", "nas: wrong password"))
    assert runs == 1
    assert isinstance(ended, Refused) and ended.kind == "login"


def test_an_agent_that_is_gone_ends_the_run() -> None:
    assert isinstance(count_tries(PartlyRan("gone", (), lost=True))[1], AgentLost)


@pytest.mark.parametrize(
    "error",
    [
        StageError("broke"),
        Unavailable("cannot"),
        Refused("space", "full"),
        PartlyRan("broke", (), lost=False),
    ],
)
def test_what_the_copy_itself_will_say_is_left_to_it(error: Exception) -> None:
    assert count_tries(error) == (1, None)


# -- copies that failed and may be made now -------------------------------------------------------


class Failing:
    """A copy whose runs end with errors, one each, the last for ever; their sizes."""

    def __init__(self, copy: str, *errors: Exception, back: bool = False) -> None:
        self.session = session_of(dialect="3.1.1")
        self.session.files.source_bytes = 1 << 30
        self.session.files.reopen = lambda: back
        self.sizes: list[int] = []
        self.ends, self.back = list(errors), back
        self.copy(copy)

    def copy(self, name: str) -> None:
        copies = copies_of(order_of(self.session))
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Copies, "_answers", lambda copies: self.back)
            carried_out(copies.copy(name, "memory", ""), self.answer)

    def answer(self, task: Task) -> Result:
        self.sizes.append(task.setting.size_bytes)
        raise self.ends.pop(0) if len(self.ends) > 1 else self.ends[0]


def full(moved_bytes: int) -> Refused:
    refused = Refused("space", "the server's disk is full, or a quota is reached")
    refused.samples = (Sample(0.0, 0), Sample(1.0, moved_bytes))
    return refused


def test_on_a_full_share_half_of_what_it_took_is_tried_once_and_then_nothing() -> None:
    failing = Failing("push.cached", full(40 * MIB), full(9 * MIB))
    assert failing.sizes == [plan.UNKNOWN_COPY_BYTES, plan.UNKNOWN_COPY_BYTES]
    assert failing.session.files.limit_bytes == 0
    failing.copy("push.uncached")
    _, last = failing.session.log.entries()[-1]
    assert len(failing.sizes) == 2 and isinstance(last, Skipped)
    assert "a quota is reached" in last.reason
    assert Failing("push.cached", full(8 * MIB)).sizes == [plan.UNKNOWN_COPY_BYTES, 4 * MIB]
    pulled = Failing("pull.cached", full(8 * MIB)).sizes
    assert pulled == [plan.UNKNOWN_COPY_BYTES], "this host's disk"


@pytest.mark.parametrize(("seconds", "said"), [(0.3, True), (1.5, False)])
def test_a_copy_that_its_file_ended_at_once_says_so(
    monkeypatch: pytest.MonkeyPatch, seconds: float, said: bool
) -> None:
    monkeypatch.setattr(Log, "_take", lambda *arguments: None)
    monkeypatch.setattr(Sizes, "room_bytes", lambda *arguments: 1 << 30)
    session = session_of(dialect="3.1.1")

    def answer(task: Task) -> Result:
        samples = (Sample(0.0, 0), Sample(seconds, task.setting.size_bytes))
        return Result(samples, {}, ({}, {}), None)

    carried_out(copies_of(order_of(session)).copy("push.cached", "folder", ""), answer)
    expected = "push.cached 3.1.1: a run lasted under 1 s: it had no more than 16 MiB to copy"
    assert session.log.notes == [expected] * said


DOWN = Refused("unreachable", "nas port 445: connect: refused")
SLOW = Refused("unreachable", "nas: login: no answer in 10 s; run it again")
EMPTY = Refused("share", "//nas/media: open bottleneck-47: folder not found")
CUT = PartlyRan("push.cached failed: the server closed the connection", (), lost=False)
ENDED = PartlyRan("push.cached failed: STATUS_USER_SESSION_DELETED", (), lost=False)
LATE = PartlyRan("push.cached failed: it ran out of time", (), lost=False)


@pytest.mark.parametrize("back", [True, False])
@pytest.mark.parametrize("error", [DOWN, EMPTY, CUT, ENDED])
def test_a_copy_is_made_again_where_its_server_is_back(error: Exception, back: bool) -> None:
    failing = Failing("push.cached", error, back=back)
    assert len(failing.sizes) == (ATTEMPTS if back else 1)
    assert bool(failing.session.log.notes) == back


@pytest.mark.parametrize("error", [SLOW, LATE])
def test_what_another_try_would_only_repeat_is_not_tried_again(error: Exception) -> None:
    assert len(Failing("push.cached", error, back=True).sizes) == 1


def test_a_server_that_stays_away_is_waited_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*arguments: Any) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(copies, "first_to_answer", refused)
    monkeypatch.setattr(copies, "PAUSE_SECONDS", 0.0)
    session = session_of(dialect="3.1.1")
    session.clock.return_seconds = 0.01
    assert not copies_of(order_of(session))._answers() and session.clock.return_seconds == 0.0


# -- how often each is made, and which would only stall again --------------------------------------


class Explaining:
    def __init__(self, names: list[str]) -> None:
        self.names = names

    def refine(self) -> Tasks[None]:
        yield from ()

    def make(self, *left_out: str) -> Tasks[None]:
        self.names += ["explained", *left_out]
        yield from ()


@pytest.fixture
def explain_copies(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[str]]:
    """Returns the names of copies made after the first round, with this doubt at each look."""

    def go(order: Schedule, doubts: Any, offered: bool = True) -> list[str]:
        names: list[str] = []

        def copied(copies: Copies, copy: str, *arguments: Any) -> Tasks[None]:
            names.append(copy)
            yield from ()

        monkeypatch.setattr(Copies, "copy", copied)
        monkeypatch.setattr(Sizes, "fits", lambda *_: True)
        monkeypatch.setattr(order, "_explanations", lambda: Explaining(names))
        monkeypatch.setattr(order.so_far, "in_doubt", lambda: doubts)
        smb1 = copies_of(order, "smb1") if offered else None
        monkeypatch.setattr(order, "_copies_in", lambda dialect: smb1)
        carried_out(order._explain_copies(copies_of(order)), pytest.fail)
        return names

    return go


ROUND = list(plan.COPY_ORDER)


@pytest.mark.parametrize(
    ("budget", "order"),
    [
        (300.0, [*4 * ROUND, "explained"]),
        (180.0, [*ROUND, "explained", *3 * ROUND]),
        (60.0, ["explained", *2 * ROUND]),
    ],
)
def test_a_thorough_run_makes_five_of_each_copy_before_what_explains_them(
    explain_copies: Any, budget: float, order: list[str]
) -> None:
    """The advice "repeat with --thorough" promises them; the first round was made before."""
    session = session_of(dialect="3.1.1", budget_seconds=budget)
    session.files.source_bytes = 1 << 20
    assert explain_copies(order_of(session), None, offered=False) == order


@pytest.mark.parametrize(
    ("offered", "elapsed", "order"),
    [
        (True, 0.0, ["push.cached", "pull.cached", "explained", "smb1 uncached"]),
        (False, 0.0, ["explained"]),
        (True, 17.0, ["explained", "smb1"]),
    ],
)
def test_a_clear_case_has_time_for_two_copies_over_smb1(
    explain_copies: Any, offered: bool, elapsed: float, order: list[str]
) -> None:
    """Copies of a cached source; what is left out for that is told."""
    session = session_of(dialect="3.1.1")
    session.files.source_bytes = 1 << 20
    session.clock.began_monotonic -= elapsed
    assert explain_copies(order_of(session), (), offered) == order


def test_on_a_path_that_drops_full_packets_one_copy_is_tried_each_way(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    session = session_of(dialect="3.1.1")
    order = order_of(session)
    monkeypatch.setattr(order.turns, "drops_packets", lambda verb: verb == "push")
    assert order.turns.in_vain("pull"), "there is nothing to be pulled"
    assert not order.turns.in_vain("push")
    session.log.add(copies_of(order).step("push.cached", "memory"), Failed("the server stalled"))
    assert order.turns.in_vain("push")
    session.files.source_bytes = MIB
    assert not order.turns.in_vain("pull")


@pytest.mark.parametrize(("trip", "seconds"), [(0.0, (3.0, 4.0)), (0.3, (1.0, 5.0))])
def test_each_copy_of_the_first_round_gets_its_share_of_a_slow_paths_time(
    monkeypatch: pytest.MonkeyPatch, trip: float, seconds: tuple[float, float]
) -> None:
    """Seconds of a login on a far path are no time for the copy itself."""
    session = update_world(session_of(dialect="3.1.1"), connect_seconds=trip)
    monkeypatch.setattr(Sizes, "bounding_rates", lambda on: {"tcp.push": 120e3})
    monkeypatch.setattr(Sizes, "room_bytes", lambda *arguments: 1 << 40)
    monkeypatch.setattr(session.clock, "remaining", lambda: 36.0)
    size, _ = order_of(session).sizes.copy_bytes("3.1.1", "push.cached", "folder")
    assert seconds[0] - 2.0 <= size / 120e3 <= seconds[1]


def test_a_named_size_that_the_time_left_has_no_room_for_is_none_of_the_copy_from_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`--size 1TB` took all of the budget for a push that no file's copy was as large as."""
    session = session_of(dialect="3.1.1", size_bytes=10**12)
    monkeypatch.setattr(session.files, "source_bytes_of", lambda side: 300 * MIB)
    monkeypatch.setattr(Sources, "room_bytes", lambda *arguments: 10**13)
    for end in ("folder", "memory"):
        assert order_of(session).sizes.room_bytes("push.cached", end) == 300 * MIB
    unnamed = update_world(session, options=replace(session.world.options, size_bytes=None))
    assert order_of(unnamed).sizes.room_bytes("push.cached", "memory") == 10**13


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
    shared, user_folder = tmp_path / "shared", tmp_path / "own"
    shared.mkdir()
    user_folder.mkdir()
    size = free_space.reserve_bytes(0) + 96 * MIB
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "none", shared], check=True)
    try:
        with (
            private_samba(shared, password=PASSWORD) as server,
            begun(session := session_of(server, user_folder, agent="exec:")) as order,
        ):
            smb_copies = copies_of(order, signing=None, encryption=None)
            for copy, end in ENDS:
                session.carry_out(smb_copies.copy(copy, end, ""))
    finally:
        subprocess.run(["umount", shared], check=True)
    outcomes = [outcome for _, outcome in session.report().entries]
    assert len(outcomes) == len(ENDS)
    assert all(isinstance(each, Measured) for each in outcomes), outcomes
    assert not [each for each in session.log.notes if "free space" in each]


TIMES = replace(plan.times(60.0), copy=0.5, fill_source=5.0)
"""Enough for the files that are held to take all the room that they are given."""
