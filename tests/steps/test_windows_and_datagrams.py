"""The stages matrix and udp as a run makes them, between two agents on this machine."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import Any

import pytest

from bottleneck import plan, report, session
from bottleneck.analysis import diagnose
from bottleneck.bench import NEEDS_AGENT, Bench
from bottleneck.steps import carried, matrix, network, udp
from bottleneck.steps.carried import Carried
from bottleneck.target import parse
from probes.records import Access, Measured, Skipped, rates

AGENT = "exec:env"


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, seconds in ((matrix, 0.3), (udp, 0.2)):
        monkeypatch.setattr(module, "USUAL_SECONDS", seconds)
    monkeypatch.setattr(matrix, "LEAST_CELL_SECONDS", 0.1)
    monkeypatch.setattr(udp, "MOST_BYTES_PER_SECOND", 5e6)


def made(*stages: str, agent: str = AGENT, budget: float = 60.0) -> Bench:
    """A run of stages, to its end."""
    options = plan.Options(
        target=parse("//127.0.0.1/-"),
        folder="/tmp",
        agent=agent,
        budget_seconds=budget,
        stages=stages,
    )
    bench = Bench(options, Access(), lambda event: None, lambda report: None)
    with ExitStack() as stack:
        bench.address = "127.0.0.1"
        session._reach(bench, stack)
        session._learn(bench)
        for stage, measure in (
            ("tcp", network.measure_transfers),
            ("matrix", matrix.measure_windows),
            ("udp", udp.measure_datagrams),
        ):
            if stage in stages:
                measure(bench)
    return bench


def steps_of(bench: Bench, stage: str) -> list[tuple[Any, Any]]:
    return [(step, outcome) for step, outcome in bench.ledger.entries() if step.stage == stage]


def test_a_matrix_alone_is_made_both_ways_with_windows_that_suit_the_path() -> None:
    bench = made("matrix")
    found = steps_of(bench, "matrix")
    assert [step.setting["verb"] for step, _ in found] == ["push", "pull"]
    for step, outcome in found:
        assert isinstance(outcome, Measured)
        assert step.setting["windows"][0] == 0
        assert {each["window_bytes"] for each in outcome.details["cells"]} <= set(
            step.setting["windows"]
        )
        assert outcome.responder is not None
    written = json.loads(report.dumps(bench.report(), diagnose(bench.report())))
    (about,) = {each["about"] for each in written["diagnosis"]["comparisons"]} or {""}
    assert about == "windows"
    assert "nonce" not in json.dumps(written)


def test_datagrams_alone_go_both_ways_at_a_pace_that_a_taste_of_tcp_allows() -> None:
    bench = made("udp")
    found = steps_of(bench, "udp")
    assert [step.setting["verb"] for step, _ in found] == ["push", "pull"]
    for step, outcome in found:
        assert isinstance(outcome, Measured)
        assert step.setting["bytes_per_second"] == 5e6
        assert outcome.details["sent_bytes_per_second"] <= 5e6
    assert not steps_of(bench, "tcp")


def test_after_the_tcp_steps_the_pace_is_a_share_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp, "MOST_BYTES_PER_SECOND", 1e12)
    monkeypatch.setattr(plan, "TCP_STEPS", plan.TCP_STEPS[:2])
    monkeypatch.setattr(carried, "_taste", lambda *_: pytest.fail("there is a tcp step"))
    # the pace alone is looked at: at loopback's rate no datagram needs to be sent
    monkeypatch.setattr(Bench, "initiate", _unless_udp(Bench.initiate))
    bench = made("tcp", "udp", budget=40.0)
    fastest = {
        verb: max(
            rates(outcome).median
            for step, outcome in steps_of(bench, "tcp")
            if step.setting["verb"] == verb
        )
        for verb in ("push", "pull")
    }
    for step, _ in steps_of(bench, "udp"):
        paced = step.setting["bytes_per_second"]
        assert paced == pytest.approx(udp.SHARE_OF_TCP * fastest[step.setting["verb"]])


@pytest.mark.parametrize("rate", [0.0, 1000.0])
def test_where_tcp_carries_next_to_nothing_no_pace_is_made_up(
    monkeypatch: pytest.MonkeyPatch, rate: float
) -> None:
    monkeypatch.setattr(udp, "carried", lambda *_: Carried(rate, None))
    for _, outcome in steps_of(made("udp"), "udp"):
        assert isinstance(outcome, Skipped) and "too little" in outcome.reason


def test_an_agents_limits_that_are_none_tell_no_round_trip() -> None:
    for told in ({}, {"limits": 5}, {"limits": {"min_rtt_seconds": "x"}}):
        assert carried._rtt_seconds(told) is None


def _unless_udp(initiate: Any) -> Any:
    def called(bench: Bench, step: Any, *arguments: Any) -> None:
        if step.stage == "udp":
            bench.ledger.end(step, Skipped("looked at"))
        else:
            initiate(bench, step, *arguments)

    return called


@pytest.mark.parametrize("stage", ["matrix", "udp"])
def test_without_an_agent_the_stage_alone_is_skipped_with_the_remedy(stage: str) -> None:
    bench = made(stage, agent="none")
    found = steps_of(bench, stage)
    assert {outcome for _, outcome in found} == {Skipped(NEEDS_AGENT)}
    assert not bench.ledger.complete()


@pytest.mark.parametrize("stage", ["matrix", "udp"])
def test_in_a_whole_run_without_an_agent_it_is_a_note(stage: str) -> None:
    bench = made(stage, "smb-copy", agent="none")
    assert not steps_of(bench, stage)
    assert any(NEEDS_AGENT in each for each in bench.ledger.notes)


def test_a_link_that_tcp_fills_needs_no_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    def one_gigabit(bench: Bench, verb: str) -> Carried:
        return Carried(117.6e6, 0.0004)

    monkeypatch.setattr(matrix, "carried", one_gigabit)
    monkeypatch.setattr(matrix, "_mtu_bytes", lambda bench: 1500)
    bench = made("matrix", "smb-copy")
    assert not steps_of(bench, "matrix")
    assert any("TCP fills a 1 Gbit/s link" in each for each in bench.ledger.notes)


@pytest.mark.parametrize(("stage", "budget"), [("matrix", 20.0), ("udp", 20.0)])
def test_a_short_run_leaves_them_out_and_says_so(stage: str, budget: float) -> None:
    bench = made(stage, "smb-copy", budget=budget)
    assert not steps_of(bench, stage)
    assert any(each.startswith(f"{stage}: left out") for each in bench.ledger.notes)
