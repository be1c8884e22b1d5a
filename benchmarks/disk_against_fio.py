"""Compares the disk stage with fio run by hand: the same file, the same disk, in turns.

    benchmarks/disk [--json F] [--folder DIR] [--pairs N] [--seconds S] [--only NAME] [--quick]

A cell is a disk (the one under the folder; a planted spinning disc of tests/lab, whose rate is
known) and a verb. Reads: a file of ours, by the stage as --file has it and by fio. Writes: the
stage's own nameless file, and one of fio's own in the same folder. fio by hand is given what its
manual recommends for a large sequential copy: direct, 1 MiB, four requests in flight, a flush at
the end of a write. Each pair is one run of each, the order alternating; what counts is the median
of the pairs' ratios. Without root there is no planted disc.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "lab"))

import output
from disc import disc, missing
from platter import Disc

from bottleneck.text import units
from probes.core.records import Endpoint
from probes.files import page_cache, source_file
from probes.programs import fio
from probes.stages import disk

MIB, GIB = 1 << 20, 1 << 30
FILE_BYTES = GIB
PLANTED = Disc(outer_bytes_per_second=120e6, inner_bytes_per_second=60e6, size_bytes=4 * GIB)
"""Disc that holds a file beside the 2 GiB that stay free."""
PLANTED_FILE_BYTES = 256 * MIB
BAR_RATIO = 0.03
CELLS = ("folder.read", "folder.write", "planted.read", "planted.write")


@dataclass
class Cell:
    """One row of the table: rates in bytes per second."""

    name: str
    ours: list[float] = field(default_factory=list)
    peer: list[float] = field(default_factory=list)

    @property
    def ratio(self) -> float:
        """Median of the pairs' ratios."""
        return statistics.median(
            rate / other for rate, other in zip(self.ours, self.peer, strict=True)
        )

    @property
    def met(self) -> bool:
        """Whether both rates agree within the bar."""
        return abs(self.ratio - 1) <= BAR_RATIO

    def document(self) -> dict[str, Any]:
        """Returns the cell as CONTRACT defines it, with `met`."""
        return {
            "name": self.name,
            "ours": self.ours,
            "peer": self.peer,
            "ratio": self.ratio,
            "met": self.met,
        }


def ours(verb: str, folder: Path, file: Path, size_bytes: int, seconds: float) -> float:
    """Runs the disk stage once; returns bytes per second."""
    pattern = "file" if verb == "read" else "sequential"
    place, path = str(folder), str(file)
    setting = disk.Setting(
        verb, "uncached", place, "client", size_bytes, seconds, path=path, pattern=pattern
    )
    elapsed_seconds, moved_bytes = 0.0, 0
    for sample in disk.initiate(setting, Endpoint()):
        elapsed_seconds, moved_bytes = sample.elapsed_seconds, sample.moved_bytes
    return moved_bytes / elapsed_seconds


def by_hand(verb: str, folder: Path, file: Path, size_bytes: int, seconds: float) -> float:
    """Runs fio once as its manual recommends; returns bytes per second."""
    path = folder / f"fio-{secrets.token_hex(4)}"
    with tempfile.NamedTemporaryFile() as report:
        words = f"fio --name=by-hand --rw={verb} --bs=1m --direct=1 --ioengine=libaio --iodepth=4"
        command = [*words.split(), f"--size={size_bytes}", f"--runtime={seconds}s"]
        command += ["--output-format=json", f"--output={report.name}"]
        if verb == "read":
            command += [f"--filename={file}", "--readonly"]
        else:
            # random content, and no blocks that were only reserved
            command += [
                f"--filename={path}",
                "--refill_buffers",
                "--fallocate=none",
                "--end_fsync=1",
            ]
            with path.open("xb") as file_object:
                file_object.truncate(size_bytes)
        try:
            subprocess.run(command, check=True, capture_output=True)
        finally:
            path.unlink(missing_ok=True)
        job = json.loads(Path(report.name).read_text())["jobs"][0][verb]
    return float(job["io_bytes"]) / (job["runtime"] / 1000)


def fill(cell: Cell, folder: Path, file: Path, pairs: int, seconds: float) -> None:
    """Measures all pairs of a cell."""
    verb = cell.name.rpartition(".")[2]
    size_bytes = file.stat().st_size
    for number in range(pairs):
        turns = [(cell.ours, ours), (cell.peer, by_hand)]
        for rates, way in turns if number % 2 else turns[::-1]:
            rates.append(way(verb, folder, file, size_bytes, seconds))


