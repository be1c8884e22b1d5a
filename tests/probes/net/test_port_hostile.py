"""The session's data port among strangers, and before a peer without an end or without a word."""

from __future__ import annotations

import socket
import threading
from contextlib import ExitStack, contextmanager

import pytest

from probes.core.records import Endpoint
from probes.core.stage import Unavailable
from probes.net import port
from tests import living
from tests.living import reset

HERE = "127.0.0.1"
NOBODY = b"0" * 32


@pytest.fixture
def soon(monkeypatch):
    """Shortens the limit of a hello for strangers, and not for the session itself."""

    @contextmanager
    def sooner():
        with monkeypatch.context() as limits:
            limits.setattr(port, "HELLO_SECONDS", 0.1)
            yield

    return sooner


@pytest.fixture
def complaints(monkeypatch):
    """Errors that ended threads of the port; a user would see them on the terminal."""
    errors = []
    monkeypatch.setattr(threading, "excepthook", lambda args: errors.append(args.exc_value))
    return errors


@contextmanager
def open_port():
    """A port whose responder says what it was asked for."""

    def serve(meeting):
        meeting.tell({"served": meeting.request["word"], "connections": len(meeting.connections)})
        meeting.wait_for_close(living.GENEROUS_SECONDS)

    with port.listen(HERE, serve) as peer:
        yield peer


def is_served(peer, connections=2):
    """Whether the session itself gets in and is answered."""
    meeting = port.meet(peer, {"word": "hello"}, connections)
    try:
        return meeting.hear(living.GENEROUS_SECONDS) == {
            "served": "hello",
            "connections": connections,
        }
    finally:
        meeting.close()


def connect(peer, said=b""):
    connection = socket.create_connection((peer.host, peer.port), timeout=living.GENEROUS_SECONDS)
    if said:
        connection.sendall(said)
    return connection


def hello(nonce, number=1, index=port._CONTROL):
    return port._HELLO.pack(port._MAGIC, nonce, number, index)


def is_closed(connection):
    """Whether the other end closes without having said a word."""
    connection.settimeout(living.GENEROUS_SECONDS)
    try:
        return connection.recv(1) == b""
    except ConnectionError:
        return True


# -- strangers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "said",
    [
        hello(NOBODY)[:20],
        hello(NOBODY),
        hello(NOBODY, index=0),
        hello(b"\xff" * 32),
        hello(b"\0" * 32),
        b"GET / HTTP/1.1\r\nHost: nas\r\n\r\n" * 20,
        b"\0" * 46,
        b"x" * 1_000_000,
    ],
)
def test_who_does_not_know_the_nonce_is_not_answered_and_not_kept(said, complaints, soon):
    with open_port() as peer:
        with soon(), connect(peer) as connection:
            try:
                connection.sendall(said)
            except ConnectionError:
                assert len(said) > 100  # thrown out in the middle of it
            assert is_closed(connection)
        assert is_served(peer)
    assert not complaints


def test_half_a_hello_that_goes_on_byte_by_byte_does_not_extend_its_time(monkeypatch):
    """Each wait for the next byte is for what is left of the time, and no longer."""
    clock, waits, received = living.FakeClock(), [], port._receive_part

    def a_byte(connection, most_bytes, seconds):
        waits.append(seconds)
        clock.time += port.HELLO_SECONDS / 4
        return received(connection, 1, living.GENEROUS_SECONDS)

    monkeypatch.setattr(port, "time", clock)
    monkeypatch.setattr(port, "_receive_part", a_byte)
    with open_port() as peer, connect(peer, hello(peer.nonce.encode())) as connection:
        assert is_closed(connection)
    assert waits == [port.HELLO_SECONDS * each / 4 for each in (4, 3, 2, 1)]


def test_a_flood_of_silent_strangers_is_bounded_and_ends(complaints, soon):
    threads = threading.active_count()
    with open_port() as peer, ExitStack() as stack:
        with soon():
            flood = []
            for _ in range(3 * port._MOST_WAITING):
                flood.append(stack.enter_context(connect(peer)))
                assert threading.active_count() - threads <= port._MOST_WAITING + 2
            assert all(is_closed(each) for each in flood)
        assert is_served(peer)
    assert not complaints


