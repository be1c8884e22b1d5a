"""A run's folder on a share, a stage run to its end, a planted delay, a file system of its own."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Details, Endpoint, Sample
from probes.core.stage import Last, Running
from probes.net import flow, sampling, transfer
from probes.programs.samba import Samba, private_samba
from probes.smb.run_folder import Setting as RunFolder
from probes.smb.run_folder import hold
from probes.stages import smb_copy
from tests import living
from tests.devices import loop_device

sys.path.append(str(Path(__file__).parents[1] / "lab"))
from delay import (  # noqa: E402 - behind sys.path
    End,
    delay_path,
    missing,
)

NT1 = "server min protocol = NT1"
PASSWORD = "correct horse 47 %&"
SEED = "00ff11"


@pytest.fixture(scope="session")
def smbd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Samba]]:
    """A real smbd of every dialect, for all tests here that neither harm nor change it."""
    folder = tmp_path_factory.mktemp("share")
    options = (NT1, "server signing = auto")
    with private_samba(str(folder), password=PASSWORD, options=options) as server:
        yield folder, server


@pytest.fixture
def run_folder(
    tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Callable[..., Any]:
    """The run's folder on a real share, its source filled: (peer, folder around it, server).

    With options, or even "", it is a server of its own.
    """

    @contextmanager
    def started(
        *options: str, source_bytes: int = 0, folder: Path | None = None
    ) -> Iterator[tuple[Endpoint, Path, Samba]]:
        with ExitStack() as stack:
            if options or folder:
                folder = folder or tmp_path_factory.mktemp("share")
                options = options or (NT1,)
                private = private_samba(str(folder), password=PASSWORD, options=options)
                server, inside = stack.enter_context(private), ""
            else:
                shared, server = request.getfixturevalue("smbd")
                inside = secrets.token_hex(8)
                folder = shared / inside
                folder.mkdir()
            peer = replace(server.endpoint, folder=inside)
            endpoint = stack.enter_context(hold(RunFolder(run="0abc", seed=SEED), peer))
            if source_bytes:
                fill = smb_copy.Setting(
                    copy="push.cached",
                    dialect=endpoint.facts["dialect"],
                    end="memory",
                    size_bytes=source_bytes,
                    seconds=60.0,
                    seed=SEED,
                    fill_source=True,
                )
                for _ in smb_copy.initiate(fill, endpoint):
                    pass
            yield endpoint, folder, server

    return started


@pytest.fixture
def drain() -> Callable[[Running], tuple[list[Sample], Details]]:
    """All samples, a whole window of them, and the details of a stage that is under way."""

    def run(running: Running) -> tuple[list[Sample], Details]:
        samples: list[Sample] = []
        while True:
            try:
                samples.append(next(running))
            except StopIteration as end:
                assert samples[0] == Sample(0.0, 0)
                assert [each for each in samples if isinstance(each, Last)] == samples[-1:]
                for one, other in zip(samples, samples[1:], strict=False):
                    assert one.elapsed_seconds <= other.elapsed_seconds
                    assert one.moved_bytes <= other.moved_bytes
                return samples, end.value

    return run


@pytest.fixture
def run_stage(
    drain: Callable[[Running], tuple[list[Sample], Details]],
) -> Callable[[Any, Any, Endpoint], tuple[list[Sample], Details]]:
    return lambda stage, setting, peer: drain(stage.initiate(setting, peer))


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> living.FakeClock:
    """The clock of every transfer in this process; but for warm-ups a test alone moves it.

    No two looks see the same moment, as of a real one.
    """
    fake_clock, warm_up = living.FakeClock(step=1e-7), transfer._warm_up_seconds

    def warming(shape: transfer.Shape) -> float:
        fake_clock.time += 1 / 64
        return warm_up(shape)

    monkeypatch.setattr(transfer, "_warm_up_seconds", warming)
    for module in (transfer, sampling, flow):
        monkeypatch.setattr(module, "time", fake_clock)
    return fake_clock


@pytest.fixture
def payload_clock(clock: living.FakeClock, monkeypatch: pytest.MonkeyPatch) -> living.FakeClock:
    """A transfer's time passes as both its ends see payload move, however slow this host is."""
    read, look = sampling.Arrivals._read, sampling.Sampling.at_sender
    arrived: dict[int, int] = {}
    looked = threading.Event()

    def counted(arrivals: sampling.Arrivals) -> sampling.Count:
        count = read(arrivals)
        if looked.is_set() and arrived.get(id(arrivals)) != count.moved_bytes:
            arrived[id(arrivals)] = count.moved_bytes
            looked.clear()
            clock.time += 1 / 16
        return count

    def note_look(sending: sampling.Sampling) -> None:
        look(sending)
        looked.set()

    monkeypatch.setattr(sampling.Arrivals, "_read", counted)
    monkeypatch.setattr(sampling.Sampling, "at_sender", note_look)
    return clock


