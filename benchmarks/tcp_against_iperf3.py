"""Our TCP data path against the system's iperf3: the same path, streams and buffers, in turns.

    benchmarks/tcp [--json F] [--pairs N] [--seconds S] [--only NAME] [--quick]

A cell is a path (loopback; a veth pair between two network namespaces), streams, a way to send
(copying; without a copy: iperf3's -Z, our zero_copy) and a buffer: 128 KiB, or the one that each
was fastest with in three runs before. Each pair is one run of ours and one of iperf3, the order
alternating; what counts is the median of the pairs' ratios. Both are counted by the receiver, who
initiates (-R), and without the same warm-up. Ours runs as in the product: a process an end, watched
50 times a second. Both send random bytes: iperf3 the same buffer again and again, ours up to 4 MiB
before it begins again. On the shaped cells (a token bucket of 1 ms, a queue of 20 ms, 128 KiB) both
are held to the payload that the link carries: of a frame of 1514 bytes 1448 are payload.
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
import tcp_iperf3
import veth
from tcp_ends import Place

from bottleneck.text import units
from probes.core.records import run_rate
from probes.net import transfer
from probes.net.transfer import Shape

USUAL_BUFFER_BYTES = 128 << 10
BUFFERS = (64 << 10, 128 << 10, 256 << 10, 1 << 20)
"""1 MiB is the most that iperf3 takes."""
STREAMS = (1, 4)
RATES = (10, 100, 1000)
"""Of the shaped links, Mbit/s."""
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
    """Of a shaped link; 0: nothing limits it."""
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)
    buffers: tuple[int, int] = (USUAL_BUFFER_BYTES, USUAL_BUFFER_BYTES)
    """Ours and iperf3's."""

    @property
    def name(self) -> str:
        if self.bits_per_second:
            return f"{self.path}.{self.bits_per_second // 1_000_000}Mbit"
        way = "zero-copy" if self.zero_copy else "copy"
        return f"{self.path}.{self.streams}.{way}.{'best' if self.best else '128KiB'}"

    @property
    def ratio(self) -> float:
        return statistics.median(
            own / other for own, other in zip(self.ours, self.peer, strict=True)
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
        """As CONTRACT's cell, and more."""
        told: dict[str, Any] = {
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer,
            "ratio": self.ratio,
            "met": self.met,
            "buffer_bytes": {"ours": self.buffers[0], "peer": self.buffers[1]},
        }
        if self.link_bytes_per_second is not None:
            told["link_bytes_per_second"] = self.link_bytes_per_second
            told["share_of_link"] = statistics.median(self.ours) / self.link_bytes_per_second
        return told


CELLS = tuple(
    (path, streams, zero_copy, best)
    for path in ("loopback", "veth")
    for streams in STREAMS
    for zero_copy in (False, True)
    for best in (False, True)
)


def cells() -> list[Cell]:
    """All rows, in order."""
    shaped = [Cell("shaped", 1, False, False, rate * 1_000_000) for rate in RATES]
    return [*(Cell(*each) for each in CELLS), *shaped]


@dataclass(frozen=True)
class Bench:
    """A path; the server is its far end."""

    client: Place
    server: Place
    seconds: float
    trials: int
    """Runs of each buffer that choose the best."""

    def ours(self, cell: Cell, buffer_bytes: int) -> float:
        """One transfer of ours."""
        shape = Shape("pull", cell.streams, buffer_bytes, self.seconds, zero_copy=cell.zero_copy)
        return run_rate(tcp_ends.moved(shape, self.client, self.server).samples)

    def peer(self, cell: Cell, buffer_bytes: int) -> float:
        """One transfer of iperf3."""
        warm_up = min(transfer.MAX_WARM_UP_SECONDS, transfer.WARM_UP_RATIO * self.seconds)
        with tcp_iperf3.serving(self.server) as port:
            return tcp_iperf3.rate(
                self.client,
                self.server,
                port,
                cell.streams,
                buffer_bytes,
                self.seconds,
                warm_up,
                cell.zero_copy,
            )

    def best(self, cell: Cell, way: Callable[[Cell, int], float]) -> int:
        """The buffer of the highest median: one run each would choose by chance."""
        tried: dict[int, list[float]] = {size: [] for size in BUFFERS}
        for _ in range(self.trials):
            for size, rates in tried.items():
                rates.append(way(cell, size))
        return max(BUFFERS, key=lambda size: statistics.median(tried[size]))

    def fill(self, cell: Cell, pairs: int) -> None:
        """All pairs of a cell."""
        if cell.best:
            cell.buffers = self.best(cell, self.ours), self.best(cell, self.peer)
        for number in range(pairs):
            turns = [
                lambda: cell.ours.append(self.ours(cell, cell.buffers[0])),
                lambda: cell.peer.append(self.peer(cell, cell.buffers[1])),
            ]
            for turn in turns if number % 2 else turns[::-1]:
                turn()


def measure(wanted: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """All wanted cells; returns the document."""
    chosen = [each for each in cells() if wanted.only in each.name]
    if lacks := veth.missing():
        tell(f"loopback alone: {'; '.join(lacks)}")
        chosen = [each for each in chosen if each.path == "loopback"]
    for path in ("loopback", "veth", "shaped"):
        some = [each for each in chosen if each.path == path]
        if not some:
            continue
        with ExitStack() as stack:
            ends: tuple[Place, Place] = (veth.Here(), veth.Here())
            if path != "loopback":
                pair = stack.enter_context(veth.joined())
                ends = pair.client, pair.server
            for cell in some:
                seconds = wanted.seconds
                if cell.bits_per_second:
                    seconds = max(seconds, SHAPED_SECONDS)
                    rate = cell.bits_per_second / 8
                    bucket = max(LEAST_BUCKET_BYTES, round(rate * BUCKET_SECONDS))
                    pair.shape(cell.bits_per_second, bucket, round(rate * QUEUE_SECONDS))
                Bench(*ends, seconds, min(TRIALS, wanted.pairs)).fill(cell, wanted.pairs)
                tell(row(cell))
    return {"cells": [each.document() for each in chosen], "machine": machine()}


def machine() -> dict[str, Any]:
    """What it ran on."""
    found = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.M)
    told = subprocess.run(["iperf3", "--version"], capture_output=True, text=True)
    return {
        "processor": found[1] if found else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "iperf3": told.stdout.partition("\n")[0],
        "congestion_control": Path("/proc/sys/net/ipv4/tcp_congestion_control").read_text().strip(),
    }


def row(cell: Cell) -> str:
    """A line of the table."""
    pairs = [own / other for own, other in zip(cell.ours, cell.peer, strict=True)]
    medians = [units.rate_text(statistics.median(each)) for each in (cell.ours, cell.peer)]
    text = (
        f"{cell.name:26} {medians[0]:>10} {medians[1]:>10} {cell.ratio:7.3f} "
        f"{min(pairs):6.2f}-{max(pairs):.2f}"
    )
    if cell.link_bytes_per_second is not None:
        share = statistics.median(cell.ours) / cell.link_bytes_per_second
        return f"{text}  {share:.4f} of the link"
    own, other = (size >> 10 for size in cell.buffers)
    return f"{text}  {own} KiB, {other} KiB" if cell.best else text


def arguments() -> argparse.Namespace:
    """The command line."""
    first_line = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benchmarks/tcp", description=first_line)
    parser.add_argument("--json", metavar="F", help="also write the figures there; -: to stdout")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs a cell; default 7")
    parser.add_argument("--seconds", type=int, default=1, metavar="S", help="of a run; default 1")
    parser.add_argument("--only", default="", metavar="NAME", help="cells with this in their name")
    parser.add_argument("--quick", action="store_true", help="one pair a cell: does it work?")
    told = parser.parse_args()
    told.pairs = told.pairs or (1 if told.quick else 7)
    if told.pairs < 1 or told.seconds < 1:
        parser.error("at least one pair of one second")
    names = [each.name for each in cells()]
    if not any(told.only in name for name in names):
        parser.error(f"no such cell: {told.only}; there are {' '.join(names)}")
    return told


def main() -> int:
    """Prints the table; 0: the bar is met or --quick, 1: not, 69: something is missing."""
    wanted = arguments()
    if shutil.which("iperf3") is None:
        print("benchmarks/tcp: iperf3 is not installed", file=sys.stderr)
        return 69
    tell = output.teller(wanted.json)
    tell(f"{'cell':26} {'ours':>10} {'iperf3':>10} {'ratio':>7} {'pairs':>11}")
    document = measure(wanted, tell)
    output.write(document, wanted.json)
    return 0 if wanted.quick or all(cell["met"] for cell in document["cells"]) else 1


if __name__ == "__main__":
    sys.exit(main())
