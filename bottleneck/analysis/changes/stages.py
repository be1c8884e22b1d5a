"""The stages that two reports share, and whether their rates differ by more than the noise."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from bottleneck.analysis import noise, steps
from bottleneck.analysis.changes.found import RateChange
from bottleneck.analysis.steps import Found
from bottleneck.report import Report

COPIES = ("smb-copy", "native-copy")
_TELLING = (
    *("verb", "streams", "side", "cache", "pattern", "over", "security", "dialect"),
    *("copy", "end", "engine", "file_bytes"),
)
"""What makes a step another one; how long it ran and how much it moved does not."""


def changed_stages(before: Report, after: Report) -> Iterator[RateChange]:
    """Each stage of both, in the later one's order; copies to and from folders are left out."""
    first = _by_key(before)
    for key, new in _by_key(after).items():
        old = first.get(key)
        if old is not None:
            yield RateChange(
                stage=new.step.stage,
                setting=new.step.setting,
                initiator=new.step.initiator,
                before_bytes_per_second=old.rate,
                after_bytes_per_second=new.rate,
                ratio=new.rate.median / old.rate.median,
                significant=noise.differ(old.rate, new.rate),
            )


def _by_key(report: Report) -> dict[tuple[Any, ...], Found]:
    found: dict[tuple[Any, ...], Found] = {}
    for index, (step, _) in enumerate(report.entries):
        made = steps.found_at(report, index)
        memory = step.setting.get("end") == "memory"
        if made is not None and made.intact and (step.stage not in COPIES or memory):
            told = tuple(str(step.setting.get(name)) for name in _TELLING)
            found.setdefault((step.stage, step.initiator, *told), made)
    return found
