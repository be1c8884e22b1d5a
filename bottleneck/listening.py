"""An agent for hosts without ssh: waits on one address for a coordinator that knows the token.

One at a time, each line proven (bottleneck.seals), nothing encrypted: so nobody sends a password
here. The agent itself is the usual one on a pipe, and ends with its coordinator.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import signal
import socket
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from bottleneck import seals, wire
from bottleneck.hosts import command_here
from bottleneck.sealed_stream import Broken, Lines, hang_up, send_line, settle, take_lines
from bottleneck.target import host_and_port
from probes.stage import Refused

IDLE_SECONDS = 600.0
PROVING_SECONDS = 5.0
"""What a caller gets to prove itself."""
MOST_PROVING = 16
"""Callers that prove themselves at the same time; one more sends the oldest away."""
MOST_WRONG = 5
CLOSING_SECONDS = 6.0
"""What an agent gets to clean up; its own children get half of it."""
LOOK_SECONDS = 0.25
BREATH_SECONDS = 0.05

Say = Callable[[str], object]


class Guessed(Exception):
    """Too many wrong tokens came."""


def listener(spec: str, any_address: bool) -> socket.socket:
    """A socket that listens on ADDRESS:PORT; port 0 takes a free one.

    any_address: all addresses of this host will do. Raises Refused, "usage" or "permission".
    """
    place, colon, port = spec.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Refused("usage", "--listen takes ADDRESS:PORT, an IPv6 address in brackets")
    host = host_and_port(place, 1)[0]
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except OSError as error:
        raise Refused("usage", f"--listen {host}: {(error.strerror or '').lower()}") from None
    family, _, _, _, address = found[0]
    # Here and not in what was typed: 0 is 0.0.0.0 too.
    if _is_any(str(address[0])) and not any_address:
        raise Refused(
            "usage",
            f"--listen {host} is every address of this host: name the one that the client uses, "
            "or give --any-address",
        )
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(MOST_PROVING)
    except OSError as error:
        made.close()
        kind = "permission" if isinstance(error, PermissionError) else "usage"
        why = (error.strerror or str(error)).lower()
        raise Refused(kind, f"--listen {spec}: {why}") from None
    return made


def _is_any(address: str) -> bool:
    told = ipaddress.ip_address(address.partition("%")[0])
    mapped = getattr(told, "ipv4_mapped", None)
    return told.is_unspecified or mapped is not None and mapped.is_unspecified


@dataclass
class Listening:
    """A listener at work."""

    token: bytes
    """As seals.normal() has it."""
    say: Say
    """Told of coordinators that come and go, one line each."""
    wrong: int = 0
    proving: deque[socket.socket] = field(default_factory=deque)
    busy: threading.Lock = field(default_factory=threading.Lock)
    current: socket.socket | None = None
    session: threading.Thread | None = None

    def serve(self, waiting: socket.socket, idle_seconds: float) -> None:
        """Serves one coordinator after the other until none came for so long.

        Raises Guessed after MOST_WRONG wrong tokens. However it is left, the agent ends.
        """
        until = time.monotonic() + idle_seconds
        try:
            while time.monotonic() < until:
                if self.wrong >= MOST_WRONG and not self.busy.locked():
                    raise Guessed(f"{self.wrong} wrong tokens: somebody guesses")
                waiting.settimeout(LOOK_SECONDS)
                try:
                    with contextlib.suppress(TimeoutError):
                        self._take(waiting.accept()[0])
                except (OSError, RuntimeError):
                    # It went before it was taken, or there is no descriptor or thread to spare.
                    time.sleep(BREATH_SECONDS)
                if self.busy.locked():
                    until = time.monotonic() + idle_seconds
        finally:
            waiting.close()
            self._end()

    def _take(self, connection: socket.socket) -> None:
        if self.wrong >= MOST_WRONG:
            connection.close()
            return
        while len(self.proving) >= MOST_PROVING:
            with contextlib.suppress(IndexError):
                hang_up(self.proving.popleft())
        self.proving.append(connection)
        threading.Thread(target=self._meet, args=(connection,), daemon=True).start()

    def _meet(self, connection: socket.socket) -> None:
        """One caller from its first line to its last."""
        with connection:
            lines = Lines(connection)
            try:
                meeting = self._prove(connection, lines)
            except (Broken, OSError):
                meeting = None
            finally:
                with contextlib.suppress(ValueError):
                    self.proving.remove(connection)
            if meeting is None:
                return
            try:
                self._serve_one(connection, lines, meeting)
            finally:
                self.current = None
                self.busy.release()

    def _prove(self, connection: socket.socket, lines: Lines) -> seals.Meeting | None:
        """What both know once both have proven it; then this caller is the one at work."""
        until = time.monotonic() + PROVING_SECONDS
        own = seals.nonce()
        connection.settimeout(PROVING_SECONDS)
        connection.sendall(seals.MARK + own + b"\n")
        answer = seals.read_answer(lines.line(seals.LONGEST_WORDS_BYTES, until) or b"")
        if answer is None or self.wrong >= MOST_WRONG:
            return None
        meeting = seals.Meeting(self.token, own, answer[0])
        if not seals.same(answer[1], meeting.proof("caller")):
            self.wrong += 1
            self.say(f"a wrong token from {connection.getpeername()[0]}")
            connection.sendall(seals.WRONG + b"\n")
            return None
        if not self.busy.acquire(blocking=False):
            connection.sendall(seals.BUSY + b"\n")
            return None
        try:
            connection.sendall(meeting.proof("listener") + b"\n")
            settle(connection)
        except BaseException:
            self.busy.release()
            raise
        self.current, self.session = connection, threading.current_thread()
        return meeting

    def _serve_one(self, connection: socket.socket, lines: Lines, meeting: seals.Meeting) -> None:
        who = connection.getpeername()[0]
        self.say(f"a coordinator at {who} is at work")
        try:
            agent = subprocess.Popen(
                command_here(),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                # Ctrl-C is the listener's: it ends the agent in order.
                start_new_session=True,
            )
        except OSError as error:
            self.say(f"no agent could be started: {error.strerror}")
            return
        replies = threading.Thread(
            target=_send_replies, args=(agent, connection, meeting.seal("replies")), daemon=True
        )
        replies.start()
        why = "it left"
        try:
            assert agent.stdin is not None
            pipe = agent.stdin

            def pass_on(line: bytes) -> None:
                pipe.write(line)
                pipe.flush()

            take_lines(lines, meeting.seal("requests"), pass_on)
        except seals.Forged as error:
            why = f"cut off, somebody else is on the path: {error}"
        except (Broken, OSError) as error:
            why = f"lost: {error}"
        finally:
            _end_agent(agent)
            replies.join(CLOSING_SECONDS)
            self.say(f"the coordinator at {who}: {why}")

    def _end(self) -> None:
        """Sends everybody away and waits until the agent has gone."""
        for each in (*self.proving, self.current):
            if each is not None:
                hang_up(each)
        if self.session is not None:
            self.session.join(3 * CLOSING_SECONDS)


def _send_replies(
    agent: subprocess.Popen[bytes], connection: socket.socket, seal: seals.Seal
) -> None:
    assert agent.stdout is not None
    try:
        # Where it breaks whoever reads the requests notices it too.
        with contextlib.suppress(Broken):
            while line := agent.stdout.readline(wire.MAX_LINE_BYTES + 1):
                send_line(connection, seal, line)
    finally:
        # The agent ended or nobody reads it: either way there is nothing left to say.
        hang_up(connection)


def _end_agent(agent: subprocess.Popen[bytes]) -> None:
    """Closes its stream, at which it and its children end; what does not is killed."""
    assert agent.stdin is not None
    with contextlib.suppress(OSError):
        agent.stdin.close()
    try:
        agent.wait(CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
