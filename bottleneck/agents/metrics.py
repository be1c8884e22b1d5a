"""A server's own counters where no agent runs: node_exporter's or Samba's endpoint, read by HTTP.

Sources: Prometheus' text format 0.0.4; node_exporter's collectors cpu, diskstats, netdev, meminfo
and pressure; source3/utils/smb_prometheus_endpoint.c of Samba 4.23. They do not contain which
process used the CPU, nor which disk and network card are the share's: ambiguous figures are not
used.
"""

from __future__ import annotations

import http.client
import io
import math
import re
import socket
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

from bottleneck.login.target import MetricsUrl
from probes.core import typed
from probes.core.stage import Refused
from probes.host.counters import Counters
from probes.host.memory import Pressure
from probes.system.child import NoAnswer, call_until
from probes.system.proc import CoreTimes, DeviceCounts, Memory, ThreadTimes

READ_SECONDS = 1.5
"""Limit of one reading: the test waits for it."""
IDLE_SECONDS = 1.0
"""Time before the run in which the CPU's use by others is learned."""
MOST_BYTES, MOST_LINE, MOST_CORES, MOST_VALUE = 4 << 20, 500, 4096, 1e18
"""Limits of a text, of its lines' characters and of what is believed."""
NEEDED = re.compile(
    r"(node_(?:cpu_seconds_total|disk_io_time_seconds_total|disk_(?:read|written)_bytes_total|"
    r"network_(?:receive|transmit)_bytes_total|memory_\w+_bytes|pressure_\w+_waiting_seconds_total)"
    r"|smb_cpu_seconds_total)(?: ?\{([^{}]*)\})? ([0-9.eE+-]{1,40})(?: [0-9]+)?"
)
LABEL = re.compile(r'(?<!\w)(\w+)="([^"]*)"')
FREE = ("idle", "iowait", "nice")
"""Modes of a core's time that others leave to a copy."""
CONTAINED = ("guest", "guest_nice")
"""Modes of a core's time that other modes contain."""
VIRTUAL = re.compile(r"lo$|veth|docker|br-|virbr|cni|tap|tun|ifb|dummy|wg|zt|tailscale")
"""Interfaces that are no card towards the client."""
CPU, SMBD = "node_cpu_seconds_total", "smb_cpu_seconds_total"
SENT, RECEIVED = "node_network_transmit_bytes_total", "node_network_receive_bytes_total"
READ, WRITTEN = "node_disk_read_bytes_total", "node_disk_written_bytes_total"
BUSY = "node_disk_io_time_seconds_total"
CLOCK_RATIO, CLOCK_SECONDS = 0.3, 0.1
"""Most difference of a core's time and of the clock between two readings, with the latter's."""
CARRIED_RATIO, MOST_CARRIED_TIMES, ALIKE_RATIO = 0.7, 2.2, 1.2
"""Least bytes of a device that took part in a copy, over the copy's; most of a disk, over those;
most ratio of the bytes of devices that are layers of one."""
KNOWN_RATIO, QUIET_RATIO = 0.2, 0.02
"""Most use of a core by the copy that may have been on other cores; most use by Samba's other
processes before the run."""


class NoMetrics(Exception):
    """The endpoint gave no counters; the text is the reason."""


@dataclass(frozen=True)
class Reading:
    """Samples at one moment of this host's clock."""

    clock_seconds: float
    samples: Mapping[str, Mapping[tuple[str, str], float]]
    """By their name, then by device or core, and mode."""

    def value(self, name: str, device: str = "") -> float | None:
        """Returns a sample; None: there is none."""
        return self.samples.get(name, {}).get((device, ""))

    def cores(self) -> dict[int, CoreTimes]:
        """Returns the cores' times by number; where Samba alone counts, its processes as one."""
        modes: dict[int, dict[str, float]] = {}
        for (core, mode), value in self.samples.get(CPU, {}).items():
            if core.isdecimal() and mode not in CONTAINED:
                modes.setdefault(int(core), {})[mode] = value
        smbd = self.smbd_seconds()
        if modes or smbd is None:
            return {core: _core_times(core, each) for core, each in modes.items()}
        return {0: CoreTimes(0, smbd, 0.0, 0.0, self.clock_seconds)}

    def smbd_seconds(self) -> float | None:
        """Returns the CPU time of Samba's processes; None: Samba does not report it here."""
        by_mode = self.samples.get(SMBD)
        return None if by_mode is None else sum(by_mode.values())


def _core_times(core: int, modes: Mapping[str, float]) -> CoreTimes:
    total = sum(modes.values())
    interrupts = modes.get("irq", 0.0) + modes.get("softirq", 0.0)
    busy = total - sum(modes.get(each, 0.0) for each in FREE)
    return CoreTimes(core, busy, interrupts, modes.get("steal", 0.0), total)


