"""A path with a delay between two network namespaces of this machine, by two TAP devices.

    with delayed(0.005, bytes_per_second=250e6) as path:
        with path.server.entered():      # what is started here lives at the far end
            server = start_a_server(path.server.address)
        with path.client.entered():
            talk_to(path.server.address)

A process a direction takes each packet from one device and gives it to the other when its time has
come (tun.rst in the kernel's Documentation/networking). Packets have up to 64 KiB, so that it
carries more than a gigabyte a second; a rate is planted by spacing them. Nothing is ever lost or
reordered: what a link cannot carry yet waits in a queue without end. Both ends may keep 64 MiB in
TCP's window, as hosts for such paths are set up to: the delay is to be the SMB client's affair.

Needs root. Namespaces, devices and processes go with the descriptors of the process that made them,
kill -9 included. Enter from the main thread alone: /proc/net shows the namespace of that.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import select
import signal
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from probes.host.child import end_with_parent

CLIENT_ADDRESS, SERVER_ADDRESS = "10.91.8.1", "10.91.8.2"
DEVICE = "delay0"
MTU_BYTES = 65_521
"""The most; a frame has 14 bytes more."""
FRAME_BYTES = MTU_BYTES + 14
QUEUED_PACKETS = 10_000
"""Of a device, for the time that its forwarder does not run."""
TCP_WINDOW_BYTES = 64 << 20
TUN = Path("/dev/net/tun")
OWN_NAMESPACE = Path("/proc/thread-self/ns/net")

_CLONE_NEWNET = 0x40000000  # sched.h
_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class End:
    """One end of the path."""

    address: str
    namespace_fd: int

    @property
    def prefix(self) -> list[str]:
        """Runs the command that follows it at this end, while the path is up."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.namespace_fd}", "--"]

    @contextmanager
    def entered(self) -> Iterator[None]:
        """This process's network, and that of what it starts, is this end's inside the block."""
        before = os.open(OWN_NAMESPACE, os.O_RDONLY)
        try:
            _enter(self.namespace_fd)
            try:
                yield
            finally:
                _enter(before)
        finally:
            os.close(before)


@dataclass(frozen=True)
class DelayedPath:
    """Both ends of a path that is up."""

    client: End
    server: End
    round_trip_seconds: float
    """What the path itself takes, without the hosts."""


def missing() -> list[str]:
    """What this machine lacks for it, a line each; empty: a path can be made."""
    if os.geteuid() != 0:
        return ["needs root (network namespaces, TUN)"]
    return [] if TUN.exists() else [f"needs {TUN}"]


@contextmanager
def delayed(
    seconds_each_way: float, bytes_per_second: float | None = None
) -> Iterator[DelayedPath]:
    """A path that holds every packet for seconds_each_way, and carries no more than that rate."""
    with ExitStack() as stack:
        client, client_device = _end(stack, CLIENT_ADDRESS)
        server, server_device = _end(stack, SERVER_ADDRESS)
        for taken, given in ((client_device, server_device), (server_device, client_device)):
            stack.enter_context(_forwarding(taken, given, seconds_each_way, bytes_per_second))
        yield DelayedPath(client, server, 2 * seconds_each_way)


@contextmanager
def joined(
    ends: tuple[tuple[int, str, str], tuple[int, str, str]],
    seconds_each_way: float,
    bytes_per_second: float | None,
) -> Iterator[None]:
    """Such a path between two hosts that are up: of each the process, device and address."""
    with ExitStack() as stack:
        devices = []
        for pid, name, address in ends:
            with _inside(Path(f"/proc/{pid}/ns/net")):
                devices.append(_device(stack, name, address))
        for taken, given in (devices, devices[::-1]):
            stack.enter_context(_forwarding(taken, given, seconds_each_way, bytes_per_second))
        yield


@contextmanager
def _inside(namespace: Path) -> Iterator[None]:
    before, inner = (os.open(each, os.O_RDONLY) for each in (OWN_NAMESPACE, namespace))
    try:
        _enter(inner)
        try:
            yield
        finally:
            _enter(before)
    finally:
        os.close(before)
        os.close(inner)


def _end(stack: ExitStack, address: str) -> tuple[End, int]:
    """A namespace with one device, and the descriptor that its packets come from and go to."""
    before = os.open(OWN_NAMESPACE, os.O_RDONLY)
    stack.callback(os.close, before)
    if _libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    try:
        namespace = os.open(OWN_NAMESPACE, os.O_RDONLY)
        stack.callback(os.close, namespace)
        return End(address, namespace), _device(stack, DEVICE, address)
    finally:
        _enter(before)


def _device(stack: ExitStack, name: str, address: str) -> int:
    """A device in the namespace that this process is in; its packets' descriptor."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    stack.callback(os.close, device)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), _IFF_TAP | _IFF_NO_PI))
    for command in (
        "ip link set lo up",
        f"ip link set {name} mtu {MTU_BYTES} txqueuelen {QUEUED_PACKETS} up",
        f"ip address add {address}/24 dev {name}",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    for window in ("tcp_rmem", "tcp_wmem"):
        setting = Path("/proc/sys/net/ipv4", window)
        least, usual, _ = setting.read_text().split()
        setting.write_text(f"{least} {usual} {TCP_WINDOW_BYTES}")
    return device


def _enter(namespace_fd: int) -> None:
    if _libc.setns(namespace_fd, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def _forwarding(taken: int, given: int, seconds: float, rate: float | None) -> Iterator[None]:
    parent = os.getpid()
    child = os.fork()
    if not child:
        try:
            end_with_parent(parent)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            forward(taken, given, seconds, rate)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def forward(taken: int, given: int, seconds: float, rate: float | None) -> None:
    """Gives every packet from taken to given: `seconds` after it came, or when the rate allows."""
    waiting: deque[tuple[float, bytes]] = deque()
    last = 0.0
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            os.write(given, waiting.popleft()[1])
        patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
        if not select.select([taken], [], [], patience)[0]:
            continue
        packet = os.read(taken, FRAME_BYTES)
        due = time.monotonic() + seconds
        if rate is not None:
            last = due = max(due, last + len(packet) / rate)
        waiting.append((due, packet))
