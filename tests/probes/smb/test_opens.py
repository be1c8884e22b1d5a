"""CREATE and CLOSE of our own, ECHO, and small files, against a server that the test plays."""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Refused
from probes.files import payload
from probes.smb import pipe as pipes
from probes.smb.frames import DeadlinePassed, SmbError
from probes.smb.pipe import CreatedFile
from probes.smb.pipe2 import CLOSE, CREATE, ECHO, READ, SET_INFO, WRITE, identity_of
from probes.smb.status import ServerSaid, error_context
from probes.stages.small_files import SmallFiles
from tests.living import deadline_in

SESSION, TREE = 0xABC, 5
RING = payload.make_ring(b"seed")
SIZE = 1000
TOO_MANY = 0xC000011F
HEADER2 = struct.Struct("<4sHHIHHIIQIIQ16s")
HEADER1 = struct.Struct("<4sBIBHH8sHHHHH")


def answer2(message: bytes, body: bytes, status: int = 0) -> bytes:
    """The reply to a request of SMB2."""
    command = struct.unpack_from("<H", message, 12)[0]
    number = struct.unpack_from("<Q", message, 24)[0]
    return (
        HEADER2.pack(
            b"\xfeSMB", 64, 1, status, command, 1, 1, 0, number, 0, TREE, SESSION, bytes(16)
        )
        + body
    )


IDENTITY = bytes(range(16))


def created2(file_id: bytes, size: int, identity: bytes = b"") -> bytes:
    contexts = b""
    if identity:
        other = struct.pack("<IHHxxHI", 32, 16, 4, 24, 8) + b"MxAc" + bytes(12)
        contexts = other + struct.pack("<IHHxxHI", 0, 16, 4, 24, 32) + b"QFid" + bytes(4)
        contexts += identity + bytes(16)
    return (
        struct.pack("<HBBI", 89, 0, 0, 1)
        + bytes(32)
        + struct.pack("<QQII16sII", 4096, size, 0x80, 0, file_id, 152, len(contexts))
        + contexts
    )


@pytest.mark.parametrize("cut", [*range(88, 184), "loop", "far"])
def test_an_identity_that_is_cut_off_or_garbled_is_none(cut: int | str) -> None:
    body = bytearray(created2(b"i" * 16, 0, IDENTITY))
    if cut == "loop":
        body[88:92] = struct.pack("<I", 1)
    elif cut == "far":
        body[80:84] = struct.pack("<I", 0xFFFFFFFF)
    else:
        del body[-(cut - 72) :]
    assert identity_of(bytes(body)) in (b"", IDENTITY if cut == 88 else b"")


def test_smb2_creates_opens_and_closes_as_the_standard_asks(pipe2: Any) -> None:
    pipe, peer = pipe2()
    pipe.create(3, "folder\\näme")
    message = peer.take()
    name = "folder\\näme".encode("utf-16-le")
    assert struct.unpack_from("<H", message, 12) == (CREATE,)
    access, attributes, sharing, disposition, options = struct.unpack_from("<IIIII", message, 88)
    assert (access, attributes, sharing) == (0xC0010000, 0x80, 7)
    assert (disposition, options) == (2, 0x1040)  # FILE_CREATE; no folder, DELETE_ON_CLOSE
    offset, length = struct.unpack_from("<HH", message, 108)
    assert message[offset : offset + length] == name
    start, size = struct.unpack_from("<II", message, 112)
    # MS-SMB2 2.2.13.2.9: SMB2_CREATE_QUERY_ON_DISK_ID has a name and no data.
    assert (start % 8, start + size) == (0, len(message)) and message[start + 16 :] == b"QFid"
    peer.give(answer2(message, created2(b"i" * 16, 0)))
    reply = pipe.wait()
    assert reply.offset == 3 and pipe.parse_created(reply.body) == CreatedFile(b"i" * 16, 0)
    assert pipe.parse_created(created2(b"i" * 16, 0, IDENTITY)) == CreatedFile(
        b"i" * 16, 0, IDENTITY
    )
    pipe.send_create(4, "x", write=False)
    message = peer.take()
    access, _, _, disposition, options = struct.unpack_from("<IIIII", message, 88)
    assert (access, disposition, options) == (0x80000000, 1, 0x40)
    peer.give(answer2(message, created2(b"j" * 16, 1 << 33)))
    assert pipe.parse_created(pipe.wait().body).size_bytes == 1 << 33
    pipe.close(5, b"j" * 16)
    message = peer.take()
    assert struct.unpack_from("<H", message, 12) == (CLOSE,) and message[72:88] == b"j" * 16


