"""An agent for hosts without ssh: waits on one address for a coordinator that knows the token.

One at a time, over TLS (bottleneck.tls). Callers that have not proven themselves are many, bounded
and cheap: a stranger costs a look at its first bytes, one that knows the certificate's name a
handshake, and whoever is one too many makes room out of those that have come as far as it has. The
agent itself is the usual one on a pipe, and ends with its coordinator.
"""

from __future__ import annotations

import contextlib
import hmac
import ipaddress
import selectors
import socket
import ssl
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field

from bottleneck import login_throttle, tls, wire
from bottleneck.agent_checks import plain_address
from bottleneck.bootstrap import command_here
from bottleneck.credentials import Token
from bottleneck.dialling import wrong_token
from bottleneck.login_throttle import Throttle
from bottleneck.target import host_and_port
from bottleneck.tls import Broken, Stream
from probes.host.system import os
from probes.host.waiting import signal
from probes.stage import Refused

PROVING_SECONDS = 5.0
"""What a caller gets to prove itself, whatever it sends meanwhile."""
MOST_BYTES = 16 << 10
"""That it may send until then."""
BACKLOG = 4096
SILENT, KNOWING, WRONG = "silent", "knowing", "wrong"
"""How far a caller has come: it said nothing of use yet; it knows the certificate's name; it had a
wrong token and waits for its answer."""
MOST = {SILENT: 400, KNOWING: 64, WRONG: 64}
"""Callers of each kind; one more sends one of the same kind away."""
MOST_TAKEN, MOST_SHAKEN = 256, 2
"""At once: callers that are taken, and handshakes, each of which costs a millisecond or two."""
MOST_TOLD = 50
"""Wrong tokens that the terminal is told of."""
SILENT_SECONDS = 60.0
"""Without a sign of life for so long a coordinator is taken for gone, whatever TCP says."""
CLOSING_SECONDS = 6.0
"""What an agent gets to clean up; its own children get half of it."""
LOOK_SECONDS = 0.25
BREATH_SECONDS = 0.05
_HANDSHAKE, _HEAD_BYTES = 22, 5
_UNKNOWN_NAME = b"\x15\x03\x03\x00\x02\x02\x70"
"""Of RFC 8446 sections 5.1 and 6: the record of a handshake and its head; unrecognized_name."""

Say = Callable[[str], object]


def listener(spec: str, any_address: bool) -> socket.socket:
    """A socket that listens on ADDRESS:PORT; port 0 takes a free one.

    any_address: all addresses of this host will do. Raises Refused, "usage" or "permission".
    """
    place, colon, port = spec.rpartition(":")
    if not colon or not port.isascii() or not port.isdigit() or int(port) > 65535:
        raise Refused("usage", "--listen: must be ADDRESS:PORT, with an IPv6 address in brackets")
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
            f"--listen {host}: means every address of this host; use the one that the client "
            "uses, or --any-address",
        )
    if family == socket.AF_INET6 and ipaddress.ip_address(_plain(str(address[0]))).is_link_local:
        raise Refused(
            "usage",
            f"--listen {host}: a client cannot reach a link-local address without its own "
            "interface name; use another address of this host",
        )
    made = socket.socket(family, socket.SOCK_STREAM)
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        made.close()
        kind = "permission" if isinstance(error, PermissionError) else "usage"
        why = (error.strerror or str(error)).lower()
        raise Refused(kind, f"--listen {spec}: {why}") from None
    return made


def _plain(address: str) -> str:
    """Without its interface, whatever that is called here."""
    return plain_address(address.partition("%")[0])


def is_any(address: str) -> bool:
    """Whether an address stands for all of this host's."""
    return ipaddress.ip_address(_plain(address)).is_unspecified


@dataclass(eq=False)
class Caller:
    """Somebody who has not proven himself yet."""

    connection: socket.socket
    address: str
    prefix: str
    """Whom it counts for."""
    until: float
    """When it is sent away."""
    kind: str = SILENT
    said: bytes = b""
    """Until it is known whether it speaks TLS, and to whom."""
    came_bytes: int = 0
    stream: Stream | None = None
    answer: bytes = b""
    """Of a WRONG one, for the time when it is due."""


