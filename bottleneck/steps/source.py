"""The run's source file on the share, for stages that read it where no copy has filled it."""

from __future__ import annotations

from dataclasses import replace

from bottleneck import plan
from bottleneck.bench import Bench
from probes import smb_copy
from probes.host.free_space import beyond_reserve_bytes
from probes.records import run_rate
from probes.stage import Unavailable

FIRST_BYTES = 2 * plan.MIB
"""Tells the rate by which the file's size is chosen."""
MOST_BYTES = 128 * plan.MIB
FILL_SECONDS = 1.0
GRACE_SECONDS = 8.0
NO_ROOM = "no room on the share for a file of 2 MiB"


def free_bytes(bench: Bench) -> int | None:
    """How much more may be written to the share; what its owner needs stays free. None: untold."""
    free, total = (bench.share.facts.get(name) for name in ("free_bytes", "total_bytes"))
    if free is None or total is None:
        return None
    return beyond_reserve_bytes(int(free) - bench.source_bytes, int(total))


def room_bytes(bench: Bench) -> int:
    """The same, of what such a file needs at most."""
    free = free_bytes(bench)
    return MOST_BYTES if free is None else free


def ready_bytes(bench: Bench, dialect: str) -> int:
    """Bytes of the source file; fills it first where it is empty.

    Raises:
        Unavailable: there is no room, or no time.
        PartlyRan, StageError, Refused: it could not be filled.
    """
    if not bench.source_bytes:
        rate = _fill(bench, dialect, FIRST_BYTES)
        wanted = min(MOST_BYTES, room_bytes(bench), int(rate * FILL_SECONDS))
        if wanted > 2 * FIRST_BYTES:
            _fill(bench, dialect, wanted // plan.MIB * plan.MIB)
    return bench.source_bytes


def _fill(bench: Bench, dialect: str, size_bytes: int) -> float:
    """Writes the file from memory; the rate, bytes per second."""
    if room_bytes(bench) < size_bytes:
        raise Unavailable(NO_ROOM)
    if bench.left() < FILL_SECONDS:
        raise Unavailable("no time left in the budget: give a larger --budget")
    setting = smb_copy.Setting(
        copy="push.cached",
        dialect=dialect,
        end="memory",
        size_bytes=size_bytes,
        seconds=bench.left(),
        folder=bench.options.folder,
        seed=bench.seed,
        fill_source=True,
    )
    peer = replace(bench.share, path="")
    ran = bench.client.initiate("smb-copy", setting, peer, setting.seconds + GRACE_SECONDS)
    bench.source_bytes = size_bytes
    return run_rate(ran.samples)