@pytest.fixture
def lab_path() -> Callable[..., AbstractContextManager[Any]]:
    """tests/lab/delay.py's path between two hosts: delay, loss, rate, MTU, what it swallows."""
    if lacks := missing():
        pytest.skip("NOT RUN: " + "; ".join(lacks))
    return delay_path


@pytest.fixture
def respond_at() -> Callable[[Any, End, Any], AbstractContextManager[Endpoint]]:
    """A stage's far end, at an end of a path."""

    @contextmanager
    def respond(stage: Any, end: End, setting: Any) -> Iterator[Endpoint]:
        with end.entered():
            responder = stage.respond(setting)
            peer = responder.__enter__()
        try:
            yield peer
        finally:
            responder.__exit__(None, None, None)

    return respond


class _Relay:
    """Passes a TCP connection on; every byte arrives delay_seconds after it came, or later."""

    def __init__(self, port: int, delay_seconds: float) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._target, self._delay = port, delay_seconds
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                server = socket.create_connection(("127.0.0.1", self._target))
                for sock in (client, server):
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                for one, other in ((client, server), (server, client)):
                    self._pass_on(one, other)

    def _pass_on(self, one: socket.socket, other: socket.socket) -> None:
        delayed_parts: deque[tuple[float, bytes]] = deque()
        some = threading.Condition()

        def take() -> None:
            data = b"-"
            while data:
                data = b""
                with suppress(OSError):
                    data = one.recv(1 << 18)
                with some:
                    delayed_parts.append((time.monotonic() + self._delay, data))
                    some.notify()

        def give() -> None:
            while True:
                with some:
                    some.wait_for(lambda: delayed_parts)
                    due, data = delayed_parts.popleft()
                time.sleep(max(0.0, due - time.monotonic()))
                try:
                    if not data:
                        other.shutdown(socket.SHUT_WR)
                        return
                    other.sendall(data)
                except OSError:
                    return

        for work in (take, give):
            thread = threading.Thread(target=work, daemon=True)
            self._threads.append(thread)
            thread.start()

    def close(self) -> None:
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(timeout=10)


@pytest.fixture
def relay_to() -> Iterator[Callable[[int, float], int]]:
    """A port that leads to another one, with a delay each way that nothing can undercut."""
    with ExitStack() as stack:

        def lead(port: int, delay_seconds: float) -> int:
            relay = _Relay(port, delay_seconds)
            stack.callback(relay.close)
            return relay.port

        yield lead


@pytest.fixture
def ext4_disk(tmp_path):
    """Mount point of a fresh ext4 of 4 GiB, its loop device's name and the file behind it."""
    if os.geteuid() != 0 or not shutil.which("mkfs.ext4"):
        pytest.skip("a file system on a loop device needs root and mkfs.ext4")
    image, point = tmp_path / "image", tmp_path / "disk"
    point.mkdir()
    image.touch()
    os.truncate(image, 4 << 30)
    layout = ["-N", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0,nodiscard"]
    subprocess.run(["mkfs.ext4", "-q", "-F", *layout, image], check=True)
    with loop_device(image) as node:
        subprocess.run(["mount", node, point], check=True)
        try:
            yield point, node.name, image
        finally:
            subprocess.run(["umount", point], check=True)