@dataclass
class Listening:
    """A listener at work."""

    token: Token
    context: ssl.SSLContext
    say: Say
    """Told of coordinators that come and go, one line each."""
    throttle: Throttle = field(default_factory=Throttle)
    callers: dict[str, list[Caller]] = field(default_factory=lambda: {kind: [] for kind in MOST})
    """By kind, the oldest first."""
    due: dict[Caller, None] = field(default_factory=dict)
    """Those KNOWING ones that have said something, the oldest first."""
    selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)
    told: int = 0
    current: socket.socket | None = None
    session: threading.Thread | None = None

    def serve(self, waiting: socket.socket, idle_seconds: float) -> None:
        """Serves one coordinator after the other until none came for so long.

        However it is left, the agent ends.
        """
        waiting.setblocking(False)
        self.selector.register(waiting, selectors.EVENT_READ, None)
        until = time.monotonic() + idle_seconds
        looked = 0.0
        try:
            while time.monotonic() < until:
                for key, _ in self.selector.select(0 if self.due else LOOK_SECONDS):
                    if key.data is None:
                        self._take(waiting)
                    else:
                        self._hear(key.data)
                self._shake_some()
                if time.monotonic() > looked + LOOK_SECONDS / 2:
                    looked = time.monotonic()
                    self._send_late_ones_away(looked)
                if self.current is not None:
                    until = time.monotonic() + idle_seconds
        finally:
            waiting.close()
            self._end()

    def _take(self, waiting: socket.socket) -> None:
        for _ in range(MOST_TAKEN):
            try:
                connection, (address, *_) = waiting.accept()
            except BlockingIOError:
                return
            except OSError:
                # It went before it was taken, or there is no descriptor to spare.
                self._make_room(SILENT, 0)
                time.sleep(BREATH_SECONDS)
                return
            connection.setblocking(False)
            address = _plain(str(address))
            until = time.monotonic() + PROVING_SECONDS
            caller = Caller(connection, address, login_throttle.prefix(address), until)
            self._make_room(SILENT)
            self.callers[SILENT].append(caller)
            self.selector.register(connection, selectors.EVENT_READ, caller)
            # A good one has said its first words already.
            self._hear(caller)

    def _make_room(self, kind: str, most: int | None = None) -> None:
        """Sends away the oldest one of the prefix that has most callers there.

        Where each costs a handshake, of the one that failed most before.
        """
        there = self.callers[kind]
        if there and len(there) >= (MOST[kind] if most is None else most):
            crowds = Counter(each.prefix for each in there)
            failed = self.throttle.counts if kind == KNOWING else {}
            worst = max(crowds, key=lambda prefix: (failed.get(prefix, 0), crowds[prefix]))
            self._send_away(next(each for each in there if each.prefix == worst))

    def _become(self, caller: Caller, kind: str) -> None:
        self.callers[caller.kind].remove(caller)
        self._make_room(kind)
        caller.kind = kind
        self.callers[kind].append(caller)

    def _leave(self, caller: Caller) -> None:
        """Has nobody hear a caller any more."""
        self.callers[caller.kind].remove(caller)
        self.due.pop(caller, None)
        if caller.kind != WRONG:
            self.selector.unregister(caller.connection)

    def _send_away(self, caller: Caller) -> None:
        if caller.kind == KNOWING:
            self.throttle.wrong(caller.prefix)
        self._leave(caller)
        caller.connection.close()

    def _send_late_ones_away(self, now: float) -> None:
        for caller in [each for kind in self.callers.values() for each in kind]:
            if now > caller.until:
                with contextlib.suppress(OSError):  # it did not wait for its answer
                    caller.connection.send(caller.answer)
                self._send_away(caller)

    def _hear(self, caller: Caller) -> None:
        """Takes what a caller says, and sends it away for whatever no coordinator would say."""
        if caller not in self.callers[caller.kind]:
            return  # it made room for another one meanwhile
        try:
            if caller.kind == KNOWING:
                self.due[caller] = None
            else:
                self._greeted(caller)
        except (OSError, Broken):
            self._send_away(caller)

    def _shake_some(self) -> None:
        """Goes on with those whose prefixes failed least, the newest of them first."""
        failed = self.throttle.counts
        first = sorted(reversed(self.due), key=lambda each: failed.get(each.prefix, 0))
        for caller in first[:MOST_SHAKEN]:
            del self.due[caller]
            try:
                self._go_on(caller)
            except (OSError, Broken):
                self._send_away(caller)

    def _greeted(self, caller: Caller) -> None:
        """Its first bytes: a hello of TLS that names our certificate, or nothing for us.

        The name stands there in clear (RFC 6066), so that nobody else costs a handshake.
        """
        try:
            chunk = caller.connection.recv(MOST_BYTES - len(caller.said))
        except BlockingIOError:
            return
        caller.said += chunk
        head = caller.said[:_HEAD_BYTES]
        length = _HEAD_BYTES + int.from_bytes(head[3:])
        if not chunk or head[0] != _HANDSHAKE or length > MOST_BYTES:
            raise Broken("no hello")
        if len(head) == _HEAD_BYTES and len(caller.said) >= length:
            if self.token.name.encode() not in caller.said:
                self._refuse(caller, _UNKNOWN_NAME)
                return
            self._become(caller, KNOWING)
            self.due[caller] = None

    def _go_on(self, caller: Caller) -> None:
        """The handshake, and then the secret."""
        if caller.stream is None:
            caller.stream = tls.over(caller.connection, self.context)
            caller.stream.incoming.write(caller.said)
            caller.came_bytes = len(caller.said)
        else:
            caller.came_bytes += caller.stream.hear(MOST_BYTES - caller.came_bytes)
        stream = caller.stream
        if stream.shaken():
            stream.decrypt()
            secret, newline, rest = stream.plain.partition(b"\n")
            if newline:
                self._judge(caller, stream, secret, rest)
                return
        stream.flush()
        if stream.ended or caller.came_bytes >= MOST_BYTES:
            raise Broken("no secret")

    def _judge(self, caller: Caller, stream: Stream, secret: bytes, rest: bytes) -> None:
        host, port = stream.connection.getsockname()[:2]
        where = f"{_plain(host)} port {port}"
        if not hmac.compare_digest(secret, self.token.secret.hex().encode()):
            stream.flush()
            stream.write(wire.refusal("login", wrong_token(where)))
            self._refuse(caller, stream.outgoing.read())
            return
        self.throttle.right(caller.prefix)
        if self.current is not None:
            busy = f"the agent at {where} serves another client now"
            stream.write(wire.refusal("unreachable", busy))
            stream.flush()
            self._leave(caller)
            stream.connection.close()
            return
        self._leave(caller)
        stream.plain = rest
        self.current = stream.connection
        self.session = threading.Thread(
            target=self._serve_one, args=(stream, caller.address), daemon=True
        )
        self.session.start()

    def _refuse(self, caller: Caller, answer: bytes) -> None:
        """Has a wrong token wait for its answer."""
        count = self.throttle.wrong(caller.prefix)
        if count <= login_throttle.FREE and self.told < MOST_TOLD:
            self.told += 1
            more = "; further ones are not shown" if self.told == MOST_TOLD else ""
            self.say(f"a wrong token from {caller.address}{more}")
        self.selector.unregister(caller.connection)
        self._become(caller, WRONG)
        caller.answer = answer
        caller.until = time.monotonic() + login_throttle.delay_seconds(count)

    def _serve_one(self, stream: Stream, who: str) -> None:
        try:
            self.say(f"a client at {who} is connected")
            why = _session(stream, who)
        finally:
            self.current = None
            stream.connection.close()
        self.say(f"the client at {who}: {why}")

    def _end(self) -> None:
        """Sends everybody away and waits until the agent has gone."""
        for caller in [each for kind in self.callers.values() for each in kind]:
            self._send_away(caller)
        self.selector.close()
        if self.current is not None:
            with contextlib.suppress(OSError):  # it left first
                self.current.shutdown(socket.SHUT_RDWR)
        if self.session is not None:
            self.session.join(3 * CLOSING_SECONDS)


