"""A path with a delay between two network namespaces of this machine, by two TAP devices.

    with delayed(0.005, bytes_per_second=250e6) as path:
        with path.server.entered():      # what is started here lives at the far end
            server = start_a_server(path.server.address)
        with path.client.entered():
            talk_to(path.server.address)

A process a direction takes each packet from one device and gives it to the other when its time has
come (tun.rst in the kernel's Documentation/networking). Packets have up to 64 KiB, so that it
carries more than a gigabyte a second; a rate is planted by spacing them. Nothing is reordered, and
nothing is lost unless it is asked for: what a link cannot carry yet waits in a queue without end.
Both ends may keep 64 MiB in TCP's window, as hosts for such paths are set up to: the delay is to be
the SMB client's affair.

Asked for, it behaves as a poorer path does, in both directions alike: `loss_ratio` of the packets
go at random, by a seed; with `queue_bytes` what does not fit into the queue before the rate is
dropped; with `mtu_bytes` the devices have frames of that size, and TCP segments to suit;
with `largest_bytes` longer IP packets vanish without a word, as in a path MTU black hole.

Needs root. Namespaces, devices and processes go with the descriptors of the process that made them,
kill -9 included. Enter from the main thread alone: /proc/net shows the namespace of that.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import random
import select
import signal
import struct
import subprocess
import time
from collections import deque
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from probes.system.child import end_with_parent

CLIENT_ADDRESS, SERVER_ADDRESS = "10.91.8.1", "10.91.8.2"
DEVICE = "delay0"
MTU_BYTES = 65_521
"""The most; a frame has 14 bytes more."""
HEADER_BYTES = 14
FRAME_BYTES = MTU_BYTES + HEADER_BYTES
QUEUED_PACKETS = 10_000
"""Length of a device's queue, for the time that its forwarder does not run."""
TCP_WINDOW_BYTES = 64 << 20
TUN = Path("/dev/net/tun")
OWN_NAMESPACE = Path("/proc/thread-self/ns/net")

_CLONE_NEWNET = 0x40000000  # sched.h
_TUNSETIFF, _IFF_TUN, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0001, 0x0002, 0x1000  # linux/if_tun.h
_libc = ctypes.CDLL(None, use_errno=True)


@dataclass(frozen=True)
class End:
    address: str
    namespace_fd: int

    @property
    def prefix(self) -> list[str]:
        """Runs the command that follows it at this end, while the path is up."""
        return ["nsenter", f"--net=/proc/{os.getpid()}/fd/{self.namespace_fd}", "--"]

    def entered(self) -> AbstractContextManager[None]:
        """This process's network, and that of what it starts, is this end's inside the block."""
        return _inside(Path(f"/proc/self/fd/{self.namespace_fd}"))


@dataclass(frozen=True)
class DelayedPath:
    client: End
    server: End
    round_trip_seconds: float
    """Seconds of the path itself, without the hosts."""


@dataclass(frozen=True)
class Line:
    """Treatment of every packet of one direction."""

    seconds: float
    bytes_per_second: float | None = None
    """Rate of frames, their header of 14 bytes included; None: no rate is planted."""
    loss_ratio: float = 0.0
    queue_bytes: int | None = None
    """Bytes of frames that wait for the rate; None: no end."""
    largest_bytes: int | None = None
    """Length of an IP packet that passes; None: all do."""
    seed: int = 0

    def __post_init__(self) -> None:
        if self.queue_bytes is not None and self.bytes_per_second is None:
            raise ValueError("a queue needs a rate to wait for")


def missing() -> list[str]:
    """Returns what this machine lacks for it, a line each; empty: a path can be made."""
    if os.geteuid() != 0:
        return ["needs root (network namespaces, TUN)"]
    return [] if TUN.exists() else [f"needs {TUN}"]


@contextmanager
def delay_path(
    seconds_each_way: float,
    bytes_per_second: float | None = None,
    *,
    mtu_bytes: int = MTU_BYTES,
    **poorer: Any,
) -> Iterator[DelayedPath]:
    """A path that holds every packet for seconds_each_way, and carries no more than that rate.

    poorer: what else a Line does. Raises ValueError for queue_bytes without a rate.
    """
    line = Line(seconds_each_way, bytes_per_second, **poorer)
    with ExitStack() as stack:
        client, client_device = _end(stack, CLIENT_ADDRESS, mtu_bytes)
        server, server_device = _end(stack, SERVER_ADDRESS, mtu_bytes)
        stack.enter_context(_carry((client_device, server_device), line, line))
        yield DelayedPath(client, server, 2 * seconds_each_way)


