"""Compares our SMB data path with Samba's smbclient: the same file and server, in turns.

    benchmarks/smb [--json F] [--pairs N] [--size 1GiB] [--cells a,b] [--end folder|memory]

A cell is a dialect, a protection and a verb. Each pair is one copy by us and one by smbclient, the
order alternating; what counts is the median of the pairs' ratios. Server and files lie in memory
(/dev/shm), so that neither a disk nor a network takes part. Ours is the product's own path:
probes.stages.smb_copy in a child process, as the agent runs it, without FLUSH, since smbclient's
put does not flush either; it ends with the last byte acknowledged, and every copy's content is
checked afterwards. smbclient's time is the one that it prints: it leaves out start, login and
logout, which favours it. Its CPU time is that of its whole process less that of one which logs in
and does nothing. Beside each pair of the plain 3.1.1 read, TCP by our own `tcp` stage and the same
read from and to memory, as TCP moves it.
"""

from __future__ import annotations

import argparse
import contextlib
import filecmp
import json
import math
import os
import platform
import re
import resource
import secrets
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import output

from bottleneck.agents import protocol
from bottleneck.text import units
from probes.core import typed
from probes.core.records import Access, Endpoint, Sample, run_rate
from probes.core.stage import Last, Unavailable
from probes.files import payload
from probes.files.served_file import source_name
from probes.programs.samba import Samba, private_samba, vanishing_folder
from probes.stages import smb_copy, tcp
from probes.system.child import spawn

MEMORY = "/dev/shm"
PREFIX = "bottleneck-bench-"
"""Prefix of the folder in MEMORY, which is removed however this ends, kill -9 included."""
SECONDS = 120.0
"""Longest duration of a single copy."""
GIGABYTE = 1e9
DIRTY_KIB, SETTLE_SECONDS = 1024, 60.0
FILES_AT_ONCE = 4
"""Files in memory at once: both sources, the copy, and pages that are not free again yet."""
BAR, MEAN_BAR, TCP_AIM = 1.0, 1.3, 0.7
SERVERS: dict[str, tuple[str, ...]] = {
    "plain": ("server signing = disabled",),
    "signed": ("server signing = mandatory",),
    "encrypted": ("server smb encrypt = required",),
}
CLIENT_PROTECTION = {"plain": "off", "signed": "sign", "encrypted": "encrypt"}
DIALECTS = {"nt1": "smb1", "2.1": "2.1", "3.1.1": "3.1.1"}
SMBCLIENT_DIALECTS = {"nt1": "NT1", "2.1": "SMB2_10", "3.1.1": "SMB3_11"}
PRINTED_RATE = re.compile(r"\((\d+(?:\.\d+)?) kb/s\)|\((\d+(?:\.\d+)?) KiloBytes/sec\)")
Running = Generator[Sample, None, dict[str, Any]]


@dataclass
class Cell:
    """One row of the table: rates in bytes per second, CPU in seconds per 10^9 bytes."""

    dialect: str
    security: str
    verb: str
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    ours_cpu: list[float] = field(default_factory=list)
    peer_cpu: list[float] = field(default_factory=list)
    details: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return f"{self.dialect}.{self.security}.{self.verb}"

    @property
    def ratio(self) -> float:
        return statistics.median(
            rate / other for rate, other in zip(self.ours, self.peer, strict=True)
        )

    def document(self) -> dict[str, Any]:
        """Returns the cell as CONTRACT defines it, with details."""
        names = ("signing", "encryption", "request_bytes", "depth", "in_flight_bytes")
        return {
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer,
            "ratio": self.ratio,
            "ours_cpu_seconds_per_gigabyte": statistics.median(self.ours_cpu),
            "peer_cpu_seconds_per_gigabyte": statistics.median(self.peer_cpu),
            "details": {name: self.details.get(name) for name in names},
        }


CELLS = tuple(
    (dialect, security, verb)
    for security in SERVERS
    for dialect in DIALECTS
    for verb in ("read", "write")
    if security != "encrypted" or dialect == "3.1.1"
)


