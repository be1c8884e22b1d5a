"""A server's own counters where no agent runs: node_exporter's or Samba's endpoint, read by HTTP.

Sources: Prometheus' text format 0.0.4; node_exporter's collectors cpu, diskstats, netdev, meminfo
and pressure; source3/utils/smb_prometheus_endpoint.c of Samba 4.23. Who used the CPU is not in
them: what exceeds the use before the first test counts as the copy's.
"""

from __future__ import annotations

import http.client
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from bottleneck.login.target import MetricsUrl
from probes.core import typed
from probes.core.stage import Refused
from probes.host.counters import Counters
from probes.host.memory import Pressure
from probes.system.child import NoAnswer, call_until
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ThreadTimes

READ_SECONDS = 5.0
MOST_BYTES = 16 << 20
IDLE_SECONDS = 1.0
"""Least time before the first test that shows how busy the CPU is without it."""
NEEDED = re.compile(
    r"^(node_(?:cpu_seconds_total|disk_io_time_seconds_total|disk_(?:read|written)_bytes_total|"
    r"network_(?:receive|transmit)_bytes_total|memory_\w+_bytes|pressure_\w+_waiting_seconds_total)"
    r"|smb_cpu_seconds_total) *(?:\{([^}\n]*)\})? ([0-9][0-9.e+-]*) *(?:\d+)?$",
    re.MULTILINE,
)
FULL_RATIO = 0.85
"""Least busy share of each core at which a copy waits for one, if anybody does."""
LABEL = re.compile(r'(\w+)="([^"]*)"')
FREE = ("idle", "iowait", "nice")
"""Modes of a core's time that others leave to a copy."""
IN_USER = ("guest", "guest_nice")
"""Modes of a core's time that other modes contain."""
Labels = tuple[str, ...]
"""Values of a sample's labels, in the order of their names."""


class NoMetrics(Exception):
    """The endpoint gave no counters; the text is the reason."""


@dataclass(frozen=True)
class Reading:
    """Samples at one moment of this host's clock."""

    clock_seconds: float
    samples: Mapping[str, Mapping[Labels, float]]

    def sum(self, name: str, *labels: str) -> float | None:
        """Returns a sample, or the sum of those that have the labels; None: there is none."""
        values = [
            value for key, value in self.samples.get(name, {}).items() if set(labels) <= set(key)
        ]
        return sum(values) if values else None

    def cores(self) -> dict[int, CoreTimes]:
        """Returns the cores' times by their number; Samba's alone: its processes as one core."""
        modes: dict[int, dict[str, float]] = {}
        for (core, mode), value in self.samples.get("node_cpu_seconds_total", {}).items():
            if core.isdecimal() and mode not in IN_USER:
                modes.setdefault(int(core), {})[mode] = value
        if modes or self.smbd_seconds is None:
            return {core: _core_times(core, each) for core, each in modes.items()}
        return {0: CoreTimes(0, self.smbd_seconds, 0.0, 0.0, self.clock_seconds)}

    @property
    def smbd_seconds(self) -> float | None:
        """CPU time of the file server's processes; None: Samba does not report it here."""
        return self.sum("smb_cpu_seconds_total", "")


def _core_times(core: int, modes: Mapping[str, float]) -> CoreTimes:
    total = sum(modes.values())
    interrupts = modes.get("irq", 0.0) + modes.get("softirq", 0.0)
    busy = total - sum(modes.get(each, 0.0) for each in FREE)
    return CoreTimes(core, busy, interrupts, modes.get("steal", 0.0), total)


def parse(text: str, clock_seconds: float) -> Reading:
    """Returns the needed samples of a text. Raises NoMetrics where there is none of CPU time."""
    samples: dict[str, dict[Labels, float]] = {}
    for name, labels, value in NEEDED.findall(text):
        key = tuple(content for _, content in sorted(LABEL.findall(labels)))
        try:
            samples.setdefault(name, {})[key] = float(value)
        except ValueError:
            raise NoMetrics(f"{value[:40]} is no number") from None
    reading = Reading(clock_seconds, samples)
    if not reading.cores():
        raise NoMetrics("no CPU time in its text; use node_exporter's /metrics, or Samba's")
    return reading


