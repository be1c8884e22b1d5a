"""Counters on a system without /proc (macOS, BSD), through psutil where that is installed."""

from __future__ import annotations

import importlib
import time
from typing import Any

from probes.host.counters import CoreTimes, Counters, Watched
from probes.host.processes import ProcessTimes, ThreadTimes
from probes.stage import Unavailable


def read_counters(watched: Watched, agent_pid: int) -> Counters:
    """This host now. Errors: Unavailable where psutil is not installed."""
    try:
        psutil: Any = importlib.import_module("psutil")
    except ImportError:
        raise Unavailable(
            "this system has no /proc, so its cores can be counted with psutil alone:"
            " install psutil for the python3 that runs the agent"
        ) from None
    carriers = psutil.Process(agent_pid).children(recursive=True)
    if watched.file_server:
        carriers += [each for each in psutil.process_iter() if _name(psutil, each) == "smbd"]
    processes, threads = [], []
    for each in carriers:
        try:
            times, started = each.cpu_times(), int(each.create_time() * 100)
            threads += [
                ThreadTimes(thread.id, thread.user_time + thread.system_time, None)
                for thread in each.threads()
            ]
        except psutil.Error:
            continue  # it ended meanwhile or is another user's
        processes.append(ProcessTimes(each.pid, started, times.user + times.system, 0.0))
    memory = psutil.virtual_memory()
    cached = int(getattr(memory, "cached", 0) or getattr(memory, "inactive", 0))
    traffic = psutil.net_io_counters(pernic=True).get(watched.interface)
    device = (psutil.disk_io_counters(perdisk=True) or {}).get(watched.folder_device)
    return Counters(
        clock_seconds=time.monotonic(),
        cores=tuple(
            _core(number, times) for number, times in enumerate(psutil.cpu_times(percpu=True))
        ),
        processes=tuple(processes),
        threads=tuple(threads),
        memory_total_bytes=memory.total,
        memory_used_bytes=memory.used,
        memory_cached_bytes=cached,
        interface_sent_bytes=traffic.bytes_sent if traffic else None,
        interface_received_bytes=traffic.bytes_recv if traffic else None,
        device_read_bytes=device.read_bytes if device else None,
        device_written_bytes=device.write_bytes if device else None,
    )


def _core(number: int, times: Any) -> CoreTimes:
    interrupts = getattr(times, "irq", 0.0) + getattr(times, "interrupt", 0.0)
    busy = times.user + getattr(times, "nice", 0.0) + times.system + interrupts
    return CoreTimes(number, busy, interrupts, 0.0, busy + times.idle)


def _name(psutil: Any, process: Any) -> str:
    try:
        return str(process.name())
    except psutil.Error:
        return ""
