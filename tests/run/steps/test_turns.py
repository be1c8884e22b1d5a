"""The turns of the stages that explain copies: what is made, for how long, and of what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck.agents.hosts import PartlyRan, Ran
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import report
from bottleneck.run import plan
from bottleneck.run.bench import NEEDS_AGENT, Bench
from bottleneck.run.clock import Clock
from bottleneck.run.steps import files, schedule, transfers, turns
from probes.core.records import Endpoint, Measured, Sample, Skipped, rates
from probes.core.stage import Known, Unavailable, described
from probes.programs.samba import private_samba
from probes.stages import latency, matrix, path, small_files, smb_matrix, smb_tax, sweep, udp
from tests.living import FakeClock
from tests.run.steps import benches

BETWEEN = ("latency", "sweep", "matrix", "udp")
OVER_SMB = ("smb-matrix", "smb-tax", "small-files")
AGENT = {"agent": "exec:env"}
KNOWN = Known("127.0.0.1", 445, "3.1.1", "00", 60.0, alone=False, agent=True, connect_seconds=0.0)


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = (latency, 0.5), (sweep, 2.0), (matrix, 2.0), (udp, 0.2), (smb_matrix, 0.25)
    for module, seconds in (*shorter, (small_files, 0.2)):
        monkeypatch.setattr(module, "USUAL_SECONDS", seconds)
    monkeypatch.setattr(smb_tax, "STAGE", replace(smb_tax.STAGE, usual_seconds=0.3))
    monkeypatch.setattr(udp, "MOST_BYTES_PER_SECOND", 5e6)


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Callable[..., str]]:
    """A server's share as TARGET; nothing is left on it."""
    shared = tmp_path / "shared"
    shared.mkdir()
    with ExitStack() as stack:

        def started(*options: str) -> str:
            opened = private_samba(str(shared), password=benches.PASSWORD, options=options)
            server = stack.enter_context(opened)
            return f"//{server.host}:{server.port}/{server.share}"

        yield started
    assert list(shared.iterdir()) == []


def bench_of(*stages: str, target: str = "//127.0.0.1/-", **options: Any) -> Bench:
    """A run that has not begun."""
    more = {"stages": stages} if stages else {}
    bench = benches.bench_of(target, **more, **options)
    return benches.knowing(bench, address="127.0.0.1")


def measure(bench: Bench) -> None:
    """Each of the stages that were asked for, but the copies themselves, in the usual order."""
    for stage in described(bench.world.options.stages):
        if stage.name == "tcp":
            transfers.measure_transfers(bench)
        elif stage.explains:
            by_hand = schedule.BY_HAND.get(stage.name)
            by_hand(bench, "") if by_hand else turns.measure(bench, stage, "")


def made(*stages: str, **options: Any) -> Bench:
    """A run of stages, to its end."""
    bench = bench_of(*stages, **options)
    # its time stands still: a busy machine leaves nothing out
    still: Any = FakeClock()
    bench.clock = Clock(bench.world.options.budget_seconds, still)
    with ExitStack() as stack:
        needs_share = any("share" in each.needs for each in described(stages))
        benches.reached(bench, stack, needs_share)
        measure(bench)
    return bench


def steps_of(bench: Bench, stage: str) -> list[tuple[Any, Any]]:
    """The steps of a stage, with their outcomes."""
    return [(step, outcome) for step, outcome in bench.log.entries() if step.stage == stage]


@pytest.mark.long
def test_between_two_agents_all_are_measured_and_no_secret_is_told() -> None:
    bench = made(*BETWEEN, **AGENT)
    assert bench.log.complete()
    assert [step.stage for step, _ in bench.log.entries()] == [*BETWEEN, "udp"]
    for _, outcome in bench.log.entries():
        assert isinstance(outcome, Measured) and outcome.responder is not None
    ((swept, _),) = steps_of(bench, "sweep")
    assert (swept.setting["over"], swept.setting["verb"]) == ("tcp", "push")
    ((windows, outcome),) = steps_of(bench, "matrix")
    assert {each["window_bytes"] for each in outcome.details["cells"]} <= set(
        windows.setting["windows"]
    )
    for step, outcome in steps_of(bench, "udp"):
        assert outcome.details["sent_bytes_per_second"] <= step.setting["bytes_per_second"] == 5e6
    assert not steps_of(bench, "tcp"), "a trial is no step"
    written = json.dumps(json.loads(report.dumps(bench.report(), diagnose(bench.report()))))
    assert "nonce" not in written and "token" not in written