@dataclass(frozen=True)
class Bench:
    """Server and client with the same file on both."""

    server: Samba
    served: Path
    peer: Endpoint
    local: Path
    """Folder of the client, in memory."""
    auth: Path
    size_bytes: int
    seed: str
    end: str

    @property
    def source(self) -> Path:
        return self.local / "source"

    def smbclient(self, cell: Cell, command: str) -> tuple[str, float]:
        """Runs smbclient once; returns its output and its CPU seconds."""
        start = resource.getrusage(resource.RUSAGE_CHILDREN)
        words = ["smbclient", f"//{self.server.host}/{self.server.share}", "-s", "/dev/null"]
        words += ["-p", str(self.server.port), "-A", str(self.auth)]
        words += ["-m", SMBCLIENT_DIALECTS[cell.dialect], "--option=client min protocol=NT1"]
        words += [f"--client-protection={CLIENT_PROTECTION[cell.security]}", "-c", command]
        done = subprocess.run(words, capture_output=True, text=True, timeout=SECONDS)
        end = resource.getrusage(resource.RUSAGE_CHILDREN)
        text = done.stdout + done.stderr
        if done.returncode:
            raise RuntimeError(f"{cell.name}: smbclient: {text.strip()}")
        used = end.ru_utime + end.ru_stime - start.ru_utime - start.ru_stime
        return text, used

    def copy_by_peer(self, cell: Cell, idle_cpu_seconds: float, compare: bool) -> None:
        """Runs smbclient's get or put, timed by its own clock."""
        pushed = f"{self.peer.folder}\\peer"
        pulled = Path("/dev/null") if self.end == "memory" else self.local / "peer"
        folder = self.peer.folder
        command = f'get {folder}\\{source_name(folder)} "{pulled}"'
        if cell.verb == "write":
            command = f'put "{self.source}" {pushed}'
        text, cpu = self.smbclient(cell, command)
        arrived = pulled if cell.verb == "read" else self.served / pushed.replace("\\", "/")
        try:
            if compare and arrived.is_file() and not filecmp.cmp(self.source, arrived, False):
                raise RuntimeError(f"{cell.name}: smbclient's copy differs from its source")
        finally:
            if arrived.is_file():
                arrived.unlink()
        match = PRINTED_RATE.search(text)
        if match is None:
            raise RuntimeError(f"{cell.name}: smbclient printed no rate: {text.strip()}")
        cell.peer.append(float(match[1] or match[2]) * 1024)
        cell.peer_cpu.append(max(0.0, cpu - idle_cpu_seconds) / self.size_bytes * GIGABYTE)

    def copy_by_us(self, cell: Cell) -> None:
        """Runs the product's copy and appends its figures to the cell."""
        samples, details, cpu = self.our_copy(cell, self.end)
        cell.details = details
        cell.ours.append(float(details["acknowledged_bytes_per_second"]))
        cell.ours_cpu.append(cpu / self.size_bytes * GIGABYTE)
        assert samples[-1].moved_bytes == self.size_bytes

    def our_copy(self, cell: Cell, end: str) -> tuple[tuple[Sample, ...], dict[str, Any], float]:
        """Runs the product's copy; returns samples, details, and CPU seconds of its window."""
        setting = smb_copy.Setting(
            copy="pull.cached" if cell.verb == "read" else "push.cached",
            dialect=DIALECTS[cell.dialect],
            end=end,
            size_bytes=self.size_bytes,
            seconds=SECONDS,
            folder=str(self.local),
            seed=self.seed,
            flushed=False,
        )
        peer = replace(self.peer, path=str(self.source))
        samples, details, cpu = in_child(lambda: smb_copy.initiate(setting, peer))
        if not details["hash_ok"]:
            raise RuntimeError(f"{cell.name}: our copy differs from its source")
        protection = details["encryption"] or details["signing"]
        if (cell.security == "plain") != (protection is None):
            raise RuntimeError(f"{cell.name}: our session was protected by {protection}")
        return samples, details, cpu


def in_child(start: Callable[[], Running]) -> tuple[tuple[Sample, ...], dict[str, Any], float]:
    """Runs a stage as the agent does; returns samples, details, and CPU seconds of its window."""

    def work(tell: Callable[[dict[str, Any]], None], control_fd: int) -> None:
        running, samples, used = start(), [], 0.0
        while True:
            try:
                sample = next(running)
            except StopIteration as end:
                tell({"samples": samples, "details": typed.to_plain(end.value), "cpu": used})
                return
            if not samples:
                began = _own_cpu_seconds()
            samples.append([sample.elapsed_seconds, sample.moved_bytes])
            if isinstance(sample, Last):
                used = _own_cpu_seconds() - began

    child = spawn(work)
    try:
        with os.fdopen(child.events_fd, encoding="utf-8") as events:
            event = json.loads(events.readline() or "{}")
    finally:
        child.kill()
        os.waitpid(child.pid, 0)
        os.close(child.control_fd)
    if "samples" not in event:
        raise RuntimeError(f"our copy: {event or 'its process ended without a word'}")
    samples = tuple(Sample(*each) for each in event["samples"])
    return samples, event["details"], event["cpu"]


