"""What a run tells whoever watches it."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace

import pytest

from bottleneck.report.report import Step
from bottleneck.run import plan, session
from bottleneck.run.bench import Bench, Event
from bottleneck.run.clock import Clock
from bottleneck.run.log import Repeat
from bottleneck.run.world import World
from bottleneck.target.target import parse
from probes.core.records import Access, Endpoint, Sample, Usage
from probes.core.stage import Unavailable
from tests.living import FakeClock
from tests.run.steps.benches import knowing

IDLE = Usage(1.0, (0.1,), 0.1, 0.0, 0.0, 0.1, 0.1, 0.0, *(None,) * 12)
BUSY = replace(IDLE, core_busy_ratios=(0.9,), busiest_core_ratio=0.9)


@pytest.fixture
def told():
    """A bench, and what it tells."""
    events: list[Event] = []
    options = plan.Options(target=parse("//nas/media"), folder="/tmp", budget_seconds=20.0)
    return Bench(World(options, Access()), events.append, lambda report: None), events


def test_a_folder_that_may_remain_on_the_share_is_named_with_what_removes_it(told):
    bench, _ = told
    unclosed = ["client: closing the run-folder: client: the agent did not answer"]
    there = Endpoint(folder="bottleneck-0123456789abcdef")
    knowing(bench, share=there, hosts={"client": SimpleNamespace(unclosed=unclosed)})
    session._note_unclosed(bench)
    assert (
        bench.unclosed
        == bench.log.notes
        == [
            "//nas/media: the folder bottleneck-0123456789abcdef may remain there; "
            "the next run or bottleneck cleanup removes it"
        ]
    )


@pytest.mark.parametrize("initiator", ["client", "server"])
def test_a_step_ends_with_its_rate_and_what_each_host_was_busy_with(told, initiator):
    bench, events = told
    step = Step("tcp", {"verb": "push"}, initiator)
    own, other = (IDLE, BUSY) if initiator == "client" else (BUSY, IDLE)
    with bench.outcome(step, "tcp push x1", "its rate"):
        bench.log.add(step, Repeat((Sample(0.0, 0), Sample(2.0, 200)), own, other, {}))
    begin, end = events
    assert (begin.step, begin.outcome, begin.client) == ("tcp push x1", "", None)
    assert (end.outcome, end.bytes_per_second, end.budget_seconds) == ("measured", 100.0, 20.0)
    assert (end.client, end.server) == (IDLE, BUSY)


def test_a_step_that_could_not_be_tried_ends_with_its_reason_and_no_figures(told):
    bench, events = told
    with bench.outcome(Step("tcp", {}, "client"), "tcp push x1", "its rate"):
        raise Unavailable("no agent")
    assert events[-1].outcome == "skipped: no agent"
    assert events[-1].bytes_per_second is events[-1].client is events[-1].server is None


def test_a_step_that_an_interrupt_broke_off_was_not_measured(told):
    bench, events = told
    with (
        pytest.raises(KeyboardInterrupt),
        bench.outcome(Step("tcp", {}, "client"), "tcp push x1", "its rate"),
    ):
        raise KeyboardInterrupt
    assert events[-1].outcome == "interrupted"


def runs_made(bench, each_seconds, clock):
    """What each counted run of a bench found, with a clock that only its runs move."""
    step = Step("tcp", {"verb": "push"}, "client")
    for number, _ in enumerate(bench.rounds()):
        samples = Sample(0.0, 0), Sample(1.0, number)
        with bench.outcome(step, "tcp push x1", "its rate"):
            bench.log.add(step, Repeat(samples, IDLE, None, {}))
        clock.time += each_seconds
    ((_, outcome),) = bench.log.entries()
    return [run[-1].moved_bytes for run in outcome.runs]


@pytest.mark.parametrize(
    ("runs", "counted", "notes"),
    [
        (0, [0], []),
        (3, [1, 2, 3], ["1 run to warm up: not counted"]),
        (9, [1, 2, 3], [..., "3 of 9 runs made: out of time (use a larger --budget)"]),
    ],
)
def test_runs_come_after_one_that_is_not_counted_while_there_is_time(told, runs, counted, notes):
    bench, events = told
    knowing(bench, options=replace(bench.world.options, runs=runs))
    clock = FakeClock()
    bench.clock = Clock(20.0, clock)
    assert runs_made(bench, 4.0, clock) == counted
    assert len(bench.log.notes) == len(notes)
    assert all(has in (..., note) for has, note in zip(notes, bench.log.notes, strict=True))
    warm = [each.step.endswith("(warm-up)") for each in events[::2]]
    assert warm == [runs > 0, *(False for _ in warm[1:])]