@dataclass
class MetricsEndpoint:
    """The server's endpoint, in place of its agent where counters are read."""

    url: MetricsUrl
    note: Callable[[str], None]
    """Receives a failure of a later reading."""
    first_reading: Reading | None = None
    """Reading at the start of the run, until the idle use is known."""
    idle: dict[int, float] = field(default_factory=dict)
    """Busy share of each core before the first test."""

    def connect(self) -> MetricsEndpoint:
        """Reads it once. Raises Refused where there are no counters."""
        try:
            self.first_reading = self._read()
        except NoMetrics as error:
            text = f"{self.url.name}: the server's metrics: {error}; check --metrics"
            raise Refused("unreachable", text) from None
        return self

    def tell(self, do: str) -> Reading | None:
        """Reads the counters; None: they could not be read, which is noted."""
        del do
        try:
            if self.first_reading is not None:
                self._learn_idle(self.first_reading)
                self.first_reading = None
            return self._read()
        except NoMetrics as error:
            self.note(f"{self.url.name}: the server's metrics: {error}")
            return None

    def _learn_idle(self, first: Reading) -> None:
        """Sets how busy the CPU is while nothing is copied."""
        time.sleep(max(0.0, first.clock_seconds + IDLE_SECONDS - time.monotonic()))
        reading = self._read()
        self.idle = _used(first, reading, reading.clock_seconds - first.clock_seconds)

    def why_lost(self) -> str:
        """Returns why the server is lost, which an endpoint does not show."""
        return ""

    def ends(self, readings: Iterable[Reading | None]) -> tuple[Any, Any] | None:
        """Returns the counters of a window as an agent's; None: one of them could not be read."""
        first, *_, last = readings
        if first is None or last is None or last.clock_seconds <= first.clock_seconds:
            return None
        disk = _busiest(first, last, "node_disk_io_time_seconds_total")
        interface = _busiest(first, last, "node_network_transmit_bytes_total", RECEIVED)
        busy = _used(first, last, last.clock_seconds - first.clock_seconds).values()
        is_full = bool(busy) and min(busy) >= FULL_RATIO
        counters = partial(_counters, first, disk, interface, self.idle, is_full)
        return typed.to_plain(counters(first)), typed.to_plain(counters(last))

    def _read(self) -> Reading:
        try:
            text = call_until("HTTP", time.monotonic() + READ_SECONDS, self._fetch)
            return parse(text, time.monotonic())
        except (NoAnswer, OSError, http.client.HTTPException, ValueError) as error:
            raise NoMetrics(str(error) or type(error).__name__) from None

    def _fetch(self) -> str:
        kind = http.client.HTTPSConnection if self.url.is_secure else http.client.HTTPConnection
        connection = kind(self.url.host, self.url.port, timeout=READ_SECONDS)
        try:
            connection.request("GET", self.url.path, headers={"Accept": "text/plain"})
            reply = connection.getresponse()
            if reply.status != http.client.OK:
                raise NoMetrics(f"HTTP {reply.status}")
            content = reply.read(MOST_BYTES + 1)
        finally:
            connection.close()
        if len(content) > MOST_BYTES:
            raise NoMetrics(f"more than {MOST_BYTES >> 20} MiB")
        return content.decode("utf-8", "replace")


RECEIVED = "node_network_receive_bytes_total"


def _used(first: Reading, last: Reading, seconds: float) -> dict[int, float]:
    """Returns the busy seconds of each core per second, without interrupts and stolen time."""
    earlier = first.cores()
    return {
        core: max(0.0, _own_seconds(now) - _own_seconds(earlier[core])) / seconds
        for core, now in last.cores().items()
        if core in earlier
    }


def _own_seconds(core: CoreTimes) -> float:
    return core.busy_seconds - core.interrupt_seconds - core.stolen_seconds


def _busiest(first: Reading, last: Reading, *names: str) -> str | None:
    """Returns the device whose counters grew most; None: none is counted."""
    growth: dict[str, float] = {}
    for name in names:
        for key, value in last.samples.get(name, {}).items():
            old = first.samples.get(name, {}).get(key)
            if old is not None and key:
                growth[key[0]] = growth.get(key[0], 0.0) + value - old
    return max(growth, key=lambda device: growth[device], default=None)


def _counters(
    first: Reading,
    disk: str | None,
    interface: str | None,
    idle: Mapping[int, float],
    is_full: bool,
    reading: Reading,
) -> Counters:
    passed = reading.clock_seconds - first.clock_seconds
    cores = reading.cores()
    # While cores are idle, those who wait for one are hardly the copy's.
    waited = reading.sum("node_pressure_cpu_waiting_seconds_total") if is_full else None
    threads = [
        ThreadTimes(core, max(0.0, _own_seconds(each) - idle.get(core, 0.0) * passed), waited)
        for core, each in cores.items()
    ]
    others = sum(idle.values()) * passed
    if (smbd := reading.smbd_seconds) is not None:
        # Of all its processes: one copy is mostly the work of one.
        threads, others = [ThreadTimes(0, smbd, None)], 0.0
    return Counters(
        clock_seconds=reading.clock_seconds,
        cores=tuple(cores[core] for core in sorted(cores)),
        processes=(),
        threads=tuple(threads),
        other_cpu_seconds=others,
        others_complete=smbd is None,
        memory=_memory(reading),
        traffic=_traffic(reading, interface),
        device=_device(reading, disk),
        pressure=Pressure(
            memory_waiting_seconds=reading.sum("node_pressure_memory_waiting_seconds_total"),
            io_waiting_seconds=reading.sum("node_pressure_io_waiting_seconds_total"),
        ),
    )


def _memory(reading: Reading) -> Memory | None:
    """Returns the memory; what programs could get at once counts as not in use."""
    names = "MemTotal MemAvailable Cached Dirty Writeback"
    total, free, cached, dirty, writeback = (
        reading.sum(f"node_memory_{name}_bytes") for name in names.split()
    )
    if total is None or free is None:
        return None
    unwritten = None if dirty is None else int(dirty + (writeback or 0.0))
    return Memory(int(total), int(total - free), int(cached or 0.0), unwritten)


def _traffic(reading: Reading, interface: str | None) -> tuple[int, int] | None:
    if interface is None:
        return None
    names = ("node_network_transmit_bytes_total", RECEIVED)
    sent, received = (int(reading.sum(name, interface) or 0.0) for name in names)
    return sent, received


def _device(reading: Reading, disk: str | None) -> DeviceCounts | None:
    busy = None if disk is None else reading.sum("node_disk_io_time_seconds_total", disk)
    if disk is None or busy is None:
        return None
    read, written = (
        int(reading.sum(f"node_disk_{name}_bytes_total", disk) or 0.0)
        for name in ("read", "written")
    )
    return DeviceCounts(0, read, 0, written, busy)
