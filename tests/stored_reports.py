"""Stored reports and what they mean, each read and diagnosed once: neither ever changes."""

from __future__ import annotations

import gzip
from functools import cache
from pathlib import Path

from bottleneck.analysis import diagnosis
from bottleneck.analysis.finding import Diagnosis
from bottleneck.report import report
from bottleneck.report.report import Report
from bottleneck.text.units import rate_text

_LOADED: dict[int, Report] = {}


@cache
def load(path: Path) -> Report:
    packed = path.suffix == ".gz"
    example = report.loads(gzip.decompress(path.read_bytes())) if packed else report.load(path)
    return _LOADED.setdefault(id(example), example)


@cache
def _diagnosed(identity: int, style: str) -> Diagnosis:
    """The sentences hold rates in the style that is on."""
    return diagnosis.diagnose(_LOADED[identity])


def diagnose(report: Report) -> Diagnosis:
    """Returns the diagnosis of a report; of one that `load` gave, found once."""
    style = rate_text(1e6)
    return _diagnosed(id(report), style) if id(report) in _LOADED else diagnosis.diagnose(report)
