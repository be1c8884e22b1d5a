#!/usr/bin/env python3
"""Is it told rightly who limits a TCP stream? Cases planted on real TCP, and the confusion matrix.

Usage: python tests/lab/who_limits.py [--quick]

A case counts only where its plant surely is the cap: the same path without the plant has to carry
at least twice as much, and the rate has to be one that the plant explains. Ends with 0 where at
least 95 % are right, 1 where fewer are, 69 where it cannot be run here.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from delay import missing
from limit_cases import CASES, QUICK, Case
from planted_flow import Ends, Looks, Path, observe_flow

from probes.sockets import limits

SECONDS, QUICK_SECONDS = 2.4, 1.5
DROPPED_RATIO = 1 / 3
"""The start: windows still open, buffers still grow."""
RIGHT_RATIO = 0.95
LEAST_CASES = 60
"""Least number of cases that count in a full run."""
TRUTHS = ("network", "receiver", "sender", "send-buffer", "receive-window")
ANSWERS = (*TRUTHS, "unknown")


@dataclass(frozen=True)
class CaseResult:
    case: Case
    flow: Looks
    free_bytes_per_second: float

    @property
    def why_not(self) -> str:
        """Why the case does not count; empty: it does."""
        return self.case.unsuitable(self.flow.bytes_per_second(), self.free_bytes_per_second)


def blame(flow: Looks) -> str:
    sender, receiver = ([one for one in each if one.figures] for each in flow.ends)
    return limits.who_limits(limits.sender_details(sender), limits.receiver_details(receiver))


def measure_cases(
    cases: Sequence[Case], seconds: float, progress: Callable[[str], None]
) -> list[CaseResult]:
    """Every case once, and each path without a plant once, for so many seconds each."""
    dropped = DROPPED_RATIO * seconds
    free: dict[tuple[Path, Ends], float] = {}
    judged = []
    for index, case in enumerate(cases):
        bare = case.without_its_plant()
        if bare not in free:
            free[bare] = observe_flow(*bare, seconds).since(dropped).bytes_per_second()
        flow = observe_flow(case.path, case.ends, seconds, seed=index).since(dropped)
        judged.append(CaseResult(case, flow, free[bare]))
        progress(row(judged[-1]))
    return judged


def row(judged: CaseResult) -> str:
    said = blame(judged.flow)
    verdict = "right" if said == judged.case.truth else "WRONG"
    if judged.why_not:
        verdict = f"not used: {judged.why_not}"
    rate = judged.flow.bytes_per_second() / 1e6
    return f"{judged.case.name:52}{rate:9.2f} MB/s  {said:15}{verdict}"


def right_and_used(judged: Sequence[CaseResult]) -> tuple[int, int]:
    used = [each for each in judged if not each.why_not]
    return sum(blame(each.flow) == each.case.truth for each in used), len(used)


def matrix(judged: Sequence[CaseResult]) -> list[str]:
    counts = Counter((each.case.truth, blame(each.flow)) for each in judged if not each.why_not)
    lines = [f"{'planted / told':16}" + "".join(f"{answer:>15}" for answer in ANSWERS)]
    for truth in TRUTHS:
        cells = "".join(f"{counts[truth, answer] or '.':>15}" for answer in ANSWERS)
        lines.append(f"{truth:16}{cells}")
    return lines


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a few clear cases")
    options = parser.parse_args()
    if lacks := missing():
        print(*(f"who_limits: {each}" for each in lacks), sep="\n", file=sys.stderr)
        return 69
    began = time.monotonic()
    cases, seconds = (QUICK, QUICK_SECONDS) if options.quick else (CASES, SECONDS)
    judged = measure_cases(cases, seconds, lambda line: print(line, flush=True))
    print("", *matrix(judged), "", sep="\n")
    right, used = right_and_used(judged)
    print(f"{right} of {used} right, {100 * right / max(1, used):.1f} %")
    print(f"{len(judged)} cases, {used} used, {time.monotonic() - began:.0f} s")
    if cases is CASES and used < LEAST_CASES:
        print(f"who_limits: {used} cases are too few to say anything", file=sys.stderr)
        return 1
    return 0 if used and right >= RIGHT_RATIO * used else 1


if __name__ == "__main__":
    sys.exit(main())
