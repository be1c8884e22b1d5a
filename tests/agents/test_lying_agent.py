"""An agent that tells other than what is true ends a step or the run, in a sentence.

It never ends the coordinator, gives no figure that cannot be, and no report that cannot be read.
"""

from __future__ import annotations

import io
import shlex
import sys
from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path

import pytest
from rich.console import Console

from bottleneck import __version__
from bottleneck.agents import hosts, protocol, replies
from bottleneck.analysis.diagnosis import diagnose
from bottleneck.cli import exits
from bottleneck.documents.console import print_report
from bottleneck.login.target import parse
from bottleneck.report import report
from bottleneck.run import plan
from bottleneck.run.execution import Session
from bottleneck.run.steps import tcp
from probes.core.records import Access, Endpoint, Measured, rates
from probes.core.stage import Refused, Unavailable
from probes.stages import loopback
from tests.run.steps.sessions import order_of, reach

LIAR = Path(__file__).parents[1] / "programs" / "lying_agent.py"
MOST_BYTES_PER_SECOND = 1e12
"""No loopback carries a terabyte a second."""


def loopback_there(order):
    _, there = loopback.turns(order.turns.known(loopback.STAGE))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(
            loopback,
            "turns",
            lambda _: [replace(there, least_seconds=0.15, usual_seconds=0.0, grace_seconds=5.0)],
        )
        yield from order.turns.measure(loopback.STAGE, "")


def transfer(order):
    """TCP between the agents."""
    return order.transfers.measure()


def run_stage(monkeypatch, measure, path, value):
    """A run of one stage with a liar for the server's agent: as it is then, and how it ended."""
    monkeypatch.setattr(plan, "times", lambda *_: plan.Times(*[0.15] * len(fields(plan.Times))))
    monkeypatch.setattr(plan, "TCP_STEPS", plan.TCP_STEPS[:1])
    monkeypatch.setattr(tcp, "HOLD_SECONDS", 2.0)
    monkeypatch.setattr(hosts, "ANSWER_SECONDS", 1.0)
    agent = "exec:" + shlex.join([sys.executable, str(LIAR), path, value])
    options = plan.Options(
        target=parse("//127.0.0.1/-"),
        folder="/tmp",
        agent=agent,
        budget_seconds=20.0,
        stages=("loopback",),
    )
    session = Session(options, Access(), lambda event: None, lambda so_far: None)
    code, sentence = exits.DONE, ""
    try:
        with ExitStack() as stack:
            reach(session, stack, share=False)
            session.carry_out(measure(order_of(session, stack)))
    except Exception as error:  # as the commands do
        code, sentence = exits.exit_of_error(error)
    return session, code, sentence


def believable(session):
    """The report can be written, printed and read again; no figure in it is beyond this machine."""
    taken_report = session.report()
    diagnosis = diagnose(taken_report)
    again = report.loads(report.dumps(taken_report, diagnosis).encode())
    file = io.StringIO()
    print_report(taken_report, diagnosis, Console(file=file, width=100), ("all",))
    assert all(line.isprintable() for line in file.getvalue().splitlines())
    for _, outcome in again.entries:
        if isinstance(outcome, Measured):
            assert 0 < rates(outcome).median < MOST_BYTES_PER_SECOND
            for each in outcome.runs:
                times = [sample.elapsed_seconds for sample in each]
                counts = [sample.moved_bytes for sample in each]
                assert times == sorted(times) and counts == sorted(counts)
    return again


def ends_well(monkeypatch, measure, path, value):
    """Whatever was told: no crash of the coordinator, a line at most, a report that stands."""
    session, code, sentence = run_stage(monkeypatch, measure, path, value)
    assert code in (exits.DONE, exits.UNREACHABLE), sentence
    assert "\n" not in sentence
    return believable(session)


