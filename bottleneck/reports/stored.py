"""The report itself, with its diagnosis, as JSON."""

from __future__ import annotations

from bottleneck import report
from bottleneck.reports.formats import Shown


def document(shown: Shown) -> str:
    """See formats; what `explain` reads."""
    return report.dumps(shown.report, shown.diagnosis)
