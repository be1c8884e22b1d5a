"""A judgement and its report as metrics, for node_exporter's textfile collector and for scrapes.

The text is valid as OpenMetrics 1.0 and as Prometheus' text format 0.0.4 at once, because
node_exporter reads the latter alone (its issue 1988): gauges only, no timestamps, and HELP texts
without quotes, which the two escape differently. To the older format `# EOF` and `# UNIT` are
comments. When it was measured is a metric of its own: node_exporter refuses files with timestamps.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

from prometheus_client.metrics_core import GaugeMetricFamily
from prometheus_client.openmetrics.exposition import generate_latest

from bottleneck.analysis.finding import CopyDiagnosis
from bottleneck.analysis.phrases import stage_text
from bottleneck.gate.judged import EXIT_CODES, LONGEST_TEXT, Judgement, Ruling, share_of
from bottleneck.gate.judging import COPY_STAGES
from bottleneck.report.report import STATUSES, Report, started_utc
from bottleneck.text.safe import safe
from probes.core.records import Measured, rates

PREFIX = "copy_bottleneck_"
LONGEST_LABEL = 120
MOST_SAMPLES = 500
"""Samples of one family: a stranger's report may not flood a monitoring system."""
UNITS = ("bytes_per_second", "seconds", "ratio")
_COPY = ("share", "copy", "dialect", "initiator")
_CAP = (*_COPY, "component", "side", "cause")
_METRIC = ("share", "metric")


@dataclass(frozen=True)
class Family:
    """One metric: its labels and its help text."""

    labels: tuple[str, ...]
    help: str


_CONFIDENCE = (
    "Confidence, 0 to 1, that this component limits the copy; 0 with component unknown: "
    "bottleneck not identified."
)
FAMILIES = {
    "copy_bytes_per_second": Family(_COPY, "Median rate of a copy."),
    "copy_predicted_bytes_per_second": Family(
        _COPY, "Predicted rate of a copy without its bottleneck."
    ),
    "cap_confidence": Family(_CAP, _CONFIDENCE),
    "cap_ceiling_bytes_per_second": Family(_CAP, "Limit of the component that limits the copy."),
    "ceiling_bytes_per_second": Family(
        (*_CAP, "standing"),
        "Limit of one component for a copy; with standing at-least: this or more.",
    ),
    "copy_time_ratio": Family(
        (*_COPY, "component", "side"), "Share of the time of a copy in which a component had work."
    ),
    "stage_bytes_per_second": Family(
        ("share", "stage", "step", "side", "verb"),
        "Median rate of a stage measured separately; the first of several alike.",
    ),
    "expectation_bytes_per_second": Family(_METRIC, "Measured rate of an expectation."),
    "expectation_seconds": Family(_METRIC, "Measured time of an expectation."),
    "expectation_ratio": Family(_METRIC, "Measured ratio of an expectation."),
    "expectation_state": Family(
        (*_METRIC, "expectation", "state"), "1 for the state of an expectation, 0 for the others."
    ),
    "check_state": Family(
        ("share", "state"), "1 for the state of the whole check, 0 for the others."
    ),
    "report_status": Family(("share", "status"), "1 for the status of the run, 0 for the others."),
    "report_timestamp_seconds": Family(("share",), "Start of the run, in seconds since 1970."),
    "report_duration_seconds": Family(("share",), "Duration of the run."),
    "build_info": Family(("share", "version"), "Always 1; version of the program that measured."),
}
"""Every metric by its name, in the order of the text."""

Row = tuple[str, tuple[str, ...], float]
"""A family's name, the values of its labels, the sample."""


