"""`bottleneck agent`: one agent over stdin and stdout, or one that listens, without ssh."""

from __future__ import annotations

import contextlib
import math
from dataclasses import dataclass

from bottleneck.cli import exits, interrupts
from bottleneck.cli.options import flag, value


@dataclass(frozen=True)
class Waiting:
    """An agent that listens."""

    listen: str | None = value(
        "ADDRESS:PORT",
        "Wait on this one address, over TLS, for a coordinator that gives the token shown here.",
    )
    any_address: bool = flag("ADDRESS may be all of this host's: 0.0.0.0 or [::].")
    idle: float = value("SECONDS", "End after so long without a coordinator.", 600.0)


def agent(waiting: Waiting) -> int:
    """Serve one agent over stdin and stdout; it ends when its input closes."""
    if waiting.listen is None:
        from bottleneck import agent as served

        served.main()
        return exits.DONE
    return _listen(waiting.listen, waiting.any_address, waiting.idle)


def _listen(spec: str, any_address: bool, idle_seconds: float) -> int:
    with interrupts.held():
        import secrets
        import socket
        import sys

        from bottleneck import tls
        from bottleneck.credentials import PART_BYTES, TOKEN_VARIABLE, Token
        from bottleneck.listening import Listening, is_any, listener
        from bottleneck.safe import safe
        from probes.stage import Refused

    if not math.isfinite(idle_seconds) or idle_seconds <= 0:
        raise Refused("usage", "--idle: some seconds are needed")
    context, fingerprint = tls.listening()
    token = Token(fingerprint, secrets.token_bytes(PART_BYTES))

    def say(line: str) -> None:
        # A terminal that was closed, or a pipe that nobody reads, ends no session.
        with contextlib.suppress(OSError):
            print(f"bottleneck: {safe(line)}", file=sys.stderr, flush=True)

    with listener(spec, any_address) as waiting:
        host, port = waiting.getsockname()[:2]
        where = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        # All addresses are none that a client could call: it may know this host by its name.
        called = f"{safe(socket.gethostname())}:{port}" if is_any(host) else where
        print(
            f"listening on {where} until nobody came for {idle_seconds:.0f} s\n"
            f"token: {token.text}\n"
            f"on the client: {TOKEN_VARIABLE}={token.text} bottleneck diagnose ... --agent tcp://{called}",
            flush=True,
        )
        with interrupts.let_through():
            Listening(token, context, say).serve(waiting, idle_seconds)
    say("nobody came any more: it listens no longer")
    return exits.DONE
