"""What the cores of this host were busy with while a transfer ran, interrupts included."""

from __future__ import annotations

from typing import Dict, Optional

from probes.core.stage import Unavailable
from probes.host.counters import usable_cores
from probes.system.proc import CoreTimes
from probes.system.reader import reader

Cores = Dict[int, CoreTimes]
"""The cores that this process may use, at one moment, by number."""


def read() -> Optional[Cores]:
    """The cores now; None where the system does not tell."""
    try:
        cores = reader().cores()
    except Unavailable:
        return None
    usable = usable_cores({0}, cores)
    return {core: each for core, each in cores.items() if core in usable}


def busy_cores(before: Optional[Cores], after: Optional[Cores]) -> Optional[float]:
    """How many of those cores were busy between two moments, by whomever; None: not known.

    A core's busy share of its own ticks is at most 1. What the hypervisor gave to somebody else is
    not this host's.
    """
    if before is None or after is None:
        return None
    busy = 0.0
    for core, now in after.items():
        was = before.get(core)
        whole = now.total_seconds - was.total_seconds if was else 0.0
        if was is None or whole <= 0:
            return None
        used = now.busy_seconds - was.busy_seconds - (now.stolen_seconds - was.stolen_seconds)
        busy += min(1.0, max(0.0, used / whole))
    return busy
