"""A transfer whose other end lies, stops, floods or goes away ends in time, without a figure."""

from __future__ import annotations

import json
import socket
import threading
from contextlib import ExitStack, suppress
from functools import partial

import pytest

from probes.net import port, transfer
from probes.net.sampling import Arrivals
from probes.net.transfer import Shape
from tests import living
from tests.living import reset

HERE = "127.0.0.1"
SECONDS = 0.2
TOLD = {"seconds": 0.3, "moved_bytes": 30, "calls": 3, "granted_bytes": 1000, "seen": {}}
SAMPLES = [[0.0, 0], [0.1, 10], [0.2, 20], [0.3, 30]]


@pytest.fixture(autouse=True)
def _soon(monkeypatch):
    """Shortens the limits: no test waits for seconds."""
    monkeypatch.setattr(port, "STALL_SECONDS", 0.5)


def fails(shape, peer):
    """Returns the error by which a transfer ends, and the samples before it."""
    samples = []
    with pytest.raises(Exception) as broke:  # noqa: PT011  (the agent tells any of them in one line)
        samples.extend(transfer.initiate(shape, peer))
    return broke.value, samples


def swallow(connection):
    """Takes all that comes, in a thread."""

    def take():
        try:
            while connection.recv(1 << 18):
                pass
        except OSError:
            return

    threading.Thread(target=take, daemon=True).start()


@pytest.fixture
def lying_sink(responder):
    """A sink that tells a line of its own instead of what it saw."""

    def work(line, meeting, over):
        for each in meeting.connections:
            swallow(each)
        meeting.control.sendall(line + b"\n")
        over.wait()

    return lambda line: responder(partial(work, line))


def summary(**instead):
    return json.dumps({**TOLD, "samples": SAMPLES, **instead}).encode()


# -- what a receiver tells of a push ---------------------------------------------------------------


@pytest.mark.parametrize(
    "line",
    [
        b"nonsense",
        b"{}",
        b'{"error":"full"}',
        summary(samples=[]),
        summary(samples=5),
        summary(samples="0123"),
        summary(samples=[[0, 0], [1, None]]),
        summary(samples=[[0, 0], [1, {}]]),
        summary(samples=[[0, 0], [1, float("inf")]]),
        summary(samples=[[0, 0], [1, float("nan")]]),
        summary(seen=None),
        summary(seen=[1, 2]),
        summary(seen="receiver"),
        summary(seen={"unread_bytes_median": "much"}),
        json.dumps(TOLD).encode(),
    ],
)
def test_a_receiver_that_tells_nonsense_fails_the_transfer(lying_sink, line):
    with lying_sink(line) as peer:
        fails(Shape("push", seconds=SECONDS), peer)


@pytest.mark.parametrize(
    ("sample", "why"),
    [([0.01, 1 << 60], "more bytes"), ([1e6, 1], "another time"), ([-1, 1], "are none")],
)
def test_a_sample_that_cannot_be_is_not_passed_on(lying_sink, sample, why):
    line = json.dumps({"sample": sample}).encode() + b"\n" + summary(samples=[[0, 0], sample])
    with lying_sink(line) as peer:
        error, samples = fails(Shape("push", seconds=SECONDS), peer)
    assert why in str(error)
    assert {each.moved_bytes for each in samples} <= {0}


def test_a_receiver_does_not_choose_its_time(responder, clock):
    def work(meeting, over):
        (connection,) = meeting.connections
        assert connection.recv(1000, socket.MSG_WAITALL)
        clock.time += SECONDS
        meeting.control.sendall(summary(samples=[[0, 0], [0.001, 1000]]) + b"\n")
        swallow(connection)
        over.wait()

    with responder(work) as peer:
        error, _ = fails(Shape("push", seconds=SECONDS), peer)
    assert "another time" in str(error)


def test_a_receiver_that_never_reads_fails_it(responder):
    with responder(lambda meeting, over: over.wait()) as peer:
        fails(Shape("push", streams=2, seconds=SECONDS), peer)


@pytest.mark.parametrize("verb", transfer.VERBS)
@pytest.mark.parametrize("how", [reset, socket.socket.close])
def test_an_end_that_goes_away_in_the_middle_fails_it(responder, verb, how):
    def work(meeting, over):
        for each in meeting.connections:
            each.sendall(b"x" * 5000) if verb == "pull" else each.recv(5000)
        for each in (*meeting.connections, meeting.control):
            how(each)

    with responder(work) as peer:
        error, _ = fails(Shape(verb, seconds=SECONDS), peer)
    assert isinstance(error, RuntimeError)


# -- what a sender does in a pull ------------------------------------------------------------------


