"""Measures what it costs the moving thread to add up its times: on and off within one copy.

    .venv/bin/python benchmarks/time_bins.py [--seconds S] [--request-size BYTES]

A private Samba on this host, RAM at the client's end. Every 0.1 s the marks are switched, and the
thread's CPU time for each byte is added up of both kinds of stretches: what drifts hits them alike.
"""

from __future__ import annotations

import argparse
import math
import secrets
import statistics
import tempfile
import time
from collections.abc import Iterator

from probes.core.records import Access, Endpoint
from probes.files import payload
from probes.files.served_file import source_name
from probes.programs.samba import private_samba
from probes.smb import run_folder, transfer
from probes.smb.client_end import Check, MemorySink, MemorySource
from probes.smb.login import open_session
from probes.smb.pipe import Flight, Pipe, plan_flight
from probes.smb.time_bins import TimeBins

SWITCH_SECONDS, FILE_BYTES = 0.1, 256 << 20
PASSWORD = secrets.token_hex(8)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--request-size", type=int, default=1 << 20)
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        private_samba(folder, password=PASSWORD) as server,
    ):
        access = Access(server.username, PASSWORD)
        peer = Endpoint(host=server.host, port=server.port, share=server.share, access=access)
        with run_folder.hold(run_folder.Setting(run=secrets.token_hex(8)), peer) as folder_end:
            for verb in ("push", "pull"):
                _compare(folder_end, verb, options.request_size, options.seconds)


def _compare(peer: Endpoint, verb: str, request_bytes: int, seconds: float) -> None:
    ring = payload.make_ring(bytes(16))
    with open_session(peer) as session:
        session.open_folder(peer.folder)
        path = run_folder.join_path(peer.folder, source_name(peer.folder))
        handle = session.open_file(path, write=True)
        with session.pipe(handle) as pipe:
            flight = plan_flight(pipe, "write" if verb == "push" else "read", request_bytes)
            times, until = TimeBins(), time.monotonic() + seconds
            pipe.limit(until + 20.0)
            pipe.add_up(times)
            if verb == "push":
                moves = _pushed(pipe, flight, MemorySource(ring, True), until)
            else:
                sink = MemorySink(Check(ring))
                moves = transfer.fetch(pipe, _over(until), *flight.shape, sink.take)
            _tell(verb, _stretches(pipe, times, moves))


def _pushed(pipe: Pipe, flight: Flight, memory: MemorySource, until: float) -> Iterator[int]:
    """Pushes the file repeatedly."""
    start = 0
    while time.monotonic() < until:
        for size in transfer.push(pipe, FILE_BYTES, *flight.shape, memory.give):
            yield start + size
        start += FILE_BYTES


def _over(until: float) -> Iterator[tuple[int, int]]:
    while time.monotonic() < until:
        yield 0, FILE_BYTES


def _stretches(pipe: Pipe, times: TimeBins, moves: Iterator[int]) -> dict[bool, list[float]]:
    """Returns CPU seconds a byte of the thread, of the stretches with the times and without."""
    costs: dict[bool, list[float]] = {True: [], False: []}
    counted, start = True, (time.thread_time(), 0)
    switch = time.monotonic() + SWITCH_SECONDS
    for size in moves:
        if time.monotonic() < switch:
            continue
        now = (time.thread_time(), size)
        costs[counted].append((now[0] - start[0]) / max(1, now[1] - start[1]))
        counted, start = not counted, now
        pipe._times = pipe._wire.times = times if counted else None
        switch = time.monotonic() + SWITCH_SECONDS
    return costs


def _tell(verb: str, costs: dict[bool, list[float]]) -> None:
    """Prints the mean of the middle half of each kind, which leaves out outliers."""
    middles = {}
    for counted, stretch in costs.items():
        stretch.sort()
        middles[counted] = stretch[len(stretch) // 4 : len(stretch) - len(stretch) // 4]
    on, off = (1e9 * statistics.fmean(middles[each]) for each in (True, False))
    error = 1e9 * sum(statistics.stdev(each) / math.sqrt(len(each)) for each in middles.values())
    print(
        f"{verb}: {on:.4f} s/GB with, {off:.4f} s/GB without: {100 * (on / off - 1):+.2f} % "
        f"(+- {100 * error / off:.2f})"
    )


if __name__ == "__main__":
    main()
