"""The SMB1 data path against a server that the test plays, honest and otherwise."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from probes.smb.frames import Broken
from probes.smb.pipe1 import READ, WRITE
from probes.smb.protection import Md5
from probes.smb.status import ServerSaid

USER, TREE, FILE = 7, 3, 0x4001
HEADER = struct.Struct("<4sBIBHH8sHHHHH")
NT_STATUS, SIGNED = 0x4000, 0x4


def reply(
    message_id: int,
    command: int,
    body: bytes,
    status: int = 0,
    flags: int = 0x80,
    user: int = USER,
    signed: tuple[Md5, int] | None = None,
) -> bytes:
    flags2 = NT_STATUS | (SIGNED if signed else 0)
    security = struct.pack("<q", signed[1]) if signed else b""
    message = (
        HEADER.pack(
            b"\xffSMB", command, status, flags, flags2, 0, security, 0, TREE, 0, user, message_id
        )
        + body
    )
    if signed:
        signature = signed[0].sign(signed[1], True, message)
        message = message[:14] + signature + message[22:]
    return message


def read_body(data: bytes, start: int = 60, told: int | None = None) -> bytes:
    size = len(data) if told is None else told
    words = struct.pack("<BBHHHHHHHII", 0xFF, 0, 0, 0, 0, 0, size & 0xFFFF, start, size >> 16, 0, 0)
    return b"\x0c" + words.ljust(24, b"\0") + b"\0\0" + bytes(max(0, start - 59)) + data


def write_body(count: int) -> bytes:
    words = struct.pack("<BBHHHHH", 0xFF, 0, 0, count & 0xFFFF, 0, count >> 16, 0)
    return b"\x06" + words + b"\0\0"


def buffer(size: int) -> memoryview:
    return memoryview(bytearray(size))


def test_requests_carry_64_bit_offsets_and_17_bit_lengths(pipe1: Any) -> None:
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
    peer.give(reply(2, READ, read_body(b"abcd")))
    assert pipe.wait().offset == 1
    assert pipe.affords(4) == 4


@pytest.mark.parametrize("start", [59, 60, 80])
def test_a_payload_is_found_wherever_the_server_puts_it(pipe1: Any, start: int) -> None:
    pipe, peer = pipe1()
    view = buffer(100000)
    data = bytes(range(250)) * 400
    pipe.read(0, view)
    peer.give(reply(1, READ, read_body(data, start)))
    assert pipe.wait().moved_bytes == 100000
    assert view == data


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (reply(9, READ, read_body(b"abcd")), "not asked"),
        (reply(1, WRITE, write_body(4)), "not asked"),
        (reply(1, READ, read_body(b"abcdef")), "READ of 4 bytes with 6"),
        (reply(1, READ, read_body(b"abcd", told=1 << 20)), "READ of 4 bytes"),
        (reply(1, READ, read_body(b"", told=0)), "with 0 bytes"),
        (reply(1, READ, b"\x0c" + bytes(20) + b"\0\0"), "too short"),
        (reply(1, READ, b"\0\0\0"), "too short"),
        (reply(1, READ, read_body(b"abcd"), flags=0), "garbled"),
        (reply(1, READ, read_body(b"abcd"), user=1), "another session"),
        (b"\xfeSMB" + bytes(80), "garbled"),
        (b"\xffSMB", "too short"),
    ],
)
def test_a_reply_that_does_not_fit_the_question_is_an_error(
    pipe1: Any, message: bytes, complaint: str
) -> None:
    pipe, peer = pipe1()
    pipe.read(0, buffer(4))
    peer.give(message)
    with pytest.raises(Broken, match=complaint):
        pipe.wait()


def test_writes_are_counted_and_a_partial_one_is_an_error(pipe1: Any) -> None:
    pipe, peer = pipe1()
    data = memoryview(bytes(70000))
    pipe.write(0, data)
    pipe.write(70000, data)
    peer.give(reply(1, WRITE, write_body(70000)))
    peer.give(reply(2, WRITE, write_body(65535)))
    assert pipe.wait().moved_bytes == 70000
    with pytest.raises(Broken, match="wrote 65535 of the 70000"):
        pipe.wait()


def test_a_full_disk_is_named(pipe1: Any) -> None:
    pipe, peer = pipe1()
    pipe.write(0, memoryview(b"x"))
    peer.give(reply(1, WRITE, b"\0\0\0", status=0xC000007F))
    with pytest.raises(ServerSaid, match="STATUS_DISK_FULL"):
        pipe.wait()


def test_a_signed_request_counts_by_two_and_its_reply_is_checked(pipe1: Any) -> None:
    key = Md5(b"key")
    pipe, peer = pipe1(signer=key)
    first, second = buffer(4), buffer(4)
    pipe.read(0, first)
    pipe.read(4, second)
    request = peer.take()
    counted = request[:14] + struct.pack("<q", 4) + request[22:]
    assert request[14:22] == key.sign(4, False, counted)
    peer.give(reply(2, READ, read_body(b"efgh"), signed=(key, 7)))
    peer.give(reply(1, READ, read_body(b"abcd"), signed=(key, 5)))
    assert [pipe.wait().offset, pipe.wait().offset] == [4, 0]
    assert bytes(first) + bytes(second) == b"abcdefgh"


KEY = Md5(b"key")
GOOD = reply(1, READ, read_body(b"abcd"), signed=(KEY, 5))


@pytest.mark.parametrize(
    ("message", "complaint"),
    [
        (reply(1, READ, read_body(b"abcd")), "without the signature"),
        (GOOD[:-1] + b"X", "wrong signature"),
        (reply(1, READ, read_body(b"abcd"), signed=(KEY, 3)), "wrong signature"),
    ],
    ids=["stripped", "altered", "replayed"],
)
def test_a_forged_reply_ends_the_copy(pipe1: Any, message: bytes, complaint: str) -> None:
    pipe, peer = pipe1(signer=KEY)
    pipe.read(0, buffer(4))
    peer.give(message)
    with pytest.raises(Broken, match=complaint):
        pipe.wait()