@pytest.mark.long
def test_after_the_tcp_steps_the_pace_is_a_share_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "_trial", lambda *_: pytest.fail("there is a tcp step"))
    monkeypatch.setattr(turns.plan, "TCP_STEPS", turns.plan.TCP_STEPS[:2])
    bench = made("tcp", "udp", budget_seconds=40.0, **AGENT)
    for step, outcome in steps_of(bench, "tcp"):
        rate, _ = turns.path_rate(bench, step.setting["verb"])
        assert rate == rates(outcome).median


@pytest.mark.parametrize("rate", [0.0, 1000.0])
def test_where_tcp_carries_next_to_nothing_no_pace_is_made_up(rate: float) -> None:
    known = replace(KNOWN, bytes_per_second=rate)
    with pytest.raises(Unavailable, match="too slow"):
        udp.fitted(udp.Setting("push", seconds=1.5), known)
    paced = udp.fitted(udp.Setting("push"), replace(KNOWN, bytes_per_second=1e6))
    assert paced.bytes_per_second == udp.SHARE_OF_TCP * 1e6


def test_a_link_that_tcp_fills_needs_no_matrix_unless_it_is_all_that_was_asked_for() -> None:
    full = replace(KNOWN, bytes_per_second=117.6e6, rtt_seconds=0.0004, link="1 Gbit/s")
    with pytest.raises(Unavailable, match="TCP fills the 1 Gbit/s link"):
        matrix.fitted(matrix.Setting("push"), full)
    assert matrix.fitted(matrix.Setting("push"), replace(full, alone=True)).windows[0] == 0
    assert turns.link_that_fits(bench_of(), 117.6e6) == "1 Gbit/s"


@pytest.mark.long
def test_without_an_agent_the_client_alone_is_swept_and_the_rest_is_a_note() -> None:
    bench = made(*BETWEEN, agent="none")
    ((step, outcome),) = bench.log.entries()
    assert isinstance(outcome, Measured) and bench.log.complete()
    assert (step.setting["over"], outcome.responder) == ("loopback", None)
    labels = ("latency", "sweep between the hosts", "windows push", "datagrams push")
    assert {f"{each}: skipped: {NEEDS_AGENT}" for each in labels} <= set(bench.log.notes)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["latency", "matrix", "udp"])
def test_what_was_asked_for_alone_and_cannot_be_tried_is_skipped(stage: str) -> None:
    bench = made(stage, agent="none")
    assert {outcome for _, outcome in bench.log.entries()} == {Skipped(NEEDS_AGENT)}
    assert not bench.log.complete()


def test_a_short_run_leaves_them_out_and_says_so() -> None:
    bench = bench_of(*BETWEEN, *OVER_SMB, budget_seconds=20.0)
    measure(bench)
    assert bench.log.entries() == () and bench.log.complete()
    for stage, note in zip((*BETWEEN, *OVER_SMB), bench.log.notes, strict=True):
        assert note.startswith(f"{stage}: skipped: out of time") and "--budget" in note


@pytest.mark.parametrize(
    ("module", "more", "labels"),
    [
        (sweep, {}, ["tcp push"]),
        (sweep, {"alone": True}, ["loopback client", "loopback server", "tcp push", "tcp pull"]),
        (sweep, {"budget_seconds": 300.0, "agent": False}, ["loopback client"]),
        (matrix, {}, ["push"]),
        (matrix, {"budget_seconds": 120.0}, ["push", "pull"]),
        (smb_matrix, {}, ["pull 3.1.1"]),
        (smb_matrix, {"alone": True}, ["pull 3.1.1", "push 3.1.1"]),
    ],
)
def test_what_there_is_time_for_is_made_both_ways(module: Any, more: Any, labels: Any) -> None:
    found = [turn.label.partition(" ")[2] for turn in module.turns(replace(KNOWN, **more))]
    assert found == labels


def test_a_far_path_has_the_round_trips_that_it_needs_for_its_messages() -> None:
    (near,) = latency.turns(KNOWN)
    (far,) = latency.turns(replace(KNOWN, connect_seconds=0.5))
    assert far.usual_seconds == latency.MOST_TIMES * near.usual_seconds


def test_the_time_is_a_share_of_the_budget_and_never_more_than_a_quarter_of_what_is_left() -> None:
    def seconds(bench: Bench) -> float | None:
        return turns.seconds_for(bench, smb_matrix.STAGE, 2.5)

    late = bench_of()
    assert seconds(late) == 2.5
    late.clock.began -= 50.0
    left = late.clock.left()
    assert (seconds(late) or 9.0) <= left / 4
    late.clock.began -= 6.0
    assert seconds(late) is None and len(late.log.notes) == 1
    assert seconds(bench_of(budget_seconds=300.0)) == 12.5


