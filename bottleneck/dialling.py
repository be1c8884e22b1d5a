"""The caller's end of an agent that listens: `--agent tcp://host:port`.

A process of its own between the coordinator's pipe and the connection, as ssh is: the rest of the
program knows no difference. Reads the token as the first line of stdin.
"""

from __future__ import annotations

import os
import re
import socket
import sys
import threading
import time
from pathlib import Path

from bottleneck import seals, wire
from bottleneck.sealed_stream import (
    SIGN,
    SIGN_SECONDS,
    Broken,
    Lines,
    hang_up,
    send_line,
    settle,
    take_lines,
)
from bottleneck.target import host_and_port
from probes.stage import Refused

SCHEME = "tcp://"
CONNECT_SECONDS = 5.0
PROVING_SECONDS = 6.0
LOST = 1
NO_LOGIN = (
    "a tcp:// agent gets no login, since everybody on the path could read it: "
    "use --agent ssh:// or exec: for this"
)


def command(spec: str) -> list[str]:
    """The command that relays to tcp://host:port. Raises Refused, "usage"."""
    place = spec.removeprefix(SCHEME).rstrip("/")
    if not re.search(r":\d{1,5}\Z", place):
        raise Refused("usage", "--agent tcp://host:port needs the port that its --listen took")
    host, port = host_and_port(place, 1)
    return [sys.executable, "-m", "bottleneck.dialling", host, str(port)]


def first_line(token: str) -> bytes:
    """What the relay reads first."""
    return seals.normal(token) + b"\n"


def meet(host: str, port: int, token: bytes) -> tuple[Lines, seals.Meeting]:
    """A connection whose two ends know the token.

    Raises Refused: "unreachable", or "login" where the token is another one.
    """
    where = f"{host} port {port}"
    try:
        connection = socket.create_connection((host, port), timeout=CONNECT_SECONDS)
    except OSError as error:
        raise Refused(
            "unreachable",
            f"the agent at {where}: {(error.strerror or str(error)).lower()}; "
            "does `bottleneck agent --listen` run there, and does a firewall let it through?",
        ) from None
    try:
        lines = Lines(connection)
        meeting = _proven(lines, where, token)
        settle(connection)
    except (Broken, OSError) as error:
        connection.close()
        raise Refused("unreachable", f"the agent at {where}: {error}") from None
    except BaseException:
        connection.close()
        raise
    return lines, meeting


def _proven(lines: Lines, where: str, token: bytes) -> seals.Meeting:
    until = time.monotonic() + PROVING_SECONDS
    hello = lines.line(seals.LONGEST_WORDS_BYTES, until)
    if hello is None:
        raise Refused(
            "unreachable",
            f"{where}: what listens there hung up without a word; after some wrong tokens an agent "
            "of this product does so for a minute",
        )
    listeners = seals.read_hello(hello)
    if listeners is None:
        raise Refused("unreachable", f"{where}: what listens there is no agent of this product")
    meeting = seals.Meeting(token, listeners, seals.nonce())
    answer = meeting.caller_nonce + b" " + meeting.proof("caller") + b"\n"
    lines.connection.settimeout(PROVING_SECONDS)
    lines.connection.sendall(answer)
    told = lines.line(seals.LONGEST_WORDS_BYTES, until) or b""
    if told == seals.BUSY:
        raise Refused("unreachable", f"the agent at {where} serves another coordinator now")
    if told == seals.WRONG:
        raise Refused("login", f"the agent at {where}: wrong token; it stands on its terminal")
    if not seals.same(told, meeting.proof("listener")):
        raise Refused("login", f"{where}: what listens there does not know the token")
    return meeting


def relay(lines: Lines, meeting: seals.Meeting) -> str:
    """Passes lines both ways until stdin ends; what went wrong, empty: nothing."""
    trouble: list[str] = []

    def take() -> None:
        try:
            take_lines(lines, meeting.seal("replies"), _write_all)
        except seals.Forged as error:
            trouble.append(f"somebody else is on the path: {error}")
        except (Broken, OSError) as error:
            trouble.append(f"the connection broke: {error}")
        if not ended.is_set():
            # The agent is gone: the coordinator has to know, and nobody ends the wait for stdin.
            if trouble:
                print(trouble[0], file=sys.stderr, flush=True)
            os._exit(LOST)

    ended = threading.Event()
    taking = threading.Thread(target=take, daemon=True)
    taking.start()
    seal = meeting.seal("requests")
    sending = threading.Lock()

    def show_life() -> None:
        """By its own timer: a coordinator may have nothing to ask for as long as a stage takes."""
        while not ended.wait(SIGN_SECONDS):
            with sending:
                if ended.is_set() or _is_stopped(os.getppid()):
                    continue
                try:
                    send_line(lines.connection, seal, SIGN)
                except Broken as error:
                    trouble.append(f"the connection broke: {error}")
                    hang_up(lines.connection)
                    return

    threading.Thread(target=show_life, daemon=True).start()
    try:
        while line := sys.stdin.buffer.readline(wire.MAX_LINE_BYTES + 1):
            with sending:
                send_line(lines.connection, seal, line)
    except Broken as error:
        return f"the connection broke: {error}"
    with sending:
        ended.set()
        hang_up(lines.connection, socket.SHUT_WR)
    # Its last replies; the coordinator waits no longer than it wants to.
    taking.join()
    return trouble[0] if trouble else ""


def _is_stopped(pid: int) -> bool:
    """Whether a process stands still (Ctrl-Z): state T or t (proc(5)); False: nobody tells."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[:1] in (["T"], ["t"])


def _write_all(line: bytes) -> None:
    while line:
        line = line[os.write(1, line) :]


def main() -> None:
    """Relays between stdin and stdout and HOST PORT."""
    host, port = sys.argv[1], int(sys.argv[2])
    token = sys.stdin.buffer.readline(1 << 12)
    try:
        lines, meeting = meet(host, port, seals.normal(token.decode("utf-8", "surrogateescape")))
    except Refused as refused:
        told = {"kind": refused.kind, "text": refused.text}
        _write_all(wire.MARK + wire.encode({"protocol": wire.PROTOCOL, "refused": told}))
        raise SystemExit(LOST) from None
    trouble = relay(lines, meeting)
    if trouble:
        print(trouble, file=sys.stderr, flush=True)
        raise SystemExit(LOST)


if __name__ == "__main__":
    main()
