"""The order of what explains the copies, and the early end of a clear case."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import repeat
from typing import Any

import pytest

from bottleneck.analysis.doubts import Doubt, Look
from bottleneck.analysis.finding import Diagnosis
from bottleneck.report.report import Step
from bottleneck.run.execution import carried_out
from bottleneck.run.log import Tasks
from bottleneck.run.steps import schedule
from bottleneck.run.steps.schedule import Schedule
from probes.core.records import Skipped
from probes.stages import path, smb_tax
from tests.run.steps.sessions import copies_of, order_of, session_of

STAGES = ("path", "disk", "smb-copy", "smb-tax")
DISK = Doubt(
    "pull.uncached", "3.1.1", frozenset({("disk", "read")}), "a tie of disk and link", False
)


def order(elapsed: float = 0.0, stages: tuple[str, ...] = STAGES, **options: Any) -> Schedule:
    session = session_of(stages=stages, **options)
    session.clock.began_monotonic -= elapsed
    return order_of(session)


@pytest.fixture
def explain(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[str, str]]]:
    """The names and the reasons of the explanations that a run's doubts lead to, in order."""

    def go(on: Schedule, *answers: tuple[Doubt, ...] | None) -> list[tuple[str, str]]:
        steps: list[tuple[str, str]] = []

        def measure(why: str, name: str) -> Tasks[None]:
            steps.append((name, why))
            yield from ()

        monkeypatch.setattr(on.turns, "measure", lambda stage, why, _: measure(why, stage.name))
        on.by_hand = {name: partial(measure, name=name) for name in ("disk", "smb-tax")}
        doubts = iter((*answers, *repeat(answers[-1], 9)))
        monkeypatch.setattr(on.so_far, "in_doubt", lambda: next(doubts))
        explanations = on._explanations()
        seconds = {"path": 3.0, "disk": 3.0, "smb-tax": 100.0}
        explanations.pending = [
            replace(each, usual_seconds=seconds[each.name])
            for each in explanations.pending
            if each.name in seconds
        ]
        carried_out(explanations.make(), pytest.fail)
        return steps

    return go


def test_what_tells_suspects_apart_comes_first_and_says_so(explain: Any) -> None:
    (name, why), *rest = explain(order(), (DISK,), None)
    assert name == "disk" and "a tie of disk and link" in why
    assert rest == [("path", path.STAGE.measures), ("smb-tax", smb_tax.STAGE.measures)]


def test_a_clear_case_begins_nothing_that_ends_after_a_third_of_the_budget(explain: Any) -> None:
    on = order()
    assert [name for name, _ in explain(on, ())] == ["path", "disk"]
    assert on.log.notes == [f"{schedule.CLEAR}: smb-tax (--thorough runs all)"]
    assert explain(order(elapsed=17.0), ()) == []


def test_a_look_that_a_stall_asked_for_is_not_made_again_but_each_disk_is_explained() -> None:
    """Its zones, fragments and forced writes come after its plain rate."""
    on = order()
    for name in ("disk", "path"):
        on.log.add(Step(name, {}, "client"), Skipped("in a test"))
    pending = {each.name for each in on._explanations().pending}
    assert "disk" in pending and "path" not in pending


def test_a_doubt_has_the_whole_budget_for_what_speaks_of_it(explain: Any) -> None:
    on = order(elapsed=27.0)
    assert [name for name, _ in explain(on, (DISK,))] == ["disk"]
    assert on.log.notes == [f"{schedule.UNDECIDED}: path, smb-tax (--thorough runs all)"]


