"""The lines of running copies: what passes from the watch, and where a copy's time went."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from typing import Any

import pytest

from bottleneck.analysis.finding import TimeShare
from bottleneck.run import live
from bottleneck.run.live import Feed, Line, shares
from bottleneck.run.watched_sockets import parse_observations
from probes.core.stage import Refused, Unavailable
from probes.system.child import Child
from probes.watch.live_copies import LiveCopy
from probes.watch.running_copies import Link, Running
from tests.run.test_watched_copy import LINK, copy_on, sent_counts

KERNEL = Link("10.0.0.1", 40000, "10.0.0.2", 445, serving=False, kernel=True)
SERVING = Link("10.0.0.2", 445, "10.0.0.1", 40000, serving=True, kernel=False)
PULLS = {"sent_bytes": 9, "received_bytes": 1 << 20}


@pytest.fixture
def channel() -> Iterator[tuple[Feed, Any]]:
    reading, writing = os.pipe()
    yield Feed(Child(0, reading, -1)), lambda event: os.write(writing, event)
    os.close(reading)
    os.close(writing)


def event(*lines: Any, unwatched: int = 0) -> bytes:
    return json.dumps({"lines": lines, "unwatched": unwatched, "cpu_seconds": 0.1}).encode() + b"\n"


def test_the_newest_whole_line_counts(channel: tuple[Feed, Any]) -> None:
    feed, tell = channel
    went = [["network", "path", 0.7], ["disk", "client", 0.3]]
    message = event(["push to nas", 5e6, went], unwatched=3)
    tell(event() + message + event()[:9])
    (line,) = feed.take() or ()
    assert feed.unwatched == 3
    assert line == Line("push to nas", 5e6, tuple(TimeShare(*each) for each in went))
    tell(event()[9:-1])
    assert feed.take() is None
    tell(b"\n")
    assert feed.take() == []


def test_the_cost_is_that_of_both_processes_in_the_last_seconds(channel: tuple[Feed, Any]) -> None:
    feed, _ = channel
    feed.used.extend(
        (100.0 + index, 5.0 if index < 3 else 6.0 + 0.012 * index) for index in range(20)
    )
    assert feed.cost_ratio == pytest.approx(0.012)


@pytest.mark.parametrize(
    ("said", "error", "text"),
    [
        ({"refused": {"kind": "permission", "text": "another user's"}}, Refused, "another user's"),
        ({"skipped": "no table of sockets"}, Unavailable, "no table of sockets"),
        ({"failed": "it broke"}, Unavailable, "it broke"),
    ],
)
def test_what_the_watch_ends_by_is_raised(
    channel: tuple[Feed, Any], said: Any, error: type[Exception], text: str
) -> None:
    feed, tell = channel
    tell(json.dumps(said).encode() + b"\n")
    with pytest.raises(error, match=text):
        feed.take()


@pytest.mark.parametrize(
    ("copier", "text"),
    [
        (copy_on(), "push to 10.0.0.2, smbclient 7"),
        (copy_on(moved_bytes=PULLS), "pull from 10.0.0.2, smbclient 7"),
        (copy_on(SERVING, moved_bytes=PULLS, program="smbd"), "push from 10.0.0.1, smbd 7"),
        (copy_on(SERVING, program="smbd"), "pull to 10.0.0.1, smbd 7"),
        (copy_on(KERNEL, program=None), "push to 10.0.0.2, mount"),
        (copy_on(program=None, pids=()), "push to 10.0.0.2, port 40000"),
        (copy_on(program="\x1b[2J"), r"push to 10.0.0.2, \x1b[2J 7"),
    ],
)
def test_a_line_says_which_way_the_bytes_go_and_what_moves_them(copier: Running, text: str) -> None:
    assert live._name(copier) == text


def test_lines_keep_the_shares_that_were_told_last(monkeypatch: pytest.MonkeyPatch) -> None:
    observation = parse_observations(sent_counts(0, 1 << 20))
    last_shares = (TimeShare("network", "path", 1.0),)
    monkeypatch.setattr(live, "shares", lambda running, observed: last_shares)
    events: list[Any] = []

    def watching(tell: Any, control_fd: int, pid: int, address: str) -> None:
        tell((LiveCopy(b"a", copy_on(), 1.0, None),), 2, 0.1)
        tell((LiveCopy(b"a", copy_on(), 2.0, observation),), 0, 0.2)
        tell(
            (LiveCopy(b"a", copy_on(), 3.0, None), LiveCopy(b"b", copy_on(KERNEL), 4.0, None)),
            0,
            0.3,
        )
        tell((), 0, 0.4)
        tell((LiveCopy(b"a", copy_on(), 5.0, None),), 0, 0.5)

    monkeypatch.setattr(live.live_copies, "watch", watching)
    live._watch(events.append, -1, 0, "")
    assert events.pop() == {"ended": True}
    lines = [[(rate, list(went)) for _, rate, went in each["lines"]] for each in events]
    path_share = [["network", "path", 1.0]]
    assert lines == [
        [(1.0, [])],
        [(2.0, path_share)],
        [(3.0, path_share), (4.0, [])],
        [],
        [(5.0, [])],
    ]
    assert events[0]["unwatched"] == 2


def test_a_process_that_ended_ends_the_feed(channel: tuple[Feed, Any]) -> None:
    feed, tell = channel
    tell(b'{"ended": true}\n')
    assert feed.take() is None and feed.ended


def test_of_too_few_looks_nothing_is_told() -> None:
    assert copy_on().link == LINK
    assert shares(copy_on(), parse_observations(sent_counts(0, 0, 0))) == ()
    assert shares(copy_on(), parse_observations(sent_counts(0, 1 << 20, 2 << 20))) == ()
