"""Classic ttcp at the other end: one connection, its bytes the payload, its close the end."""

import socket
import threading
import time

import pytest

from probes import tcp_by_ttcp
from probes.records import Endpoint, Sample
from probes.stage import Last, Unavailable


def run(setting, peer):
    running = tcp_by_ttcp.initiate(setting, peer)
    samples = []
    while True:
        try:
            samples.append(next(running))
        except StopIteration as end:
            return samples, end.value


class Sink(threading.Thread):
    """What `ttcp -r -s` does: takes one connection, reads it to its end, closes."""

    def __init__(self):
        super().__init__(daemon=True)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.got = 0

    def run(self):
        connection, _ = self.listener.accept()
        with connection:
            while part := connection.recv(1 << 16):
                self.got += len(part)


def source(port, moved):
    """What `ttcp -t -s` does: connects, sends its buffers, closes."""
    deadline = time.monotonic() + 5
    while True:
        try:
            connection = socket.create_connection(("127.0.0.1", port))
            break
        except ConnectionRefusedError:
            assert time.monotonic() < deadline
            time.sleep(0.02)
    with connection:
        for _ in range(moved // 8192):
            connection.sendall(b"\xaa" * 8192)


def test_a_push_is_what_the_sink_has_read():
    sink = Sink()
    sink.start()
    setting = tcp_by_ttcp.Setting("push", 1, seconds=0.5)
    samples, details = run(setting, Endpoint(host="127.0.0.1", port=sink.port))
    sink.join(5)
    assert samples[0] == Sample(0.0, 0)
    assert isinstance(samples[-1], Last)
    moved = [each.moved_bytes for each in samples]
    assert moved == sorted(moved)
    assert 0 < moved[-1] < sink.got
    assert details["engine"] == "ttcp"
    assert details["congestion_control"]


def test_a_pull_takes_what_that_host_sends():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    size = 8192 * 2048
    threading.Thread(target=source, args=(port, size), daemon=True).start()
    setting = tcp_by_ttcp.Setting("pull", 1, seconds=2.0)
    samples, _ = run(setting, Endpoint(host="127.0.0.1", port=port))
    assert samples[-1].moved_bytes == size


def test_nobody_there_is_a_reason_with_a_remedy():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="ttcp -r -s"):
        run(tcp_by_ttcp.Setting("push"), Endpoint(host="127.0.0.1", port=port))


def test_nobody_who_calls_is_a_reason_with_a_remedy(monkeypatch):
    monkeypatch.setattr(tcp_by_ttcp, "CALL_SECONDS", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(Unavailable, match="ttcp -t -s"):
        run(tcp_by_ttcp.Setting("pull"), Endpoint(host="127.0.0.1", port=port))


def test_a_caller_from_elsewhere_is_not_taken(monkeypatch):
    monkeypatch.setattr(tcp_by_ttcp, "CALL_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    threading.Thread(target=source, args=(port, 8192), daemon=True).start()
    with pytest.raises(Unavailable, match="nobody at 127.0.0.9"):
        run(tcp_by_ttcp.Setting("pull"), Endpoint(host="127.0.0.9", port=port))


def test_several_streams_are_not_its_affair():
    with pytest.raises(Unavailable, match="one stream"):
        run(tcp_by_ttcp.Setting("push", 4), Endpoint(host="127.0.0.1"))
