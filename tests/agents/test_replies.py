"""An agent's replies wait in a bounded room; who sends what nobody asked for is lost at once."""

from __future__ import annotations

import sys
import time

import pytest

from bottleneck import __version__
from bottleneck.agents import hosts, protocol, replies
from bottleneck.agents.replies import Replies, UnaskedReply
from probes.core import typed
from probes.core.records import Sample

LONG = "x" * (protocol.MAX_LINE_BYTES - 100)


def line(number, **reply):
    return protocol.encode({"id": number, **reply})


def replies_to(*numbers):
    expected = Replies()
    for number in numbers:
        expected.expect(number)
    return expected


def agent_that(sends):
    """An agent that does this with its stream `o` at its first request, and reads on."""
    program = (
        "import sys; o = sys.stdout.buffer; "
        f"o.write({protocol.greeting(__version__, '3.9.0', 'nas')!r}); o.flush(); "
        f"sys.stdin.readline(); {sends}; o.flush(); sys.stdin.read()"
    )
    return hosts.Host.start("server", [sys.executable, "-c", program])


@pytest.mark.long
def test_forty_replies_of_a_mebibyte_end_the_agent_before_they_fill_the_coordinator():
    begin, end = line(1, more="|").split(b"|")
    with agent_that(f"o.write(40 * ({begin!r} + b'x' * {len(LONG)} + {end!r}))") as host:
        number = host.send({"do": "counters"})
        until = time.monotonic() + 20
        while not host.lost and time.monotonic() < until:
            time.sleep(0.01)
        assert host.lost == "sent too much data"
        assert host.replies._unread_bytes <= replies.MOST_WAITING_BYTES
        assert "more" in host.next(number, until, "the first")


@pytest.mark.parametrize("number", [2, 0, -1, "1", True, 1.0, None, [1]])
def test_a_reply_to_no_request_ends_the_agent(number):
    with (
        agent_that(f"o.write({line(number, answer=1)!r})") as host,
        pytest.raises(hosts.AgentLost, match="sent data that was not requested"),
    ):
        host.tell("counters")


def test_a_second_answer_ends_the_agent():
    waiting = replies_to(1, 2)
    waiting.take_line(line(1, answer=1))
    with pytest.raises(UnaskedReply, match="not requested"):
        waiting.take_line(line(1, answer=1))


def test_what_is_late_is_no_offence_but_has_a_bound(monkeypatch):
    monkeypatch.setattr(replies, "MOST_LATE", 3)
    waiting = replies_to(1)
    waiting.forget(1)
    for _ in range(3):
        waiting.take_line(line(1, sample=[0, 0]))
    with pytest.raises(UnaskedReply):
        waiting.take_line(line(1, sample=[0, 0]))


def test_what_was_read_makes_room_and_one_request_has_its_own_bound():
    waiting = replies_to(*range(1, 9))
    for number in range(1, 9):
        waiting.take_line(line(number, more=LONG))
        assert waiting.get(number, 1.0)["more"] == LONG
    with pytest.raises(UnaskedReply, match="too much data"):
        for _ in range(replies.MOST_BYTES // len(LONG)):
            waiting.take_line(line(1, more=LONG))


def test_all_requests_together_have_a_bound():
    waiting = replies_to(*range(1, 9))
    with pytest.raises(UnaskedReply, match="too much data"):
        for number in range(1, 9):
            waiting.take_line(line(number, more=LONG))


def test_what_nobody_will_read_makes_room():
    waiting = replies_to(*range(1, 9))
    for number in range(1, 9):
        waiting.take_line(line(number, more=LONG))
        waiting.forget(number)
    assert waiting._unread_bytes == 0


def test_a_session_has_a_bound_that_grows_with_what_is_asked(monkeypatch):
    monkeypatch.setattr(replies, "MOST_SESSION_BYTES", 2 * len(LONG))
    waiting = replies_to(1, 2, 3)
    with pytest.raises(UnaskedReply, match="too much data"):
        for number in (1, 2, 3):
            waiting.take_line(line(number, more=LONG))
            waiting.get(number, 1.0)


@pytest.mark.parametrize("value", [5, [], [1], [1, 2, 3], ["1", 2], [-1, 2], [1, float("inf")]])
def test_what_is_no_sample_is_refused(value):
    with pytest.raises(ValueError):
        replies.sample(value)


@pytest.mark.parametrize(
    ("samples", "is_window"),
    [
        ([(0.0, 0), (1.0, 5)], True),
        ([(0.0, 0), (0.5, 3), (0.5, 3), (1.0, 3)], True),
        ([(0.0, 0), (1.0, 0)], True),
        ([], False),
        ([(1.0, 5)], False),
        ([(1.0, 5), (1.0, 9)], False),
        ([(0.0, 5), (1.0, 4)], False),
        ([(0.0, 0), (2.0, 4), (1.0, 5)], False),
    ],
)
def test_a_window_has_a_duration_and_nothing_in_it_runs_backwards(samples, is_window):
    assert replies.is_window([Sample(*each) for each in samples]) is is_window


@pytest.mark.parametrize(
    "value", [5, [], {"window_rates_bytes_per_second": ["x"]}, {"window_rates_bytes_per_second": 5}]
)
def test_details_that_no_rate_can_be_derived_from_are_refused(value):
    with pytest.raises(ValueError):
        typed.details(value)
    assert typed.details({"anything": ["x"]}) == {"anything": ["x"]}
