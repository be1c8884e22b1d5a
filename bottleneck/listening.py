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
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bottleneck import seals, wire
from bottleneck.guesses import FREE, LONGEST_SECONDS, Guesses
from bottleneck.hosts import command_here
from bottleneck.sealed_stream import (
    SILENT_SECONDS,
    Broken,
    Lines,
    hang_up,
    send_line,
    settle,
    take_lines,
)
from bottleneck.target import host_and_port
from probes.stage import Refused

IDLE_SECONDS = 600.0
PROVING_SECONDS = 5.0
"""What a caller gets to prove itself."""
MOST_PROVING = 16
"""Callers that prove themselves at the same time; one more sends one away."""
CLOSING_SECONDS = 6.0
"""What an agent gets to clean up; its own children get half of it."""
LOOK_SECONDS = 0.25
BREATH_SECONDS = 0.05

Say = Callable[[str], object]


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
    if is_any(str(address[0])) and not any_address:
        raise Refused(
            "usage",
            f"--listen {host} is every address of this host: name the one that the client uses, "
            "or give --any-address",
        )
    if family == socket.AF_INET6 and _told(str(address[0])).is_link_local:
        raise Refused(
            "usage",
            f"--listen {host}: a client cannot call a link-local address without the name of its "
            "own network card; name another address of this host",
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


def _told(address: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """An address as getaddrinfo() gives it, without its interface."""
    return ipaddress.ip_address(address.partition("%")[0])


def is_any(address: str) -> bool:
    """Whether an address stands for all of this host's."""
    told = _told(address)
    mapped = getattr(told, "ipv4_mapped", None)
    return told.is_unspecified or mapped is not None and mapped.is_unspecified


@dataclass
class Listening:
    """A listener at work."""

    token: bytes
    """As seals.normal() has it."""
    say: Say
    """Told of coordinators that come and go, one line each."""
    guesses: Guesses = field(default_factory=Guesses)
    proving: dict[socket.socket, str] = field(default_factory=dict)
    """Callers and their addresses, the oldest first."""
    busy: threading.Lock = field(default_factory=threading.Lock)
    current: socket.socket | None = None
    session: threading.Thread | None = None

    def serve(self, waiting: socket.socket, idle_seconds: float) -> None:
        """Serves one coordinator after the other until none came for so long.

        However it is left, the agent ends.
        """
        until = time.monotonic() + idle_seconds
        try:
            while time.monotonic() < until:
                waiting.settimeout(LOOK_SECONDS)
                try:
                    with contextlib.suppress(TimeoutError):
                        self._take(*waiting.accept())
                except (OSError, RuntimeError):
                    # It went before it was taken, or there is no descriptor or thread to spare.
                    time.sleep(BREATH_SECONDS)
                if self.busy.locked():
                    until = time.monotonic() + idle_seconds
        finally:
            waiting.close()
            self._end()

    def _take(self, connection: socket.socket, peer: tuple[Any, ...]) -> None:
        address = str(peer[0])
        if not self.guesses.heard(address, time.monotonic()):
            connection.close()
            return
        while len(self.proving) >= MOST_PROVING:
            self._send_one_away()
        self.proving[connection] = address
        threading.Thread(target=self._meet, args=(connection, address), daemon=True).start()

    def _send_one_away(self) -> None:
        """Hangs up on the oldest caller of the address with the most of them."""
        callers = list(self.proving.items())
        for most, _ in Counter(address for _, address in callers).most_common(1):
            oldest = next(each for each, address in callers if address == most)
            self.proving.pop(oldest, None)
            hang_up(oldest)

    def _meet(self, connection: socket.socket, address: str) -> None:
        """One caller from its first line to its last."""
        with connection:
            lines = Lines(connection)
            try:
                meeting = self._prove(connection, address, lines)
            except (Broken, OSError):
                meeting = None
            finally:
                self.proving.pop(connection, None)
            if meeting is None:
                return
            try:
                self._serve_one(connection, address, lines, meeting)
            finally:
                self.current = None
                self.busy.release()

    def _prove(self, connection: socket.socket, address: str, lines: Lines) -> seals.Meeting | None:
        """What both know once both have proven it; then this caller is the one at work."""
        until = time.monotonic() + PROVING_SECONDS
        own = seals.nonce()
        connection.settimeout(PROVING_SECONDS)
        connection.sendall(seals.MARK + own + b"\n")
        answer = seals.read_answer(lines.line(seals.LONGEST_WORDS_BYTES, until) or b"")
        if answer is None or not self.guesses.heard(address, time.monotonic()):
            return None
        meeting = seals.Meeting(self.token, own, answer[0])
        if not seals.same(answer[1], meeting.proof("caller")):
            self._say_wrong(address, self.guesses.wrong(address, time.monotonic()))
            connection.sendall(seals.WRONG + b"\n")
            return None
        self.guesses.right(address)
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

    def _say_wrong(self, address: str, count: int) -> None:
        """A line for each of the first ones; then, once, that it is heard no more for a while."""
        if count <= FREE:
            self.say(f"a wrong token from {address}")
        if count == FREE:
            self.say(
                f"{count} wrong tokens from {address}: it is not heard for a while, "
                f"{LONGEST_SECONDS:.0f} s at most, after each one more"
            )

    def _serve_one(
        self, connection: socket.socket, who: str, lines: Lines, meeting: seals.Meeting
    ) -> None:
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

            # A coordinator that stopped, or from whom somebody on the path keeps all, is none.
            take_lines(lines, meeting.seal("requests"), pass_on, SILENT_SECONDS)
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
        for each in (*list(self.proving), self.current):
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
