"""A transfer's figures cover the payload that arrived, after the start, with nothing helped.

Each test is one way in which such tools are known to tell a wrong number.
"""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import zlib
from contextlib import contextmanager
from pathlib import Path

import pytest

from probes.net import flow, port, transfer
from probes.net.sampling import Arrivals
from probes.net.transfer import Shape
from tests import living

HERE = "127.0.0.1"
SECONDS = 0.4
LINUX = sys.platform.startswith("linux")
ALLOWED = Path("/proc/sys/net/ipv4/tcp_allowed_congestion_control")
SO_BUF_LOCK = 72
"""Socket option: the buffers a program has set, 1 the sending, 2 the receiving (Linux 5.14)."""


def told_of_a_sender(meeting):
    """Sends the account of a sender that saw nothing; the other end waits for it."""
    meeting.tell({"seconds": 1.0, "moved_bytes": 0, "calls": 0, "granted_bytes": 0, "seen": {}})


# -- from when to when -----------------------------------------------------------------------------


def test_what_comes_in_the_warm_up_is_in_no_rate(responder, transfer_to, clock, monkeypatch):
    """A burst at first, as of a bucket or a slow start's last round, and little after it."""
    burst, later_sizes, ends, count_whole = 4_000_000, [], [], Arrivals.count_without_hole

    def once_it_is_here(arrivals, seconds):
        """Waits until the burst has come, then counts; each later look sees a little more."""
        assert living.until(lambda: arrivals.count().moved_bytes >= burst)
        monkeypatch.setattr(Arrivals, "count", another)
        return count_whole(arrivals, seconds)

    def another(arrivals, count=Arrivals.count):
        clock.time += 0.05
        later_sizes.append(1000)
        ends[0].sendall(bytes(1000))
        return count(arrivals)

    def work(meeting, over):
        ends.extend(meeting.connections)
        ends[0].sendall(bytes(burst))
        told_of_a_sender(meeting)
        over.wait(living.GENEROUS_SECONDS)

    monkeypatch.setattr(Arrivals, "count_without_hole", once_it_is_here)

    with responder(work) as peer:
        samples, figures = transfer_to(Shape("pull", seconds=SECONDS), peer)
    assert (samples[0].elapsed_seconds, samples[0].moved_bytes) == (0.0, 0)
    assert 0 < samples[-1].moved_bytes <= sum(later_sizes)
    assert figures.receiver["moved_bytes"] < burst


def test_what_was_sent_and_has_not_arrived_is_in_no_rate(responder, transfer_to):
    """A sink that takes 100 kB and no more: the sender's own count is its buffers' content."""
    taken = []

    def work(meeting, over):
        (connection,) = meeting.connections
        while sum(taken) < 100_000:
            taken.append(len(connection.recv(min(65536, 100_000 - sum(taken)))))
        meeting.tell(
            {"samples": [[0, 0], [0.1, sum(taken)]], "seconds": 0.1, "moved_bytes": sum(taken)}
            | {"calls": len(taken), "granted_bytes": 1, "seen": {}}
        )
        for each in meeting.connections:
            while each.recv(1 << 18):
                pass
        over.wait(living.GENEROUS_SECONDS)

    with responder(work) as peer:
        samples, figures = transfer_to(Shape("push", seconds=SECONDS), peer)
    assert samples[-1].moved_bytes == 100_000
    assert figures.receiver["moved_bytes"] == 100_000


@pytest.mark.parametrize("verb", transfer.VERBS)
def test_no_two_samples_are_so_near_that_a_burst_is_a_rate(transfer_to, verb, payload_clock):
    # A count that one end has late leaves a sample out.
    with transfer.respond(HERE, 2 * SECONDS) as peer:
        samples, _ = transfer_to(Shape(verb, seconds=2 * SECONDS), peer)
    times = [each.elapsed_seconds for each in samples[:-1]]
    assert len(times) > 2
    for one, other in zip(times, times[1:], strict=False):
        assert other - one >= transfer.INTERVAL_SECONDS


# -- of what ---------------------------------------------------------------------------------------