def _session(stream: Stream, who: str) -> str:
    """One coordinator's session with an agent of its own; how it ended."""
    try:
        agent = subprocess.Popen(
            command_here("--peer", who),
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # Ctrl-C is the listener's: it ends the agent in order.
            start_new_session=True,
        )
    except OSError as error:
        return f"no agent could be started: {error.strerror}"
    assert agent.stdin is not None and agent.stdout is not None
    relay = tls.Relay(
        stream,
        agent.stdout.fileno(),
        agent.stdin.fileno(),
        agent.stdin.close,
        silent_seconds=SILENT_SECONDS,
        closing_seconds=CLOSING_SECONDS,
    )
    with agent.stdin, agent.stdout:
        try:
            tls.settle(stream.connection)
            relay.run()
        except (Broken, OSError) as error:
            return f"connection lost: {error}"
        finally:
            _end_agent(agent)
    return "it disconnected" if stream.ended else "its agent ended"


def _end_agent(agent: subprocess.Popen[bytes]) -> None:
    """Closes its stream, at which it and its children end; what does not is killed."""
    assert agent.stdin is not None
    agent.stdin.close()
    try:
        agent.wait(CLOSING_SECONDS)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):  # it ended just now
            os.killpg(agent.pid, signal.SIGKILL)
        agent.wait()
