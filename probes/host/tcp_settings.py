"""What in a host's own TCP settings costs throughput, with what each means on today's systems.

Source: Documentation/networking/ip-sysctl.rst; Windows and macOS have modules of their own.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Callable, Dict, Tuple

from probes.host import macos_settings, windows_settings
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
    if sys.platform == "win32":
        return windows_settings.read()
    if sys.platform == "darwin":
        return macos_settings.read()
    return costly({name: _sysctl(name) for name, *_ in LINUX})


def costly(values: Dict[str, str]) -> Tuple[HostSetting, ...]:
    """Those of Linux's settings that cost throughput; values by name, empty: unknown."""
    return tuple(
        HostSetting(name, values[name], why, remedy)
        for name, costs, why, remedy in LINUX
        if values.get(name) and costs(values[name])
    )


def _sysctl(name: str) -> str:
    try:
        text = Path("/proc/sys/" + name.replace(".", "/")).read_text(encoding="ascii")
    except OSError:
        return ""
    return " ".join(text.split())
