"""Frames: nothing that a peer sends makes us take more than was asked, or wait longer than told."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable
from typing import Any

import pytest

from probes.smb import frames
from probes.smb.frames import DeadlinePassed, SmbError
from tests.living import FakeClock, until


def test_a_message_is_sent_in_one_frame_whatever_its_parts(ends: Any) -> None:
    wire, peer = ends
    wire.send([b"head", memoryview(b"payload"), bytearray(b"!")])
    assert peer.take() == b"headpayload!"


def test_a_large_message_arrives_whole_through_partial_sends(ends: Any, run_in_thread: Any) -> None:
    wire, peer = ends
    payload = bytes(range(256)) * 65536
    got: list[bytes] = []
    run_in_thread(lambda: got.append(peer.take()))
    wire.send([payload[:100], memoryview(payload)[100:]])
    assert until(lambda: bool(got)) and got == [payload]


def test_keep_alives_are_passed_over_and_the_longest_frame_is_taken(ends: Any) -> None:
    wire, peer = ends
    peer.sock.sendall(b"\x85\0\0\0\x85\0\0\0\0\x10\0\0hello")
    assert wire.next_frame() == wire.frame_limit_bytes
    view = memoryview(bytearray(5))
    wire.receive(view)
    assert bytes(view) == b"hello"


@pytest.mark.parametrize(
    ("header", "complaint"),
    [
        (b"SSH-", "not an SMB message"),
        (b"\x01\0\0\0", "not an SMB message"),
        (b"\x85\0\0\x01", "not an SMB message"),
        (struct.pack(">I", (1 << 20) + 1), "more than asked"),
    ],
)
def test_what_is_no_frame_or_too_long_is_refused_before_memory_is_taken(
    ends: Any, header: bytes, complaint: str
) -> None:
    wire, peer = ends
    peer.sock.sendall(header)
    with pytest.raises(SmbError, match=complaint):
        wire.next_frame()


def test_a_peer_that_trickles_cannot_move_the_deadline(
    ends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, _ = ends
    clock, view = FakeClock(), bytearray(4096)

    class Trickle:
        def recv_into(self, part: memoryview, *_: int) -> int:
            clock.time += 0.05
            part[:1] = b"x"
            return 1

        def setsockopt(self, *_: object) -> None:
            pass

    monkeypatch.setattr(frames, "time", clock)
    monkeypatch.setattr(wire, "_sock", Trickle())
    wire.deadline = clock.now() + 1
    with pytest.raises(DeadlinePassed):
        wire.receive(memoryview(view))
    assert 19 <= view.count(b"x") <= 21


@pytest.mark.long
def test_a_silent_peer_has_stalled_unless_it_is_known_to_be_busy(
    ends: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    wire, _ = ends
    monkeypatch.setattr(frames, "STALL_SECONDS", 0.1)
    with pytest.raises(SmbError, match="stalled"):
        wire.next_frame()
    wire.patient, wire.deadline = True, time.monotonic() + 1.5
    with pytest.raises(DeadlinePassed):
        wire.next_frame()


@pytest.mark.long
def test_a_peer_that_takes_nothing_has_stalled(ends: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    wire, _ = ends
    monkeypatch.setattr(frames, "STALL_SECONDS", 0.1)
    block = memoryview(bytes(1 << 20))
    with pytest.raises(SmbError, match="accepted nothing"):
        for _ in range(100):
            wire.send([block])


@pytest.mark.parametrize("end", [lambda sock: sock.close(), lambda sock: sock.shutdown(2)])
def test_a_closed_connection_is_told_in_one_line(ends: Any, end: Callable[[object], None]) -> None:
    wire, peer = ends
    end(peer.sock)
    with pytest.raises(SmbError, match=r"^the (server closed the connection|connection failed)"):
        wire.next_frame()
