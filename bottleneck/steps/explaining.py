"""What explains the copies, in the order in which it decides; a clear case ends early.

After the first round of copies the analysis says which of them are in doubt. The stage that speaks
of the most doubts comes next. Where there is no doubt, no stage is begun that would not end within
half of the budget.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from bottleneck import plan
from bottleneck.analysis import diagnose
from bottleneck.analysis.doubts import Doubt, doubts, next_look
from bottleneck.bench import Bench
from bottleneck.steps import (
    allowance,
    disks,
    initiators,
    latency,
    matrix,
    path,
    requests,
    security,
    small_files,
    sweep,
    udp,
)

CLEAR_SHARE = 0.5
"""Of the budget, by which a clear case has ended."""
CLOSING_SECONDS = 1.5
"""What closing the hosts takes of that."""
CLEAR = "left out, since the cap of each copy is clear"


@dataclass(frozen=True)
class Explanation:
    """A stage that explains copies that were made."""

    name: str
    wanted: str
    """The stage that has to be asked for."""
    usual_seconds: float
    """With the usual budget."""
    why: str
    """Why it is made where no doubt asks for it."""
    measure: Callable[[Bench], None]


EXPLANATIONS = (
    Explanation("path", "path", 3.2, "what the path loses and lets through", path.measure_path),
    Explanation(
        "latency", "latency", 2.2, "what a message costs on this path", latency.measure_latency
    ),
    Explanation("sweep", "sweep", 5.0, "how large a write has to be", sweep.measure_sweeps),
    Explanation("matrix", "matrix", 8.0, "windows and streams", matrix.measure_windows),
    Explanation("udp", "udp", 4.0, "datagrams at a rate that is set", udp.measure_datagrams),
    Explanation("disk", "disk", 3.0, "why a disk gives what it gives", disks.explain_disks),
    Explanation(
        "smb-matrix", "smb-matrix", 2.3, "what other clients would get", requests.measure_requests
    ),
    Explanation("smb-tax", "smb-tax", 3.0, "what security costs", security.measure_security),
    Explanation(
        "small-files",
        "small-files",
        1.8,
        "what a small file costs",
        small_files.measure_small_files,
    ),
    Explanation(
        "initiators",
        "smb-copy",
        8.0,
        "who should start the copy",
        initiators.measure_initiators,
    ),
)


def explain(bench: Bench, *left_out: str) -> None:
    """Every explanation that was asked for, the one that decides most first.

    left_out: what else has no time in a clear case; told in one note with the others.
    """
    unmade = list(left_out)
    left = [each for each in EXPLANATIONS if bench.wants(each.wanted)]
    while left:
        found = in_doubt(bench)
        look = next_look(found or (), [each.name for each in left])
        chosen = next((e for e in left if look is not None and e.name == look.stage), left[0])
        left.remove(chosen)
        if found is not None and not found and not in_time(bench, chosen.usual_seconds):
            unmade.append(chosen.name)
            continue
        bench.ledger.why = look.why if look is not None else chosen.why
        chosen.measure(bench)
    bench.ledger.why = ""
    if unmade:
        bench.note(f"{CLEAR}: {', '.join(unmade)} (--thorough measures all)")


def in_doubt(bench: Bench) -> tuple[Doubt, ...] | None:
    """The copies in doubt; empty: a clear case. None: a run that is not to end for that.

    None where nothing was copied yet, where one stage alone or several dialects were asked for,
    and where the budget is that of a thorough run.
    """
    options = bench.options
    if options.budget_seconds >= plan.LONG_BUDGET_SECONDS:
        return None
    if len(options.stages) < 2 or len(options.dialects) > 1:
        return None
    report = bench.report()
    diagnosis = diagnose(report)
    made = [each for each in diagnosis.copies if each.bytes_per_second]
    return doubts(report, diagnosis, made[0].dialect) if made else None


def in_time(bench: Bench, usual_seconds: float) -> bool:
    """Whether a stage would end within a clear case's share of the budget."""
    budget = bench.options.budget_seconds
    takes = usual_seconds * budget / allowance.USUAL_BUDGET_SECONDS
    return bench.elapsed() + takes + CLOSING_SECONDS <= CLEAR_SHARE * budget