@pytest.mark.long
def test_a_sender_that_never_sends_fails_it(responder):
    with responder(lambda meeting, over: over.wait()) as peer:
        error, samples = fails(Shape("pull", seconds=SECONDS), peer)
    assert "no payload arrived" in str(error)
    assert not samples


def test_a_sender_that_stops_after_a_byte_gives_no_figure(responder):
    def work(meeting, over):
        meeting.connections[0].sendall(b"x")
        over.wait()

    with responder(work) as peer:
        error, samples = fails(Shape("pull", seconds=SECONDS), peer)
    assert "nothing arrived after the warm-up" in str(error)
    assert {each.moved_bytes for each in samples} == {0}


def test_a_sender_that_never_stops_is_stopped_by_the_clock(responder, clock, monkeypatch):
    stopped, count = threading.Event(), Arrivals.count

    def later(arrivals):
        counted = count(arrivals)
        clock.time += SECONDS / 4
        assert living.until(lambda: count(arrivals).moved_bytes > counted.moved_bytes)
        return counted

    def work(meeting, over):
        with suppress(OSError):
            while not over.is_set():
                meeting.connections[0].send(b"x" * 65536)
            return
        stopped.set()

    monkeypatch.setattr(Arrivals, "count", later)
    with responder(work) as peer:
        _, samples = fails(Shape("pull", seconds=SECONDS), peer)
        assert samples[-1].moved_bytes > 0
        assert stopped.wait(living.GENEROUS_SECONDS)


@pytest.mark.parametrize("line", [b"nonsense", b"[]", b"{}", b'{"seen":[]}', b'{"error":"full"}'])
def test_a_sender_that_tells_nonsense_fails_the_transfer(responder, line):
    def work(meeting, over):
        def pour():
            try:
                while not over.is_set():
                    meeting.connections[0].sendall(b"x" * 65536)
            except OSError:
                return

        threading.Thread(target=pour, daemon=True).start()
        meeting.control.sendall(line + b"\n")
        over.wait()

    with responder(work) as peer:
        fails(Shape("pull", seconds=SECONDS), peer)


# -- an initiator that asks for what the session is not for ----------------------------------------


def request_with(**instead):
    request = {
        "verb": "pull",
        "streams": 1,
        "buffer_bytes": 65536,
        "seconds": SECONDS,
        "window_bytes": 0,
        **instead,
    }
    return {name: value for name, value in request.items() if value is not ...}


def refusal(peer, request, connections=1):
    """Returns a responder's refusal of a request, before it moves a byte."""
    with ExitStack() as stack, pytest.raises(RuntimeError) as answer:
        meeting = port.meet(peer, request, connections)
        stack.callback(meeting.close)
        for each in meeting.connections:
            each.settimeout(living.GENEROUS_SECONDS)
            assert each.recv(1) == b""
        meeting.hear(living.GENEROUS_SECONDS)
    return str(answer.value)


@pytest.mark.parametrize(
    "instead",
    [
        {"seconds": 1e9},
        {"seconds": float("inf")},
        {"seconds": float("nan")},
        {"seconds": -1},
        {"seconds": "1"},
        {"seconds": None},
        {"buffer_bytes": 1 << 40},
        {"buffer_bytes": 0},
        {"buffer_bytes": -1},
        {"buffer_bytes": "big"},
        {"streams": 2},
        {"streams": 0},
        {"streams": 10**9},
        {"window_bytes": 1 << 20},
        {"window_bytes": -5},
        {"verb": "delete"},
        {"verb": ["push"]},
        {"verb": ...},
        {"streams": ...},
    ],
)
def test_a_request_for_something_else_is_refused_before_a_byte_moves(instead):
    with transfer.respond(HERE, SECONDS) as peer:
        assert refusal(peer, request_with(**instead))


@pytest.mark.parametrize("verb", transfer.VERBS)
def test_an_initiator_that_does_nothing_or_leaves_does_not_keep_the_responder(
    transfer_to, verb, monkeypatch, payload_clock
):
    closed = []
    monkeypatch.setattr(port, "_serve", _note_closed(port._serve, closed))
    with transfer.respond(HERE, SECONDS) as peer:
        idle = port.meet(peer, request_with(verb=verb), 1)
        leaver = port.meet(peer, request_with(verb=verb), 1)
        for each in (leaver.control, *leaver.connections):
            reset(each)
        samples, _ = transfer_to(Shape("push", 1, 65536, SECONDS), peer)
        assert samples[-1].moved_bytes > 0
        payload_clock.time += living.GENEROUS_SECONDS
        assert living.until(lambda: len(closed) == 3)
        idle.close()


def _note_closed(serve, closed):
    def served(meeting, work):
        serve(meeting, work)
        closed.append(meeting)

    return served
