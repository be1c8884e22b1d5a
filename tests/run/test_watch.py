"""A watch from reaching the hosts to its report, on a connection of the test's own process."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from bottleneck.agents.hosts import Host, StageError
from bottleneck.run import watch, watched_sockets
from bottleneck.run.plan import Side
from bottleneck.run.watch import Options, Watch
from probes.core.records import Failed, Measured
from probes.core.stage import Refused
from probes.host.counters import Counters
from tests.living import connected


@contextmanager
def slow_writer() -> Iterator[None]:
    """A connection of this process whose writer rests, and whose reader never does."""
    stop = threading.Event()
    with connected() as (server, client):

        def send() -> None:
            while not stop.wait(0.005):
                client.sendall(bytes(1 << 16))
            client.close()

        def receive() -> None:
            while server.recv(1 << 16):
                pass

        threads = [threading.Thread(target=each) for each in (send, receive)]
        for each in threads:
            each.start()
        try:
            yield
        finally:
            stop.set()
            for each in threads:
                each.join()


def burst(size_bytes: int) -> None:
    """So many bytes over this host's loopback, beside the copy."""
    with connected() as (receiver, sender):

        def send() -> None:
            with sender:
                for _ in range(size_bytes >> 20):
                    sender.sendall(bytes(1 << 20))

        thread = threading.Thread(target=send)
        thread.start()
        while receiver.recv(1 << 20):
            pass
        thread.join()


def quiet(label: str) -> None:
    """Nobody watches the watch."""


def sleep(seconds: float) -> bool:
    time.sleep(seconds)
    return True


@pytest.mark.long
def test_a_writer_that_rests_is_where_the_bytes_come_too_slowly() -> None:
    with slow_writer(), Watch(Options(os.getpid(), agent="exec:", seconds=2.0), quiet) as session:
        session.reach()
        session.observe(sleep)
        report = session.report()
    ((step, outcome),) = report.entries
    assert isinstance(outcome, Measured) and outcome.responder is not None
    assert set(outcome.details["looks"]) == {"client", "server"}
    assert outcome.details["sockets"]["by"] == "sender"
    assert step.setting["program"] and report.status == "complete"


@pytest.mark.long
def test_an_agent_that_is_lost_leaves_what_this_host_saw() -> None:
    waits = 0

    def wait(seconds: float) -> bool:
        nonlocal waits
        waits += 1
        if waits == 2:
            os.killpg(session.reached[there].process.pid, signal.SIGKILL)
        time.sleep(0.5)
        return True

    options = Options(os.getpid(), agent="exec:", seconds=2.0)
    with slow_writer(), Watch(options, quiet) as session:
        session.reach()
        there = watched_sockets.OTHER[session.here]
        session.observe(wait)
        report = session.report()
    ((_, outcome),) = report.entries
    assert isinstance(outcome, Measured) and set(outcome.details["looks"]) == {session.here}
    assert outcome.responder is not None
    (note,) = report.notes
    assert note.startswith(f"{there}: ") and session.silent == {there: note}
    assert report.status == "partial"


@pytest.mark.long
def test_a_copy_goes_on_where_others_traffic_beside_it_ended() -> None:
    """The interface is as quiet then as after the copy's end."""
    waits = iter(range(6))

    def wait(seconds: float) -> bool:
        index = next(waits)
        if index == 0:
            burst(1 << 29)
        time.sleep(0.3)
        return index < 5

    with slow_writer(), Watch(Options(os.getpid(), seconds=60.0), quiet) as session:
        session.reach()
        session.observe(wait)
        assert session.interrupted and not session.log.notes


@pytest.mark.long
@pytest.mark.parametrize("question", ["running-copies", "facts", "counters", "observed"])
def test_whatever_the_other_agent_tells_amiss_costs_its_side_alone(
    monkeypatch: pytest.MonkeyPatch, question: str
) -> None:
    """One note, and this host's own measurement."""
    others: list[Host] = []
    real = {"ask": Host.ask, "tell": Host.tell, "next": Host.next}
    start = watch.hosts.start_there
    monkeypatch.setattr(
        watch.hosts, "start_there", lambda spec: others.append(start(spec)) or others[0]
    )

    def amiss(name: str) -> Any:
        def reply(host: Host, what: Any, *extra: Any, **keywords: Any) -> Any:
            if host in others and what == question:
                raise StageError(f"{host.side}: invalid data from the agent")
            answer = real[name](host, what, *extra, **keywords)
            if host in others and question == "observed" and name == "next" and question in answer:
                return {"observed": {"connections": 7}}
            return answer

        return reply

    for name in real:
        monkeypatch.setattr(Host, name, amiss(name))
    options = Options(os.getpid(), agent="exec:", seconds=2.0)
    with slow_writer(), Watch(options, quiet) as session:
        session.reach()
        session.observe(sleep)
        report = session.report()
    ((_, outcome),) = report.entries
    assert isinstance(outcome, Measured) and set(outcome.details["looks"]) == {session.here}
    (note,) = report.notes
    assert note.startswith(f"{watched_sockets.OTHER[session.here]}: ")


def test_a_name_that_cannot_be_looked_up_is_unreachable() -> None:
    for name in ("no.such.host.invalid", "a" * 300, "a..b"):
        with Watch(Options(host=name), quiet) as session, pytest.raises(Refused) as refused:
            session.reach()
        assert refused.value.kind == "unreachable"


def readings(*arguments: int | None) -> list[dict[Side, Counters]]:
    """Counters of a host whose interface had moved so much at each second."""
    return [
        {
            "client": Counters(
                clock_seconds=float(index),
                cores=(),
                processes=(),
                threads=(),
                traffic=None if each is None else (each, each // 50),
            )
        }
        for index, each in enumerate(arguments)
    ]


def test_an_observation_that_is_too_short_is_a_failed_step_with_its_report() -> None:
    session = Watch(Options(), quiet)
    session.entry = step, outcome = session._entry({}, readings(0, 1))
    assert session.report().entries == ((step, outcome),)
    assert outcome == Failed("the observation was too short")


def test_what_is_watched_is_called_as_it_was_asked_for() -> None:
    names = [each.name for each in (Options(7, "nas"), Options(host="nas"), Options())]
    assert names == ["process 7", "connection with nas", "SMB connection"]


@pytest.mark.parametrize(
    ("byte_counts", "quiet"),
    [
        ((0, 100, 200, 300), False),
        ((0, 10**8, 2 * 10**8, 2 * 10**8 + 900, 2 * 10**8 + 1800), True),
        ((0, 10**8, 2 * 10**8, 2 * 10**8 + 900), False),
        ((0, 10**8, 10**8, 2 * 10**8, 2 * 10**8), False),
        ((0, 0, 0, 0, 0), False),
        ((None, None, None, None), False),
    ],
    ids=["moves", "ended", "one-quiet-second", "in-steps", "never-moved", "no-interface"],
)
def test_an_interface_is_quiet_where_two_seconds_moved_next_to_nothing(
    byte_counts: tuple[int | None, ...], quiet: bool
) -> None:
    assert watch._quiet(readings(*byte_counts), "client") is quiet
