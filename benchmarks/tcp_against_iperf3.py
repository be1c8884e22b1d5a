"""Compares our TCP data path with iperf3 and iperf 2: the same path, streams and buffers.

    benchmarks/tcp [--json F] [--pairs N] [--seconds S] [--only NAME] [--quick]

A cell is a path (loopback; a veth pair between two network namespaces), streams, a way to send
(copying; without a copy: iperf3's -Z, our zero_copy) and a buffer: 128 KiB, or the one that each
was fastest with in three runs before. Each pair is one run of ours and one of each peer, the order
alternating; what counts is the median of the pairs' ratios to the faster peer, by its own median.
All are counted by the receiver and without the same warm-up; with ours and iperf3 the receiver
initiates (-R), with iperf 2, which has no -Z, the sender. Ours runs as in the product: a process an
end, watched 50 times a second, and its receiver has the kernel drop what it acknowledged
(MSG_TRUNC), which neither peer does; but not where one stream is sent without a copy, which that
slows down (no stage sends so). Ours and iperf3 send random bytes. On the shaped cells (a token
bucket of 1 ms, a queue of 20 ms, 128 KiB) all are held to the payload that the link carries: of a
frame of 1514 bytes 1448 are payload.
Without root the loopback alone is measured.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import shutil
import statistics
import subprocess
import sys
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import output
import tcp_ends
import tcp_iperf2
import tcp_iperf3
import veth
from tcp_ends import Place

from bottleneck.text import units
from probes.core.records import run_rate
from probes.net import transfer
from probes.net.transfer import Shape

USUAL_BUFFER_BYTES = 128 << 10
BUFFERS = (64 << 10, 128 << 10, 256 << 10, 1 << 20)
"""Buffers of one call; iperf3 takes at most 1 MiB."""
STREAMS = (1, 4)
RATES = (10, 100, 1000)
"""Rates of the shaped links, Mbit/s."""
BUCKET_SECONDS, QUEUE_SECONDS = 0.001, 0.02
LEAST_BUCKET_BYTES = 16_384
SHAPED_SECONDS = 2
BAR, NEAR_RATIO = 1.0, 0.01
TRIALS = 3


@dataclass
class Cell:
    """One row of the table: rates in bytes per second."""

    path: str
    streams: int
    zero_copy: bool
    best: bool
    bits_per_second: int = 0
    """Rate of a shaped link; 0: nothing limits it."""
    ours: list[float] = field(default_factory=list)
    peers: dict[str, list[float]] = field(default_factory=dict)
    buffers: dict[str, int] = field(default_factory=dict)
    """Best buffer of each program, for the cells with `best`."""

    @property
    def name(self) -> str:
        if self.bits_per_second:
            return f"{self.path}.{self.bits_per_second // 1_000_000}Mbit"
        way = "zero-copy" if self.zero_copy else "copy"
        return f"{self.path}.{self.streams}.{way}.{'best' if self.best else '128KiB'}"

    @property
    def faster(self) -> str:
        """Name of the peer with the higher median."""
        return max(self.peers, key=lambda name: statistics.median(self.peers[name]))

    @property
    def peer(self) -> list[float]:
        return self.peers[self.faster]

    @property
    def ratio(self) -> float:
        return statistics.median(
            rate / other for rate, other in zip(self.ours, self.peer, strict=True)
        )

    @property
    def link_bytes_per_second(self) -> float | None:
        """Payload that the shaped link carries."""
        return self.bits_per_second / 8 * veth.PAYLOAD_RATIO if self.bits_per_second else None

    @property
    def met(self) -> bool:
        """Whether the cell reaches the bar."""
        link = self.link_bytes_per_second
        if link is None:
            return self.ratio >= BAR
        share = statistics.median(self.ours) / link
        return abs(share - 1) <= NEAR_RATIO and abs(self.ratio - 1) <= NEAR_RATIO

    def document(self) -> dict[str, Any]:
        """Returns the cell as CONTRACT defines it, with peers and buffers."""
        cell: dict[str, Any] = {
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer,
            "peers": self.peers,
            "ratio": self.ratio,
            "met": self.met,
            "buffer_bytes": self.buffers or {"all": USUAL_BUFFER_BYTES},
        }
        if self.link_bytes_per_second is not None:
            cell["link_bytes_per_second"] = self.link_bytes_per_second
            cell["share_of_link"] = statistics.median(self.ours) / self.link_bytes_per_second
        return cell


CELLS = tuple(
    (path, streams, zero_copy, best)
    for path in ("loopback", "veth")
    for streams in STREAMS
    for zero_copy in (False, True)
    for best in (False, True)
)


def cells() -> list[Cell]:
    """Returns all rows of the table, in order."""
    shaped = [Cell("shaped", 1, False, False, rate * 1_000_000) for rate in RATES]
    return [*(Cell(*each) for each in CELLS), *shaped]


@dataclass(frozen=True)
class Bench:
    """Path between two ends; the server is the far one."""

    client: Place
    server: Place
    seconds: float
    trials: int
    """Runs of each buffer before the best is chosen."""

    def ours(self, cell: Cell, buffer_bytes: int) -> float:
        """Runs one transfer of ours; returns bytes per second."""
        way = {"zero_copy": cell.zero_copy, "copies": cell.zero_copy and cell.streams == 1}
        shape = Shape("pull", cell.streams, buffer_bytes, self.seconds, **way)
        return run_rate(tcp_ends.run_transfer(shape, self.client, self.server).samples)

    def iperf3(self, cell: Cell, buffer_bytes: int) -> float:
        """Runs one transfer of iperf3; returns bytes per second."""
        with tcp_iperf3.serving(self.server) as port:
            return tcp_iperf3.rate(
                self.client,
                self.server,
                port,
                cell.streams,
                buffer_bytes,
                self.seconds,
                self.warm_up_seconds,
                cell.zero_copy,
            )

    def iperf2(self, cell: Cell, buffer_bytes: int) -> float:
        """Runs one transfer of iperf 2, which sends with a copy; returns bytes per second."""
        return tcp_iperf2.rate(
            self.client,
            self.server,
            cell.streams,
            buffer_bytes,
            self.seconds,
            self.warm_up_seconds,
        )

    @property
    def warm_up_seconds(self) -> float:
        return min(transfer.MAX_WARM_UP_SECONDS, transfer.WARM_UP_RATIO * self.seconds)

    def best(self, cell: Cell, way: Callable[[Cell, int], float]) -> int:
        """Returns the buffer of the highest median: one run each would choose by chance."""
        tried: dict[int, list[float]] = {size: [] for size in BUFFERS}
        for _ in range(self.trials):
            for size, rates in tried.items():
                rates.append(way(cell, size))
        return max(BUFFERS, key=lambda size: statistics.median(tried[size]))

    def fill(self, cell: Cell, pairs: int) -> None:
        """Measures all pairs of a cell."""
        ways = {"ours": self.ours, "iperf3": self.iperf3}
        if shutil.which("iperf"):
            ways["iperf2"] = self.iperf2
        if cell.best:
            cell.buffers = {name: self.best(cell, way) for name, way in ways.items()}
        for number in range(pairs):
            for name in list(ways)[:: 1 if number % 2 else -1]:
                rate = ways[name](cell, cell.buffers.get(name, USUAL_BUFFER_BYTES))
                rates = cell.ours if name == "ours" else cell.peers.setdefault(name, [])
                rates.append(rate)


def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measures the selected cells; returns the document."""
    rows = [each for each in cells() if options.only in each.name]
    if lacks := veth.missing():
        tell(f"loopback alone: {'; '.join(lacks)}")
        rows = [each for each in rows if each.path == "loopback"]
    for path in ("loopback", "veth", "shaped"):
        some = [each for each in rows if each.path == path]
        if not some:
            continue
        with ExitStack() as stack:
            ends: tuple[Place, Place] = (veth.Here(), veth.Here())
            if path != "loopback":
                pair = stack.enter_context(veth.joined())
                ends = pair.client, pair.server
            for cell in some:
                seconds = options.seconds
                if cell.bits_per_second:
                    seconds = max(seconds, SHAPED_SECONDS)
                    rate = cell.bits_per_second / 8
                    bucket = max(LEAST_BUCKET_BYTES, round(rate * BUCKET_SECONDS))
                    pair.shape(cell.bits_per_second, bucket, round(rate * QUEUE_SECONDS))
                Bench(*ends, seconds, min(TRIALS, options.pairs)).fill(cell, options.pairs)
                tell(row(cell))
    return {"cells": [each.document() for each in rows], "machine": machine()}


