"""The worlds: what is planted, and which verdict on each copy would be true; all of them."""

from __future__ import annotations

from cpu_worlds import CPU_WORLDS, HEALTHY_WORLDS
from decoy_worlds import DECOY_WORLDS
from disk_worlds import DISC_WORLDS, DISK_WORLDS
from link_worlds import LINK_WORLDS
from memory_worlds import MEMORY_WORLDS
from pair_worlds import PAIR_WORLDS
from smb_worlds import SMB_WORLDS
from tcp_worlds import TCP_WORLDS
from truth import LabWorld

GROUPS: dict[str, tuple[LabWorld, ...]] = {
    "link": LINK_WORLDS,
    "tcp": TCP_WORLDS,
    "disk": DISK_WORLDS,
    "disc": DISC_WORLDS,
    "cpu": CPU_WORLDS,
    "memory": MEMORY_WORLDS,
    "smb": SMB_WORLDS,
    "healthy": HEALTHY_WORLDS,
    "decoy": DECOY_WORLDS,
    "pair": PAIR_WORLDS,
}
"""By what is planted; a group is a module's tuple, and new worlds go into one of them."""
WORLDS = {each.name: each for group in GROUPS.values() for each in group}
