"""Sequential read and write by threads of this process, where the system's fio cannot be used.

For Windows and macOS. Uncached I/O bypasses the page cache: FILE_FLAG_NO_BUFFERING, F_NOCACHE.
"""

from __future__ import annotations

import time
from dataclasses import replace

from probes.core.records import Endpoint, Sample
from probes.core.stage import Running
from probes.files import folders, free_space, page_cache, payload, source_file
from probes.storage import Setting, foreign_io, growing_write, named_file, sequential
from probes.storage.named_file import BLOCK_BYTES, DEPTH, GRACE_SECONDS, Pass
from probes.system.platform import descriptor, os


def measure(setting: Setting, peer: Endpoint) -> Running:
    """Measures sequential I/O in the folder; samples are payload read, or written and flushed.

    peer.path is the file to read. Returns the details of probes/storage/named_file.py. Errors:
    Unavailable (no room, no file to read), Refused (no such folder, no right to write in it),
    OSError of the disk.
    """
    if setting.verb == "read":
        if setting.cache == "uncached":
            with named_file.open_file(peer.path) as fd:
                page_cache.evict(fd)
        return (yield from named_file.measure(replace(setting, path=peer.path), peer))
    fd = source_file.open_new(setting.folder)
    with descriptor(fd):
        size_bytes = free_space.fitting_size(setting.size_bytes, setting.folder)
        size_bytes = size_bytes // BLOCK_BYTES * BLOCK_BYTES
        if not size_bytes:
            raise growing_write.no_room(setting)
        return (yield from _write(setting, fd, size_bytes))


def _write(setting: Setting, fd: int, size_bytes: int) -> Running:
    device = folders.folder_facts(setting.folder).device
    direct = page_cache.pass_by(fd)
    start = foreign_io.look(device)
    yield Sample(0.0, 0)
    run = _Puts(fd, size_bytes, setting)
    samples = yield from named_file.sample_pass(run, setting.seconds + GRACE_SECONDS)
    rate = run.moved_bytes / run.elapsed_seconds
    return {
        **foreign_io.counts(device, start, foreign_io.look(device), written_bytes=run.moved_bytes),
        "device": device,
        "direct": direct,
        "latency_seconds": growing_write.middle_and_worst(run.latencies_seconds),
        "zones": [{"from_ratio": 0.0, "to_ratio": 1.0, "bytes_per_second": rate}],
        **sequential.window_details(samples),
    }


class _Puts(Pass):
    """Threads that write payload, each block at its place, and flush at their end."""

    def __init__(self, fd: int, size_bytes: int, setting: Setting) -> None:
        self._ring = payload.make_ring(bytes.fromhex(setting.seed))
        super().__init__(fd, size_bytes, setting.seconds, DEPTH)

    def _work(self) -> None:
        super()._work()
        os.fsync(self._fd)
        with self.lock:
            self.ended = time.monotonic()

    def _take(self, view: memoryview, offset: int) -> None:
        view[:] = payload.block(self._ring, offset, BLOCK_BYTES)
        done = 0
        while done < BLOCK_BYTES:
            with view[done:] as rest:
                done += os.pwrite(self._fd, rest, offset + done)