def machine() -> dict[str, Any]:
    """Returns the hardware and the programs of this host."""
    match = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    version = subprocess.run(["iperf3", "--version"], capture_output=True, text=True)
    return {
        "processor": match[1] if match else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "iperf3": version.stdout.partition("\n")[0],
        "iperf2": shutil.which("iperf") is not None,
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
    }


def row(cell: Cell) -> str:
    """Returns a cell's line of the table."""
    pairs = [rate / other for rate, other in zip(cell.ours, cell.peer, strict=True)]
    medians = [units.rate_text(statistics.median(each)) for each in (cell.ours, cell.peer)]
    text = (
        f"{cell.name:26} {medians[0]:>10} {medians[1]:>10} {cell.faster:>7} {cell.ratio:7.3f} "
        f"{min(pairs):6.2f}-{max(pairs):.2f}"
    )
    if cell.link_bytes_per_second is not None:
        share = statistics.median(cell.ours) / cell.link_bytes_per_second
        return f"{text}  {share:.4f} of the link"
    sizes = (f"{cell.buffers[name] >> 10} KiB" for name in ("ours", cell.faster) if cell.best)
    return f"{text}  {', '.join(sizes)}".rstrip()


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    first_line = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benchmarks/tcp", description=first_line)
    parser.add_argument("--json", metavar="F", help="also write the figures there; -: to stdout")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs a cell; default 7")
    parser.add_argument("--seconds", type=int, default=1, metavar="S", help="of a run; default 1")
    parser.add_argument("--only", default="", metavar="NAME", help="cells with this in their name")
    parser.add_argument("--quick", action="store_true", help="one pair a cell: does it work?")
    options = parser.parse_args()
    options.pairs = options.pairs or (1 if options.quick else 7)
    if options.pairs < 1 or options.seconds < 1:
        parser.error("at least one pair of one second")
    names = [each.name for each in cells()]
    if not any(options.only in name for name in names):
        parser.error(f"no such cell: {options.only}; there are {' '.join(names)}")
    return options


def main() -> int:
    """Prints the table; returns 0 if the bar is met or --quick, 1 if not, 69 without iperf3."""
    options = arguments()
    if shutil.which("iperf3") is None:
        print("benchmarks/tcp: iperf3 is not installed", file=sys.stderr)
        return 69
    tell = output.teller(options.json)
    tell(f"{'cell':26} {'ours':>10} {'faster':>10} {'peer':>7} {'ratio':>7} {'pairs':>11}")
    document = measure(options, tell)
    output.write(document, options.json)
    return 0 if options.quick or all(cell["met"] for cell in document["cells"]) else 1


if __name__ == "__main__":
    sys.exit(main())