@contextmanager
def file_in(folder: Path, size_bytes: int) -> Iterator[Path]:
    """Yields a file of payload on the disk that is not in the page cache."""
    path = folder / f"bottleneck-benchmark-{secrets.token_hex(4)}"
    fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        source_file.fill(fd, size_bytes, b"benchmark", time.monotonic() + 60)
        page_cache.evict(fd)
        yield path
    finally:
        os.close(fd)
        path.unlink()


@contextmanager
def planted() -> Iterator[tuple[Path, Path]]:
    """Yields a folder on the planted disc and a file in it, which was written at full speed."""
    with tempfile.TemporaryDirectory(prefix="bottleneck-benchmark-", dir="/var/tmp") as scratch:
        content, point = Path(scratch, "content"), Path(scratch, "disc")
        content.mkdir()
        point.mkdir()
        with file_in(content, PLANTED_FILE_BYTES) as source:
            (content / "file").hardlink_to(source)

        def prepare(image: Path, _: Path) -> None:
            options = ["-q", "-F", "-t", "ext4", "-O", "^has_journal", "-d", str(content)]
            layout = "lazy_itable_init=0,nodiscard"
            subprocess.run(["mke2fs", *options, "-E", layout, image], check=True)

        with disc(PLANTED, prepare) as device:
            subprocess.run(["mount", "-t", "ext4", "-o", "noatime", device, point], check=True)
            try:
                yield point, point / "file"
            finally:
                subprocess.run(["umount", point], check=True)


@contextmanager
def under(folder: Path) -> Iterator[tuple[Path, Path]]:
    """Yields the folder and a file in it."""
    with file_in(folder, FILE_BYTES) as file:
        yield folder, file


def measure(options: argparse.Namespace, tell: Callable[[str], None]) -> dict[str, Any]:
    """Measures the selected cells; returns the document."""
    cells = [Cell(name) for name in CELLS if options.only in name]
    if lacks := missing():
        tell(f"without the planted disc: {'; '.join(lacks)}")
        cells = [each for each in cells if each.name.startswith("folder.")]
    for place in ("folder", "planted"):
        some = [each for each in cells if each.name.startswith(place)]
        if not some:
            continue
        with planted() if place == "planted" else under(options.folder) as (folder, file):
            for cell in some:
                fill(cell, folder, file, options.pairs, options.seconds)
                tell(row(cell))
    return {"cells": [each.document() for each in cells], "machine": machine()}


def machine() -> dict[str, Any]:
    """Returns the hardware and the programs of this host."""
    model = re.search(r"^model name\s*:\s*(.+)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return {
        "processor": model[1] if model else platform.machine(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": platform.release(),
        "python": platform.python_version(),
        "fio": fio.version(),
    }


def row(cell: Cell) -> str:
    """Returns a cell's line of the table."""
    pairs = [rate / other for rate, other in zip(cell.ours, cell.peer, strict=True)]
    medians = [units.rate_text(statistics.median(each)) for each in (cell.ours, cell.peer)]
    return (
        f"{cell.name:15} {medians[0]:>11} {medians[1]:>11} {cell.ratio:7.3f} "
        f"{min(pairs):6.2f}-{max(pairs):.2f}"
    )


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    first_line = (__doc__ or "").partition("\n")[0]
    parser = argparse.ArgumentParser(prog="benchmarks/disk", description=first_line)
    parser.add_argument("--json", metavar="F", help="also write the figures there; -: to stdout")
    parser.add_argument("--folder", type=Path, default=Path("/var/tmp"), metavar="DIR")
    parser.add_argument("--pairs", type=int, metavar="N", help="pairs a cell; default 7")
    parser.add_argument("--seconds", type=int, default=2, metavar="S", help="of a run; default 2")
    parser.add_argument("--only", default="", metavar="NAME", help="cells with this in their name")
    parser.add_argument("--quick", action="store_true", help="one pair a cell: does it work?")
    options = parser.parse_args()
    options.pairs = options.pairs or (1 if options.quick else 7)
    if options.pairs < 1 or options.seconds < 1:
        parser.error("at least one pair of one second")
    if not any(options.only in name for name in CELLS):
        parser.error(f"no such cell: {options.only}; there are {' '.join(CELLS)}")
    return options


def main() -> int:
    """Prints the table; returns 0 if the bar is met or --quick, 1 if not, 69 without fio."""
    options = arguments()
    if shutil.which("fio") is None:
        print("benchmarks/disk: fio is not installed", file=sys.stderr)
        return 69
    tell = output.teller(options.json)
    tell(f"{'cell':15} {'ours':>11} {'fio':>11} {'ratio':>7} {'pairs':>11}")
    document = measure(options, tell)
    output.write(document, options.json)
    return 0 if options.quick or all(cell["met"] for cell in document["cells"]) else 1


if __name__ == "__main__":
    sys.exit(main())
