"""A socket's program is named where this user may see it."""

from __future__ import annotations

import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest

from probes.host import socket_owner
from probes.host.socket_owner import owners


def test_the_owner_of_a_socket_has_a_name() -> None:
    with socket.socket() as own:
        inode = os.fstat(own.fileno()).st_ino
        name = Path("/proc/self/comm").read_text().strip()
        assert owners({inode, 0, 2**31 + 7}) == {inode: name}
        assert owners({0}) == {}


def test_a_search_for_owners_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many processes there are."""
    monkeypatch.setattr(socket_owner, "SEARCH_SECONDS", -1.0)
    with socket.socket() as own:
        assert owners({os.fstat(own.fileno()).st_ino}) == {}


def test_a_process_with_many_sockets_is_not_read_to_its_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time is over while its files are read."""
    clock = iter(range(100))
    monkeypatch.setattr(socket_owner, "SEARCH_SECONDS", 20.0)
    monkeypatch.setattr(socket_owner.time, "monotonic", lambda: float(next(clock)))
    monkeypatch.setattr(socket_owner.os, "listdir", lambda folder: [str(os.getpid())])
    with ExitStack() as stack:
        for _ in range(200):
            inode = os.fstat(stack.enter_context(socket.socket()).fileno()).st_ino
        assert owners({inode}) == {}
