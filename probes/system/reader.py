"""Selection of the reader of a host's counters: /proc on Linux, psutil elsewhere."""

from __future__ import annotations

import functools
import importlib
import sys
from pathlib import Path
from typing import Dict, List, Optional, Protocol, Tuple, cast

from probes.core.stage import Unavailable
from probes.system import proc
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ProcessIo, ProcessStat, ThreadTimes

STAT = Path("/proc/stat")


class Reader(Protocol):
    """Functions that read a host's counters; proc.py and psutil_counters.py document each."""

    def cores(self) -> Dict[int, CoreTimes]: ...
    def memory(self) -> Optional[Memory]: ...
    def traffic(self, interface: str) -> Optional[Tuple[int, int]]: ...
    def devices(self) -> Dict[str, DeviceCounts]: ...
    def processes(self) -> Dict[int, ProcessStat]: ...
    def threads(self, pid: int) -> List[ThreadTimes]: ...
    def process_io(self, pid: int) -> Optional[ProcessIo]: ...


@functools.lru_cache(maxsize=1)
def reader() -> Reader:
    """Returns the reader of this host. Errors: Unavailable where there is none."""
    if sys.platform.startswith("linux"):
        if not STAT.exists():
            raise Unavailable("this system does not show its processes (restricted /proc)")
        return cast(Reader, proc)
    try:
        return cast(Reader, importlib.import_module("probes.system.psutil_counters"))
    except Exception as error:  # whatever a broken installation raises
        raise Unavailable(
            "this system has no /proc; install psutil for the python3 that runs the agent"
        ) from error