@pytest.mark.long
@pytest.mark.parametrize("agent", ["none", "exec:"])
def test_the_path_is_measured_without_a_rate_and_survives_the_file(share: Any, agent: str) -> None:
    bench = made("path", "smb-copy", target=share(), agent=agent)
    ((step, outcome),) = bench.log.entries()
    assert (step.stage, step.initiator) == ("path", "client")
    assert {"host", "port", "seconds"} <= set(step.setting)
    assert isinstance(outcome, Measured) and bench.log.complete()
    assert bench.log.rate(step) == 0.0
    assert ("pull" in outcome.details) == (agent != "none")
    assert ("loaded" in outcome.details["push"]) == (agent != "none")
    known = bench.report()
    assert report.loads(report.dumps(known, diagnose(known)).encode()).entries == known.entries


def test_a_short_look_at_the_path_leaves_the_load_out() -> None:
    (turn,) = path.turns(replace(KNOWN, budget_seconds=20.0))
    assert not turn.setting.load
    (turn,) = path.turns(replace(KNOWN, budget_seconds=20.0, alone=True))
    assert turn.setting.load


def test_where_the_servers_address_is_unknown_the_path_is_skipped() -> None:
    bench = benches.knowing(bench_of("path"), address="")
    measure(bench)
    ((_, outcome),) = bench.log.entries()
    assert isinstance(outcome, Skipped) and "address" in outcome.reason


@pytest.mark.long
def test_a_usual_run_measures_what_smb_costs_and_its_report_says_so(share: Any) -> None:
    bench = made("smb-copy", *OVER_SMB, target=share())
    known = bench.report()
    assert known.notes == () and bench.log.complete()
    assert all(isinstance(each, Measured) and each.details["hash_ok"] for _, each in known.entries)
    assert [(step.stage, step.setting["verb"]) for step, _ in known.entries] == [
        ("smb-matrix", "pull"),
        *[("smb-tax", verb) for _ in range(3) for verb in ("pull", "push")],
        ("small-files", "push"),
        ("small-files", "pull"),
    ]
    taxed = steps_of(bench, "smb-tax")
    assert {step.setting["security"] for step, _ in taxed} == {"plain", "signed", "encrypted"}
    moved = {
        (step.setting["verb"], run[-1].moved_bytes)
        for step, outcome in taxed
        for run in outcome.runs
    }
    assert len(moved) == 2, "the same bytes whatever the security"
    for step in json.loads(report.dumps(known, diagnose(known)))["steps"]:
        assert "seed" not in step["setting"] and step["setting"]["dialect"] == "3.1.1"


@pytest.mark.long
def test_security_that_the_server_does_not_allow_is_a_note(share: Any) -> None:
    bench = made("smb-copy", "smb-tax", target=share("server signing = mandatory"))
    found = steps_of(bench, "smb-tax")
    assert bench.log.complete()
    assert {step.setting["security"] for step, _ in found} == {"signed", "encrypted"}
    (note,) = bench.log.notes
    assert "requires signing" in note


@pytest.mark.long
def test_it_is_a_skipped_step_where_nothing_else_was_asked_for(share: Any) -> None:
    bench = made("smb-tax", target=share("server signing = mandatory"), budget_seconds=10.0)
    outcomes = {
        (step.setting["security"], step.setting["verb"]): outcome
        for step, outcome in steps_of(bench, "smb-tax")
    }
    for verb in ("pull", "push"):
        denied = outcomes["plain", verb]
        assert isinstance(denied, Skipped) and "requires signing" in denied.reason
        assert isinstance(outcomes["signed", verb], Measured)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["smb-matrix", "small-files"])
def test_one_stage_alone_is_measured_even_in_a_short_run(share: Any, stage: str) -> None:
    bench = made(stage, target=share(), budget_seconds=10.0)
    assert all(isinstance(outcome, Measured) for _, outcome in steps_of(bench, stage))


def test_a_full_share_is_a_skipped_step_that_says_so(
    share: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "beyond_reserve_bytes", lambda free, total: 0)
    bench = made("smb-copy", *OVER_SMB, target=share())
    assert {step.stage for step, _ in bench.log.entries()} == set(OVER_SMB)
    for _, outcome in bench.log.entries():
        assert (
            isinstance(outcome, Skipped) and "not enough free space on the share" in outcome.reason
        )


