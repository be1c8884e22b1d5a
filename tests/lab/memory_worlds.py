"""Worlds of the memory: a page cache that holds no file, written data that may not wait."""

from __future__ import annotations

from plant import Caps
from truth import GIGABIT, MB, PUSHES, LabWorld, caps, planted, words

MIB = 1 << 20
_FILE_BYTES = 160 * MIB
_READS = 40 * MB
_FAST_LINK = 2500 * MB


def _small(memory_bytes: int, **more: int) -> Caps:
    return caps(memory_bytes=memory_bytes, disk_read_bytes_per_second=_READS, **more)


MEMORY_WORLDS: tuple[LabWorld, ...] = (
    planted(
        "server-memory",
        "server memory 96 MiB, its disk reads 40 MB/s, files of 160 MiB",
        caps(),
        _small(96 * MIB),
        {
            "pull.cached": words("memory", "server", "cache-size"),
            "pull.uncached": words("disk", "server", "read"),
        },
        GIGABIT,
        size_bytes=_FILE_BYTES,
        least_budget_seconds=90,
        lift={"server": {"memory_bytes": None}},
        frees=("pull.cached",),
    ),
    planted(
        "server-memory-enough",
        "server memory 1 GiB, its disk reads 40 MB/s, files of 160 MiB",
        caps(),
        _small(1024 * MIB),
        {"pull.uncached": words("disk", "server", "read")},
        GIGABIT,
        size_bytes=_FILE_BYTES,
        least_budget_seconds=90,
    ),
    planted(
        "server-dirty",
        "a link of 2.5 Gbit/s, 32 KiB of written data may wait for the server's disk",
        caps(sends_bits_per_second=_FAST_LINK),
        caps(sends_bits_per_second=_FAST_LINK, dirty_bytes=32 << 10),
        {copy: words("memory", "server", "writeback") for copy in PUSHES},
        GIGABIT,
        size_bytes=192 * MIB,
        least_budget_seconds=90,
        lift={"server": {"dirty_bytes": None}},
    ),
)
