"""The headline's copy among those of a report: the drawings make it stand out."""

from __future__ import annotations

from bottleneck.analysis import steps
from bottleneck.analysis.finding import Diagnosis
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report


def headline(report: Report, diagnosis: Diagnosis) -> Copy | None:
    """The copy that the diagnosis' summary speaks of; None: there is none."""
    chosen = diagnosis.chosen
    if chosen is None:
        return None
    named = (chosen.copy, chosen.dialect, chosen.initiator)
    found = (e for e in steps.copies(report) if (e.name, e.dialect, e.initiator) == named)
    return next(found, None)
