"""Our SMB data path and smbclient's through a delay: is the window as deep as the path needs?

    .venv/bin/python benchmarks/smb_delay.py [--json F] [--rtt 0.01] [--link 250MB/s] [--pairs N]

Client and server in two network namespaces, joined by tests/lab/delay.py; 3.1.1 plain, the
product's own path with the depth that it chooses, against smbclient's get and put of the same file
through the same delay, in turns. Held against min(link, in flight / RTT): link is the planted rate
less the headers of its packets, RTT the planted one. Needs root.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parent))
sys.path.append(str(Path(__file__).resolve().parents[1] / "tests" / "lab"))

import delay
import smb_against_smbclient as pairs

from bottleneck.text import units
from probes.programs.samba import vanishing_folder
from probes.stages import smb_copy

PAYLOAD_RATIO = 1 - 52 / delay.MTU_BYTES
"""Payload's share of a packet; the rest is headers of IP and of TCP with its timestamps."""
BAR = 0.9
TIE_RATIO = 0.99
"""Least ratio to smbclient: two copies that both fill the link differ by how they start."""


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Measures both verbs; prints a row for each and returns the document."""
    cells = [pairs.Cell("3.1.1", "plain", verb) for verb in ("read", "write")]
    rows = []
    smb_copy.preload()
    with ExitStack() as stack:
        folder, _ = stack.enter_context(vanishing_folder(pairs.PREFIX, pairs.MEMORY))
        pairs.touch_memory(folder, options.size)
        path = stack.enter_context(delay.delay_path(options.rtt / 2, options.link))
        with path.server.entered():
            bench = stack.enter_context(
                pairs.benches(folder, "plain", options.size, options.end, path.server.address)
            )
        stack.enter_context(path.client.entered())
        for cell in cells:
            for number in range(options.pairs):
                turns = [
                    lambda: bench.copy_by_us(cell),  # noqa: B023
                    lambda: bench.copy_by_peer(cell, 0.0, not number),  # noqa: B023
                ]
                for turn in turns if number % 2 else turns[::-1]:
                    turn()
            rows.append(row(cell, options))
    return {
        "cells": rows,
        "rtt_seconds": options.rtt,
        "link_bytes_per_second": options.link,
        "size_bytes": options.size,
        "machine": pairs.machine(),
    }


def row(cell: pairs.Cell, options: argparse.Namespace) -> dict[str, Any]:
    """Prints a cell's line and returns its part of the document."""
    ours, peer = statistics.median(cell.ours), statistics.median(cell.peer)
    bound = cell.details["in_flight_bytes"] / options.rtt
    if options.link:
        bound = min(bound, PAYLOAD_RATIO * options.link)
    depth = f"{cell.details['request_bytes'] / 2**20:g} MiB x {cell.details['depth']}"
    print(
        f"{cell.name:18} {units.rate_text(ours):>10} {units.rate_text(peer):>10} "
        f"{cell.ratio:6.2f} {depth:>12} {units.rate_text(bound):>10} {ours / bound:6.2f}",
        flush=True,
    )
    return {
        **cell.document(),
        "measured_rtt_seconds": cell.details["rtt_seconds"],
        "bound_bytes_per_second": bound,
        "share_of_bound": ours / bound,
    }


def arguments() -> argparse.Namespace:
    """Returns the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", metavar="F", type=Path)
    parser.add_argument("--rtt", type=float, default=0.01, metavar="SECONDS")
    parser.add_argument("--link", default="250MB/s", metavar="RATE", help="0: none is planted")
    parser.add_argument("--pairs", type=int, default=5, metavar="N")
    parser.add_argument("--size", default="512MiB", metavar="BYTES")
    parser.add_argument("--end", choices=smb_copy.ENDS, default="folder")
    options = parser.parse_args()
    try:
        options.size = units.parse_size(options.size)
        options.link = None if options.link == "0" else units.parse_rate(options.link)
    except units.UnitError as error:
        parser.error(str(error))
    return options


def main() -> int:
    """Prints the table; returns 0 if the bar is met, 1 if not, 69 without such a path."""
    if lacks := delay.missing():
        print(f"smb_delay: {'; '.join(lacks)}", file=sys.stderr)
        return 69
    options = arguments()
    print(
        f"{'cell':18} {'ours':>10} {'smbclient':>10} {'ratio':>6} {'in flight':>12} "
        f"{'bound':>10} {'share':>6}"
    )
    document = measure(options)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    met = all(
        cell["share_of_bound"] >= BAR and cell["ratio"] >= TIE_RATIO for cell in document["cells"]
    )
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