def parse(text: str, clock_seconds: float) -> Reading:
    """Returns the needed samples of a text. Raises NoMetrics where it has no CPU time of a host."""
    samples: dict[str, dict[tuple[str, str], float]] = {}
    lines = (line.strip() for line in io.StringIO(text) if len(line) <= MOST_LINE)
    for match in filter(None, map(NEEDED.fullmatch, lines)):
        labels: dict[str, str] = dict(LABEL.findall(match[2] or ""))
        key = labels.get("cpu", labels.get("device", "")), labels.get("mode", "")
        values = samples.setdefault(match[1], {})
        if labels.get("share"):
            continue
        if key in values:
            raise NoMetrics("its text is of several hosts")
        values[key] = float(match[3])
        if not 0 <= values[key] < MOST_VALUE:
            raise NoMetrics(f"{match[3]} is out of range")
    reading = Reading(clock_seconds, samples)
    if len(reading.cores()) > MOST_CORES:
        raise NoMetrics(f"more than {MOST_CORES} cores")
    if not reading.cores():
        raise NoMetrics("no CPU time in its text; use node_exporter's /metrics, or Samba's")
    return reading


@dataclass
class MetricsEndpoint:
    """The server's endpoint, in place of its agent where counters are read."""

    url: MetricsUrl
    note: Callable[[str], None]
    """Receives a failure of a later reading."""
    is_lost: bool = False
    """Whether a reading failed: another one could take as long."""
    connection: http.client.HTTPConnection | None = None
    """Connection of the last reading."""
    idle_cores: float = 0.0
    """Cores, or Samba's processes as cores, that others used before the run."""

    def connect(self) -> MetricsEndpoint:
        """Reads it twice. Raises Refused where there are no counters."""
        try:
            first = self._read()
            time.sleep(IDLE_SECONDS)
            last = self._read()
            if not _is_of_now(first, last):
                raise NoMetrics("its counters are not those of that moment")
        except NoMetrics as error:
            text = f"{self.url.name}: the server's metrics: {error}; check --metrics"
            raise Refused("unreachable", text) from None
        seconds = last.clock_seconds - first.clock_seconds
        self.idle_cores = sum(_uses(first, last)) / max(1e-9, seconds)
        return self

    def tell(self, _: str) -> Reading | None:
        """Reads the counters, as Host.tell does; None: they could not be read, which is noted."""
        if self.is_lost:
            return None
        try:
            return self._read()
        except NoMetrics as error:
            self.is_lost = True
            self.note(f"{self.url.name}: the server's metrics: {error}; not read any more")
            return None

    def why_lost(self) -> str:
        """Returns why the server is lost, which an endpoint does not show."""
        return ""

    def counters(
        self, readings: Iterable[Reading | None], moved_bytes: int, pushes: bool
    ) -> tuple[Any, Any] | None:
        """Returns the counters of a window as an agent's; None: they are not known.

        moved_bytes, pushes: payload of the test, and whether the server received it.
        """
        first, *_, last = readings
        if first is None or last is None or not _is_of_now(first, last):
            return None
        seconds = last.clock_seconds - first.clock_seconds
        uses, others = _uses(first, last), self.idle_cores * seconds
        copy_seconds = max(0.0, sum(uses) - others)
        # A thread moves between cores; so may others' work that was on another core before.
        in_one_core = min(copy_seconds, max(uses, default=0.0) - others)
        is_spread = min(copy_seconds, seconds) - in_one_core > KNOWN_RATIO * seconds
        is_noisy = CPU not in first.samples and others > QUIET_RATIO * seconds
        cores = sorted(first.cores().keys() & last.cores().keys())
        if is_spread or is_noisy:
            cores, copy_seconds = [], 0.0
        carrier = partial(_carrier, first, last, CARRIED_RATIO * moved_bytes)
        counters = partial(
            _counters,
            cores=cores,
            disk=carrier(WRITTEN if pushes else READ),
            interface=carrier(RECEIVED if pushes else SENT),
        )
        end = counters(last, copy_seconds=copy_seconds, other_seconds=others)
        return typed.to_plain(counters(first)), typed.to_plain(end)

    def _read(self) -> Reading:
        deadline = time.monotonic() + READ_SECONDS

        def work() -> Reading:
            text = self._fetch(deadline)
            return parse(text, time.monotonic())

        try:
            return call_until("HTTP", deadline, work)
        except (NoAnswer, OSError, http.client.HTTPException, ValueError) as error:
            if self.connection is not None and self.connection.sock is not None:
                # Else its thread could go on to receive.
                with suppress(OSError):
                    self.connection.sock.shutdown(socket.SHUT_RDWR)
            why = getattr(error, "strerror", None) or str(error) or type(error).__name__
            raise NoMetrics("".join(filter(str.isprintable, why[:120]))) from None

    def _fetch(self, deadline: float) -> str:
        kind = http.client.HTTPSConnection if self.url.is_secure else http.client.HTTPConnection
        connection = kind(self.url.host, self.url.port, timeout=READ_SECONDS)
        self.connection = connection
        try:
            connection.connect()
            if time.monotonic() > deadline:
                # The caller gave up before there was a socket that it could shut down.
                raise NoMetrics("no connection in time")
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


