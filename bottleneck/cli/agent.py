"""`bottleneck agent`: one agent over stdin and stdout, or one that listens, without ssh."""

from __future__ import annotations

import contextlib
import math

from bottleneck.cli import exits, interrupts
from bottleneck.cli.options import flag, group, value


@group("Without ssh")
class Waiting:
    """An agent that listens."""

    listen: str | None = value(
        "ADDRESS:PORT",
        "Wait on this address, over TLS, for a client that presents the token printed here.",
    )
    any_address: bool = flag("Accept 0.0.0.0 or [::] as ADDRESS: all addresses of this host.")
    idle: float = value("SECONDS", "End after this time without a client.", 600.0)


def agent(waiting: Waiting) -> int:
    """Run the server-side agent (started by --agent).

    Without --listen: on stdin and stdout, until stdin closes.
    """
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
        raise Refused("usage", "--idle: must be more than 0 seconds")
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
            f"listening on {where} until {idle_seconds:.0f} s pass without a client\n"
            f"token: {token.text}\n"
            f"on the client: {TOKEN_VARIABLE}={token.text} bottleneck diagnose ... --agent tcp://{called}",
            flush=True,
        )
        with interrupts.let_through():
            Listening(token, context, say).serve(waiting, idle_seconds)
    say(f"no client for {idle_seconds:.0f} s; stopped listening")
    return exits.DONE
