"""The step of the path stage, as a run makes it on a real server, with and without an agent."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from bottleneck import plan, report, session
from bottleneck.analysis import diagnose
from bottleneck.bench import Bench, Event
from bottleneck.steps import path
from bottleneck.target import parse
from probes.drivers.samba import private_samba
from probes.records import Access, Measured, Skipped

PASSWORD = "correct horse 47"


@pytest.fixture
def measured(tmp_path: Path):
    """measured(agent, budget): the run after this one step."""

    def run(agent: str, budget: float) -> Bench:
        with ExitStack() as stack:
            server = stack.enter_context(private_samba(str(tmp_path), password=PASSWORD))
            options = plan.Options(
                target=parse(f"//{server.host}:{server.port}/{server.share}"),
                folder=str(tmp_path),
                agent=agent,
                budget_seconds=budget,
                stages=("path", "smb-copy"),
            )
            events: list[Event] = []
            bench = Bench(
                options, Access(server.username, PASSWORD), events.append, lambda report: None
            )
            bench.address = server.host
            session._reach(bench, stack)
            session._learn(bench)
            path.measure_path(bench)
            assert not any(event.bytes_per_second for event in events)
            return bench

    return run


@pytest.mark.parametrize("agent", ["none", "exec:"])
def test_the_step_is_measured_without_a_rate_and_survives_the_file(measured, agent):
    bench = measured(agent, 60.0)
    ((step, outcome),) = bench.ledger.entries()
    assert (step.stage, step.initiator) == ("path", "client")
    assert {"host", "port", "seconds"} <= set(step.setting)
    assert isinstance(outcome, Measured) and bench.ledger.complete()
    assert outcome.details["rtt"]["handshake"]["count"] > 0
    assert ("pull" in outcome.details) == (agent != "none")
    assert ("loaded" in outcome.details["push"]) == (agent != "none")
    made = bench.report()
    text = report.dumps(made, diagnose(made))
    assert report.loads(text.encode()).entries == made.entries


def test_a_short_run_leaves_the_load_out(measured):
    bench = measured("exec:", 20.0)
    ((_, outcome),) = bench.ledger.entries()
    assert isinstance(outcome, Measured)
    assert "short run" in outcome.details["not_measured"]["push.loaded"]
    assert "black_hole" in outcome.details["pull"]


def test_where_the_server_s_address_is_unknown_the_step_is_skipped(tmp_path: Path):
    options = plan.Options(target=parse("//nas/x"), folder=str(tmp_path), stages=("path",))
    bench = Bench(options, Access(), lambda event: None, lambda report: None)
    path.measure_path(replace(bench, address=""))
    ((_, outcome),) = bench.ledger.entries()
    assert isinstance(outcome, Skipped) and "address" in outcome.reason