def _own_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


@contextmanager
def benches(
    folder: Path, security: str, size_bytes: int, end: str, address: str = "127.0.0.1"
) -> Iterator[Bench]:
    """Yields a server of one protection with the run's file on it, and the file beside it."""
    served, local = folder / f"served-{security}", folder / "local"
    served.mkdir()
    local.mkdir(exist_ok=True)
    password, seed = secrets.token_urlsafe(12), secrets.token_hex(16)
    options = ("server min protocol = NT1", *SERVERS[security])
    with ExitStack() as stack:
        server = stack.enter_context(
            private_samba(served, password=password, options=options, address=address)
        )
        auth = local / "auth"
        auth.touch(0o600)
        auth.write_text(f"username = {server.username}\npassword = {password}\n")
        access = Access(server.username, password)
        peer = Endpoint(host=server.host, port=server.port, share=server.share, access=access)
        # Not held open, as a run does: smbclient cannot read what somebody may delete.
        folder_name = f"bottleneck-{secrets.token_hex(8)}"
        (served / folder_name).mkdir()
        peer = replace(peer, folder=folder_name)
        bench = Bench(server, served, peer, local, auth, size_bytes, seed, end)
        ring = payload.make_ring(bytes.fromhex(seed))
        on_share = served / folder_name / source_name(folder_name)
        for path in (bench.source, on_share):
            with path.open("wb") as file:
                for offset in range(0, size_bytes, payload.LONGEST_BLOCK_BYTES):
                    size = min(payload.LONGEST_BLOCK_BYTES, size_bytes - offset)
                    file.write(payload.block(ring, offset, size))
        yield bench


def touch_memory(folder: Path, size_bytes: int) -> None:
    """Touches the memory of all files once, so that the first copy does not pay for it.

    A page that a virtual machine touches for the first time costs several times its copy.
    """
    with tempfile.TemporaryFile(dir=folder) as file:
        block = bytes(1 << 20)
        for _ in range(0, FILES_AT_ONCE * size_bytes, len(block)):
            file.write(block)


def settle() -> None:
    """Waits until this host writes nothing back to a disk, so that all copies start alike."""
    until = time.monotonic() + SETTLE_SECONDS
    os.sync()
    while time.monotonic() < until:
        text = Path("/proc/meminfo").read_text()
        if sum(map(int, re.findall(r"^(?:Dirty|Writeback):\s*(\d+)", text, re.M))) < DIRTY_KIB:
            return
        time.sleep(0.1)
    raise Unavailable(f"pages are still written back after {SETTLE_SECONDS:.0f} s: try later")


def tcp_rate(seconds: float) -> float:
    """Returns bytes per second of our TCP stage over loopback: one stream, pulled."""
    setting = tcp.OneWay(verb="pull", streams=1, seconds=seconds, address="127.0.0.1")

    def hold(tell: Callable[[dict[str, Any]], None], control_fd: int) -> None:
        with tcp.respond(setting) as endpoint:
            tell({"endpoint": protocol.endpoint_to_plain(endpoint)})
            os.read(control_fd, 1)

    child = spawn(hold)
    try:
        with os.fdopen(child.events_fd, encoding="utf-8") as events:
            endpoint = protocol.from_plain(Endpoint, json.loads(events.readline())["endpoint"])
            peer = replace(endpoint, host="127.0.0.1")
            samples, _, _ = in_child(lambda: tcp.initiate(setting, peer))
    finally:
        child.kill()
        os.waitpid(child.pid, 0)
        os.close(child.control_fd)
    return run_rate(samples)


