"""Does a short transfer ever tell a rate that its link cannot carry?

    .venv/bin/python benchmarks/tcp_physics.py [--runs 1000] [--seed N] [--json F]

Each run is one transfer of our own data path over a veth pair behind token buckets; link rate,
bucket, queue, direction, streams, buffers, windows, time and the sender's way (copying or not) are
drawn by the seed. Held to the link: the result, and every span of at least 100 ms between two
samples. In a span of t seconds a bucket lets through t times its rate and one bucket more; of a
frame of 1514 bytes 1448 are payload. Held besides: time and bytes never run backwards, no call
carries more than its buffer, no host is busier than its cores allow, every ratio lies within 0 and
1. What breaks a rule is printed with its run. A run may end without a figure, where all streams
wait for a lost packet longer than its window. Exits 1 where a rule was broken, or where more than
1 % of the runs had no figure. Needs root.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))

import tcp_ends
import veth

from probes.core.records import Sample
from probes.net import transfer
from probes.net.transfer import Shape, Transfer

SPAN_SECONDS = transfer.INTERVAL_SECONDS
MOST_FAILED_RATIO = 0.01
CLOCK_RATIO = 0.002
"""Tolerance for the bucket's clock against ours, and for the rounding of its rate."""


@dataclass(frozen=True)
class Link:
    """Link behind a token bucket."""

    bits_per_second: int
    burst_bytes: int
    queue_bytes: int

    def most_bytes(self, seconds: float) -> float:
        """Returns the payload that can come out of it in so many seconds."""
        frames = self.bits_per_second / 8 * seconds * (1 + CLOCK_RATIO) + self.burst_bytes
        return (frames + veth.FRAME_BYTES) * veth.PAYLOAD_RATIO


def drawn(chance: random.Random) -> tuple[Link, Shape]:
    """Returns the link and the transfer of the next run."""
    bits = int(5e6 * 200 ** chance.random())
    burst = max(2 * veth.FRAME_BYTES, int(bits / 8 * chance.uniform(0.001, 0.005)))
    queue = max(10 * veth.FRAME_BYTES, int(bits / 8 * chance.uniform(0.005, 0.05)))
    shape = Shape(
        verb=chance.choice(transfer.VERBS),
        streams=chance.randint(1, 8),
        buffer_bytes=int(512 * 8192 ** chance.random()),
        seconds=chance.uniform(0.2, 0.6),
        window_bytes=chance.choice((0, 0, int(16384 * 128 ** chance.random()))),
        zero_copy=chance.random() < 0.25,
    )
    return Link(bits, burst, queue), shape


def impossible(link: Link, transfer_end: Transfer, shape: Shape) -> Iterator[str]:
    """Yields the figures of a run that break a rule of physics."""
    samples = transfer_end.samples
    for one, other in zip(samples, samples[1:], strict=False):
        if other.elapsed_seconds <= one.elapsed_seconds or other.moved_bytes < one.moved_bytes:
            yield f"backwards from {one} to {other}"
    for index, one in enumerate(samples):
        for other in samples[index + 1 :]:
            is_first_to_last = (one, other) == (samples[0], samples[-1])
            if is_first_to_last or other.elapsed_seconds - one.elapsed_seconds >= SPAN_SECONDS:
                yield from _too_fast(link, one, other)
    for name, end in (("sender", transfer_end.sender), ("receiver", transfer_end.receiver)):
        yield from (f"{name}: {each}" for each in _impossible(end, shape))
    for name, value in transfer_end.limits.items():
        if name.endswith("_ratio") and not 0 <= value <= 1:
            yield f"{name} is {value}"
        if isinstance(value, (int, float)) and value < 0:
            yield f"{name} is {value}"


def _too_fast(link: Link, one: Sample, other: Sample) -> Iterator[str]:
    seconds = other.elapsed_seconds - one.elapsed_seconds
    limit, size = link.most_bytes(seconds), other.moved_bytes - one.moved_bytes
    if size > limit:
        yield (
            f"{size} bytes in {seconds:.4f} s from {one.elapsed_seconds:.4f}: "
            f"{size / limit:.3f} of what the link carries"
        )


def _impossible(end: dict[str, Any], shape: Shape) -> Iterator[str]:
    if end["moved_bytes"] > end["calls"] * shape.buffer_bytes:
        yield f"{end['calls']} calls carried {end['moved_bytes']} bytes"
    if not 0 <= end.get("cpu_seconds", 0.0) <= len(os.sched_getaffinity(0)) * end["seconds"] * 1.01:
        yield f"{end['cpu_seconds']} s of CPU in {end['seconds']} s"
    if any(value < 0 for value in end.values()):
        yield f"negative: {end}"


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measures all runs; prints the broken rules and returns the document."""
    chance = random.Random(options.seed)
    runs: list[dict[str, Any]] = []
    broken = 0
    began = time.monotonic()
    with veth.joined() as pair:
        for number in range(options.runs):
            link, shape = drawn(chance)
            pair.shape(link.bits_per_second, link.burst_bytes, link.queue_bytes)
            try:
                outcome = tcp_ends.run_transfer(shape, pair.client, pair.server)
            except RuntimeError as error:
                print(f"run {number}: {error}: {link} {shape}", flush=True)
                broken += 1
                continue
            last = outcome.samples[-1]
            share = last.moved_bytes / link.most_bytes(last.elapsed_seconds)
            wrong = list(impossible(link, outcome, shape))
            for each in wrong:
                print(f"run {number}: {each}: {link} {shape}", flush=True)
            runs.append(
                {"link": asdict(link), "shape": asdict(shape), "share": share, "beyond": wrong}
            )
    return {
        "seed": options.seed,
        "runs": runs,
        "failed_runs": broken,
        "elapsed_seconds": time.monotonic() - began,
    }


def main() -> int:
    """Returns 0 if nothing is beyond physics, 1 if something is, 69 without such a link."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--runs", type=int, default=1000, metavar="N")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    if lacks := veth.missing():
        print(f"tcp_physics: {'; '.join(lacks)}", file=sys.stderr)
        return 69
    document = measure(options)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    shares = sorted(run["share"] for run in document["runs"])
    wrong = sum(bool(run["beyond"]) for run in document["runs"])
    print(
        f"{len(shares)} runs in {document['elapsed_seconds']:.0f} s, seed {options.seed}: "
        f"{wrong} beyond physics, {document['failed_runs']} without a figure; "
        f"share of what the link carries: median {shares[len(shares) // 2]:.3f}, "
        f"highest {shares[-1]:.3f}"
    )
    failed = document["failed_runs"] > max(1, MOST_FAILED_RATIO * options.runs)
    return 1 if wrong or failed else 0


if __name__ == "__main__":
    sys.exit(main())
