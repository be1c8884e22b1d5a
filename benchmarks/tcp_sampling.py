"""Measures the cost of 50 looks at the sockets a second: our transfer with and without.

    .venv/bin/python benchmarks/tcp_sampling.py [--rounds N] [--seconds S] [--json F]

One stream over loopback, copying, 128 KiB a call, an end a process, as the product runs it. A round
is three transfers, in changing order: without looks, with 50 a second, and with 1,000 a second.
The third makes a cost visible that a machine's noise hides: a look costs the same then, and 50 cost
a twentieth of what 1,000 do. 1: by both, 50 looks a second cost more than 1 %.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from pathlib import Path
from unittest import mock

sys.path.append(str(Path(__file__).resolve().parent))

import tcp_ends
import veth

from bottleneck.text import units
from probes.core.records import run_rate
from probes.net import transfer
from probes.net.transfer import Shape

MOST_COST_RATIO = 0.01
USUAL, MANY = 50, 1000
"""Looks a second."""
RATES = (0, USUAL, MANY)


def rate(seconds: float, looks: int) -> float:
    """Runs one transfer, whose forked ends inherit the patch; returns bytes per second."""
    spacing = 1 / looks if looks else 2 * seconds
    with mock.patch.object(transfer, "spacing_seconds", lambda seconds_wanted: spacing):
        shape = Shape("pull", 1, 128 << 10, seconds)
        return run_rate(tcp_ends.run_transfer(shape, veth.Here(), veth.Here()).samples)


def main() -> int:
    """Prints the medians and the cost."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=21, metavar="N")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S")
    parser.add_argument("--json", type=Path, metavar="F")
    options = parser.parse_args()
    rates: dict[int, list[float]] = {looks: [] for looks in RATES}
    for number in range(options.rounds):
        turn = number % len(RATES)
        for looks in RATES[turn:] + RATES[:turn]:
            rates[looks].append(rate(options.seconds, looks))
    medians = {looks: statistics.median(each) for looks, each in rates.items()}
    direct = 1 - medians[USUAL] / medians[0]
    by_many = (1 - medians[MANY] / medians[0]) * USUAL / MANY
    texts = ", ".join(f"{looks}: {units.rate_text(each)}" for looks, each in medians.items())
    print(
        f"looks a second {texts}; {USUAL} cost {direct:.2%}, by those of {MANY} {by_many:.2%} "
        f"({options.rounds} rounds)"
    )
    if options.json:
        document = {
            "bytes_per_second": {str(looks): each for looks, each in rates.items()},
            "cost_ratio": direct,
            "cost_by_many_ratio": by_many,
        }
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    return 0 if min(direct, by_many) <= MOST_COST_RATIO else 1


if __name__ == "__main__":
    sys.exit(main())
