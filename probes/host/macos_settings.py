"""What in a Mac's TCP settings costs throughput, from what `sysctl net.inet.tcp` prints.

Parsed from recorded text: no Mac was at hand, and what is told is labelled untested.
Source: xnu's bsd/netinet/tcp_sysctls.c and tcp_subr.c, the defaults of macOS 13.
"""

from __future__ import annotations

from typing import Dict, Iterator, Tuple

from probes.host import tools
from probes.records import HostSetting

ANSWER_SECONDS = 10.0
SMALL_BYTES = 1 << 20
COMMAND = ("sysctl", "net.inet.tcp", "kern.ipc.maxsockbuf")
_GROWING = {
    "net.inet.tcp.doautorcvbuf": "the receive window",
    "net.inet.tcp.doautosndbuf": "the send buffer",
}
_MOST = {
    "net.inet.tcp.autorcvbufmax": "the receive window",
    "net.inet.tcp.autosndbufmax": "the send buffer",
    "kern.ipc.maxsockbuf": "any socket's buffer",
}


def read() -> Tuple[HostSetting, ...]:
    """This host's costly settings; none where sysctl does not answer."""
    return tuple(costly(parse(tools.printed(COMMAND, ANSWER_SECONDS))))


def parse(text: str) -> Dict[str, int]:
    """The whole numbers that sysctl prints as `name: value`."""
    pairs = (line.partition(":") for line in text.splitlines())
    return {
        name.strip(): int(value) for name, _, value in pairs if value.strip().lstrip("-").isdigit()
    }


def costly(values: Dict[str, int]) -> Iterator[HostSetting]:
    """What costs throughput."""
    for name, what in _GROWING.items():
        if values.get(name) == 0:
            yield _setting(name, values, f"{what} does not grow with the path", "set it to 1")
    for name, what in _MOST.items():
        if 0 <= values.get(name, -1) < SMALL_BYTES:
            yield _setting(name, values, f"{what} cannot grow beyond it", "4194304 is the default")
    if values.get("net.inet.tcp.rfc1323") == 0:
        name = "net.inet.tcp.rfc1323"
        yield _setting(name, values, "no connection's window exceeds 64 KiB", "set it to 1")
    if values.get("net.inet.tcp.sack") == 0:
        why = "after a loss TCP repeats what had arrived"
        yield _setting("net.inet.tcp.sack", values, why, "set it to 1")
    if values.get("net.inet.tcp.delayed_ack") == 3:
        why = "acknowledgements wait: up to 0.1 s each time for a sender with Nagle's algorithm"
        yield _setting("net.inet.tcp.delayed_ack", values, why, "0 acknowledges at once")


def _setting(name: str, values: Dict[str, int], why: str, remedy: str) -> HostSetting:
    return HostSetting(name, str(values[name]), why, remedy, tested=False)
