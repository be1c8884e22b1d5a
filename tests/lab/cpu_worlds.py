"""Worlds of the CPU: quotas and neighbours on a host's core; and those in which nothing is slow."""

from __future__ import annotations

from plant import Caps
from truth import BUSY, COPIES, GIGABIT, LINK, MB, LabWorld, caps, planted, words


def _quota(name: str, side: str, percent: int) -> LabWorld:
    short = caps(quota_ratio=percent / 100)
    return planted(
        name,
        f"{side} CPU quota {percent} %",
        short if side == "client" else caps(),
        short if side == "server" else caps(),
        {copy: words("cpu", side, "quota") for copy in COPIES},
        set(),
    )


def _busy(name: str, side: str, share_ratio: float) -> LabWorld:
    shared = Caps(hog_share_ratio=share_ratio)
    return planted(
        name,
        f"no link, a neighbour takes {share_ratio:.0%} of the {side}'s core",
        shared if side == "client" else Caps(),
        shared if side == "server" else Caps(),
        {copy: words("cpu", side, "contention") for copy in COPIES},
        set(),
    )


CPU_WORLDS = (
    _quota("server-quota", "server", 8),
    _quota("server-quota-4", "server", 4),
    _quota("server-quota-12", "server", 12),
    _quota("client-quota", "client", 15),
    _quota("client-quota-8", "client", 8),
    _quota("client-quota-5", "client", 5),
    _busy("busy-server", "server", 0.75),
    _busy("busy-server-85", "server", 0.85),
    _busy("busy-client", "client", 0.85),
)

HEALTHY_WORLDS = (
    planted("nothing", "nothing", Caps(), Caps(), {}, BUSY),
    planted(
        "healthy-2500",
        "a link of 2.5 Gbit/s, fast disks",
        caps(sends_bits_per_second=2500 * MB),
        caps(sends_bits_per_second=2500 * MB),
        {},
        GIGABIT,
    ),
    planted(
        "healthy-idle-neighbours",
        "300 Mbit/s, a neighbour with 5 % of each core, 5 Mbit/s of others' traffic each way",
        caps(sends_bits_per_second=300 * MB, hog_share_ratio=0.05, foreign_bits_per_second=5 * MB),
        caps(sends_bits_per_second=300 * MB, hog_share_ratio=0.05, foreign_bits_per_second=5 * MB),
        {copy: {LINK} for copy in COPIES},
        set(),
    ),
)
"""Only the planted link may be blamed here, or a core that is full."""