def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measures all cells, one server after the other; returns the document."""
    cells = [Cell(*each) for each in CELLS if ".".join(each) in options.cells]
    raw: list[float] = []
    read_to_memory: list[float] = []
    smb_copy.preload()
    started = datetime.now(UTC).isoformat(timespec="seconds")
    with vanishing_folder(PREFIX, MEMORY) as (folder, _):
        touch_memory(folder, options.size)
        for security in SERVERS:
            rows = [cell for cell in cells if cell.security == security]
            if not rows:
                continue
            with benches(folder, security, options.size, options.end) as bench:
                for cell in rows:
                    _, idle = bench.smbclient(cell, "exit")
                    for number in range(options.pairs):
                        turns = [
                            lambda: bench.copy_by_us(cell),  # noqa: B023
                            lambda: bench.copy_by_peer(cell, idle, not number),  # noqa: B023
                        ]
                        for turn in turns if number % 2 else turns[::-1]:
                            settle()
                            turn()
                        if cell.name == "3.1.1.plain.read":
                            raw.append(tcp_rate(0.5 if options.quick else 2.0))
                            details = bench.our_copy(cell, "memory")[1]
                            read_to_memory.append(details["acknowledged_bytes_per_second"])
                    tell(row(cell))
    document: dict[str, Any] = {
        "cells": [cell.document() for cell in cells],
        "geometric_mean": math.exp(statistics.fmean(math.log(cell.ratio) for cell in cells)),
        "started": started,
        "size_bytes": options.size,
        "pairs": options.pairs,
        "end": options.end,
        "machine": machine(),
    }
    if raw:
        shares = [rate / each for rate, each in zip(read_to_memory, raw, strict=True)]
        document["tcp"] = {
            "bytes_per_second": raw,
            "read_to_memory_bytes_per_second": read_to_memory,
            "share_of_tcp": statistics.median(shares),
        }
    return document


def machine() -> dict[str, Any]:
    """Returns the hardware and the programs of this host."""
    model = "unknown"
    with contextlib.suppress(OSError):
        match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
        model = match[1] if match else platform.machine()
    version = subprocess.run(["smbd", "--version"], capture_output=True, text=True)
    return {
        "processor": model,
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "samba": version.stdout.strip(),
    }


def row(cell: Cell) -> str:
    """Returns a cell's line of the table."""
    ours, peer = (statistics.median(rates) for rates in (cell.ours, cell.peer))
    cpu = [statistics.median(each) for each in (cell.ours_cpu, cell.peer_cpu)]
    pairs = [rate / other for rate, other in zip(cell.ours, cell.peer, strict=True)]
    return (
        f"{cell.name:22} {units.rate_text(ours):>10} {units.rate_text(peer):>10} "
        f"{cell.ratio:6.2f} {min(pairs):6.2f}-{max(pairs):.2f} {cpu[0]:7.2f} {cpu[1]:6.2f}"
    )


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    first_line = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benchmarks/smb", description=first_line)
    parser.add_argument("--json", metavar="F", help="also write the figures there")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs a cell; default 7")
    parser.add_argument("--size", metavar="BYTES", help="of the file; default 1GiB")
    parser.add_argument("--cells", metavar="A,B", help="those whose name has a part of these")
    parser.add_argument("--end", choices=smb_copy.ENDS, default="folder", help="the client's end")
    parser.add_argument("--quick", action="store_true", help="one pair of 32 MiB: does it work?")
    options = parser.parse_args()
    options.pairs = options.pairs or (1 if options.quick else 7)
    try:
        options.size = units.parse_size(options.size or ("32MiB" if options.quick else "1GiB"))
    except units.UnitError as error:
        parser.error(f"--size: {error}")
    names = [".".join(each) for each in CELLS]
    parts = options.cells.split(",") if options.cells else [""]
    unknown = [part for part in parts if not any(part in name for name in names)]
    if unknown or options.pairs < 1 or options.size < 1:
        parser.error(f"no such cell: {', '.join(unknown)}; there are {' '.join(names)}")
    options.cells = [name for name in names if any(part in name for part in parts)]
    return options


def summary(document: dict[str, Any]) -> str:
    """Returns the lines below the table."""
    text = f"geometric mean {document['geometric_mean']:.2f}"
    if "tcp" in document:
        figures = document["tcp"]
        raw, read = (
            units.rate_text(statistics.median(figures[name]))
            for name in ("bytes_per_second", "read_to_memory_bytes_per_second")
        )
        text += (
            f"\nTCP over loopback, memory to memory: {raw}; 3.1.1.plain.read to memory: {read}, "
            f"{figures['share_of_tcp']:.2f} of it (aim {TCP_AIM})"
        )
    return text


def main() -> int:
    """Prints the table; returns 0 if the bar is met or --quick, 1 if not, 69 if unavailable."""
    options = arguments()
    tell = output.teller(options.json)
    tell(f"{'cell':22} {'ours':>10} {'smbclient':>10} {'ratio':>6} {'pairs':>11} {'CPU s/GB':>14}")
    try:
        document = measure(options, tell)
    except Unavailable as error:
        print(f"benchmarks/smb: {error}", file=sys.stderr)
        return 69
    tell(summary(document))
    output.write(document, options.json)
    mean = document["geometric_mean"]
    met = mean >= MEAN_BAR and all(cell["ratio"] >= BAR for cell in document["cells"])
    return 0 if met or options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
