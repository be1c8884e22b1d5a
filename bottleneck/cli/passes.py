"""How often `check` measures: once, and again while what was found would alarm somebody.

A run of its own each time: it logs in anew, makes its files anew and measures the stages too, so
that what differs from session to session is in the noise that a baseline is compared with.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from bottleneck import plan as plans
from bottleneck.cli import documents, exits, running
from bottleneck.cli.documents import Output
from bottleneck.cli.expected import Terms
from bottleneck.gate.baseline import ENOUGH_RUNS, suspects
from bottleneck.gate.pooled import pooled
from bottleneck.report import Report
from probes.records import Access
from probes.stage import Refused

EACH_SECONDS = 20.0
"""Of one run, --quick's: with less not all four copies are reached on a usual path."""
MOST_REPEATED = 20
CLOSING_SECONDS = 6.0
"""How much later than its budget a check ends at the most, before the hosts are closed."""
SLACK = 1.1
"""A further run may take so much longer than the one before."""
GOOD_CODES = (exits.DONE, exits.INCOMPLETE)


@dataclass(frozen=True)
class Plan:
    """The runs of one check."""

    total_seconds: float
    each_seconds: float
    least: int
    most: int


def plan(budget: float | None, quick: bool, thorough: bool, repeat: int, terms: Terms) -> Plan:
    """How many runs, and how long each may take.

    Raises:
        Refused: kind "usage": options that exclude each other, or numbers that cannot be.
    """
    if not 1 <= repeat <= MOST_REPEATED:
        raise Refused("usage", f"--repeat: from 1 to {MOST_REPEATED}")
    usual = ENOUGH_RUNS if terms.baseline is not None else 1
    default = EACH_SECONDS * max(repeat, usual)
    total = running.budget_seconds(budget, quick, thorough, default)
    most = max(repeat, ENOUGH_RUNS if terms.asked else 1)
    # Who asks for a thorough run wants one, not several shorter ones.
    each = total if thorough else min(total, max(EACH_SECONDS, total / most))
    return Plan(total, each, repeat, most)


def measured(
    chosen: plans.Options, access: Access, output: Output, planned: Plan, terms: Terms
) -> Report:
    """The report of all runs together; interrupts must be held.

    A first run that breaks is told in the report's notes and by its status. A later one that does
    leaves what was known before it.
    """
    began = time.monotonic()
    # The documents are of all runs, and come at the end.
    quietly = replace(output, json=None, html=None, ticket=None, junit=None, history=None)
    reports: list[Report] = []
    with _ended_by(planned.total_seconds + CLOSING_SECONDS) as late:
        while not late:
            start = time.monotonic()
            known, _, code = running.measured(chosen, access, quietly)
            if code not in GOOD_CODES:
                if late:
                    note = f"it had not ended {planned.total_seconds:.0f} s after it began, and "
                    known = replace(known, notes=(*known.notes, f"{note}was stopped"))
                reports += [] if reports and code != exits.INTERRUPTED else [known]
                break
            reports.append(known)
            now = time.monotonic()
            left = planned.total_seconds - (now - began)
            if not _again(reports, planned, terms) or left < SLACK * (now - start):
                break
    return pooled(reports)


def _again(reports: list[Report], planned: Plan, terms: Terms) -> bool:
    """Whether one more run is to be made, if there is time."""
    if len(reports) < planned.least:
        return True
    if len(reports) >= planned.most or not terms.asked:
        return False
    known = pooled(reports)
    diagnosis = documents.diagnosed(known)[0]
    judgement = terms.judge(known, diagnosis, 0.0)
    if any(each.state in ("warning", "critical") for each in judgement.judged):
        return True
    return terms.baseline is not None and bool(suspects(known, diagnosis, terms.baseline))


@contextmanager
def _ended_by(seconds: float) -> Iterator[list[bool]]:
    """A block that is interrupted after so many seconds; the list has an item from then on.

    A server that hangs has time-outs of its own, which are longer than who waits for us waits.
    """
    late: list[bool] = []

    def end(number: int, frame: object) -> None:
        late.append(True)
        # As if somebody had asked for it: hosts are closed, and what is held stays held.
        signal.raise_signal(signal.SIGTERM)

    before = signal.signal(signal.SIGALRM, end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield late
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
