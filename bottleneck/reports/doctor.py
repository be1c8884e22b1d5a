"""The doctor's checks for a person, one line each, and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Console
from rich.text import Text

from bottleneck.doctor.look import COSTS, MISSING, OK, Check
from bottleneck.reports.safe import safe

SCHEMA = "copy-bottleneck/doctor/1"
LONGEST = 600
_STYLES = {OK: "green", COSTS: "yellow", MISSING: "bold red"}
_HEADINGS = {"client": "This host", "share": "The share", "server": "The server"}


def print_checks(checks: Sequence[Check], console: Console) -> None:
    """Every check under its host's heading, with what to do about it and which stages it costs."""
    for where, heading in _HEADINGS.items():
        own = [each for each in checks if each.where == where]
        if own:
            console.print(Text(heading, style="bold"))
        for each in own:
            _print(each, console)
    console.print(Text(summary(checks), style="bold"))


def _print(check: Check, console: Console) -> None:
    line = Text.assemble((f"  {check.state:<8}", _STYLES[check.state]))
    line.append(safe(check.sentence, LONGEST))
    console.print(line, soft_wrap=True)
    if check.state == OK:
        return
    more = [f"-> {check.remedy}"] if check.remedy else []
    if check.stages:
        word = "not measured" if check.state == MISSING else "touches"
        more.append(f"{word}: {', '.join(check.stages)}")
    if more:
        console.print(Text(" " * 10 + safe("; ".join(more), LONGEST)), soft_wrap=True)


def summary(checks: Sequence[Check]) -> str:
    """One line: how much of it is well."""
    missing = sum(each.state == MISSING for each in checks)
    costs = sum(each.state == COSTS for each in checks)
    detail = f"{costs} {'costs' if costs == 1 else 'cost'} detail"
    if not missing:
        return f"Ready: every stage can be measured{f'; {detail}' if costs else ''}."
    lost = (
        "1 thing is missing and costs"
        if missing == 1
        else f"{missing} things are missing, at the cost of"
    )
    return f"{lost} stages{f'; {detail}' if costs else ''}."


def to_json(checks: Sequence[Check]) -> dict[str, Any]:
    """The same as one document; stages of a check that is ok are empty."""
    return {
        "schema": SCHEMA,
        "ready": all(each.state != MISSING for each in checks),
        "checks": [
            {
                "where": each.where,
                "name": each.name,
                "state": each.state,
                "sentence": each.sentence,
                "remedy": each.remedy or None,
                "stages": list(each.stages),
            }
            for each in checks
        ],
    }
