"""A program that is there already and answers the TCP stage: iperf3's server, classic ttcp."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.target import host_and_port
from probes.stage import Refused

PORTS = {"iperf3": 5201, "ttcp": 5001}
"""What each listens on where nobody says otherwise."""


@dataclass(frozen=True)
class TcpPeer:
    """Where it listens."""

    engine: str
    """A key of PORTS, and of agent_requests.ENGINES."""
    host: str
    port: int

    @property
    def name(self) -> str:
        """As a user writes it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port == PORTS[self.engine] else f":{self.port}"
        return f"{self.engine}://{host}{port}"


def parse(text: str) -> TcpPeer:
    """The peer in `iperf3://host[:port]` or `ttcp://host[:port]`. Raises Refused, "usage"."""
    engine, separator, rest = text.partition("://")
    if engine not in PORTS or not separator:
        raise Refused(
            "usage",
            "--tcp-peer: write iperf3://host[:port] or ttcp://host[:port]",
        )
    try:
        host, port = host_and_port(rest.rstrip("/"), PORTS[engine])
    except Refused as refused:
        raise Refused("usage", f"--tcp-peer: {refused.text}") from None
    return TcpPeer(engine, host, port)
