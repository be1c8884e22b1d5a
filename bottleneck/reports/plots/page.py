"""Which drawings a page has, and in which order."""

from __future__ import annotations

from itertools import chain

from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import Report
from bottleneck.reports.plots.cells import cores
from bottleneck.reports.plots.charts import Plot
from bottleneck.reports.plots.copies import timeline
from bottleneck.reports.plots.stages import latencies, requests, sweeps, windows
from bottleneck.reports.plots.zones import zones

MOST_PLOTS = 16


def plots(report: Report, diagnosis: Diagnosis) -> tuple[Plot, ...]:
    """What can be drawn of a report, what a reader wants first in front; at most MOST_PLOTS.

    Each drawing is SVG for a page with the style sheet "plots"; what the report does not
    have is not drawn.
    """
    found = chain(
        timeline(report, diagnosis),
        zones(report, diagnosis),
        cores(report, diagnosis),
        windows(diagnosis),
        requests(diagnosis),
        sweeps(report, diagnosis),
        latencies(report, diagnosis),
    )
    return tuple(found)[:MOST_PLOTS]
