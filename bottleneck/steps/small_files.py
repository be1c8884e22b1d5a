"""Many small files, one after the other: seconds and round trips each (stage small-files)."""

from __future__ import annotations

from dataclasses import replace

from bottleneck.bench import Bench
from bottleneck.steps import source
from bottleneck.steps.allowance import dialect, seconds_for
from probes import small_files
from probes.stage import Unavailable

USUAL_SECONDS = 1.5
FILES = 500
FILE_BYTES = 16 * 1024
GRACE_SECONDS = 40.0
"""Login, comparing and removing."""


def measure_small_files(bench: Bench) -> None:
    """Pushed, then pulled."""
    for verb in small_files.VERBS:
        seconds = seconds_for(
            bench, small_files.NAME, USUAL_SECONDS, parts=2 * len(small_files.VERBS)
        )
        if seconds is None:
            return
        setting = small_files.Setting(
            verb=verb,
            files=FILES,
            file_bytes=FILE_BYTES,
            dialect=dialect(bench),
            seconds=seconds,
            seed=bench.seed,
        )
        step = bench.step(small_files.NAME, setting, "client")
        with bench.outcome(step, f"small files {verb}"):
            if source.room_bytes(bench) < FILES * FILE_BYTES:
                raise Unavailable(f"no room on the share for {FILES} files of 16 KiB")
            peer = replace(bench.share, path="")
            bench.initiate(step, setting, peer, seconds + GRACE_SECONDS)
