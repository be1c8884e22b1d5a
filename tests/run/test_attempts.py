"""Events of a run for whoever watches it, and the runs that count."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bottleneck.report.report import Step
from bottleneck.run.clock import Clock
from bottleneck.run.log import Event, Repeat
from probes.core.records import Endpoint, Sample, Usage
from probes.core.stage import Unavailable
from tests.living import FakeClock
from tests.run.steps.sessions import order_of, session_of, update_world

IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)
BUSY = replace(IDLE, core_busy_ratios=(0.9,), busiest_core_ratio=0.9)


@pytest.fixture
def recorder():
    events: list[Event] = []
    return session_of(watch=events.append, budget_seconds=20.0), events


def test_a_folder_that_may_remain_on_the_share_is_named_with_what_removes_it(recorder):
    session, _ = recorder
    unclosed = ["client: closing the run-folder: client: the agent did not answer"]
    session.files.share = Endpoint(folder="bottleneck-0123456789abcdef")
    update_world(session, hosts={"client": SimpleNamespace(unclosed=unclosed)})
    session._note_unclosed()
    assert (
        session.unclosed
        == session.log.notes
        == [
            "//nas/media: the folder bottleneck-0123456789abcdef may remain there; "
            "the next run or bottleneck cleanup removes it"
        ]
    )


@pytest.mark.parametrize("initiator", ["client", "server"])
def test_a_step_ends_with_its_rate_and_what_each_host_was_busy_with(recorder, initiator):
    session, events = recorder
    step = Step("tcp", {"verb": "push"}, initiator)
    of_initiator, other = (IDLE, BUSY) if initiator == "client" else (BUSY, IDLE)
    with session.log.attempt(step, "tcp push x1", "its rate"):
        session.log.add(step, Repeat((Sample(0.0, 0), Sample(2.0, 200)), of_initiator, other, {}))
    begin, end = events
    assert (begin.step, begin.outcome, begin.client) == ("tcp push x1", "", None)
    assert (end.outcome, end.bytes_per_second, end.budget_seconds) == ("measured", 100.0, 20.0)
    assert (end.client, end.server) == (IDLE, BUSY)


def test_a_step_that_could_not_be_tried_ends_with_its_reason_and_no_figures(recorder):
    session, events = recorder
    with session.log.attempt(Step("tcp", {}, "client"), "tcp push x1", "its rate"):
        raise Unavailable("no agent")
    assert events[-1].outcome == "skipped: no agent"
    assert events[-1].bytes_per_second is events[-1].client is events[-1].server is None


def test_a_step_that_an_interrupt_broke_off_was_not_measured(recorder):
    session, events = recorder
    with (
        pytest.raises(KeyboardInterrupt),
        session.log.attempt(Step("tcp", {}, "client"), "tcp push x1", "its rate"),
    ):
        raise KeyboardInterrupt
    assert events[-1].outcome == "interrupted"


def runs_made(session, each_seconds, clock):
    """Returns each counted run's result, with a clock that only its runs move."""
    step = Step("tcp", {"verb": "push"}, "client")
    for number, _ in enumerate(order_of(session).rounds()):
        samples = Sample(0.0, 0), Sample(1.0, number)
        with session.log.attempt(step, "tcp push x1", "its rate"):
            session.log.add(step, Repeat(samples, IDLE, None, {}))
        clock.time += each_seconds
    ((_, outcome),) = session.log.entries()
    return [run[-1].moved_bytes for run in outcome.runs]


@pytest.mark.parametrize(
    ("runs", "counted", "notes"),
    [
        (0, [0], []),
        (3, [1, 2, 3], ["1 run to warm up: not counted"]),
        (9, [1, 2, 3], [..., "3 of 9 runs made: out of time (use a larger --budget)"]),
    ],
)
def test_runs_come_after_one_that_is_not_counted_while_there_is_time(
    recorder, runs, counted, notes
):
    session, events = recorder
    update_world(session, options=replace(session.world.options, runs=runs))
    clock = FakeClock()
    session.clock = Clock(20.0, clock)
    assert runs_made(session, 4.0, clock) == counted
    assert len(session.log.notes) == len(notes)
    assert all(has in (..., note) for has, note in zip(notes, session.log.notes, strict=True))
    warm = [each.step.endswith("(warm-up)") for each in events[::2]]
    assert warm == [runs > 0, *(False for _ in warm[1:])]
