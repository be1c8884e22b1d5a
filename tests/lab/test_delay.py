"""A path with a delay takes its time, loses nothing, leaves no trace, and deepens copies."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import pytest
from delay import delayed, missing

from probes import smb_copy
from probes.drivers.samba import private_samba
from probes.records import Access, Details, Endpoint
from probes.smb import run_folder
from probes.smb.flight import LIKELY_BYTES_PER_SECOND

MIB = 1 << 20
PASSWORD = "correct horse 47"


@pytest.fixture(autouse=True)
def _needs_a_path() -> None:
    if lacks := missing():
        pytest.skip("not run: " + "; ".join(lacks))


def test_all_that_is_sent_arrives_in_order_and_no_earlier_than_the_delay() -> None:
    with delayed(0.02) as path:
        with path.server.entered():
            listener = socket.create_server((path.server.address, 0))
        with path.client.entered():
            client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with listener, client, server:
            began = time.monotonic()
            client.sendall(b"?")
            assert server.recv(1) == b"?"
            server.sendall(b"!")
            assert client.recv(1) == b"!"
            assert time.monotonic() - began >= path.round_trip_seconds
            content = os.urandom(8 * MIB)
            sender = threading.Thread(target=client.sendall, args=(content,))
            sender.start()
            arrived = bytearray()
            while len(arrived) < len(content):
                arrived += server.recv(MIB)
            sender.join()
            assert arrived == content


def test_a_planted_rate_is_not_exceeded() -> None:
    with delayed(0.001, bytes_per_second=20e6) as path:
        with path.server.entered():
            listener = socket.create_server((path.server.address, 0))
        with path.client.entered():
            client = socket.create_connection(listener.getsockname())
        server, _ = listener.accept()
        with listener, client, server:
            began = time.monotonic()
            sender = threading.Thread(target=client.sendall, args=(bytes(4 * MIB),))
            sender.start()
            left = 4 * MIB
            while left:
                left -= len(server.recv(MIB))
            sender.join()
            assert time.monotonic() - began >= 4 * MIB / 20e6


def test_it_leaves_no_device_no_namespace_and_no_process() -> None:
    def children() -> str:
        return Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children").read_text()

    def namespaces() -> set[str]:
        lines = subprocess.run(["ip", "-brief", "link"], capture_output=True, text=True).stdout
        return {str(Path("/proc/thread-self/ns/net").readlink()), lines}

    before = namespaces(), children(), sorted(os.listdir("/proc/self/fd"))
    with pytest.raises(ZeroDivisionError), delayed(0.001) as path, path.server.entered():
        assert namespaces() != before[0]
        raise ZeroDivisionError
    assert (namespaces(), children(), sorted(os.listdir("/proc/self/fd"))) == before


def test_a_copy_keeps_as_much_in_flight_as_the_round_trip_asks_for(tmp_path: Path) -> None:
    size = 48 * MIB
    with delayed(0.005) as path, ExitStack() as stack:
        with path.server.entered():
            server = stack.enter_context(
                private_samba(tmp_path, password=PASSWORD, address=path.server.address)
            )
        stack.enter_context(path.client.entered())
        access = Access(server.username, PASSWORD)
        peer = Endpoint(host=server.host, port=server.port, share=server.share, access=access)
        held = stack.enter_context(run_folder.hold(run_folder.Setting(run="0abc"), peer))
        for copy in ("push.cached", "pull.cached"):
            details = _copied(copy, size, held)
            needed = path.round_trip_seconds * LIKELY_BYTES_PER_SECOND
            assert details["rtt_seconds"] >= path.round_trip_seconds
            assert details["request_bytes"] * details["depth"] >= needed
            assert details["in_flight_bytes"] >= needed - MIB
            assert details["hash_ok"] is True


def _copied(copy: str, size: int, peer: Endpoint) -> Details:
    setting = smb_copy.Setting(
        copy=copy,
        dialect="3.1.1",
        end="memory",
        size_bytes=size,
        seconds=60.0,
        seed="00ff",
        fill_source=copy == "push.cached",
    )
    running, found = smb_copy.initiate(setting, peer), list[Details]()
    while not found:
        try:
            next(running)
        except StopIteration as end:
            found.append(end.value)
    return found[0]
