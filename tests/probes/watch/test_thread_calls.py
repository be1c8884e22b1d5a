"""The call that a thread waits in tells what it waits for, by the file that it names."""

from __future__ import annotations

import os
import socket
import threading
from pathlib import Path
from typing import Any

import pytest

from probes.watch import thread_calls
from probes.watch.thread_calls import (
    OTHER,
    READ,
    REMOTE,
    RUNNING,
    SEND,
    WRITE,
    Calls,
    function_wait,
    parse,
)
from probes.watch.thread_states import ThreadState
from tests.living import until

PREAD = "17 0x4 0x7f1c8c0a5010 0x100000 0x1f00000 0x0 0x0 0x7ffd5e1e9b48 0x7f1c8da0a3b7\n"
"""Recorded of a thread on x86-64 that waited for its disk, Linux 6.1; so are the others."""
FSYNC = "74 0x5 0x0 0x0 0x0 0x0 0x0 0x7ffc0bd7e9a8 0x7fd9f54f81d0\n"
SENDTO = "44 0x3 0x5594a2b8d2a0 0x10078 0x4000 0x0 0x0 0x7ffc0a0c5a30 0x7f6c5f9a9d1c\n"
EPOLL = "232 0x7 0x7ffd3c2e2b44 0x1 0x270f 0x0 0x8 0x7ffd3c2e2b00 0x7f8b2f4b6ae6\n"
SPLICE = "326 0x3 0x0 0x4 0x0 0x7ffff000 0x0 0x7ffe2b3d0cf8 0x7f3d2a5d0b59\n"


@pytest.mark.parametrize(
    ("line", "machine", "call"),
    [
        (PREAD, "x86_64", (READ, 4)),
        (FSYNC, "x86_64", (WRITE, 5)),
        (SENDTO, "x86_64", (SEND, None)),
        (EPOLL, "x86_64", (OTHER, None)),
        ("67 0x4 0xffff 0x1000 0x0 0x0 0x0 0xffffe 0xffff80001234\n", "aarch64", (READ, 4)),
        ("3 0x4 0xffff 0x1000 0x0 0x0 0x0 0xffffe 0xf7f12345\n", "x86_64", None),
        (SPLICE, "x86_64", None),
        (PREAD, "riscv64", None),
        ("running\n", "x86_64", None),
        ("-1 0x7ffd5e1e9b48 0x7f1c8da0a3b7\n", "x86_64", None),
        ("", "x86_64", None),
    ],
    ids="pread fsync sendto epoll arm64 32-bit both machine runs fault gone".split(),
)
def test_a_call_is_told_by_its_number_and_its_descriptor(
    line: str, machine: str, call: Any
) -> None:
    assert parse(line, machine) == call


@pytest.mark.parametrize(
    ("name", "verb", "call"),
    [
        ("balance_dirty_pages", READ, WRITE),
        ("folio_wait_bit_common", "", READ),
        ("jbd2_log_wait_commit", "", WRITE),
        ("request_wait_answer", "", None),
        ("folio_wait_bit_common", OTHER, OTHER),
        ("0", WRITE, WRITE),
        ("0", "", None),
        ("", "", None),
    ],
)
def test_where_the_call_is_not_known_the_kernels_function_tells_what_it_can(
    name: str, verb: str, call: str | None
) -> None:
    assert function_wait(name, verb) == call


def test_a_thread_that_waits_for_room_in_its_socket_sends() -> None:
    """One that waits for an answer does something else, and of one that is gone nothing is told."""
    one, other = socket.socketpair()
    calls = Calls()
    sender = threading.Thread(target=one.sendall, args=(bytes(8 << 20),))
    reader = threading.Thread(target=one.recv, args=(1,))
    with one, other:
        sender.start()
        reader.start()
        assert sender.native_id and reader.native_id
        assert until(lambda: calls.waits_for(sender.native_id) == SEND)
        assert until(lambda: calls.waits_for(reader.native_id) == OTHER)
        unread_bytes = 8 << 20
        while unread_bytes:
            unread_bytes -= len(other.recv(1 << 20))
        other.sendall(b"x")
        sender.join()
        reader.join()
    assert calls.waits_for(2**22 + 1) is None


@pytest.mark.parametrize("verb", [READ, WRITE])
def test_a_file_counts_as_a_disk_and_what_lies_on_another_host_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str
) -> None:
    pid, calls = os.getpid(), Calls()
    (tmp_path / "file").write_bytes(b"x")
    with (tmp_path / "file").open() as file, socket.socket() as open_socket:
        assert calls._file_wait(pid, file.fileno(), verb) == verb
        assert calls._file_wait(pid, open_socket.fileno(), verb) == (
            SEND if verb == WRITE else OTHER
        )
        reading, writing = os.pipe()
        assert calls._file_wait(pid, reading, verb) == OTHER
        os.close(reading)
        os.close(writing)
        assert calls._file_wait(pid, reading, verb) == OTHER
        mounted = f"36 1 0:45 / {tmp_path} rw - fuse.smbnetfs smbnetfs rw\n"
        monkeypatch.setattr(thread_calls, "text", lambda path: mounted)
        assert Calls()._file_wait(pid, file.fileno(), verb) == REMOTE


def state(letter: str, thread: int = 7) -> ThreadState:
    return ThreadState(thread, letter, 0.0, 0.0)


@pytest.mark.parametrize(
    ("calls", "call"),
    [
        ({}, OTHER),
        ({7: OTHER, 8: SEND}, SEND),
        ({7: SEND, 8: WRITE}, WRITE),
        ({7: WRITE, 8: READ}, READ),
        ({7: None, 8: SEND}, READ),
        ({7: RUNNING}, OTHER),
    ],
    ids=["runs", "sends", "writes", "reads", "unknown-call", "runs-by-now"],
)
def test_a_program_waits_for_a_disk_where_any_of_its_threads_does(
    monkeypatch: pytest.MonkeyPatch, calls: dict[int, str | None], call: str
) -> None:
    """A thread in state D whose call cannot be read counts as what the copy does there."""
    monkeypatch.setattr(Calls, "waits_for", lambda of, thread: calls[thread])
    threads = [
        state("R", 6),
        *(state("D" if each is None else "S", number) for number, each in calls.items()),
    ]
    assert Calls().program_wait(threads, READ) == call


@pytest.mark.parametrize(("call", "wait"), [(OTHER, WRITE), (REMOTE, OTHER)])
def test_a_wait_for_a_disk_in_another_call_is_the_copys_but_not_that_for_a_mount(
    monkeypatch: pytest.MonkeyPatch, call: str, wait: str
) -> None:
    """A copy of many small files opens and closes them."""
    monkeypatch.setattr(Calls, "waits_for", lambda of, thread: call)
    assert Calls().program_wait([state("D")], WRITE) == wait
    assert Calls().program_wait([state("S")], WRITE) == OTHER


def test_what_nothing_tells_is_not_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Calls, "waits_for", lambda of, thread: None)
    monkeypatch.setattr(thread_calls, "text", lambda path: "0")
    assert Calls().program_wait([state("D")], "") is None
    assert Calls().program_wait([state("S")], "") == OTHER