@pytest.mark.long
def test_a_relay_that_changes_nothing_is_an_agent_like_any_other(monkeypatch):
    again = ends_well(monkeypatch, loopback_there, "no.such.key", "0")
    assert [step.initiator for step, _ in again.entries] == ["server"]
    assert all(isinstance(outcome, Measured) for _, outcome in again.entries), again.entries


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("answer", ""),
        ("answer", "5"),
        ("answer.cores", '"many"'),
        ("answer.interface_sent_bytes", "-5"),
        ("answer.interface_sent_bytes", "1e999"),
        ("answer.clock_seconds", "NaN"),
        ("answer.clock_seconds", "0"),
        ("answer.tools", '{"fio": 5}'),
        ("endpoint", ""),
        ("endpoint", "5"),
        ("endpoint.port", "-1"),
        ("endpoint.port", "99999"),
        ("endpoint.nonce", '"short"'),
        ("endpoint.facts", "[]"),
    ],
)
def test_answers_of_other_kinds(monkeypatch, path, value):
    ends_well(monkeypatch, transfer, path, value)


@pytest.mark.long
@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("counters", "5"),
        ("details", '{"limits": {"by": ["\\u001b[2J"]}, "congestion_control": {"a": 1}}'),
        ("details", '{"limits": 5}'),
        ("details.sender", "[]"),
        ("last", "false"),
        ("", '{"id": "x", "sample": [0, 0]}'),
        ("", "nonsense"),
        ("sample", "5"),
        ("sample", '["a", "b"]'),
        ("sample", "[0, 0]"),
        ("sample", "[-1, -5]"),
        ("sample", "[1, 1e308]"),
        ("sample!", "[5e-324, 9000000000000000000]"),
        ("sample!", "[1e-300, 5]"),
        ("sample!", "[0.0001, 5]"),
        ("counters.clock_seconds", "5"),
        ("details", "5"),
        ("details", '{"window_rates_bytes_per_second": ["x"]}'),
    ],
)
def test_a_stage_whose_samples_or_details_cannot_be(monkeypatch, path, value):
    ends_well(monkeypatch, loopback_there, path, value)


def replier(reply):
    """An agent that has one reply to its first request, whatever that is."""
    greeting = protocol.greeting(__version__, "3.9.0", "nas")
    program = (
        "import sys; o = sys.stdout.buffer; "
        f"o.write({greeting!r}); o.flush(); "
        f"sys.stdin.readline(); o.write({protocol.encode({'id': 1, **reply})!r}); o.flush(); "
        "sys.stdin.read()"
    )
    return hosts.Host.start("server", [sys.executable, "-c", program])


@pytest.mark.long
@pytest.mark.parametrize(
    "reply",
    [
        {},
        {"refused": 5},
        {"refused": {}},
        {"refused": {"kind": "login"}},
        {"refused": {"text": "no"}},
        {"refused": {"kind": "of my own", "text": "no"}},
        {"refused": {"kind": ["login"], "text": "no"}},
        {"refused": {"kind": "login", "text": 5}},
        {"failed": ["a", "\n"]},
        {"failed": "two\nlines"},
        {"skipped": {"why\n": "\n"}},
        {"lost": "two\nlines"},
        {"observed": {}},
    ],
)
@pytest.mark.parametrize("kind", ["a question", "a hold", "a stage"])
def test_a_reply_without_what_it_must_have_is_one_line(monkeypatch, reply, kind):
    monkeypatch.setattr(hosts, "CLOSING_SECONDS", 1.0)
    expected = (hosts.StageError, hosts.PartlyRan, hosts.AgentLost, Unavailable)
    with replier(reply) as host, pytest.raises(expected) as raised:
        if kind == "a question":
            host.ask("facts", seconds=5.0)
        elif kind == "a stage":
            host.initiate("loopback", loopback.Setting(), Endpoint(), 5.0)
        else:
            with host.hold("loopback", loopback.Setting(), Endpoint(), 5.0):
                pass
    code, sentence = exits.exit_of_error(raised.value)
    assert code == exits.UNREACHABLE
    assert sentence and "\n" not in sentence


def test_a_refusal_that_is_one_stays_one():
    refusal = {"refused": {"kind": "login", "text": "no such user"}}
    with replier(refusal) as host, pytest.raises(Refused, match="no such user") as raised:
        host.ask("facts", seconds=5.0)
    assert exits.exit_of_error(raised.value)[0] == exits.REFUSED


def test_every_kind_of_refusal_has_its_exit_code():
    assert set(exits.OF_REFUSAL) == replies.REFUSALS