def test_the_payload_does_not_compress(responder, transfer_to):
    content = bytearray()

    def work(meeting, over):
        (connection,) = meeting.connections
        while len(content) < 6_000_000:
            content.extend(connection.recv(1 << 18))

    with responder(work) as peer, pytest.raises((RuntimeError, OSError)):
        transfer_to(Shape("push", seconds=living.GENEROUS_SECONDS), peer)
    assert len(zlib.compress(bytes(content), 1)) > 0.99 * len(content)


# -- by which sockets ------------------------------------------------------------------------------


@pytest.fixture
def ends(monkeypatch):
    """Every socket of a meeting at both ends, while it is open: (control, data) of each end."""
    meetings = {}

    def serve(meeting):
        meetings["responder"] = meeting
        meeting.tell({"here": True})
        meeting.wait_for_close(living.GENEROUS_SECONDS)

    @contextmanager
    def met(window_bytes=0):
        with port.listen(HERE, serve, window_bytes) as peer:
            meeting = port.meet(peer, {}, 2, window_bytes, window_bytes)
            try:
                meeting.hear(living.GENEROUS_SECONDS)
                yield meeting, meetings["responder"]
            finally:
                meeting.close()

    return met


def buffers_set(connection):
    """Whether the program has set the sending and the receiving buffer, by the kernel."""
    try:
        locks = connection.getsockopt(socket.SOL_SOCKET, SO_BUF_LOCK)
    except OSError:
        pytest.skip("NOT RUN: this kernel is older than Linux 5.14 and does not tell it")
    return bool(locks & 1), bool(locks & 2)


@pytest.mark.skipif(not LINUX, reason="NOT RUN: only Linux tells whose buffer it is")
@pytest.mark.parametrize("verb", transfer.VERBS)
def test_a_window_is_set_at_both_ends_and_only_for_who_asked(
    transfer_to, verb, payload_clock, monkeypatch
):
    locks_seen = []
    run = flow.Flow.start_threads

    def noting(self, move, *arguments):
        locks_seen.append((move.__name__, [buffers_set(each) for each in self.connections]))
        run(self, move, *arguments)

    monkeypatch.setattr(flow.Flow, "start_threads", noting)
    for window_bytes in (0, 64 << 10):
        locks_seen.clear()
        with transfer.respond(HERE, SECONDS, window_bytes) as peer:
            transfer_to(Shape(verb, 2, seconds=0.2, window_bytes=window_bytes), peer)
        is_set = window_bytes > 0
        assert len(locks_seen) == 2
        for move, locks in locks_seen:
            end = 1 if move == "receive" else 0
            assert [each[end] for each in locks] == [is_set, is_set]


@pytest.mark.skipif(not LINUX, reason="NOT RUN: reads the system's limit as Linux tells it")
def test_a_window_that_the_system_cuts_is_told_as_it_is_and_not_as_asked_for(
    transfer_to, payload_clock
):
    limit_bytes = int(Path("/proc/sys/net/core/wmem_max").read_text())
    window_bytes = transfer.MOST_WINDOW_BYTES
    if window_bytes <= limit_bytes:
        pytest.skip("NOT RUN: this system grants whatever may be asked for")
    with transfer.respond(HERE, SECONDS, window_bytes) as peer:
        _, figures = transfer_to(Shape("push", seconds=SECONDS, window_bytes=window_bytes), peer)
    assert 0 < figures.sender["granted_bytes"] <= 2 * limit_bytes < window_bytes


def test_small_messages_wait_for_no_acknowledgement_at_either_end(ends):
    with ends() as both:
        for end in both:
            for each in (end.control, *end.connections):
                assert each.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


