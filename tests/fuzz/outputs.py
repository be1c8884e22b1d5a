"""Outputs of other tools: figures that can be, or ReportError, whatever format is asked."""

from __future__ import annotations

import math
import random

import json_mutation

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.estimate.observations import Copy
from bottleneck.estimate.supplied_report import report_of
from bottleneck.readers import case, registry
from bottleneck.readers.figure import Output
from bottleneck.report.report import ReportError


def one_input(data: bytes) -> None:
    text = registry.text_of(data)
    registry.reader_of(text)
    for each in registry.FORMATS:
        try:
            figures = tuple(each.read(Output(text, "client")))
            report = report_of(
                case.case_of_figures((*figures, Copy("pull.uncached", 1e8)), "2026-11-28")
            )
        except ReportError as error:
            assert "\n" not in str(error), error
            continue
        for figure in figures:
            for value in [] if isinstance(figure, str) else vars(figure).values():
                assert not isinstance(value, float) or 0 <= value < math.inf, figure
        diagnose(report)


def mutated(data: bytes, chance: random.Random) -> bytes:
    """JSON with one of its values changed. Errors: ValueError, RecursionError."""
    return json_mutation.mutated(data, chance)
