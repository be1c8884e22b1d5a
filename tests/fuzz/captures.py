"""Packet captures: CaptureError, or a report of bounded figures that can be judged."""

from __future__ import annotations

import io
import math

from bottleneck.analysis.diagnosis import diagnose
from bottleneck.captures import capture, captured_report
from bottleneck.captures.packets import CaptureError


def one_input(data: bytes) -> None:
    """Reads a file, and judges its copies."""
    try:
        report = captured_report.report_of(capture.read(io.BytesIO(data)))
    except CaptureError as error:
        assert str(error).isprintable(), error
        return
    for copy in diagnose(report).copies:
        assert copy.bytes_per_second is None or 0 < copy.bytes_per_second < math.inf
        assert 0 <= copy.verdict.confidence <= 1