# -- a slow path, and one that stands still -------------------------------------------------------


class Between:
    """Stands for both hosts of a run: each transfer moves at a rate, or breaks off."""

    def __init__(self, bench: Bench, rate: float, error: str = "") -> None:
        self.bench, self.rate, self.error = bench, rate, error
        self.asked: list[float] = []

    @contextmanager
    def hold(self, *_: Any) -> Iterator[Endpoint]:
        yield Endpoint()

    def run(self, step: Any, setting: Any, *_: Any, **__: Any) -> Any:
        self.asked.append(setting.seconds)
        if self.error:
            raise PartlyRan(self.error, (), lost=False)
        moved = int(self.rate * setting.seconds)
        samples = (Sample(0.0, 0), Sample(setting.seconds, moved))
        return Ran(samples, {}, ({}, {}), None)


@pytest.fixture
def between(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Between]:
    def made(rate: float, error: str = "") -> Between:
        bench = bench_of("tcp", "path")
        found = Between(bench, rate, error)
        benches.knowing(bench, hosts={"server": found})
        monkeypatch.setattr(bench, "run", found.run)
        monkeypatch.setattr(bench, "_take", lambda *given: None)
        transfers.measure_transfers(bench)
        return found

    return made


def test_a_slow_path_gets_the_time_that_one_honest_transfer_needs(between: Any) -> None:
    usual, slow = plan.times(60.0).tcp, transfers.SLOW_SECONDS
    assert between(120e3).asked[:4] == [usual, slow, usual, slow]
    assert slow not in between(10e6).asked


@pytest.mark.parametrize(
    ("error", "looks"),
    [("no payload arrived: timed out", 1), ("the agent gave no complete result", 0)],
)
def test_a_transfer_that_stands_still_asks_the_path_at_once_and_once(
    between: Any, monkeypatch: pytest.MonkeyPatch, error: str, looks: int
) -> None:
    seen: list[str] = []

    def measured(bench: Bench, stage: Any, why: str) -> None:
        seen.append(stage.name)
        bench.log.add(report.Step(stage.name, {}, "client"), Skipped("a test"))

    monkeypatch.setattr(turns, "measure", measured)
    found = between(0.0, error)
    assert seen == ["path"] * looks
    left = [each.name for each in schedule.Explanations.of(found.bench).left]
    assert ("path" in left) == (not looks)


def test_what_was_chosen_holds_in_every_turn_and_turns_that_are_the_same_are_one() -> None:
    chosen = {"windows": (65536,), "streams": (2,), "seconds": 3.0}
    bench = bench_of("matrix", settings=chosen)
    found = [each.setting for each in turns._turns(bench, matrix)]
    assert [(each.verb, each.windows, each.streams) for each in found] == [
        ("push", (65536,), (2,)),
        ("pull", (65536,), (2,)),
    ]
    assert turns._seconds(bench, matrix.STAGE, next(turns._turns(bench, matrix))) == 3.0
    (pull,) = turns._turns(bench_of("udp", settings={"verb": "pull"}), udp)
    assert pull.setting.verb == "pull"
    assert [
        (each.verb, each.streams) for each in map(bench_of("tcp").world.chosen, plan.TCP_STEPS)
    ] == [
        ("push", 1),
        ("pull", 1),
        ("push", 4),
        ("pull", 4),
    ]
    eight = bench_of("tcp", settings={"streams": 8}).world.chosen
    assert len(dict.fromkeys(map(eight, plan.TCP_STEPS))) == 2


@pytest.mark.long
def test_both_ways_at_once_come_after_each_by_itself_with_what_was_chosen() -> None:
    chosen = {"both_ways": True, "streams": 2, "seconds": 0.4, "window_bytes": 65536}
    bench = made("tcp", settings={**chosen, "bytes_per_second": 50e6}, **AGENT)
    assert bench.log.complete()
    found = steps_of(bench, "tcp")
    assert [(step.setting["verb"], step.setting["both_ways"]) for step, _ in found] == [
        *(("push", False), ("pull", False)),
        *(("push", True), ("pull", True)),
    ]
    for step, outcome in found:
        assert (step.setting["streams"], step.setting["bytes_per_second"]) == (2, 50e6)
        granted = {outcome.details[end]["granted_bytes"] for end in ("sender", "receiver")}
        assert granted == {131072}, "Linux grants twice what was asked for"
        assert outcome.details["sender"]["system_seconds"] >= 0
