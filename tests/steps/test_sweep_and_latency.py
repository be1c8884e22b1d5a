"""The stages sweep and latency as a run makes them, between two agents on this machine."""

from __future__ import annotations

import json
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from bottleneck import plan, report, session
from bottleneck.analysis import diagnose
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps import latency, sweep
from bottleneck.steps.sweep import SweepStep, sweep_steps
from bottleneck.target import parse
from probes.records import Access, Measured, Skipped

PUSH, PULL = SweepStep("client", "tcp", "push"), SweepStep("client", "tcp", "pull")
OWN, THERE = (SweepStep(side, "loopback", "push") for side in ("client", "server"))


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(latency, "USUAL_SECONDS", 0.5)
    monkeypatch.setattr(sweep, "USUAL_SECONDS", 0.5)


def bench_of(*stages: str, agent: str = "exec:env", budget: float = 60.0) -> Bench:
    options = plan.Options(
        target=parse("//127.0.0.1/-"),
        folder="/tmp",
        agent=agent,
        budget_seconds=budget,
        stages=stages,
    )
    bench = Bench(options, Access(), lambda event: None, lambda report: None)
    bench.address = "127.0.0.1"
    return bench


def made(*stages: str, **more: Any) -> Bench:
    """A run of stages, to its end."""
    bench = bench_of(*stages, **more)
    with ExitStack() as stack:
        session._reach(bench, stack)
        session._learn(bench)
        if "latency" in stages:
            latency.measure_latency(bench)
        if "sweep" in stages:
            sweep.measure_sweeps(bench)
    return bench


def test_between_two_agents_both_are_measured_and_told_of() -> None:
    bench = made("latency", "sweep")
    (slow, slow_outcome), (swept, swept_outcome) = bench.ledger.entries()
    assert (slow.stage, swept.stage) == ("latency", "sweep")
    assert isinstance(slow_outcome, Measured) and slow_outcome.responder is not None
    assert isinstance(swept_outcome, Measured) and swept_outcome.responder is not None
    assert (swept.setting["over"], swept.setting["verb"]) == ("tcp", "push")
    assert {"fit", "table"} <= set(slow_outcome.details)
    assert {"points", "knee_bytes"} <= set(swept_outcome.details)
    written = json.loads(report.dumps(bench.report(), diagnose(bench.report())))
    found = [each["about"] for each in written["diagnosis"]["comparisons"]]
    assert sorted(found) == ["buffers", "messages"]
    told = json.dumps(written)
    assert "nonce" not in told and "token" not in told


def test_without_an_agent_there_the_client_alone_is_swept() -> None:
    bench = made("latency", "sweep", agent="none")
    ((step, outcome),) = bench.ledger.entries()
    assert isinstance(outcome, Measured)
    assert (step.setting["over"], outcome.responder) == ("loopback", None)
    assert f"latency: {NEEDS_AGENT}" in bench.ledger.notes


def test_what_was_asked_for_alone_and_cannot_be_tried_is_skipped() -> None:
    bench = made("latency", agent="none")
    assert [outcome for _, outcome in bench.ledger.entries()] == [Skipped(NEEDS_AGENT)]


def test_a_short_run_has_its_time_for_the_copies() -> None:
    bench = bench_of("latency", "sweep", budget=20.0)
    latency.measure_latency(bench)
    sweep.measure_sweeps(bench)
    assert bench.ledger.entries() == ()
    assert [note.partition(":")[0] for note in bench.ledger.notes] == ["latency", "sweep"]


@pytest.mark.parametrize(
    ("stages", "agent", "budget", "steps"),
    [
        (("tcp", "sweep"), True, 60.0, (PUSH,)),
        (("tcp", "sweep"), True, 300.0, (OWN, THERE, PUSH, PULL)),
        (("tcp", "sweep"), False, 60.0, (OWN,)),
        (("sweep",), True, 60.0, (OWN, THERE, PUSH, PULL)),
        (("sweep",), False, 60.0, (OWN,)),
    ],
)
def test_which_sweeps_are_made(
    stages: tuple[str, ...], agent: bool, budget: float, steps: tuple[SweepStep, ...]
) -> None:
    bench = bench_of(*stages, budget=budget)
    if agent:
        bench.reached["server"] = SimpleNamespace()  # type: ignore[assignment]
    assert sweep_steps(bench) == steps