def _is_of_now(first: Reading, last: Reading) -> bool:
    """Whether the cores' time grew as this host's clock; not so where a proxy keeps a text."""
    seconds = last.clock_seconds - first.clock_seconds
    earlier, later = first.cores(), last.cores()
    growth = [
        later[n].total_seconds - earlier[n].total_seconds for n in earlier.keys() & later.keys()
    ]
    slack = CLOCK_RATIO * seconds + CLOCK_SECONDS
    return seconds > 0 and all(abs(each - seconds) <= slack for each in growth)


def _uses(first: Reading, last: Reading) -> list[float]:
    """Returns the seconds of each core without interrupts; of Samba's processes if it counts."""
    smbd = first.smbd_seconds(), last.smbd_seconds()
    if smbd[0] is not None and smbd[1] is not None:
        return [max(0.0, smbd[1] - smbd[0])]
    earlier, later = first.cores(), last.cores()
    common = earlier.keys() & later.keys()
    return [max(0.0, _own_seconds(later[core]) - _own_seconds(earlier[core])) for core in common]


def _own_seconds(core: CoreTimes) -> float:
    return core.busy_seconds - core.interrupt_seconds - core.stolen_seconds


def _carrier(first: Reading, last: Reading, least_bytes: float, name: str) -> str | None:
    """Returns the device whose bytes grew so much; None: there is none, or several unlike ones."""

    def grown(name: str, device: str) -> float:
        return (last.value(name, device) or 0.0) - (first.value(name, device) or 0.0)

    devices = (device for device, _ in last.samples.get(name, {}) if not VIRTUAL.match(device))
    growth = {device: grown(name, device) for device in devices}
    most_bytes = math.inf if name in (SENT, RECEIVED) else MOST_CARRIED_TIMES * least_bytes
    carriers = [each for each in growth if 0 < least_bytes <= growth[each] <= most_bytes]
    amounts = [growth[each] for each in carriers]
    if not amounts or max(amounts) > ALIKE_RATIO * min(amounts):
        return None
    # Of a disk's layers the busiest.
    return max(carriers, key=lambda each: (grown(BUSY, each), growth[each]))


def _counters(
    reading: Reading,
    cores: list[int],
    disk: str | None,
    interface: str | None,
    copy_seconds: float = 0.0,
    other_seconds: float = 0.0,
) -> Counters:
    """Returns a reading as an agent's counters; CPU times of processes since the first."""
    by_core = reading.cores()
    return Counters(
        clock_seconds=reading.clock_seconds,
        cores=tuple(by_core[core] for core in cores),
        processes=(),
        threads=(ThreadTimes(0, copy_seconds, None),),
        other_cpu_seconds=other_seconds,
        others_complete=reading.smbd_seconds() is None,
        memory=_memory(reading),
        traffic=None if interface is None else _amounts(reading, interface, SENT, RECEIVED),
        device=None if disk is None else _device(reading, disk),
        pressure=Pressure(
            memory_waiting_seconds=reading.value("node_pressure_memory_waiting_seconds_total"),
            io_waiting_seconds=reading.value("node_pressure_io_waiting_seconds_total"),
        ),
    )


def _amounts(reading: Reading, device: str, *names: str) -> tuple[int, ...]:
    return tuple(int(reading.value(name, device) or 0.0) for name in names)


def _device(reading: Reading, disk: str) -> DeviceCounts:
    read, written = _amounts(reading, disk, READ, WRITTEN)
    return DeviceCounts(0, read, 0, written, reading.value(BUSY, disk) or 0.0)


def _memory(reading: Reading) -> Memory | None:
    """Returns the memory; what programs could get at once counts as not in use."""
    names = "MemTotal MemAvailable Cached Dirty Writeback"
    total, free, cached, dirty, writeback = (
        reading.value(f"node_memory_{name}_bytes") for name in names.split()
    )
    if total is None or free is None:
        return None
    unwritten = None if dirty is None else int(dirty + (writeback or 0.0))
    return Memory(int(total), int(max(0.0, total - free)), int(cached or 0.0), unwritten)
