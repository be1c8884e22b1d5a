#!/usr/bin/env python3
"""Is it told rightly who limits a TCP stream? Cases planted on real TCP, and the confusion matrix.

Usage: python tests/lab/who_limits.py [--tune | --quick] [--json F] [--from F]

Without options it runs the held-out cases, on which nothing was tuned. A case counts only where its
plant surely is the cap: the same path without the plant has to carry at least twice as much, and
the rate has to be one that the plant explains. --json keeps all that was seen, --from judges that
again. Ends with 0 where at least 95 % are right, 1 where fewer are, 69 where it cannot be run here.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path as File
from typing import Any

from delay import missing
from limit_cases import HELD_OUT, QUICK, TUNE, Case
from planted_flow import Ends, Path, Seen, observed

from probes.sockets import limits
from probes.sockets.limits import Glimpse

SECONDS, QUICK_SECONDS = 2.4, 1.5
DROPPED_RATIO = 1 / 3
"""The start: windows still open, buffers still grow."""
RIGHT_RATIO = 0.95
LEAST_CASES = 60
"""Used ones, for the held-out set to say anything."""
TRUTHS = ("network", "receiver", "sender", "send-buffer", "receive-window")
ANSWERS = (*TRUTHS, "unknown")


@dataclass(frozen=True)
class Judged:
    case: Case
    seen: Seen
    free_bytes_per_second: float

    @property
    def why_not(self) -> str:
        """Why the case does not count; empty: it does."""
        return self.case.unsuitable(self.seen.bytes_per_second(), self.free_bytes_per_second)


Rule = Callable[[Seen], str]


def whole(seen: Seen, without: Sequence[str] = ()) -> str:
    """The product's rule, with or without some of the figures."""
    sender, receiver = (
        [_without(glimpse, without) for glimpse in each if glimpse.figures] for each in seen.both
    )
    return limits.who_limits(limits.of_sender(sender), limits.of_receiver(receiver))


def _without(glimpse: Glimpse, names: Sequence[str]) -> Glimpse:
    figures = {name: value for name, value in glimpse.figures.items() if name not in names}
    return Glimpse(glimpse.elapsed_seconds, figures, glimpse.unread_bytes, glimpse.unsent_bytes)


QUEUES = ("send_queue_bytes",)
BUFFERS = ("receive_buffer_bytes", "send_buffer_bytes")


RULES: dict[str, Rule] = {
    "who_limits": whole,
    "who_limits, queues not known": lambda seen: whole(seen, QUEUES),
    "who_limits, tcp_info alone": lambda seen: whole(seen, QUEUES + BUFFERS),
}


def measured(
    cases: Sequence[Case], seconds: float, progress: Callable[[str], None]
) -> list[Judged]:
    """Every case once, and each path without a plant once, for so many seconds each."""
    dropped = DROPPED_RATIO * seconds
    free: dict[tuple[Path, Ends], float] = {}
    judged = []
    for index, case in enumerate(cases):
        bare = case.without_its_plant()
        if bare not in free:
            free[bare] = observed(*bare, seconds).after(dropped).bytes_per_second()
        seen = observed(case.path, case.ends, seconds, seed=index).after(dropped)
        judged.append(Judged(case, seen, free[bare]))
        progress(row(judged[-1]))
    return judged


def row(judged: Judged) -> str:
    said = whole(judged.seen)
    verdict = "right" if said == judged.case.truth else "WRONG"
    if judged.why_not:
        verdict = f"not used: {judged.why_not}"
    rate = judged.seen.bytes_per_second() / 1e6
    return f"{judged.case.name:52}{rate:9.2f} MB/s  {said:15}{verdict}"


def share(judged: Sequence[Judged], rule: Rule) -> tuple[int, int]:
    """Right ones and all, of the cases that count."""
    used = [each for each in judged if not each.why_not]
    return sum(rule(each.seen) == each.case.truth for each in used), len(used)


def matrix(judged: Sequence[Judged]) -> list[str]:
    counts = Counter((each.case.truth, whole(each.seen)) for each in judged if not each.why_not)
    lines = [f"{'planted / told':16}" + "".join(f"{answer:>15}" for answer in ANSWERS)]
    for truth in TRUTHS:
        cells = "".join(f"{counts[truth, answer] or '.':>15}" for answer in ANSWERS)
        lines.append(f"{truth:16}{cells}")
    return lines


def _saved(judged: Sequence[Judged]) -> list[Any]:
    return [
        {
            "name": each.case.name,
            "free_bytes_per_second": each.free_bytes_per_second,
            "sender": [asdict(glimpse) for glimpse in each.seen.sender],
            "receiver": [asdict(glimpse) for glimpse in each.seen.receiver],
        }
        for each in judged
    ]


def _loaded(file: File, cases: Sequence[Case]) -> list[Judged]:
    named = {case.name: case for case in cases}
    judged = []
    for each in json.loads(file.read_text()):
        ends = (tuple(Glimpse(**one) for one in each[end]) for end in ("sender", "receiver"))
        judged.append(Judged(named[each["name"]], Seen(*ends), each["free_bytes_per_second"]))
    return judged


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    chosen = parser.add_mutually_exclusive_group()
    chosen.add_argument("--tune", action="store_true", help="the cases to tune on")
    chosen.add_argument("--quick", action="store_true", help="a few clear cases")
    parser.add_argument("--json", type=File, help="also write what was seen")
    parser.add_argument("--from", type=File, dest="seen", help="judge what was written before")
    asked = parser.parse_args()
    if not asked.seen and (lacks := missing()):
        print(*(f"who_limits: {each}" for each in lacks), sep="\n", file=sys.stderr)
        return 69
    cases = TUNE if asked.tune else QUICK if asked.quick else HELD_OUT
    began = time.monotonic()
    if asked.seen:
        judged = _loaded(asked.seen, cases)
        print(*map(row, judged), sep="\n")
    else:
        seconds = QUICK_SECONDS if asked.quick else SECONDS
        judged = measured(cases, seconds, lambda line: print(line, flush=True))
    if asked.json:
        asked.json.write_text(json.dumps(_saved(judged)))
    print("", *matrix(judged), "", sep="\n")
    for name, rule in RULES.items():
        right, used = share(judged, rule)
        print(f"{name:32}{right:4} of {used} right{100 * right / max(1, used):7.1f} %")
    right, used = share(judged, whole)
    print(f"{len(judged)} cases, {used} used, {time.monotonic() - began:.0f} s")
    if cases is HELD_OUT and used < LEAST_CASES:
        print(f"who_limits: {used} cases are too few to say anything", file=sys.stderr)
        return 1
    return 0 if used and right >= RIGHT_RATIO * used else 1


if __name__ == "__main__":
    sys.exit(main())
