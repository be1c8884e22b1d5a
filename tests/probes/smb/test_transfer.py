"""The window of requests: kept full, never over, whatever order and length the replies have."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from probes.smb import transfer
from probes.smb.frames import SmbError
from probes.smb.pipe import EMPTY, Counters, Reply, Verb
from probes.smb.transfer import FLUSH_BYTES, fetch, finish, push
from tests.living import FakeClock

CONTENT = random.Random(1).randbytes(300_001)


class HonestServer:
    """A Pipe that serves CONTENT, in any order, short or starved of credits on demand."""

    def __init__(self, fills: int = 1 << 30, pays: int = 1 << 30) -> None:
        self.counters = Counters()
        self.asked: list[tuple[Verb, int, memoryview]] = []
        self.sizes: list[int] = []
        self.most = 0
        self.written = bytearray(len(CONTENT))
        self._fills, self._pays, self._random = fills, pays, random.Random(2)

    @property
    def in_flight(self) -> int:
        return len(self.asked)

    def prepare(self, verb: Verb, request_bytes: int, depth: int) -> tuple[int, int]:
        return request_bytes, depth

    def affords(self, size_bytes: int) -> int:
        if size_bytes <= self._pays:
            return size_bytes
        return 0 if self.asked else self._pays

    def read(self, offset: int, view: memoryview) -> None:
        self._ask("read", offset, view)

    def write(self, offset: int, data: memoryview) -> None:
        self.written[offset : offset + len(data)] = data
        self._ask("write", offset, data)

    def flush(self) -> None:
        self.counters.flushes += 1
        assert sum(verb == "flush" for verb, _, _ in self.asked) == 0
        self._ask("flush", 0, EMPTY)

    def turn_times(self) -> None: ...

    def limit(self, deadline: float) -> None:
        raise AssertionError("a transfer sets no deadline")

    def wait(self) -> Reply:
        verb, offset, view = self.asked.pop(self._random.randrange(len(self.asked)))
        count = len(view)
        if verb == "read":
            count = min(count, self._fills)
            view[:count] = CONTENT[offset : offset + count]
        return Reply(verb, offset, view[:count] if verb == "read" else EMPTY, count)

    def _ask(self, verb: Verb, offset: int, view: memoryview) -> None:
        self.asked.append((verb, offset, view))
        self.sizes.append(len(view))
        self.most = max(self.most, len(self.asked))


@pytest.mark.parametrize("pays", [1 << 30, 5000, 1])
@pytest.mark.parametrize("fills", [1 << 30, 7000, 4097])
def test_a_pull_has_every_byte_once_and_asks_less_after_a_short_one(fills: int, pays: int) -> None:
    size = len(CONTENT) if pays > 1 else 3000
    server, got = HonestServer(fills, pays), bytearray(size)
    parts: list[tuple[int, int]] = []

    def sink(offset: int, view: memoryview) -> None:
        got[offset : offset + len(view)] = view
        parts.append((offset, len(view)))

    moved_bytes = list(fetch(server, iter([(0, size)]), 10_000, 4, sink))
    assert got == CONTENT[:size]
    assert sum(length for _, length in parts) == size == moved_bytes[-1]
    assert moved_bytes == sorted(moved_bytes)
    assert server.most <= 4 and max(server.sizes[10:]) <= fills


@pytest.mark.parametrize("pays", [1 << 30, 5000])
def test_a_push_sends_every_byte_once_within_its_window(pays: int) -> None:
    server = HonestServer(pays=pays)
    content = memoryview(CONTENT)
    moved_bytes = list(
        push(server, len(CONTENT), 10_000, 4, lambda offset, size: content[offset : offset + size])
    )
    finish(server)
    assert server.written == CONTENT
    assert moved_bytes[-1] == len(CONTENT) == sum(server.sizes)
    assert server.most <= 4
    assert server.counters.flushes == 1
    assert server.in_flight == 0


def test_each_reply_allows_one_more_request_in_flight() -> None:
    """On a slow path a copy that is over soon ends soon: little of it is under way."""
    block = memoryview(bytes(1000))
    copies = (
        lambda server: push(server, 100_000, 1000, 50, lambda offset, length: block[:length]),
        lambda server: fetch(server, iter([(0, 100_000)]), 1000, 50, lambda offset, view: None),
    )
    for copy in copies:
        server = HonestServer()
        for answered, _ in enumerate(copy(server), 1):
            assert server.most <= transfer.FIRST_REQUESTS + answered
        assert server.most > 2 * transfer.FIRST_REQUESTS


def test_a_long_push_flushes_on_its_way_and_once_more_at_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A clock that goes on with each reply; the FLUSH at the end is not the push's own."""
    server: Any = HonestServer()
    server.written = bytearray()
    monkeypatch.setattr("probes.smb.transfer.time", FakeClock(step=1.0))
    block = memoryview(bytes(1 << 20))
    list(push(server, 5 * FLUSH_BYTES, 1 << 20, 2, lambda offset, length: block[:length]))
    counted = server.counters.flushing_seconds
    assert 2 <= server.counters.flushes <= 5 and counted >= server.counters.flushes
    finish(server)
    assert server.counters.flushing_seconds == counted and server.in_flight == 0


@pytest.mark.parametrize("fills", [1 << 30, 700])
def test_ranges_arrive_whole_in_whatever_parts(fills: int) -> None:
    ranges = [(0, 5000), (290_000, 300_001), (7000, 7001)]
    server, got = HonestServer(fills, pays=3000), {}

    def sink(offset: int, view: memoryview) -> None:
        got.update(zip(range(offset, offset + len(view)), bytes(view), strict=True))

    moved_bytes = list(fetch(server, iter(ranges), 2000, 4, sink))
    assert moved_bytes[-1] == len(got) == 5000 + 1 + 10_001
    assert all(got[place] == CONTENT[place] for start, end in ranges for place in range(start, end))


def test_a_place_that_is_read_again_is_in_flight_once_however_late_its_answer() -> None:
    server = HonestServer()
    moved_bytes = list(fetch(server, iter([(0, 9), (9, 18)] * 50), 9, 4, lambda offset, view: None))
    assert moved_bytes[-1] == 900 and server.most == 2


SIZES = struct.pack("<QQQII", 1000, 300, 400, 8, 512)
ANSWER = struct.pack("<HHI", 9, 72, 32) + SIZES


def test_the_answer_is_free_for_this_user_and_all_in_bytes() -> None:
    assert transfer.parse_room(ANSWER) == (300 * 4096, 1000 * 4096)


def test_the_question_is_40_bytes_and_one_that_stands_for_no_input() -> None:
    body = transfer.room_question(b"f" * 16)
    assert len(body) == 41 and body[:4] == b"\x29\x00\x02\x07" and body[24:40] == b"f" * 16


@pytest.mark.parametrize(
    "body",
    [
        *[ANSWER[:size] for size in (0, 7, -1)],
        struct.pack("<HHI", 9, 71, 32) + SIZES,
        struct.pack("<HHI", 9, 72, 31) + SIZES,
        struct.pack("<HHI", 9, 65535, 32) + SIZES,
    ],
)
def test_a_garbled_answer_is_told_and_not_believed(body: bytes) -> None:
    with pytest.raises(SmbError, match="garbled"):
        transfer.parse_room(body)
