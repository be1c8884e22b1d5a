"""The data paths of SMB1 and SMB2 against a server that the test plays, honest and otherwise."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from probes.smb.frames import DeadlinePassed, SmbError
from probes.smb.pipe1 import ECHO as ECHO1
from probes.smb.pipe1 import READ as READ1
from probes.smb.pipe1 import WRITE as WRITE1
from probes.smb.pipe2 import ECHO, FLUSH, READ, WRITE
from probes.smb.protection import Md5, Signer, signer
from probes.smb.status import ServerSaid
from tests.living import deadline_in

SESSION, TREE, FILE = 0xABC, 5, b"f" * 16
KIB = 1024
USER = 7
HEADER = struct.Struct("<4sHHIHHIIQIIQ16s")
FROM_SERVER, ASYNC, SIGNED = 1, 2, 8
HEADER1 = struct.Struct("<4sBIBHH8sHHHHH")
NT_STATUS, SIGNED1 = 0x4000, 0x4
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
    tree: int = TREE,
) -> bytes:
    flags |= SIGNED if signed_by else 0
    message = HEADER.pack(
        b"\xfeSMB", 64, 1, status, command, granted, flags, 0, message_id, 0, tree, session, b""
    )
    message += body
    if signed_by:
        signature = signed_by.sign(message_id, True, message)
        message = message[:48] + signature + message[64:]
    return message


def read_body(data: bytes, start: int = 80, size_field: int | None = None) -> bytes:
    size = len(data) if size_field is None else size_field
    return struct.pack("<HBBIII", 17, start, 0, size, 0, 0) + bytes(start - 80) + data


def write_body(count: int) -> bytes:
    return struct.pack("<HHIIHH", 17, 0, count, 0, 0, 0)


def buffer(size: int) -> memoryview:
    return memoryview(bytearray(size))


def reply1(
    message_id: int,
    command: int,
    body: bytes,
    status: int = 0,
    flags: int = 0x80,
    user: int = USER,
    signed: tuple[Md5, int] | None = None,
    tree: int = TREE,
) -> bytes:
    flags2 = NT_STATUS | (SIGNED1 if signed else 0)
    security = struct.pack("<q", signed[1]) if signed else b""
    message = (
        HEADER1.pack(
            b"\xffSMB", command, status, flags, flags2, 0, security, 0, tree, 0, user, message_id
        )
        + body
    )
    if signed:
        signature = signed[0].sign(signed[1], True, message)
        message = message[:14] + signature + message[22:]
    return message


def read_body1(data: bytes, start: int = 60, size_field: int | None = None) -> bytes:
    size = len(data) if size_field is None else size_field
    words = struct.pack("<BBHHHHHHHII", 0xFF, 0, 0, 0, 0, 0, size & 0xFFFF, start, size >> 16, 0, 0)
    return b"\x0c" + words.ljust(24, b"\0") + b"\0\0" + bytes(max(0, start - 59)) + data


def write_body1(count: int) -> bytes:
    words = struct.pack("<BBHHHHH", 0xFF, 0, 0, count & 0xFFFF, 0, count >> 16, 0)
    return b"\x06" + words + b"\0\0"


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
    offset, length, offset_field = struct.unpack_from("<HIQ", write, 64 + 2)
    assert (length, offset_field, write[offset:]) == (7, 5, b"payload")
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
    assert pipe.in_flight == 0
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


def test_pending_replies_end_at_the_deadline(pipe2: Any, ends: Any, run_in_thread: Any) -> None:
    pipe, peer = pipe2()
    pipe.read(0, buffer(4))
    pipe.limit(deadline_in(0.2))

    def promise() -> None:
        try:
            while True:
                peer.give(reply(10, READ, bytes(9), PENDING, FROM_SERVER | ASYNC, granted=0))
        except OSError:
            return

    run_in_thread(promise)
    with pytest.raises(DeadlinePassed):
        pipe.wait()
    ends[0]._sock.close()


def test_an_echo_and_an_asynchronous_reply_name_no_tree(pipe1: Any, pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.write(0, memoryview(b"x"))
    peer.give(reply(10, WRITE, write_body(1), flags=FROM_SERVER | ASYNC, tree=0))
    assert pipe.wait().moved_bytes == 1
    pipe.echo()
    peer.give(reply(11, ECHO, bytes(4), tree=0))
    assert pipe.wait().verb == "echo"
    pipe, peer = pipe1()
    pipe.echo()
    peer.give(reply1(1, ECHO1, b"\1" + bytes(4), tree=0xFFFF))
    assert pipe.wait().verb == "echo"


def test_a_short_read_is_told_as_short(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.read(0, buffer(10))
    peer.give(reply(10, READ, read_body(b"abc")))
    answer = pipe.wait()
    assert (bytes(answer.view), answer.moved_bytes, pipe.counters.short_replies) == (b"abc", 3, 1)


def test_a_write_of_which_a_part_was_taken_is_an_error(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.write(0, memoryview(b"abcd"))
    peer.give(reply(10, WRITE, write_body(3)))
    with pytest.raises(SmbError, match="wrote 3 of the 4"):
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


def test_credits_grow_until_the_server_grants_no_more(pipe2: Any, run_in_thread: Any) -> None:
    pipe, peer = pipe2(credits=1)

    def grant() -> None:
        # the second time it is asked by several at once: 120 credits are missing, 32 come for one
        for number, granted in enumerate([8, 3, 3, 1, 1, 1, 1, 1, 1]):
            peer.take()
            peer.give(reply(10 + number, 13, struct.pack("<HH", 4, 0), granted=granted))

    run_in_thread(grant)
    assert pipe.prepare("read", 1 << 20, 8) == (12 * 64 * KIB, 8)


def test_without_multi_credit_requests_stay_at_64_kib(pipe2: Any) -> None:
    pipe, peer = pipe2(multi_credit=False)
    assert pipe.prepare("write", 1 << 20, 4) == (64 * KIB, 4)
    pipe.write(0, memoryview(b"x"))
    assert struct.unpack_from("<H", peer.take(), 6) == (0,)


def test_a_session_without_credits_is_an_error_and_no_dead_lock(pipe2: Any) -> None:
    pipe, _ = pipe2(credits=0)
    with pytest.raises(SmbError, match="without credits"):
        pipe.affords(1)
    with pytest.raises(SmbError, match="without credits"):
        pipe.prepare("read", 0, 0)


def test_flushes_are_counted_apart_from_requests(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.flush()
    peer.give(reply(10, FLUSH, struct.pack("<HH", 4, 0)))
    assert pipe.wait().verb == "flush"
    assert (pipe.counters.flushes, pipe.counters.requests) == (1, 0)


def test_smb1_requests_carry_64_bit_offsets_and_17_bit_lengths(pipe1: Any) -> None:
    pipe, peer = pipe1()
    pipe.read((1 << 40) + 5, buffer(130048))
    pipe.write((1 << 40) + 5, memoryview(bytes(70000)))
    read, write = peer.take(), peer.take()
    low, count = struct.unpack_from("<IH", read, 32 + 7)
    high_count, high = struct.unpack_from("<I2xI", read, 32 + 15)
    assert (high << 32 | low, high_count << 16 | count) == ((1 << 40) + 5, 130048)
    assert struct.unpack_from("<H", write, 32 + 23) == (64,)
    assert len(write) == 64 + 70000


def test_no_more_than_max_mpx_requests_are_in_flight(pipe1: Any) -> None:
    pipe, peer = pipe1()
    assert pipe.prepare("read", 0, 0) == (130048, 3)
    for offset in range(3):
        assert pipe.affords(4)
        pipe.read(offset, buffer(4))
    assert pipe.affords(4) == 0
    peer.give(reply1(2, READ1, read_body1(b"abcd")))
    assert pipe.wait().offset == 1
    assert pipe.affords(4) == 4


@pytest.mark.parametrize("start", [59, 60, 80])
def test_a_payload_of_smb1_is_found_wherever_the_server_puts_it(pipe1: Any, start: int) -> None:
    pipe, peer = pipe1()
    view = buffer(100000)
    data = bytes(range(250)) * 400
    pipe.read(0, view)
    peer.give(reply1(1, READ1, read_body1(data, start)))
    assert pipe.wait().moved_bytes == 100000
    assert view == data


def test_writes_of_smb1_are_counted_and_a_partial_one_is_an_error(pipe1: Any) -> None:
    pipe, peer = pipe1()
    data = memoryview(bytes(70000))
    pipe.write(0, data)
    pipe.write(70000, data)
    peer.give(reply1(1, WRITE1, write_body1(70000)))
    peer.give(reply1(2, WRITE1, write_body1(65535)))
    assert pipe.wait().moved_bytes == 70000
    with pytest.raises(SmbError, match="wrote 65535 of the 70000"):
        pipe.wait()


def test_a_signed_request_of_smb1_counts_by_two_and_its_reply_is_checked(pipe1: Any) -> None:
    key = Md5(b"key")
    pipe, peer = pipe1(signer=key)
    first, second = buffer(4), buffer(4)
    pipe.read(0, first)
    pipe.read(4, second)
    request = peer.take()
    counted = request[:14] + struct.pack("<q", 4) + request[22:]
    assert request[14:22] == key.sign(4, False, counted)
    peer.give(reply1(2, READ1, read_body1(b"efgh"), signed=(key, 7)))
    peer.give(reply1(1, READ1, read_body1(b"abcd"), signed=(key, 5)))
    assert [pipe.wait().offset, pipe.wait().offset] == [4, 0]
    assert bytes(first) + bytes(second) == b"abcdefgh"


@pytest.mark.parametrize(
    ("version", "message", "complaint"),
    [
        (1, reply1(9, READ1, read_body1(b"abcd")), "not asked"),
        (1, reply1(1, WRITE1, write_body1(4)), "not asked"),
        (1, reply1(1, READ1, read_body1(b"abcdef")), "READ of 4 bytes with 6"),
        (1, reply1(1, READ1, read_body1(b"abcd", size_field=1 << 20)), "READ of 4 bytes"),
        (1, reply1(1, READ1, read_body1(b"", size_field=0)), "with 0 bytes"),
        (1, reply1(1, READ1, b"\x0c" + bytes(20) + b"\0\0"), "too short"),
        (1, reply1(1, READ1, b"\0\0\0"), "too short"),
        (1, reply1(1, READ1, read_body1(b"abcd"), flags=0), "garbled"),
        (1, reply1(1, READ1, read_body1(b"abcd"), user=1), "another session"),
        (1, reply1(1, READ1, read_body1(b"abcd"), tree=0), "another share"),
        (1, b"\xfeSMB" + bytes(80), "garbled"),
        (1, b"\xffSMB", "too short"),
        (2, reply(99, READ, read_body(b"abcd")), "not asked"),
        (2, reply(10, WRITE, write_body(4)), "not asked"),
        (2, reply(10, READ, read_body(b"abcdef")), "READ of 4 bytes with 6"),
        (2, reply(10, READ, read_body(b"abcd", size_field=5)), "READ of 4 bytes with 5"),
        (2, reply(10, READ, read_body(b"abcd", size_field=1 << 31)), "READ of 4 bytes"),
        (2, reply(10, READ, read_body(b"", size_field=0)), "with 0 bytes"),
        (2, reply(10, READ, struct.pack("<HBBIII", 17, 79, 0, 4, 0, 0) + b"abcd"), "at 79"),
        (2, reply(10, READ, struct.pack("<HBBIII", 17, 255, 0, 4, 0, 0) + b"abcd"), "at 255"),
        (2, reply(10, READ, bytes(8)), "too short"),
        (2, reply(10, READ, read_body(b"abcd"), flags=0), "garbled"),
        (2, reply(10, READ, read_body(b"abcd"), session=1), "another session"),
        (2, reply(10, READ, read_body(b"abcd"), tree=0), "another share"),
        (2, reply(10, READ, bytes(9), PENDING), "asynchronous"),
        (2, b"\xfdSMB" + bytes(100), "encryption"),
        (2, b"\xfeSMB", "too short"),
        (2, b"\xffSMB" + bytes(100), "garbled"),
    ],
)
def test_a_reply_that_does_not_fit_the_question_is_an_error(
    pipe1: Any, pipe2: Any, version: int, message: bytes, complaint: str
) -> None:
    pipe, peer = (pipe1 if version == 1 else pipe2)()
    pipe.read(0, buffer(4))
    peer.give(message)
    with pytest.raises(SmbError, match=complaint):
        pipe.wait()


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (1, reply1(1, WRITE1, b"\0\0\0", status=DISK_FULL)),
        (2, reply(10, WRITE, bytes(9), DISK_FULL)),
    ],
)
def test_an_error_status_is_named(pipe1: Any, pipe2: Any, version: int, message: bytes) -> None:
    pipe, peer = (pipe1 if version == 1 else pipe2)()
    pipe.write(7, memoryview(b"x"))
    peer.give(message)
    with pytest.raises(ServerSaid, match=r"WRITE at 7 .*STATUS_DISK_FULL") as caught:
        pipe.wait()
    assert caught.value.status == DISK_FULL


KEY = Md5(b"key")
GOOD = reply1(1, READ1, read_body1(b"abcd"), signed=(KEY, 5))
FORGED = [
    (1, KEY, reply1(1, READ1, read_body1(b"abcd")), "without the signature"),
    (1, KEY, GOOD[:-1] + b"X", "wrong signature"),
    # one that was recorded before
    (1, KEY, reply1(1, READ1, read_body1(b"abcd"), signed=(KEY, 3)), "wrong signature"),
    *((2, key, reply(10, READ, read_body(b"ABCD")), "without the signature") for key in SIGNERS),
    *(
        (2, key, reply(10, READ, read_body(b"abcd"), signed_by=key)[:-1] + b"X", "wrong signature")
        for key in SIGNERS
    ),
]


@pytest.mark.parametrize(("version", "key", "message", "complaint"), FORGED)
def test_a_forged_reply_ends_the_copy(
    pipe1: Any, pipe2: Any, version: int, key: Any, message: bytes, complaint: str
) -> None:
    pipe, peer = (pipe1 if version == 1 else pipe2)(signer=key)
    pipe.read(0, buffer(4))
    peer.give(message)
    with pytest.raises(SmbError, match=complaint):
        pipe.wait()
