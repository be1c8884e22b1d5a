"""What in a host's own TCP settings costs throughput, with what each means on today's systems.

Of macOS parsed from recorded text, as no Mac was at hand: what is told is labelled untested.
Sources: Documentation/networking/ip-sysctl.rst; xnu's bsd/netinet/tcp_sysctls.c and tcp_subr.c, the
defaults of macOS 13.
"""

from __future__ import annotations

import sys
from typing import Callable, Dict, Iterator, Tuple

from probes.host import tools
from probes.host.sysfs import text
from probes.records import HostSetting

SMALL_BYTES = 1 << 20
"""A window that one gigabit a second fills at a round trip of 8 ms."""

Costs = Callable[[str], bool]


def _is_zero(value: str) -> bool:
    return value == "0"


def _most_is_small(value: str) -> bool:
    numbers = value.split()
    return len(numbers) == 3 and numbers[2].isdigit() and int(numbers[2]) < SMALL_BYTES


LINUX: Tuple[Tuple[str, Costs, str, str], ...] = (
    (
        "net.ipv4.tcp_window_scaling",
        _is_zero,
        "no connection's window exceeds 64 KiB, in either direction",
        "set it to 1",
    ),
    (
        "net.ipv4.tcp_sack",
        _is_zero,
        "after a loss TCP repeats what had arrived",
        "set it to 1",
    ),
    (
        "net.ipv4.tcp_moderate_rcvbuf",
        _is_zero,
        "the receive window does not grow with the path",
        "set it to 1",
    ),
    (
        "net.ipv4.tcp_rmem",
        _most_is_small,
        "the receive window cannot grow beyond its third number",
        "raise that to 6291456 (the default) or to the path's bandwidth times its round trip",
    ),
    (
        "net.ipv4.tcp_wmem",
        _most_is_small,
        "the send buffer cannot grow beyond its third number",
        "raise that to 4194304 (the default) or to the path's bandwidth times its round trip",
    ),
)
"""Name, when it costs, why, remedy."""


def tcp_settings() -> Tuple[HostSetting, ...]:
    """This host's costly settings; none where the system does not tell."""
    if sys.platform == "darwin":
        return read_macos()
    return costly({name: sysctl(name) for name, *_ in LINUX})


def costly(values: Dict[str, str]) -> Tuple[HostSetting, ...]:
    """Those of Linux's settings that cost throughput; values by name, empty: unknown."""
    return tuple(
        HostSetting(name, values[name], why, remedy)
        for name, costs, why, remedy in LINUX
        if values.get(name) and costs(values[name])
    )


def sysctl(name: str) -> str:
    """A setting of Linux by its name; empty: it has none."""
    return " ".join(text("/proc/sys/" + name.replace(".", "/")).split())


ANSWER_SECONDS = 10.0
SYSCTL = ("sysctl", "net.inet.tcp", "kern.ipc.maxsockbuf")
_MACOS_GROWING = {
    "net.inet.tcp.doautorcvbuf": "the receive window",
    "net.inet.tcp.doautosndbuf": "the send buffer",
}
_MACOS_MOST = {
    "net.inet.tcp.autorcvbufmax": "the receive window",
    "net.inet.tcp.autosndbufmax": "the send buffer",
    "kern.ipc.maxsockbuf": "any socket's buffer",
}


def read_macos() -> Tuple[HostSetting, ...]:
    """This host's costly settings; none where sysctl does not answer."""
    return tuple(costly_on_macos(parse_sysctl(tools.printed(SYSCTL, ANSWER_SECONDS))))


def parse_sysctl(text: str) -> Dict[str, int]:
    """The whole numbers that sysctl prints as `name: value`."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {
        name.strip(): int(value) for name, _, value in pairs if value.strip().lstrip("-").isdigit()
    }


def costly_on_macos(values: Dict[str, int]) -> Iterator[HostSetting]:
    """What costs throughput."""
    for name, what in _MACOS_GROWING.items():
        if values.get(name) == 0:
            yield _untested(name, values, f"{what} does not grow with the path", "set it to 1")
    for name, what in _MACOS_MOST.items():
        if 0 <= values.get(name, -1) < SMALL_BYTES:
            yield _untested(name, values, f"{what} cannot grow beyond it", "4194304 is the default")
    if values.get("net.inet.tcp.rfc1323") == 0:
        name = "net.inet.tcp.rfc1323"
        yield _untested(name, values, "no connection's window exceeds 64 KiB", "set it to 1")
    if values.get("net.inet.tcp.sack") == 0:
        why = "after a loss TCP repeats what had arrived"
        yield _untested("net.inet.tcp.sack", values, why, "set it to 1")
    if values.get("net.inet.tcp.delayed_ack") == 3:
        why = "acknowledgements wait: up to 0.1 s each time for a sender with Nagle's algorithm"
        yield _untested("net.inet.tcp.delayed_ack", values, why, "0 acknowledges at once")


def _untested(name: str, values: Dict[str, int], why: str, remedy: str) -> HostSetting:
    return HostSetting(name, str(values[name]), why, remedy, tested=False)