@contextmanager
def join_hosts(
    ends: tuple[tuple[int, str, str], tuple[int, str, str]],
    line: Line,
    back: Line,
    mtu_bytes: int = MTU_BYTES,
    *,
    tunnel: bool = False,
) -> Iterator[None]:
    """Such a path between two hosts that are up: of each the process, device and address.

    line, back: what the first one's packets meet, and what the second one's do. tunnel: of packets
    without a frame, as a VPN's device has them; else the devices look like a machine's own cards.
    """
    with ExitStack() as stack:
        devices = []
        for pid, name, address in ends:
            with _inside(Path(f"/proc/{pid}/ns/net")):
                devices.append(_device(stack, name, address, mtu_bytes, tunnel=tunnel))
        stack.enter_context(_carry((devices[0], devices[1]), line, back))
        yield


@contextmanager
def _carry(devices: tuple[int, int], line: Line, back: Line) -> Iterator[None]:
    """Both directions between two devices; each draws its own losses."""
    back = replace(back, seed=line.seed + 1)
    with _forward(*devices, line), _forward(*devices[::-1], back):
        yield


@contextmanager
def _inside(namespace: Path) -> Iterator[None]:
    outer, inner = (os.open(each, os.O_RDONLY) for each in (OWN_NAMESPACE, namespace))
    try:
        _enter(inner)
        try:
            yield
        finally:
            _enter(outer)
    finally:
        os.close(outer)
        os.close(inner)


def _end(stack: ExitStack, address: str, mtu_bytes: int) -> tuple[End, int]:
    """A namespace with one device, and the descriptor that its packets come from and go to."""
    outer = os.open(OWN_NAMESPACE, os.O_RDONLY)
    stack.callback(os.close, outer)
    if _libc.unshare(_CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "unshare")
    try:
        namespace = os.open(OWN_NAMESPACE, os.O_RDONLY)
        stack.callback(os.close, namespace)
        return End(address, namespace), _device(stack, DEVICE, address, mtu_bytes)
    finally:
        _enter(outer)


def _device(
    stack: ExitStack, name: str, address: str, mtu_bytes: int, *, tunnel: bool = False
) -> int:
    """A device in the namespace that this process is in; its packets' descriptor."""
    device = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    stack.callback(os.close, device)
    kind = (_IFF_TUN if tunnel else _IFF_TAP) | _IFF_NO_PI
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH", name.encode(), kind))
    for command in (
        "ip link set lo up",
        f"ip link set {name} mtu {mtu_bytes} txqueuelen {QUEUED_PACKETS} up",
        f"ip address add {address}/24 dev {name}",
    ):
        subprocess.run(command.split(), check=True, capture_output=True)
    for window in ("tcp_rmem", "tcp_wmem"):
        setting = Path("/proc/sys/net/ipv4", window)
        lowest, usual, _ = setting.read_text().split()
        setting.write_text(f"{lowest} {usual} {TCP_WINDOW_BYTES}")
    return device


def _enter(namespace_fd: int) -> None:
    if _libc.setns(namespace_fd, _CLONE_NEWNET):
        raise OSError(ctypes.get_errno(), "setns")


@contextmanager
def _forward(taken: int, target: int, line: Line) -> Iterator[None]:
    parent = os.getpid()
    child = os.fork()
    if not child:
        try:
            end_with_parent(parent)
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_DFL)
            forward(taken, target, line)
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def forward(taken: int, target: int, line: Line) -> None:
    """Gives every packet from taken to given when its time has come, and drops what is to go."""
    waiting: deque[tuple[float, bytes]] = deque()
    chance = random.Random(line.seed)
    rate, longest = line.bytes_per_second, FRAME_BYTES
    if line.largest_bytes is not None:
        longest = line.largest_bytes + HEADER_BYTES
    last = 0.0
    while True:
        now = time.monotonic()
        while waiting and waiting[0][0] <= now:
            os.write(target, waiting.popleft()[1])
        try:
            packet = os.read(taken, FRAME_BYTES)
        except BlockingIOError:
            patience = max(0.0, waiting[0][0] - time.monotonic()) if waiting else None
            select.select([taken], [], [], patience)
            continue
        if len(packet) > longest or (line.loss_ratio and chance.random() < line.loss_ratio):
            continue
        due = soonest = time.monotonic() + line.seconds
        if rate is not None:
            due = max(soonest, last + len(packet) / rate)
            if line.queue_bytes is not None and (due - soonest) * rate > line.queue_bytes:
                continue
            last = due
        waiting.append((due, packet))
