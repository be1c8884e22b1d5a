"""Clients and servers in network namespaces of their own on one bridge, each with its link's rate.

`python hosts.py ADDRESS FOLDER` serves a folder with a private Samba until its input ends.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHARE, USER, PASSWORD = "share", "anna", "anna's own {{ password }} %"
NET = "10.93.55."


@dataclass(frozen=True)
class Lab:
    """Where the hosts are."""

    spaces: Mapping[str, str]
    """By host its namespace."""
    shares: Mapping[str, str]
    """By server."""

    def sent_bytes(self, host: str) -> tuple[int, int]:
        """What the host's link received and sent so far."""
        path = "/sys/class/net/eth0/statistics"
        told = call(
            *("ip", "netns", "exec", self.spaces[host]),
            *("cat", f"{path}/rx_bytes", f"{path}/tx_bytes"),
        )
        received, sent = map(int, told.split())
        return received, sent


def call(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, (command, done.stderr)
    return done.stdout


@contextmanager
def lab(rates: Mapping[str, str], servers: tuple[str, ...], work: Path) -> Iterator[Lab]:
    """Hosts by name with the rates of their links, as tc writes them; servers have a share each."""
    hub = f"bf{id(work) % 9973}"
    spaces = {host: f"{hub}-{host}" for host in rates}
    with ExitStack() as stack:
        for each in (hub, *spaces.values()):
            call("ip", "netns", "add", each)
            stack.callback(subprocess.run, ["ip", "netns", "delete", each])
        call("ip", "-n", hub, "link", "add", "br0", "type", "bridge")
        call("ip", "-n", hub, "link", "set", "br0", "up")
        for at, (host, rate) in enumerate(rates.items(), 1):
            inner, outer = spaces[host], f"v{at}"
            call(
                *("ip", "-n", hub, "link", "add", outer, "type", "veth"),
                *("peer", "name", "eth0", "netns", inner),
            )
            call("ip", "-n", hub, "link", "set", outer, "master", "br0", "up")
            call("ip", "-n", inner, "address", "add", f"{NET}{at}/24", "dev", "eth0")
            for name in ("lo", "eth0"):
                call("ip", "-n", inner, "link", "set", name, "up")
            shaped = ("root", "tbf", "rate", rate, "burst", "64kb", "latency", "50ms")
            call("tc", "-n", inner, "qdisc", "add", "dev", "eth0", *shaped)
            call("tc", "-n", hub, "qdisc", "add", "dev", outer, *shaped)
        shares = {}
        for host in servers:
            address = f"{NET}{[*rates].index(host) + 1}"
            folder = work / host
            folder.mkdir()
            port = stack.enter_context(_served(spaces[host], address, folder))
            shares[host] = f"//{address}:{port}/{SHARE}"
        yield Lab(spaces, shares)


@contextmanager
def _served(space: str, address: str, folder: Path) -> Iterator[int]:
    command = ["ip", "netns", "exec", space, sys.executable, __file__, address, str(folder)]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        yield int(process.stdout.readline())
    finally:
        process.stdin.close()
        process.wait(20)


def main() -> None:
    sys.path.insert(0, str(ROOT))
    from probes.drivers.samba import private_samba

    address, folder = sys.argv[1:]
    served = {"share": SHARE, "username": USER, "password": PASSWORD, "address": address}
    with private_samba(folder, **served) as server:
        print(server.port, flush=True)
        sys.stdin.read()


if __name__ == "__main__":
    main()