@pytest.mark.parametrize(("flags2", "name"), [(0xC001, b"\0a\0\\\0b\0"), (0x4001, b"a\\b")])
def test_smb1_names_files_in_the_servers_alphabet(pipe1: Any, flags2: int, name: bytes) -> None:
    pipe, peer = pipe1(flags2=flags2)
    pipe.create(2, "a\\b")
    message = peer.take()
    assert message[4] == 0xA2 and message[32] == 24
    assert message[83:] == name
    assert struct.unpack_from("<H", message, 38)[0] == len(name.lstrip(b"\0"))
    number = struct.unpack_from("<H", message, 30)[0]
    head = HEADER1.pack(b"\xffSMB", 0xA2, 0, 0x88, flags2, 0, b"", 0, TREE, 1, 7, number)
    words = struct.pack("<BBHBHI", 0xFF, 0, 0, 0, 0x1234, 1) + bytes(32)
    words += struct.pack("<IQQHHB", 0x80, 4096, 77, 0, 0, 0)
    peer.give(head + bytes([len(words) // 2]) + words + b"\0\0")
    reply = pipe.wait()
    assert reply.offset == 2 and pipe.parse_created(reply.body) == CreatedFile(b"\x34\x12", 77)
    pipe.close(1, b"\x34\x12")
    message = peer.take()
    assert message[4] == 0x04 and message[33:35] == b"\x34\x12"
    pipe.echo()
    assert peer.take()[4] == 0x2B


@pytest.mark.parametrize("body", [b"", bytes(79)], ids=len)
def test_a_reply_that_is_too_short_opens_nothing(pipe1: Any, pipe2: Any, body: bytes) -> None:
    for pipe in (pipe2()[0], pipe1(flags2=0xC001)[0]):
        with pytest.raises(SmbError, match="too short"):
            pipe.parse_created(body)


def test_an_echo_needs_an_idle_session(pipe2: Any, run_in_thread: Any) -> None:
    pipe, peer = pipe2()

    def serve() -> None:
        for _ in range(5):
            message = peer.take()
            assert struct.unpack_from("<H", message, 12) == (ECHO,)
            peer.give(answer2(message, struct.pack("<HH", 4, 0)))

    run_in_thread(serve)
    taken = pipes.round_trips(pipe, 10.0, count=5)
    assert len(taken) == 5 and min(taken) > 0
    pipe.read(0, memoryview(bytearray(4)))
    with pytest.raises(SmbError, match="idle"):
        pipes.round_trips(pipe, 1.0)


class Store:
    """A server of SMB2 that keeps files and opens no more than so many at once."""

    def __init__(self, handle_limit: int) -> None:
        self.handle_limit = handle_limit
        self.contents: dict[bytes, bytearray] = {}
        self.handles: dict[bytes, bytes] = {}
        self.keepers: dict[bytes, bytes] = {}
        self.most_seen = 0

    def serve(self, peer: Any) -> None:
        """Answers until the other end closes."""
        number = 0
        while True:
            try:
                message = peer.take()
            except (EOFError, OSError):
                return
            number += 1
            command = struct.unpack_from("<H", message, 12)[0]
            body, status = self.answer(command, message, number.to_bytes(16, "little"))
            peer.give(answer2(message, body, status))

    def answer(self, command: int, message: bytes, handle: bytes) -> tuple[bytes, int]:
        """Body and status of one reply; handle is the id that a new one gets."""
        if command == CREATE:
            if len(self.handles) >= self.handle_limit:
                return bytes(9), TOO_MANY
            name = message[120:]
            disposition = struct.unpack_from("<I", message, 100)[0]
            assert (disposition == 2) == (name not in self.contents)
            if disposition == 2:
                self.contents[name] = bytearray()
                self.keepers[handle] = name
            self.handles[handle] = name
            self.most_seen = max(self.most_seen, len(self.handles))
            return created2(handle, len(self.contents[name])), 0
        file_id = message[80:96] if command in (READ, WRITE, SET_INFO) else message[72:88]
        name = self.handles[file_id]
        if command == SET_INFO:
            assert message[66:68] == b"\1\x14" and message[96:] == bytes(8)
            self.contents[name].clear()
            return b"\2\0", 0
        if command == CLOSE:
            del self.handles[file_id]
            if self.keepers.pop(file_id, None) is not None:
                assert not self.contents.pop(name)  # a recycle bin gets an empty file
            return bytes(60), 0
        size, offset = struct.unpack_from("<IQ", message, 68)
        if command == WRITE:
            start = struct.unpack_from("<H", message, 66)[0]
            self.contents[name][offset : offset + size] = message[start : start + size]
            return struct.pack("<HHIIHH", 17, 0, size, 0, 0, 0), 0
        data = bytes(self.contents[name][offset : offset + size])
        return struct.pack("<HBBIII", 17, 80, 0, len(data), 0, 0) + data, 0


@pytest.fixture
def open_store(pipe2: Any, run_in_thread: Any, ends: Any) -> Iterator[Callable[..., Any]]:
    def start(handle_limit: int) -> tuple[SmallFiles, Store]:
        pipe, peer = pipe2()
        store = Store(handle_limit)
        run_in_thread(lambda: store.serve(peer))
        return SmallFiles(pipe, "small", SIZE, RING), store

    yield start
    ends[0]._sock.close()


def test_a_server_with_few_handles_gets_as_many_files_as_it_opens(open_store: Any) -> None:
    files, store = open_store(handle_limit=20)
    count = 0
    while files.push(count) is not None:
        count += 1
    assert count == 19  # the last handle is the one that closes
    assert files.numbers == list(range(19))
    files.read_back()
    assert files.intact and len(store.contents) == 19
    files.remove()
    assert store.contents == {} and store.handles == {}


def test_what_was_made_at_once_is_pulled_one_by_one(open_store: Any) -> None:
    files, store = open_store(handle_limit=30)
    files.make(29, deadline_in())
    assert len(files.numbers) == 29
    assert sorted(map(bytes, store.contents.values())) == sorted(
        bytes(payload.block(RING, number * SIZE, SIZE)) for number in range(29)
    )
    for number in files.numbers:
        timed = files.pull(number)
        assert timed.round_trips == 3 and timed.seconds > 0
    assert files.intact and store.most_seen == 30
    files.make(40, deadline_in())
    assert len(files.numbers) == 30
    files.remove()
    assert store.contents == {}


def test_one_line_says_what_broke_where() -> None:
    peer = Endpoint(host="nas", share="media")

    def broke() -> str:
        return "stage broke"

    with (
        pytest.raises(DeadlinePassed, match="^//nas/media: stage broke: too late$"),
        error_context(broke, peer),
    ):
        raise DeadlinePassed("too late")
    with pytest.raises(ServerSaid, match="^//nas/media: stage") as said, error_context(broke, peer):
        raise ServerSaid("no", 0xC0000022)
    assert said.value.status == 0xC0000022
    with pytest.raises(Refused, match="free some space") as full, error_context(broke, peer):
        raise ServerSaid("no", 0xC000007F)
    assert full.value.kind == "space"
