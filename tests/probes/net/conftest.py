"""Hosts behind routers, in network namespaces of this machine."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from probes.core.records import Endpoint
from probes.net import port, transfer
from probes.net.transfer import Shape

sys.path.append(str(Path(__file__).parents[2] / "lab"))
from delay import End  # noqa: E402


@dataclass(frozen=True)
class RoutedPath:
    """Two hosts and the routers between them."""

    client: End
    server: End
    routers: tuple[tuple[str, ...], ...]
    """Addresses of each router: towards the client, towards the server."""
    inside: tuple[End, ...]
    """The routers themselves."""


@pytest.fixture
def transfer_to(drain: Callable[..., Any]) -> Callable[[Shape, Endpoint], Any]:
    """Samples of a transfer, and what it came to."""
    return lambda shape, peer: drain(transfer.initiate(shape, peer))


@pytest.fixture
def responder() -> Callable[[Any], AbstractContextManager[Endpoint]]:
    """A responder that knows the nonce and works in its own way: work(meeting, over)."""

    @contextmanager
    def responding(work: Any) -> Iterator[Endpoint]:
        over = threading.Event()

        def serve(meeting: port.Meeting) -> None:
            # the initiator may have left
            with suppress(OSError):
                work(meeting, over)

        with port.listen("127.0.0.1", serve) as peer:
            try:
                yield peer
            finally:
                over.set()

    return responding


@pytest.fixture
def build_path() -> Callable[..., AbstractContextManager[RoutedPath]]:
    """build_path(routers=2, version=4, mtus={1: 1400}): hosts in a chain; link 0: of the client."""
    if os.geteuid() != 0:
        pytest.skip("NOT RUN: network namespaces need root")
    return _build_path


@contextmanager
def _build_path(
    routers: int = 1, version: int = 4, mtus: dict[int, int] | None = None
) -> Iterator[RoutedPath]:
    with ExitStack() as stack:
        spaces = [_namespace(stack) for _ in range(routers + 2)]
        bits = 24 if version == 4 else 64
        for link in range(routers + 1):
            near, far = (f"cbp{link}{side}" for side in "ab")
            _run(spaces[link], f"ip link add {near} type veth peer name {far}")
            _run(spaces[link], f"ip link set {far} netns {_path(spaces[link + 1])}")
            for space, name, end in ((spaces[link], near, 1), (spaces[link + 1], far, 2)):
                mtu = (mtus or {}).get(link, 1500)
                address = _address(version, link, end)
                _run(space, f"ip link set {name} mtu {mtu} up")
                _run(space, f"ip address add {address}/{bits} dev {name}")
        for number, space in enumerate(spaces):
            _run(space, "ip link set lo up")
            _run(space, "sysctl -qw net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
            way = "ip" if version == 4 else "ip -6"
            if number <= routers - 1:
                _run(space, f"{way} route add default via {_address(version, number, 2)}")
            for link in range(number - 1):
                net = _address(version, link, 0)
                back = _address(version, number - 1, 1)
                _run(space, f"{way} route add {net}/{bits} via {back}")
        yield RoutedPath(
            End(_address(version, 0, 1), spaces[0]),
            End(_address(version, routers, 2), spaces[-1]),
            tuple(
                (_address(version, link, 2), _address(version, link + 1, 1))
                for link in range(routers)
            ),
            tuple(End("", space) for space in spaces[1:-1]),
        )


def _address(version: int, link: int, end: int) -> str:
    return f"10.91.{20 + link}.{end}" if version == 4 else f"fd91:{20 + link}::{end or ''}"


def _namespace(stack: ExitStack) -> int:
    """A new network namespace that lives as long as the descriptor of it."""
    # Without the wait for duplicates, in which IPv6 cannot be forwarded.
    ready = "sysctl -qw net.ipv6.conf.default.accept_dad=0 && echo && exec tail -f /dev/null"
    child = subprocess.Popen(["unshare", "--net", "sh", "-c", ready], stdout=subprocess.PIPE)
    assert child.stdout is not None
    try:
        child.stdout.readline()
        space = os.open(f"/proc/{child.pid}/ns/net", os.O_RDONLY)
    finally:
        child.kill()
        child.wait()
        child.stdout.close()
    stack.callback(os.close, space)
    return space


def _path(space: int) -> str:
    return f"/proc/{os.getpid()}/fd/{space}"


def _run(space: int, command: str) -> None:
    enter = ["nsenter", f"--net={_path(space)}", "--"]
    subprocess.run([*enter, *command.split()], check=True, capture_output=True)