def openmetrics_text(judgement: Judgement, share: str = "") -> str:
    """Returns metrics with HELP and TYPE, `# EOF` at the end; what was not measured is absent.

    Args:
        share: the share's name where there is no report that tells it: without it two checks
            that found none would write the same samples, which node_exporter refuses.
    """
    target = share_of(judgement) or safe(share, LONGEST_TEXT)
    families: dict[str, dict[tuple[str, ...], float]] = {name: {} for name in FAMILIES}
    for name, labels, value in _rows(judgement):
        samples = families[name]
        # The same labels twice are refused by every reader: the first is kept.
        if math.isfinite(value) and len(samples) < MOST_SAMPLES:
            samples.setdefault((target, *(safe(each, LONGEST_LABEL) for each in labels)), value)
    gauges = [_gauge(name, samples) for name, samples in families.items() if samples]
    write: Any = generate_latest
    text: str = write(SimpleNamespace(collect=lambda: gauges)).decode("utf-8")
    return text


def _gauge(name: str, samples: dict[tuple[str, ...], float]) -> GaugeMetricFamily:
    family = FAMILIES[name]
    # A metric's unit is its name's end.
    unit = next((each for each in UNITS if name.endswith(f"_{each}")), "")
    gauge = GaugeMetricFamily(PREFIX + name, family.help, labels=family.labels, unit=unit)
    for labels, value in samples.items():
        gauge.add_metric(labels, value)
    return gauge


def _rows(judgement: Judgement) -> Iterator[Row]:
    for copy in judgement.diagnosis.copies if judgement.diagnosis else ():
        yield from _copy_rows(copy)
    for state in EXIT_CODES:
        yield "check_state", (state,), float(state == judgement.state)
    for each in judgement.judged:
        yield from _expectation_rows(each)
    if judgement.report is not None:
        yield from _report_rows(judgement.report)


def _copy_rows(copy: CopyDiagnosis) -> Iterator[Row]:
    labels = (copy.copy, copy.dialect, copy.initiator)
    if copy.bytes_per_second is not None:
        yield "copy_bytes_per_second", labels, copy.bytes_per_second
    if copy.predicted_bytes_per_second is not None:
        yield "copy_predicted_bytes_per_second", labels, copy.predicted_bytes_per_second.median
    verdict = copy.verdict
    cap = (*labels, verdict.component, verdict.side or "", verdict.cause)
    if verdict.cause != "not-measured":
        yield "cap_confidence", cap, verdict.confidence
    if verdict.ceiling_bytes_per_second is not None:
        yield "cap_ceiling_bytes_per_second", cap, verdict.ceiling_bytes_per_second
    for each in copy.ceilings:
        words = (*labels, each.component, each.side or "", each.cause, each.standing)
        yield "ceiling_bytes_per_second", words, each.bytes_per_second
    for share in copy.time:
        yield "copy_time_ratio", (*labels, share.component, share.side or ""), share.ratio


def _expectation_rows(judged: Ruling) -> Iterator[Row]:
    for state in EXIT_CODES:
        yield "expectation_state", (judged.metric, judged.name, state), float(state == judged.state)
    if judged.value is not None and judged.unit:
        yield f"expectation_{judged.unit}", (judged.metric,), judged.value


def _report_rows(report: Report) -> Iterator[Row]:
    for step, outcome in report.entries:
        if not isinstance(outcome, Measured) or step.stage in COPY_STAGES:
            continue
        try:
            rate = rates(outcome).median
        except (ValueError, IndexError):
            continue
        # A stage that moves no payload has no rate, and none is not 0.
        if rate > 0:
            values = [step.setting.get(key) for key in ("side", "verb")]
            side, verb = (each if isinstance(each, str) else "" for each in values)
            yield "stage_bytes_per_second", (step.stage, stage_text(step), side, verb), rate
    for status in STATUSES:
        yield "report_status", (status,), float(status == report.status)
    started = started_utc(report)
    if started is not None:
        yield "report_timestamp_seconds", (), started.timestamp()
    yield "report_duration_seconds", (), report.elapsed_seconds
    version = report.tool.get("version")
    if isinstance(version, str):
        yield "build_info", (version,), 1.0
