"""Two network namespaces joined by a veth pair, each direction shaped where it leaves.

Needs root. Namespaces and devices go with the processes that hold them, and those with this one.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "lab"))

from delay import End
from plant import PAYLOAD_RATIO

__all__ = ["PAYLOAD_RATIO", "End", "Here", "Pair", "joined", "missing"]

ADDRESSES = "10.91.9.1", "10.91.9.2"
DEVICE = "eth0"
FRAME_BYTES = 1514
"""Bytes that tbf counts for a full frame at MTU 1500."""


@dataclass(frozen=True)
class Here:
    """End that is this host itself."""

    address: str = "127.0.0.1"

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Runs the block here, as End.entered does in its namespace."""
        yield


@dataclass(frozen=True)
class Pair:
    """Ends of a link that is up."""

    client: End
    server: End

    def shape(self, bits_per_second: int, burst_bytes: int, queue_bytes: int) -> None:
        """Limits what each end sends, by a token bucket (tc-tbf(8))."""
        # Created anew: packets in the queue of a larger bucket may never leave a smaller one.
        commands = (
            f"qdisc del dev {DEVICE} root\n"
            f"qdisc add dev {DEVICE} root tbf rate {bits_per_second}bit burst {burst_bytes} "
            f"limit {burst_bytes + queue_bytes}\nqdisc show dev {DEVICE}\n"
        )
        for end in (self.client, self.server):
            with end.entered():
                reply = subprocess.run(
                    ["tc", "-force", "-batch", "-"], input=commands, capture_output=True, text=True
                )
            if "tbf" not in reply.stdout:
                raise RuntimeError(f"no token bucket could be made: {reply.stderr.strip()}")


def missing() -> list[str]:
    """Returns what this host lacks for it, a line each."""
    return [] if os.geteuid() == 0 else ["needs root (network namespaces, veth, tc)"]


@contextmanager
def joined() -> Iterator[Pair]:
    """Yields a link that nothing limits, until the block ends."""
    with ExitStack() as stack:
        holders = [stack.enter_context(_namespace()) for _ in ADDRESSES]
        _call(
            *f"ip link add {DEVICE} netns {holders[0]} type veth".split(),
            *f"peer name {DEVICE} netns {holders[1]}".split(),
        )
        ends = []
        for holder, address in zip(holders, ADDRESSES, strict=True):
            descriptor = os.open(f"/proc/{holder}/ns/net", os.O_RDONLY)
            stack.callback(os.close, descriptor)
            end = End(address, descriptor)
            with end.entered():
                for command in (
                    "ip link set lo up",
                    f"ip address add {address}/24 dev {DEVICE}",
                    f"ip link set {DEVICE} up",
                ):
                    _call(*command.split())
            ends.append(end)
        yield Pair(*ends)


@contextmanager
def _namespace() -> Iterator[int]:
    """Yields the process that holds a network namespace; it ends when its input does."""
    holder = subprocess.Popen(["unshare", "--net", "cat"], stdin=subprocess.PIPE)
    try:
        until = time.monotonic() + 5
        while _network(holder.pid) == _network(os.getpid()):
            if time.monotonic() > until:
                raise RuntimeError("no network namespace could be made")
            time.sleep(0.005)
        yield holder.pid
    finally:
        with contextlib.suppress(OSError):
            holder.communicate(timeout=5)


def _network(pid: int) -> Path:
    return Path(f"/proc/{pid}/ns/net").readlink()


def _call(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, text=True)
