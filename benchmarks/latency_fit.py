"""Compares the latency stage's fit with a planted round trip and rate.

    .venv/bin/python benchmarks/latency_fit.py [--json F] [--quick]

Client and server in two network namespaces, joined by tests/lab/delay.py. The latency is held
against the path's own round trip, which is what a handshake with the kernel at its other end takes:
the planted delay and the 0.1 to 0.2 ms that the path's forwarders take themselves. The bandwidth is
held against the planted rate less the headers of its packets. The line through cold connections is
shown for its bias and not judged. Needs root.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "lab"))

import delay

from bottleneck.text.units import rate_text, seconds_text
from probes.core.records import Details, Endpoint
from probes.stages import latency

HEADER_BYTES = 52
"""Headers of IP and of TCP with its timestamps."""
LATENCY_BAR, BANDWIDTH_BAR = 0.10, 0.02
HANDSHAKES = 41


@dataclass(frozen=True)
class Case:
    """A path, and the time for its stage."""

    rtt_seconds: float
    bytes_per_second: float
    mtu_bytes: int
    seconds: float

    @property
    def payload_bytes_per_second(self) -> float:
        """Payload at the planted rate, without headers."""
        share = (self.mtu_bytes - HEADER_BYTES) / (self.mtu_bytes + delay.HEADER_BYTES)
        return share * self.bytes_per_second


CASES = (
    Case(0.001, 12.5e6, 1500, 6.0),
    Case(0.001, 100e6, delay.MTU_BYTES, 6.0),
    Case(0.010, 12.5e6, 1500, 8.0),
    Case(0.010, 100e6, delay.MTU_BYTES, 8.0),
    Case(0.040, 12.5e6, 1500, 24.0),
    Case(0.040, 100e6, delay.MTU_BYTES, 20.0),
)
QUICK = (Case(0.010, 12.5e6, 1500, 3.0),)


def measure(case: Case) -> Details:
    """Returns the stage's details of one path, with the path's own round trip."""
    with delay.delay_path(
        case.rtt_seconds / 2, case.bytes_per_second, mtu_bytes=case.mtu_bytes
    ) as path:
        setting = latency.Setting(case.seconds, path.server.address)
        with responding(path.server, setting) as peer, path.client.entered():
            rtt = handshake_seconds(peer)
            running = latency.initiate(setting, peer)
            while True:
                try:
                    next(running)
                except StopIteration as end:
                    return {**end.value, "path_rtt_seconds": rtt}


@contextmanager
def responding(end: delay.End, setting: latency.Setting) -> Iterator[Endpoint]:
    """Runs the stage's far end in a process of its own."""
    here, there = multiprocessing.Pipe()
    process = multiprocessing.get_context("fork").Process(
        target=respond, args=(end, setting, there), daemon=True
    )
    process.start()
    try:
        yield here.recv()
    finally:
        process.kill()
        process.join()


def respond(end: delay.End, setting: latency.Setting, pipe: Connection) -> None:
    """Sends the endpoint where it listens, then waits to be killed."""
    with end.entered(), latency.respond(setting) as peer:
        pipe.send(peer)
        while True:
            time.sleep(60)


def handshake_seconds(peer: Endpoint) -> float:
    """Returns the lower octile of the times to connect: only the kernel answers."""
    times = []
    for _ in range(HANDSHAKES):
        with socket.socket() as connection:
            began = time.monotonic()
            connection.connect((peer.host, peer.port))
            times.append(time.monotonic() - began)
    return sorted(times)[len(times) // 8]


def row(case: Case, details: Details) -> dict[str, Any]:
    """Prints a case's line and returns its part of the document."""
    planted, rtt = case.payload_bytes_per_second, details["path_rtt_seconds"]
    fitted, cold = details["fit"], details.get("cold_fit")
    head = f"{seconds_text(case.rtt_seconds):>6} {seconds_text(rtt):>8} {rate_text(planted):>10}"
    cell: dict[str, Any] = {
        "planted_rtt_seconds": case.rtt_seconds,
        "path_rtt_seconds": rtt,
        "planted_bytes_per_second": planted,
        "fit": fitted,
        "cold_fit": cold,
        "met": False,
    }
    if "refused" in fitted:
        print(f"{head}   refused: {fitted['refused']}", flush=True)
        return cell
    late = fitted["latency_seconds"] / rtt - 1
    wide = fitted["bandwidth_bytes_per_second"] / planted - 1
    biased = "not timed"
    if cold is not None:
        biased = (
            f"{seconds_text(cold['latency_seconds']):>8} "
            f"{rate_text(cold['bandwidth_bytes_per_second']):>10}"
        )
    cell["met"] = abs(late) <= LATENCY_BAR and abs(wide) <= BANDWIDTH_BAR
    print(
        f"{head} {seconds_text(fitted['latency_seconds']):>8} {late:+7.1%} "
        f"{rate_text(fitted['bandwidth_bytes_per_second']):>10} {wide:+7.1%} "
        f"{fitted['worst_residual_ratio']:6.1%}  {biased}",
        flush=True,
    )
    return {**cell, "latency_off_ratio": late, "bandwidth_off_ratio": wide}


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="F", type=Path)
    parser.add_argument("--quick", action="store_true", help="one short path")
    return parser.parse_args()


def main() -> int:
    """Prints the table; returns 0 if the bars are met, 1 if not, 69 without such a path."""
    options = arguments()
    if lacks := delay.missing():
        print(f"latency_fit: {'; '.join(lacks)}", file=sys.stderr)
        return 69
    print(
        f"{'RTT':>6} {'path':>8} {'planted':>10} {'latency':>8} {'':>7} {'bandwidth':>10} {'':>7} "
        f"{'worst':>6}  cold, not used"
    )
    rows = [row(case, measure(case)) for case in (QUICK if options.quick else CASES)]
    if options.json:
        options.json.write_text(json.dumps({"cells": rows}, indent=1) + "\n")
    return 0 if all(each["met"] for each in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
