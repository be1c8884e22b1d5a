"""Hosts at the ends of a path with a delay, set up as such hosts usually are."""

from __future__ import annotations

from typing import Any

from plant import Caps
from truth import MB

_NAMES = {
    "rmem": "net.ipv4.tcp_rmem",
    "wmem": "net.ipv4.tcp_wmem",
    "probing": "net.ipv4.tcp_mtu_probing",
}
ORDINARY: dict[str, Any] = {"mtu_bytes": 1500, "queue_bytes": 250_000}
"""A path of ordinary frames, with a queue of 20 ms at 100 Mbit/s."""


def wan(
    control: str = "cubic",
    /,
    bits_per_second: int = 100 * MB,
    segments: int | None = None,
    more: dict[str, Any] | None = None,
    **sysctls: str,
) -> Caps:
    """A host with a usual congestion control; small buffers where they are told.

    segments: the most that its congestion window ever has; more: other caps of it.
    sysctls: rmem, wmem, probing and their values.
    """
    told = tuple((_NAMES[name], value) for name, value in sysctls.items())
    return Caps(
        sends_bits_per_second=bits_per_second,
        sysctls=told,
        congestion_control=control,
        congestion_window_segments=segments,
        **more or {},
    )


def usual(name: str) -> dict[str, Any]:
    """Caps that take a kernel setting's plant away: what the path sets it to, 64 MiB, stays."""
    return {name: {"sysctls": ()}}
