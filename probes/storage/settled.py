"""The rate of a span of a disk, without the jump that it took to get there; pure.

The first request of a job waits for the head's jump, and those that are sent off with it wait too:
the slowest request of a job took the jump beyond its share of the whole. How much longer than the
usual jump it took is not the jump's: a disk that orders its requests lets some wait.
"""

from __future__ import annotations

from typing import NamedTuple

from probes.drivers import fio


class Settled(NamedTuple):
    """What a job moved while the head was where it should be."""

    moved_bytes: int
    seconds: float
    jump_seconds: float
    """Left out."""

    @property
    def bytes_per_second(self) -> float:
        """Throughput of the span."""
        return self.moved_bytes / self.seconds


def settled(job: fio.Job, result: fio.Result, usual_seconds: float | None) -> Settled:
    """A sequential job's payload and time, the time of the first jump taken off.

    usual_seconds: what a jump usually takes; None: not known, then nothing is taken off. A job too
    short to show its own jump is taken to have made the usual one.
    """
    elapsed, blocks = result.elapsed_seconds, result.moved_bytes / job.block_bytes
    depth = job.depth if job.direct else 1
    jump = 0.0
    if usual_seconds is not None:
        jump = usual_seconds
        if blocks > 2 * depth and result.latency_most_seconds is not None:
            # with d a block's time: elapsed = jump + blocks * d, slowest = jump + depth * d
            share = depth / blocks
            jump = (result.latency_most_seconds - share * elapsed) / (1 - share)
        jump = min(max(jump, 0.0), usual_seconds, elapsed / 2)
    return Settled(result.moved_bytes, elapsed - jump, jump)
