"""The caller's end of an agent that listens: `--agent tcp://host:port`.

A process of its own between the coordinator's pipe and the connection, as ssh is: the rest of the
program knows no difference. Reads the token as the first line of stdin.
"""

from __future__ import annotations

import contextlib
import hmac
import os
import re
import select
import socket
import ssl
import sys
import time
from pathlib import Path

from bottleneck import credentials, own_modules, tls, wire
from bottleneck.credentials import Token
from bottleneck.target import host_and_port
from bottleneck.tls import Broken, Stream
from probes.host.child import keep_private
from probes.stage import Refused

SCHEME = "tcp://"
CONNECT_SECONDS = 5.0
PROVING_SECONDS = 6.0
MOST_CALLS = 3
LOST = 1


def command(spec: str) -> list[str]:
    """The command that relays to tcp://host:port. Raises Refused, "usage"."""
    place = spec.removeprefix(SCHEME).rstrip("/")
    if not re.search(r":\d{1,5}\Z", place):
        raise Refused("usage", "--agent tcp://host:port: no port; use the port of its --listen")
    host, port = host_and_port(place, 1)
    return own_modules.command("bottleneck.dialling", host, str(port))


def first_line(token: Token) -> bytes:
    """What the relay reads first."""
    return token.text.encode() + b"\n"


class _HungUp(Refused):
    """It hung up before the handshake was over: it has no room for all who call it."""


def meet(host: str, port: int, token: Token) -> Stream:
    """A stream to the listener whose certificate the token names, to which the secret is told.

    In a crowd of strangers it may send away who has not proven himself: he calls again.

    Raises Refused: "unreachable", or "login" where what listens there is another one.
    """
    for _ in range(MOST_CALLS - 1):
        with contextlib.suppress(_HungUp):
            return _met(host, port, token)
    return _met(host, port, token)


def _met(host: str, port: int, token: Token) -> Stream:
    """One call of the listener. Raises Refused, as meet() does."""
    where = f"{host} port {port}"
    try:
        connection = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise Refused(
            "unreachable",
            f"the agent at {where}: {(error.strerror or str(error)).lower()}; check that "
            "`bottleneck agent --listen` runs there and that no firewall blocks it",
        ) from None
    try:
        tls.settle(connection)
        stream = tls.over(connection, tls.calling(), token.name)
        _shake(stream, where)
        shown = stream.tls.getpeercert(binary_form=True) or b""
        # Until here the other end has heard what any browser says, and of the token nothing.
        if not hmac.compare_digest(tls.fingerprint(shown), token.fingerprint):
            raise Refused(
                "login",
                f"{where}: its certificate does not match the token, so nothing was sent; "
                "check that this is the token's agent",
            )
        stream.write(token.secret.hex().encode() + b"\n")
        _hear_first_word(stream, where)
    except BaseException:
        connection.close()
        raise
    return stream


def _hear_first_word(stream: Stream, where: str) -> None:
    """Waits for an answer to the secret, which may be late; what it says is left to be read."""
    until = time.monotonic() + PROVING_SECONDS
    try:
        while not stream.plain and (left := until - time.monotonic()) > 0:
            stream.flush()
            if select.select([stream.connection], [], [], left)[0]:
                stream.hear()
                stream.decrypt()
            if stream.ended and not stream.plain:
                raise _HungUp("unreachable", f"{where}: connection closed")
    except OSError as error:
        raise _HungUp("unreachable", f"{where}: {(error.strerror or str(error)).lower()}") from None


def _shake(stream: Stream, where: str) -> None:
    until = time.monotonic() + PROVING_SECONDS
    try:
        while not stream.shaken():
            stream.flush()
            left = until - time.monotonic()
            if left <= 0 or not select.select([stream.connection], [], [], left)[0]:
                raise Refused("unreachable", f"{where}: no answer")
            stream.hear()
            if stream.ended:
                raise _HungUp(
                    "unreachable",
                    f"{where}: connection closed; after several wrong tokens an agent refuses "
                    "connections for up to a minute",
                )
    except ssl.SSLError as error:
        if error.reason == "TLSV1_UNRECOGNIZED_NAME":
            raise Refused("login", wrong_token(where)) from None
        raise Refused("unreachable", f"{where}: not an agent of this program") from None
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise Refused("unreachable", f"the agent at {where}: {why}") from None


def wrong_token(where: str) -> str:
    """What is said of one."""
    return f"the agent at {where}: wrong token; its terminal shows the right one"


def _is_there(pid: int) -> bool:
    """Whether a process does not stand still (Ctrl-Z): state T or t of proc(5)."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return True
    return text.rpartition(")")[2].split()[:1] not in (["T"], ["t"])


def _token() -> Token:
    """The first line of stdin, and no byte more: what follows is the agent's."""
    line = b""
    while not line.endswith(b"\n") and (byte := os.read(0, 1)):
        line += byte
    return credentials.parse_token(line.decode())


def main(host: str, port: str) -> None:
    """Relays between stdin and stdout and HOST PORT."""
    keep_private()
    try:
        stream = meet(host, int(port), _token())
    except Refused as refused:
        os.write(1, wire.refusal(refused.kind, refused.text))
        raise SystemExit(LOST) from None
    relay = tls.Relay(stream, 0, 1, is_alive=lambda: _is_there(os.getppid()))
    try:
        relay.run()
    except (Broken, OSError) as error:
        print(f"the connection failed: {error}", file=sys.stderr, flush=True)
        raise SystemExit(LOST) from None
    if relay.source_open:
        print("the connection was closed", file=sys.stderr, flush=True)
        raise SystemExit(LOST)