def test_silent_strangers_cost_the_session_no_wait(monkeypatch, complaints):
    monkeypatch.setattr(port, "HELLO_SECONDS", 600.0)
    with open_port() as peer, ExitStack() as stack:
        for _ in range(2 * port._MOST_WAITING):
            stack.enter_context(connect(peer))
        assert is_served(peer)
    assert not complaints


def test_strangers_who_reset_leave_nothing_behind(complaints):
    threads = threading.active_count()
    with open_port() as peer:
        for said in (b"", b"x", hello(NOBODY), hello(peer.nonce.encode()), b"x" * 100_000):
            for _ in range(8):
                reset(connect(peer, said))
        assert is_served(peer)
    assert living.until(lambda: threading.active_count() <= threads)
    assert not complaints


# -- an initiator that knows the nonce and says nonsense -------------------------------------------


@pytest.mark.parametrize(
    "request_line",
    [
        b"",
        b"\n",
        b"nonsense\n",
        b'{"connections":',
        b'{"word":"x","connections":2}' + b" " * 10_000 + b"\n",
        b"x" * 100_000,
        b'{"word":"x"}\n',
        b'{"word":"x","connections":-1}\n',
        b'{"word":"x","connections":1000000000}\n',
        b'{"word":"x","connections":"two"}\n',
    ],
)
def test_a_strange_request_keeps_nobody_out(request_line, complaints):
    with open_port() as peer:
        connection = connect(peer, hello(peer.nonce.encode()))
        try:
            connection.sendall(request_line)
        except ConnectionError:
            assert len(request_line) > port.MOST_REQUEST_BYTES
        assert is_served(peer)
        connection.close()
    assert not complaints


def test_meetings_that_are_never_completed_make_room_for_one_that_is(complaints):
    with open_port() as peer, ExitStack() as stack:
        nonce = peer.nonce.encode()
        halves = []
        for number in range(3 * port._MOST_MEETINGS):
            halves.append(stack.enter_context(connect(peer, hello(nonce, number, 0))))
        assert is_served(peer)
        assert is_closed(halves[0])
    assert not complaints


@pytest.mark.parametrize("index", [port.MOST_CONNECTIONS, port._CONTROL - 1])
def test_a_connection_beyond_the_most_of_a_meeting_is_closed(index):
    with open_port() as peer, connect(peer, hello(peer.nonce.encode(), 1, index)) as connection:
        assert is_closed(connection)


def test_what_the_responder_breaks_on_is_told_and_the_port_stays(complaints):
    with open_port() as peer:
        meeting = port.meet(peer, {"wrong": "word"}, 1)
        with pytest.raises(RuntimeError, match="word"):
            meeting.hear(living.GENEROUS_SECONDS)
        meeting.close()
        assert is_served(peer)
    assert not complaints


# -- a responder that is not what it should be -----------------------------------------------------


@contextmanager
def serve_with(work):
    """A responder of another kind: work gets each connection's number and the connection."""
    open_connections = []

    def accept(listener):
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            open_connections.append(connection)
            arguments = (len(open_connections) - 1, connection)
            threading.Thread(target=guarded, args=arguments, daemon=True).start()

    def guarded(*arguments):
        try:
            work(*arguments)
        except OSError:
            return  # the other end has gone

    listener = socket.create_server((HERE, 0))
    threading.Thread(target=accept, args=(listener,), daemon=True).start()
    try:
        yield Endpoint(host=HERE, port=listener.getsockname()[1], nonce=NOBODY.decode())
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for each in open_connections:
            each.close()


def takes_in(connection):
    """Reads the hello and the request, and lets the initiator in."""
    got = b""
    while not got.endswith(b"\n"):
        got += connection.recv(65536)
    connection.sendall(b"\n")


def broken_off(peer):
    """Returns the error that ends a meeting in which a message was due."""
    with pytest.raises((RuntimeError, Unavailable, EOFError, OSError, ValueError)) as broke:
        meeting = port.meet(peer, {"word": "hello"}, 1)
        try:
            meeting.hear(living.GENEROUS_SECONDS)
        finally:
            meeting.close()
    return str(broke.value)


