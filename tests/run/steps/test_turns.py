"""The turns of the stages that explain copies: what is made, for how long, and of what."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bottleneck.agents.hosts import PartlyRan, Result
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.report import report
from bottleneck.run import plan
from bottleneck.run.clock import Clock
from bottleneck.run.execution import Session, carried_out
from bottleneck.run.log import NEEDS_AGENT, Log, Task, Tasks
from bottleneck.run.steps import sources, tcp, turns
from bottleneck.run.steps.schedule import Schedule
from probes.core.records import Measured, Sample, Skipped, rates
from probes.core.stage import RunFacts, Unavailable, stages_of
from probes.programs.samba import private_samba
from probes.stages import latency, matrix, path, small_files, smb_matrix, smb_tax, sweep, udp
from tests.living import FakeClock
from tests.run.steps import sessions

BETWEEN = ("latency", "sweep", "matrix", "udp")
OVER_SMB = ("smb-matrix", "smb-tax", "small-files")
AGENT = {"agent": "exec:env"}
KNOWN = RunFacts(
    "127.0.0.1", 445, "3.1.1", "00", 60.0, is_only=False, agent=True, connect_seconds=0.0
)


@pytest.fixture(autouse=True)
def _in_short(monkeypatch: pytest.MonkeyPatch) -> None:
    shorter = (latency, 0.5), (sweep, 2.0), (matrix, 2.0), (udp, 0.2), (smb_matrix, 0.25)
    for module, seconds in (*shorter, (small_files, 0.2)):
        monkeypatch.setattr(module, "USUAL_SECONDS", seconds)
    monkeypatch.setattr(smb_tax, "STAGE", replace(smb_tax.STAGE, usual_seconds=0.3))
    monkeypatch.setattr(udp, "MOST_BYTES_PER_SECOND", 5e6)


@pytest.fixture
def share(tmp_path: Path) -> Iterator[Callable[..., str]]:
    shared = tmp_path / "shared"
    shared.mkdir()
    with ExitStack() as stack:

        def started(*options: str) -> str:
            opened = private_samba(str(shared), password=sessions.PASSWORD, options=options)
            server = stack.enter_context(opened)
            return f"//{server.host}:{server.port}/{server.share}"

        yield started
    assert list(shared.iterdir()) == []


def session_of(*stages: str, target: str = "//127.0.0.1/-", **options: Any) -> Session:
    selection = {"stages": stages} if stages else {}
    session = sessions.session_of(target, **selection, **options)
    return sessions.update_world(session, address="127.0.0.1")


def explain_stages(order: Schedule) -> Tasks[None]:
    """Each of the stages that were asked for, but the copies themselves, in the usual order."""
    for stage in stages_of(order.world.options.stages):
        if stage.name == "tcp":
            yield from order.transfers.measure()
        elif stage.explains:
            by_hand = order.by_hand.get(stage.name)
            yield from by_hand("") if by_hand else order.turns.measure(stage, "")


def session_after(*stages: str, **options: Any) -> Session:
    session = session_of(*stages, **options)
    # its time stands still: a busy machine leaves nothing out
    still: Any = FakeClock()
    session.clock = Clock(session.options.budget_seconds, still)
    with ExitStack() as stack:
        needs_share = any("share" in each.needs for each in stages_of(stages))
        sessions.reach(session, stack, needs_share)
        session.carry_out(explain_stages(sessions.order_of(session)))
    return session


def steps_of(session: Session, stage: str) -> list[tuple[Any, Any]]:
    return [(step, outcome) for step, outcome in session.log.entries() if step.stage == stage]


@pytest.mark.long
def test_between_two_agents_all_are_measured_and_no_secret_is_told() -> None:
    session = session_after(*BETWEEN, **AGENT)
    assert session.log.complete()
    assert [step.stage for step, _ in session.log.entries()] == [*BETWEEN, "udp"]
    for _, outcome in session.log.entries():
        assert isinstance(outcome, Measured) and outcome.responder is not None
    ((swept, _),) = steps_of(session, "sweep")
    assert (swept.setting["over"], swept.setting["verb"]) == ("tcp", "push")
    ((windows, outcome),) = steps_of(session, "matrix")
    assert {each["window_bytes"] for each in outcome.details["cells"]} <= set(
        windows.setting["windows"]
    )
    for step, outcome in steps_of(session, "udp"):
        assert outcome.details["sent_bytes_per_second"] <= step.setting["bytes_per_second"] == 5e6
    assert not steps_of(session, "tcp"), "a trial is no step"
    written = json.dumps(json.loads(report.dumps(session.report(), diagnose(session.report()))))
    assert "nonce" not in written and "token" not in written


@pytest.mark.long
def test_after_the_tcp_steps_the_pace_is_a_share_of_theirs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns.Turns, "_trial", lambda *_: pytest.fail("there is a tcp step"))
    monkeypatch.setattr(turns.plan, "TCP_STEPS", turns.plan.TCP_STEPS[:2])
    session = session_after("tcp", "udp", budget_seconds=40.0, **AGENT)
    for step, outcome in steps_of(session, "tcp"):
        tasks = sessions.order_of(session).turns.path_rate(step.setting["verb"])
        rate, _ = carried_out(tasks, pytest.fail)
        assert rate == rates(outcome).median


@pytest.mark.parametrize("rate", [0.0, 1000.0])
def test_where_tcp_carries_next_to_nothing_no_pace_is_made_up(rate: float) -> None:
    slow = replace(KNOWN, bytes_per_second=rate)
    with pytest.raises(Unavailable, match="too slow"):
        udp.fit_setting(udp.Setting("push", seconds=1.5), slow)
    paced = udp.fit_setting(udp.Setting("push"), replace(KNOWN, bytes_per_second=1e6))
    assert paced.bytes_per_second == udp.SHARE_OF_TCP * 1e6


def test_a_link_that_tcp_fills_needs_no_matrix_unless_it_is_all_that_was_asked_for() -> None:
    full = replace(KNOWN, bytes_per_second=117.6e6, rtt_seconds=0.0004, link="1 Gbit/s")
    with pytest.raises(Unavailable, match="TCP fills the 1 Gbit/s link"):
        matrix.fit_setting(matrix.Setting("push"), full)
    assert matrix.fit_setting(matrix.Setting("push"), replace(full, is_only=True)).windows[0] == 0
    assert turns.link_that_fits(session_of().world, 117.6e6) == "1 Gbit/s"


@pytest.mark.long
def test_without_an_agent_the_client_alone_is_swept_and_the_rest_is_a_note() -> None:
    session = session_after(*BETWEEN, agent="none")
    ((step, outcome),) = session.log.entries()
    assert isinstance(outcome, Measured) and session.log.complete()
    assert (step.setting["over"], outcome.responder) == ("loopback", None)
    labels = ("latency", "sweep between the hosts", "windows push", "datagrams push")
    assert {f"{each}: skipped: {NEEDS_AGENT}" for each in labels} <= set(session.log.notes)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["latency", "matrix", "udp"])
def test_what_was_asked_for_alone_and_cannot_be_tried_is_skipped(stage: str) -> None:
    session = session_after(stage, agent="none")
    assert {outcome for _, outcome in session.log.entries()} == {Skipped(NEEDS_AGENT)}
    assert not session.log.complete()


def test_a_short_run_leaves_them_out_and_says_so() -> None:
    session = session_of(*BETWEEN, *OVER_SMB, budget_seconds=20.0)
    session.carry_out(explain_stages(sessions.order_of(session)))
    assert session.log.entries() == () and session.log.complete()
    for stage, note in zip((*BETWEEN, *OVER_SMB), session.log.notes, strict=True):
        assert note.startswith(f"{stage}: skipped: out of time") and "--budget" in note


@pytest.mark.parametrize(
    ("module", "facts", "labels"),
    [
        (sweep, {}, ["tcp push"]),
        (sweep, {"is_only": True}, ["loopback client", "loopback server", "tcp push", "tcp pull"]),
        (sweep, {"budget_seconds": 300.0, "agent": False}, ["loopback client"]),
        (matrix, {}, ["push"]),
        (matrix, {"budget_seconds": 120.0}, ["push", "pull"]),
        (smb_matrix, {}, ["pull 3.1.1"]),
        (smb_matrix, {"is_only": True}, ["pull 3.1.1", "push 3.1.1"]),
    ],
)
def test_what_there_is_time_for_is_made_both_ways(module: Any, facts: Any, labels: Any) -> None:
    turn_labels = [turn.label.partition(" ")[2] for turn in module.turns(replace(KNOWN, **facts))]
    assert turn_labels == labels


def test_a_far_path_has_the_round_trips_that_it_needs_for_its_messages() -> None:
    (near,) = latency.turns(KNOWN)
    (far,) = latency.turns(replace(KNOWN, connect_seconds=0.5))
    assert far.usual_seconds == latency.MOST_TIMES * near.usual_seconds


def test_the_time_is_a_share_of_the_budget_and_never_more_than_a_quarter_of_what_is_left() -> None:
    def seconds(on: Session) -> float | None:
        return sessions.order_of(on).turns.seconds_for(smb_matrix.STAGE, 2.5)

    late = session_of()
    assert seconds(late) == 2.5
    late.clock.began_monotonic -= 50.0
    remaining = late.clock.remaining()
    assert (seconds(late) or 9.0) <= remaining / 4
    late.clock.began_monotonic -= 6.0
    assert seconds(late) is None and len(late.log.notes) == 1
    assert seconds(session_of(budget_seconds=300.0)) == 12.5


@pytest.mark.long
@pytest.mark.parametrize("agent", ["none", "exec:"])
def test_the_path_is_measured_without_a_rate_and_survives_the_file(share: Any, agent: str) -> None:
    session = session_after("path", "smb-copy", target=share(), agent=agent)
    ((step, outcome),) = session.log.entries()
    assert (step.stage, step.initiator) == ("path", "client")
    assert {"host", "port", "seconds"} <= set(step.setting)
    assert isinstance(outcome, Measured) and session.log.complete()
    assert session.log.rate(step) == 0.0
    assert ("pull" in outcome.details) == (agent != "none")
    assert ("loaded" in outcome.details["push"]) == (agent != "none")
    run_report = session.report()
    assert (
        report.loads(report.dumps(run_report, diagnose(run_report)).encode()).entries
        == run_report.entries
    )


def test_a_short_look_at_the_path_leaves_the_load_out() -> None:
    (turn,) = path.turns(replace(KNOWN, budget_seconds=20.0))
    assert not turn.setting.load
    (turn,) = path.turns(replace(KNOWN, budget_seconds=20.0, is_only=True))
    assert turn.setting.load


def test_where_the_servers_address_is_unknown_the_path_is_skipped() -> None:
    session = sessions.update_world(session_of("path"), address="")
    session.carry_out(explain_stages(sessions.order_of(session)))
    ((_, outcome),) = session.log.entries()
    assert isinstance(outcome, Skipped) and "address" in outcome.reason


@pytest.mark.long
def test_a_usual_run_measures_what_smb_costs_and_its_report_says_so(share: Any) -> None:
    session = session_after("smb-copy", *OVER_SMB, target=share())
    run_report = session.report()
    assert run_report.notes == () and session.log.complete()
    assert all(
        isinstance(each, Measured) and each.details["hash_ok"] for _, each in run_report.entries
    )
    assert [(step.stage, step.setting["verb"]) for step, _ in run_report.entries] == [
        ("smb-matrix", "pull"),
        *[("smb-tax", verb) for _ in range(3) for verb in ("pull", "push")],
        ("small-files", "push"),
        ("small-files", "pull"),
    ]
    taxed = steps_of(session, "smb-tax")
    assert {step.setting["security"] for step, _ in taxed} == {"plain", "signed", "encrypted"}
    byte_counts = {
        (step.setting["verb"], run[-1].moved_bytes)
        for step, outcome in taxed
        for run in outcome.runs
    }
    assert len(byte_counts) == 2, "the same bytes whatever the security"
    for step in json.loads(report.dumps(run_report, diagnose(run_report)))["steps"]:
        assert "seed" not in step["setting"] and step["setting"]["dialect"] == "3.1.1"


@pytest.mark.long
def test_security_that_the_server_does_not_allow_is_a_note(share: Any) -> None:
    session = session_after("smb-copy", "smb-tax", target=share("server signing = mandatory"))
    steps = steps_of(session, "smb-tax")
    assert session.log.complete()
    assert {step.setting["security"] for step, _ in steps} == {"signed", "encrypted"}
    (note,) = session.log.notes
    assert "requires signing" in note


@pytest.mark.long
def test_it_is_a_skipped_step_where_nothing_else_was_asked_for(share: Any) -> None:
    session = session_after(
        "smb-tax", target=share("server signing = mandatory"), budget_seconds=10.0
    )
    outcomes = {
        (step.setting["security"], step.setting["verb"]): outcome
        for step, outcome in steps_of(session, "smb-tax")
    }
    for verb in ("pull", "push"):
        denied = outcomes["plain", verb]
        assert isinstance(denied, Skipped) and "requires signing" in denied.reason
        assert isinstance(outcomes["signed", verb], Measured)


@pytest.mark.long
@pytest.mark.parametrize("stage", ["smb-matrix", "small-files"])
def test_one_stage_alone_is_measured_even_in_a_short_run(share: Any, stage: str) -> None:
    session = session_after(stage, target=share(), budget_seconds=10.0)
    assert all(isinstance(outcome, Measured) for _, outcome in steps_of(session, stage))


def test_a_full_share_is_a_skipped_step_that_says_so(
    share: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "beyond_reserve_bytes", lambda free, total: 0)
    session = session_after("smb-copy", *OVER_SMB, target=share())
    assert {step.stage for step, _ in session.log.entries()} == set(OVER_SMB)
    for _, outcome in session.log.entries():
        assert (
            isinstance(outcome, Skipped) and "not enough free space on the share" in outcome.reason
        )


# -- a slow path, and one that stands still -------------------------------------------------------


class FakeHosts:
    """Stands for both hosts of a run: each transfer moves at a rate, or breaks off."""

    def __init__(self, rate: float, error: str = "") -> None:
        hosts: Any = {"server": object()}
        self.session = sessions.update_world(session_of("tcp", "path"), hosts=hosts)
        self.order = sessions.order_of(self.session)
        self.rate, self.error = rate, error
        self.asked: list[float] = []

    def measure(self) -> FakeHosts:
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(Log, "_take", lambda *arguments: None)
            carried_out(self.order.transfers.measure(), self.answer)
        return self

    def answer(self, task: Task) -> Result:
        self.asked.append(task.setting.seconds)
        if self.error:
            raise PartlyRan(self.error, (), lost=False)
        byte_count = int(self.rate * task.setting.seconds)
        samples = (Sample(0.0, 0), Sample(task.setting.seconds, byte_count))
        return Result(samples, {}, ({}, {}), None)


def test_a_slow_path_gets_the_time_that_one_honest_transfer_needs() -> None:
    usual, slow = plan.times(60.0).tcp, tcp.SLOW_SECONDS
    assert FakeHosts(120e3).measure().asked[:4] == [usual, slow, usual, slow]
    assert slow not in FakeHosts(10e6).measure().asked


@pytest.mark.parametrize(
    ("error", "looks"),
    [("no payload arrived: timed out", 1), ("the agent gave no complete result", 0)],
)
def test_a_transfer_that_stands_still_asks_the_path_at_once_and_once(
    monkeypatch: pytest.MonkeyPatch, error: str, looks: int
) -> None:
    looked_at: list[str] = []

    between = FakeHosts(0.0, error)

    def measured(stage: Any, why: str) -> Tasks[None]:
        looked_at.append(stage.name)
        between.session.log.add(report.Step(stage.name, {}, "client"), Skipped("a test"))
        yield from ()

    monkeypatch.setattr(between.order.turns, "measure", measured)
    between.measure()
    assert looked_at == ["path"] * looks
    pending = [each.name for each in between.order._explanations().pending]
    assert ("path" in pending) == (not looks)


def test_both_ways_at_once_without_an_agent_are_two_skipped_steps() -> None:
    order = sessions.order_of(session_of("tcp", settings={"both_ways": True}))
    carried_out(order.transfers._both_ways(), pytest.fail)
    assert [outcome for _, outcome in order.log.entries()] == [Skipped(NEEDS_AGENT)] * 2


def test_what_was_chosen_holds_in_every_turn_and_turns_that_are_the_same_are_one() -> None:
    settings = {"windows": (65536,), "streams": (2,), "seconds": 3.0}
    on = sessions.order_of(session_of("matrix", settings=settings)).turns
    turn_settings = [each.setting for each in on._turns(matrix)]
    assert [(each.verb, each.windows, each.streams) for each in turn_settings] == [
        ("push", (65536,), (2,)),
        ("pull", (65536,), (2,)),
    ]
    assert on._seconds(matrix.STAGE, next(on._turns(matrix))) == 3.0
    (pull,) = sessions.order_of(session_of("udp", settings={"verb": "pull"})).turns._turns(udp)
    assert pull.setting.verb == "pull"
    assert [
        (each.verb, each.streams)
        for each in map(session_of("tcp").world.apply_choices, plan.TCP_STEPS)
    ] == [("push", 1), ("pull", 1), ("push", 4), ("pull", 4)]
    eight = session_of("tcp", settings={"streams": 8}).world.apply_choices
    assert len(dict.fromkeys(map(eight, plan.TCP_STEPS))) == 2


@pytest.mark.long
def test_both_ways_at_once_come_after_each_by_itself_with_what_was_chosen() -> None:
    settings = {"both_ways": True, "streams": 2, "seconds": 0.4, "window_bytes": 65536}
    session = session_after("tcp", settings={**settings, "bytes_per_second": 50e6}, **AGENT)
    assert session.log.complete()
    steps = steps_of(session, "tcp")
    assert [(step.setting["verb"], step.setting["both_ways"]) for step, _ in steps] == [
        ("push", False),
        ("pull", False),
        ("push", True),
        ("pull", True),
    ]
    for step, outcome in steps:
        assert (step.setting["streams"], step.setting["bytes_per_second"]) == (2, 50e6)
        granted = {outcome.details[end]["granted_bytes"] for end in ("sender", "receiver")}
        assert granted == {131072}, "Linux grants twice what was asked for"
        assert outcome.details["sender"]["system_seconds"] >= 0
