"""The SMB2 data path against a server that the test plays, honest and otherwise."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest

from probes.smb.frames import Broken, Late
from probes.smb.pipe2 import FLUSH, READ, WRITE
from probes.smb.protection import Signer, signer
from probes.smb.status import ServerSaid

SESSION, TREE, FILE = 0xABC, 5, b"f" * 16
KIB = 1024
HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
FROM_SERVER, ASYNC, SIGNED = 1, 2, 8
PENDING, DISK_FULL = 0x103, 0xC000007F


def reply(
    message_id: int,
    command: int,
    body: bytes,
    status: int = 0,
    flags: int = FROM_SERVER,
    granted: int = 1,
    session: int = SESSION,
    signed_by: Signer | None = None,
) -> bytes:
    flags |= SIGNED if signed_by else 0
    message = HEADER.pack(
        b"\xfeSMB", 64, 1, status, command, granted, flags, 0, message_id, 0, TREE, session, b""
    )
    message += body
    if signed_by:
        signature = signed_by.sign(message_id, True, message)
        message = message[:48] + signature + message[64:]
    return message


def read_body(data: bytes, start: int = 80, told: int | None = None) -> bytes:
    size = len(data) if told is None else told
    return struct.pack("<HBBIII", 17, start, 0, size, 0, 0) + bytes(start - 80) + data


def write_body(count: int) -> bytes:
    return struct.pack("<HHIIHH", 17, 0, count, 0, 0, 0)


def buffer(size: int) -> memoryview:
    return memoryview(bytearray(size))


def test_requests_carry_what_the_standard_asks(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.read(1 << 33, buffer(200 * KIB))
    pipe.write(5, memoryview(b"payload"))
    pipe.flush()
    read, write, flush = peer.take(), peer.take(), peer.take()
    assert struct.unpack_from("<H", read, 6) == (4,)  # 200 KiB cost 4 credits
    assert struct.unpack_from("<Q", read, 24) == (10,)
    assert struct.unpack_from("<IQ", read, 64 + 4) == (200 * KIB, 1 << 33)
    assert struct.unpack_from("<Q", write, 24) == (14,)
    offset, length, at = struct.unpack_from("<HIQ", write, 64 + 2)
    assert (length, at, write[offset:]) == (7, 5, b"payload")
    assert struct.unpack_from("<Q", flush, 24) == (15,)
    assert FILE in read and FILE in write and FILE in flush


def test_replies_out_of_order_reach_their_own_buffers(pipe2: Any) -> None:
    pipe, peer = pipe2()
    first, second = buffer(4), buffer(4)
    pipe.read(0, first)
    pipe.read(4, second)
    peer.give(reply(11, READ, read_body(b"BBBB")))
    peer.give(reply(10, READ, read_body(b"AAAA", start=88)))
    assert [pipe.wait().offset, pipe.wait().offset] == [4, 0]
    assert (bytes(first), bytes(second)) == (b"AAAA", b"BBBB")
    assert pipe.outstanding == 0
    assert pipe.counters.in_flight_bytes == 8


def test_a_pending_reply_is_counted_and_its_credits_kept(pipe2: Any) -> None:
    pipe, peer = pipe2(credits=1)
    pipe.write(0, memoryview(b"x"))
    interim = reply(10, WRITE, bytes(9), PENDING, FROM_SERVER | ASYNC, granted=16)
    peer.give(interim)
    peer.give(reply(10, WRITE, write_body(1), granted=0))
    assert pipe.wait().moved_bytes == 1
    assert pipe.counters.pending_replies == 1
    assert pipe.affords(16 * 64 * KIB) == 16 * 64 * KIB
    assert pipe.affords(17 * 64 * KIB) == 16 * 64 * KIB


def test_endless_pending_replies_end_at_the_deadline(pipe2: Any, ends: Any, served: Any) -> None:
    pipe, peer = pipe2()
    pipe.read(0, buffer(4))
    pipe.limit(time.monotonic() + 1)

    def promise() -> None:
        try:
            while True:
                peer.give(reply(10, READ, bytes(9), PENDING, FROM_SERVER | ASYNC, granted=0))
                time.sleep(0.02)
        except OSError:
            return

    served(promise)
    with pytest.raises(Late):
        pipe.wait()
    ends[0]._sock.close()


def test_a_short_read_is_told_as_short(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.read(0, buffer(10))
    peer.give(reply(10, READ, read_body(b"abc")))
    answer = pipe.wait()
    assert (bytes(answer.view), answer.moved_bytes, pipe.counters.short_replies) == (b"abc", 3, 1)


def test_an_error_status_is_named(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.write(7, memoryview(b"x"))
    peer.give(reply(10, WRITE, bytes(9), DISK_FULL))
    with pytest.raises(ServerSaid, match=r"WRITE at 7 .*STATUS_DISK_FULL") as caught:
        pipe.wait()
    assert caught.value.status == DISK_FULL


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (reply(99, READ, read_body(b"abcd")), "not asked"),
        (reply(10, WRITE, write_body(4)), "not asked"),
        (reply(10, READ, read_body(b"abcdef")), "READ of 4 bytes with 6"),
        (reply(10, READ, read_body(b"abcd", told=5)), "READ of 4 bytes with 5"),
        (reply(10, READ, read_body(b"abcd", told=1 << 31)), "READ of 4 bytes"),
        (reply(10, READ, read_body(b"", told=0)), "with 0 bytes"),
        (reply(10, READ, struct.pack("<HBBIII", 17, 79, 0, 4, 0, 0) + b"abcd"), "at 79"),
        (reply(10, READ, struct.pack("<HBBIII", 17, 255, 0, 4, 0, 0) + b"abcd"), "at 255"),
        (reply(10, READ, bytes(8)), "too short"),
        (reply(10, READ, read_body(b"abcd"), flags=0), "garbled"),
        (reply(10, READ, read_body(b"abcd"), session=1), "another session"),
        (reply(10, READ, bytes(9), PENDING), "asynchronous"),
        (b"\xfdSMB" + bytes(100), "encryption"),
        (b"\xfeSMB", "too short"),
        (b"\xffSMB" + bytes(100), "garbled"),
    ],
)
def test_a_reply_that_does_not_fit_the_question_is_an_error(
    pipe2: Any, message: bytes, complaint: str
) -> None:
    pipe, peer = pipe2()
    pipe.read(0, buffer(4))
    peer.give(message)
    with pytest.raises(Broken, match=complaint):
        pipe.wait()


def test_a_write_of_which_a_part_was_taken_is_an_error(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.write(0, memoryview(b"abcd"))
    peer.give(reply(10, WRITE, write_body(3)))
    with pytest.raises(Broken, match="wrote 3 of the 4"):
        pipe.wait()


SIGNERS = [signer(name, bytes(range(16))) for name in ("hmac-sha256", "aes-cmac", "aes-gmac")]


@pytest.mark.parametrize("key", SIGNERS, ids=lambda each: str(each.name))
def test_signed_replies_are_believed_and_pending_ones_need_no_signature(
    pipe2: Any, key: Signer
) -> None:
    pipe, peer = pipe2(signer=key)
    view = buffer(4)
    pipe.read(0, view)
    request = peer.take()
    unsigned = request[:48] + bytes(16) + request[64:]
    assert request[48:64] == key.sign(10, False, unsigned)
    peer.give(reply(10, READ, bytes(9), PENDING, FROM_SERVER | ASYNC))
    peer.give(reply(10, READ, read_body(b"abcd", start=88) + b"end", signed_by=key))
    pipe.wait()
    assert bytes(view) == b"abcd"


@pytest.mark.parametrize("key", SIGNERS, ids=lambda each: str(each.name))
def test_a_stripped_or_wrong_signature_ends_the_copy(pipe2: Any, key: Signer) -> None:
    good = reply(10, READ, read_body(b"abcd"), signed_by=key)
    stripped = reply(10, READ, read_body(b"ABCD"))
    altered = good[:-1] + b"X"
    for message, complaint in ((stripped, "without the signature"), (altered, "wrong signature")):
        pipe, peer = pipe2(signer=key)
        pipe.read(0, buffer(4))
        peer.take()
        peer.give(message)
        with pytest.raises(Broken, match=complaint):
            pipe.wait()


def test_credits_are_gathered_until_the_server_grants_no_more(pipe2: Any, served: Any) -> None:
    pipe, peer = pipe2(credits=1)

    def grant() -> None:
        # the second time it is asked by several at once: 120 credits are missing, 32 come for one
        for number, granted in enumerate([8, 3, 3, 1, 1, 1, 1, 1, 1]):
            peer.take()
            peer.give(reply(10 + number, 13, struct.pack("<HH", 4, 0), granted=granted))

    served(grant)
    assert pipe.prepare("read", 1 << 20, 8) == (12 * 64 * KIB, 8)


def test_without_multi_credit_requests_stay_at_64_kib(pipe2: Any) -> None:
    pipe, peer = pipe2(multi_credit=False)
    assert pipe.prepare("write", 1 << 20, 4) == (64 * KIB, 4)
    pipe.write(0, memoryview(b"x"))
    assert struct.unpack_from("<H", peer.take(), 6) == (0,)


def test_a_session_without_credits_is_an_error_and_no_dead_lock(pipe2: Any) -> None:
    pipe, _ = pipe2(credits=0)
    with pytest.raises(Broken, match="without credits"):
        pipe.affords(1)
    with pytest.raises(Broken, match="without credits"):
        pipe.prepare("read", 0, 0)


def test_flushes_are_counted_apart_from_requests(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.flush()
    peer.give(reply(10, FLUSH, struct.pack("<HH", 4, 0)))
    assert pipe.wait().verb == "flush"
    assert (pipe.counters.flushes, pipe.counters.requests) == (1, 0)