def test_a_responder_that_closes_or_resets_at_once_ends_it():
    for end in (socket.socket.close, reset):
        with serve_with(lambda number, connection, end=end: end(connection)) as peer:
            assert "too late" not in broken_off(peer)


def test_a_line_without_end_is_not_kept_in_memory():
    sizes = []

    def work(number, connection):
        if number:
            return
        takes_in(connection)
        while True:
            connection.sendall(b"[" * 65536)
            sizes.append(65536)

    with serve_with(work) as peer:
        assert "without end" in broken_off(peer)
    assert sum(sizes) < 4 * port.MOST_LINE_BYTES


def test_a_line_that_comes_byte_by_byte_does_not_extend_its_time(monkeypatch):
    clock, received = living.FakeClock(), port._receive_part

    def a_byte(connection, most_bytes, seconds):
        clock.time += 1.0
        return received(connection, 1, living.GENEROUS_SECONDS)

    def work(number, connection):
        if not number:
            takes_in(connection)
            connection.sendall(b" " * 60)

    with serve_with(work) as peer:
        meeting = port.meet(peer, {"word": "hello"}, 1)
        monkeypatch.setattr(port, "time", clock)
        monkeypatch.setattr(port, "_receive_part", a_byte)
        with pytest.raises(EOFError, match="too late"):
            meeting.hear(50.0)
        meeting.close()


# -- what is no message ----------------------------------------------------------------------------


@pytest.mark.parametrize("request_line", [b"5\n", b"[]\n", b"null\n", b"[" * 4000 + b"\n"])
def test_a_request_that_is_no_object_is_refused_without_a_word(request_line, complaints):
    with open_port() as peer:
        with connect(peer, hello(peer.nonce.encode()) + request_line) as connection:
            assert is_closed(connection)
        assert is_served(peer)
    assert not complaints


@pytest.mark.parametrize(
    "line",
    [
        b"5\n",
        b"[]\n",
        b"x\n",
        b"\xff\xfe\n",
        b"{}{}\n",
        b'{"a":NaN}\n',
        b'{"a":-Infinity}\n',
        b'{"a":1e999}\n',
    ],
)
def test_what_is_told_is_an_object_of_finite_numbers(line):
    def work(number, connection):
        if not number:
            takes_in(connection)
            connection.sendall(line)
            connection.recv(1)

    with serve_with(work) as peer:
        meeting = port.meet(peer, {"word": "hello"}, 1)
        try:
            with pytest.raises(RuntimeError, match="invalid message"):
                meeting.hear(living.GENEROUS_SECONDS)
        finally:
            meeting.close()


def test_silence_is_told_as_what_it_is(monkeypatch):
    def lets_in(number, connection):
        if not number:
            takes_in(connection)
            connection.recv(1)

    with serve_with(lets_in) as peer:
        meeting = port.meet(peer, {"word": "hello"}, 1)
        try:
            with pytest.raises(EOFError):
                meeting.hear(0.05)
        finally:
            meeting.close()
    monkeypatch.setattr(port, "CONNECT_SECONDS", 0.2)
    with (
        serve_with(lambda number, connection: None) as peer,
        pytest.raises(RuntimeError, match=HERE),
    ):
        port.meet(peer, {"word": "hello"}, 1)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b'{"a":' + b"[" * 20 + b"]" * 20 + b"}", "nested"),
        (b"[" * 100_000, "nested"),
        (b'{"a":' + b"9" * 65 + b"}", "no finite number"),
        (b'{"a":0.' + b"9" * 65 + b"}", "no finite number"),
        (b'{"a":1e999}', "no finite number"),
        (b"5", "no object"),
    ],
)
def test_a_message_is_bounded_before_it_costs_anything(line, why):
    with pytest.raises(ValueError, match=why):
        port._parse_message(line)
    assert port._parse_message(b'{"a":[1,2.5,"[[["]}') == {"a": [1, 2.5, "[[["]}