@pytest.mark.parametrize("verb", transfer.VERBS)
def test_the_congestion_control_told_is_the_sending_sockets(
    transfer_to, verb, lab_path, payload_clock
):
    allowed = ALLOWED.read_text().split() if ALLOWED.exists() else []
    if len(allowed) < 2:
        pytest.skip("NOT RUN: this kernel has one congestion control alone")
    ours, other = allowed[:2]
    with lab_path(0.0005) as path:
        for end, control in ((path.client, ours), (path.server, other)):
            set_to = f"net.ipv4.tcp_congestion_control={control}"
            subprocess.run([*end.prefix, "sysctl", "-qw", set_to], check=True)
        with path.server.entered():
            responder = transfer.respond(path.server.address, SECONDS)
            peer = responder.__enter__()
        try:
            with path.client.entered():
                _, figures = transfer_to(Shape(verb, seconds=SECONDS), peer)
        finally:
            responder.__exit__(None, None, None)
    assert figures.congestion_control == (ours if verb == "push" else other)
    assert figures.limits["congestion_control"] == figures.congestion_control


# -- what does not arrive --------------------------------------------------------------------------


@pytest.mark.parametrize("verb", transfer.VERBS)
def test_a_path_on_which_full_packets_vanish_gives_a_failure_and_no_rate(
    transfer_to, verb, lab_path, monkeypatch
):
    """A card that cuts its segments wrongly does so: small packets pass, and all seems well."""
    monkeypatch.setattr(port, "STALL_SECONDS", 0.3)
    with lab_path(0.0005, mtu_bytes=1500, largest_bytes=1400) as path:
        with path.server.entered():
            responder = transfer.respond(path.server.address, SECONDS)
            peer = responder.__enter__()
        try:
            with path.client.entered(), pytest.raises((RuntimeError, OSError)):
                transfer_to(Shape(verb, seconds=0.3), peer)
        finally:
            responder.__exit__(None, None, None)


# -- while it runs ---------------------------------------------------------------------------------


def test_a_push_shows_the_receivers_samples_while_it_sends(payload_clock, monkeypatch):
    events, hear, tell, heard_all = [], port.Meeting.hear, port.Meeting.tell, threading.Semaphore(0)

    def heard(meeting, seconds):
        message = hear(meeting, seconds)
        events.append("the end" if "samples" in message else "a message")
        heard_all.release()
        return message

    def tells(meeting, message):
        """Returns once the other end has read it: until then no time passes."""
        tell(meeting, message)
        assert "sample" not in message or heard_all.acquire(timeout=living.GENEROUS_SECONDS)

    monkeypatch.setattr(port.Meeting, "hear", heard)
    monkeypatch.setattr(port.Meeting, "tell", tells)
    # Of the last samples the end may be heard first.
    with transfer.respond(HERE, 2 * SECONDS) as peer:
        running = transfer.initiate(Shape("push", seconds=2 * SECONDS), peer)
        for sample in running:
            events.append(sample)
    early_events = events[: events.index("the end")]
    samples = [each for each in early_events if not isinstance(each, str)]
    assert [each.elapsed_seconds for each in samples[:1]] == [0.0] and len(samples) > 1
    assert all(a.moved_bytes <= b.moved_bytes for a, b in zip(samples, samples[1:], strict=False))


def test_a_receiver_that_changes_what_it_told_is_not_believed(
    responder, transfer_to, clock, monkeypatch
):
    hear, heard_it = port.Meeting.hear, threading.Event()

    def heard(meeting, seconds):
        message = hear(meeting, seconds)
        heard_it.set()
        return message

    def work(meeting, over):
        (connection,) = meeting.connections
        assert connection.recv(10, socket.MSG_WAITALL)
        clock.time += SECONDS / 2
        meeting.tell({"sample": [0.1, 10]})
        assert heard_it.wait(living.GENEROUS_SECONDS)
        clock.time += SECONDS
        while connection.recv(1 << 20):
            pass
        message = {"samples": [[0.0, 0], [0.1, 9], [0.2, 20]], "seconds": 0.2, "moved_bytes": 20}
        meeting.tell({**message, "calls": 1, "granted_bytes": 0, "seen": {}})
        over.wait(living.GENEROUS_SECONDS)

    monkeypatch.setattr(port.Meeting, "hear", heard)

    with responder(work) as peer, pytest.raises(RuntimeError, match="told before"):
        transfer_to(Shape("push", seconds=SECONDS), peer)