def test_the_cause_behind_a_sure_cap_is_looked_for_late_as_it_is(
    explain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A zone or a crowd behind a slow disk: what helps is another thing."""
    facts: list[Any] = [object(), Diagnosis(None, (), ""), "3.1.1"]
    on = order(elapsed=27.0)
    monkeypatch.setattr(on.so_far, "diagnosis_so_far", lambda: facts)
    look = Look("disk", "what is behind")
    monkeypatch.setattr(
        schedule, "refining_stage", lambda *arguments: look if "disk" in arguments[-1] else None
    )
    assert explain(on, ()) == [("disk", "what is behind")]


def test_a_run_goes_on_where_the_analysis_breaks_midway_and_says_so_once(
    explain: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(report: Any) -> Any:
        raise ZeroDivisionError("a rule of\nthe analysis")

    on = order()
    monkeypatch.setattr(schedule, "diagnose", breaks)
    assert on.so_far.in_doubt() is None and on.so_far.in_doubt() is None
    assert len(explain(on, None)) == 3
    assert on.log.notes == [f"{schedule.BROKEN} (ZeroDivisionError: a rule of the analysis)"]


@pytest.mark.parametrize(
    "options",
    [{"stages": ("smb-copy",)}, {"budget_seconds": 300.0}, {"dialects": ("smb1", "3.1.1")}],
)
def test_one_stage_several_dialects_and_a_thorough_run_never_end_early(
    monkeypatch: pytest.MonkeyPatch, options: dict[str, Any]
) -> None:
    assert order().so_far.in_doubt() is None, "nothing has been copied yet"
    monkeypatch.setattr(schedule.SoFar, "diagnosis_so_far", lambda so_far: ("copied",))
    monkeypatch.setattr(schedule.doubts, "doubts", lambda *arguments: ())
    assert order().so_far.in_doubt() == ()
    assert order(**options).so_far.in_doubt() is None


def test_in_a_thorough_run_each_stage_has_its_part_of_the_time_that_is_left(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By what it usually takes; the copies that the server starts come first."""
    on = order(elapsed=140.0, stages=("path", "sweep", "udp", "smb-copy"), budget_seconds=300.0)
    monkeypatch.setattr(on.clock, "remaining", lambda: 120.0)
    usual = {"path": 10.0, "sweep": 40.0, "udp": 20.0}
    monkeypatch.setattr(on.turns, "usual_seconds_of", lambda stage: usual[stage.name])
    seconds_of_stage: dict[str, float] = {}

    def measure(stage: Any, why: str, seconds: float) -> Tasks[None]:
        seconds_of_stage[stage.name] = seconds
        yield from ()

    def by_hand(why: str) -> Tasks[None]:
        seconds_of_stage["initiators"] = 0.0
        yield from ()

    monkeypatch.setattr(on.turns, "measure", measure)
    on.by_hand = {schedule.INITIATORS.name: by_hand}
    carried_out(on._explanations().make(), pytest.fail)
    assert next(iter(seconds_of_stage)) == "initiators"
    parts = {"path": 120.0 * 10 / 70, "sweep": 120.0 * 40 / 60, "udp": 120.0}
    assert {name: seconds_of_stage[name] for name in parts} == pytest.approx(parts)


@pytest.mark.parametrize(
    ("answer", "options", "worth"),
    [
        ((), {}, frozenset({("server", "read")})),
        ((DISK,), {}, None),
        (None, {}, None),
        ((), {"runs": 3}, None),
        ((), {"copy": "pull.cached"}, None),
    ],
    ids=["clear", "in doubt", "not to end early", "several runs", "one copy"],
)
def test_only_a_clear_case_leaves_limits_out(
    monkeypatch: pytest.MonkeyPatch, answer: Any, options: dict[str, Any], worth: Any
) -> None:
    diagnosed = (None, Diagnosis(None, (), ""), ("3.1.1",))
    on, disks = order(**options), frozenset({("server", "read")})
    monkeypatch.setattr(on.so_far, "in_doubt", lambda: answer)
    monkeypatch.setattr(on.so_far, "diagnosis_so_far", lambda: diagnosed)
    monkeypatch.setattr(schedule.doubts, "disks_to_measure", lambda *arguments: disks)
    assert on.so_far.disks_to_measure() == worth


@pytest.mark.parametrize("decided", [True, False])
def test_where_copies_are_in_doubt_the_network_is_measured_first_and_may_end_it(
    monkeypatch: pytest.MonkeyPatch, decided: bool
) -> None:
    on, steps = order(stages=("tcp", "smb-copy")), []
    monkeypatch.setattr(on.so_far, "in_doubt", lambda: () if steps and decided else (DISK,))
    monkeypatch.setattr(
        on.so_far, "disks_to_measure", lambda: None if on.so_far.in_doubt() else {1}
    )

    def measure(one: bool = True, several: bool = True) -> Tasks[None]:
        steps.append((one, several))
        yield from ()

    monkeypatch.setattr(on.transfers, "measure", measure)
    monkeypatch.setattr(schedule.Copies, "copy", lambda *arguments: iter(()))
    carried_out(on._limits_worth_a_look(copies_of(on)), pytest.fail)
    assert steps == [(True, False), (False, not decided)]
