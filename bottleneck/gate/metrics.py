"""Closed set of metrics that a gate may check, and their figures in a report; pure.

headline                              the copy that the summary speaks of
[server.|file.](pull|push).(cached|uncached)[@DIALECT]
                                      a copy; without a dialect the one that a user would make
pull.memory push.memory               the same without the client's disk
tcp.pull tcp.push                     one TCP connection; tcp.pull.many: several at once
disk.SIDE.read disk.SIDE.write        a disk; disk.SIDE.synced, disk.SIDE.sustained: its writes
loopback.client loopback.server       what a host moves to itself
latency                               a small message out and its answer back, seconds
path.rtt                              a round trip while the path is idle, seconds
small-files.pull small-files.push     what one small file costs, seconds
loss                                  share of the bytes or segments that TCP sent again
cpu.client cpu.server                 the busiest core during the headline's copy, a ratio
memory.client memory.server           RAM in use then, without the page cache, a ratio
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from bottleneck.analysis import rtt, steps
from bottleneck.analysis.evidence.details import Setting
from bottleneck.analysis.finding import CopyDiagnosis, Diagnosis
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report, Step
from probes.core import lenient
from probes.core.records import DIALECTS, OWN_COPIES, SIDES, Failed, Skipped, Spread

Unit = Literal["bytes_per_second", "seconds", "ratio", ""]

HEADLINE = "headline"
NAMED_COPIES = tuple(f"{begin}{copy}" for begin in ("", "server.", "file.") for copy in OWN_COPIES)
_DISKS = ("read", "write", "synced", "sustained")
_RATES = (
    HEADLINE,
    *NAMED_COPIES,
    *(f"{verb}.memory" for verb in steps.VERBS),
    *(f"tcp.{verb}{many}" for verb in steps.VERBS for many in ("", ".many")),
    *(f"disk.{side}.{which}" for side in SIDES for which in _DISKS),
    *(f"loopback.{side}" for side in SIDES),
)
_SECONDS = ("latency", "path.rtt", *(f"small-files.{verb}" for verb in steps.VERBS))
_RATIOS = ("loss", *(f"{part}.{side}" for part in ("cpu", "memory") for side in SIDES))
UNITS: dict[str, Unit] = {
    **dict.fromkeys(_RATES, "bytes_per_second"),
    **dict.fromkeys(_SECONDS, "seconds"),
    **dict.fromkeys(_RATIOS, "ratio"),
}
"""Every metric and the unit of its figures; copies may have @DIALECT besides."""
_LIKE_DIALECTS = (*DIALECTS, steps.NATIVE, "none", "unknown")
_NEAR, _NEAR_CUTOFF = 4, 0.5


class ExpectationError(ValueError):
    """Words are no expectation, or no metric; the message is one line."""


@dataclass(frozen=True)
class Reading:
    """Figure of one metric in a report."""

    metric: str
    unit: Unit
    value: float | None
    """None: not measured."""
    reason: str = ""
    """Reason why it was not measured."""
    spread: Spread | None = None
    """Spread of a rate over its runs."""
    copy: CopyDiagnosis | None = None
    """Copy whose rate it is."""
    step: MeasuredStep | None = None
    """Step that measured it."""


def check(metric: str) -> str:
    """Returns the metric. Errors: ExpectationError if there is none of that name."""
    name, separator, dialect = metric.partition("@")
    if name in UNITS and (not separator or name in NAMED_COPIES and dialect in _LIKE_DIALECTS):
        return metric
    if separator and name in NAMED_COPIES:
        raise ExpectationError(f"{dialect[:40]!r}: must be one of {', '.join(_LIKE_DIALECTS[:-2])}")
    if separator and name in UNITS:
        raise ExpectationError(f"{name}: cannot have a dialect")
    near = difflib.get_close_matches(name.lower()[:80], UNITS, _NEAR, _NEAR_CUTOFF)
    hint = f"similar: {', '.join(near)}" if near else f"must be one of {', '.join(UNITS)}"
    raise ExpectationError(f"metric {name[:40]!r} not found; {hint}")


def unit(metric: str) -> Unit:
    return UNITS[metric.partition("@")[0]]


def readings(report: Report, diagnosis: Diagnosis, verified: bool = False) -> dict[str, Reading]:
    """Returns all readings of a report by name; of two steps for one metric the first measured.

    Copies come first, in the diagnosis' order. A copy's plain name stands for the dialect that a
    user would copy with; each copy is also listed as NAME@DIALECT. verified: a copy whose source
    was not proven to be in, or out of, the sender's cache counts as not measured.
    """
    by_name: dict[str, Reading] = {}
    copies = _copies(report, diagnosis, verified)
    for each in (*copies, *_stages(report), *_figures(report, diagnosis)):
        earlier = by_name.get(each.metric)
        if earlier is None or earlier.value is None and each.value is not None:
            by_name[each.metric] = each
    return by_name


def metric_reading(by_name: Mapping[str, Reading], metric: str) -> Reading:
    """Returns the reading of a metric; one that was not tried has no value."""
    return by_name.get(metric) or Reading(metric, unit(metric), None, "not in the report")


def _copies(report: Report, diagnosis: Diagnosis, verified: bool = False) -> Iterator[Reading]:
    copy_steps, headline = steps.made_copies(report), diagnosis.main_copy
    for copy in sorted(diagnosis.copies, key=lambda each: each is not headline):
        rate = copy.bytes_per_second
        step = copy_steps.get((copy.copy, copy.dialect, copy.initiator, rate or 0.0))
        why = copy.verdict.sentence if rate is None else ""
        if verified and step is not None and step.details.cache.proven is not True:
            rate, why = None, "the page cache was not verified (use an agent)"
        names = [f"{copy.copy}@{copy.dialect}", copy.copy]
        for name in [*names, HEADLINE] if copy is headline else names:
            if name in UNITS or "@" in name:
                spread = None if step is None else step.rate
                yield Reading(name, "bytes_per_second", rate, why, spread, copy, step)


def _stages(report: Report) -> Iterator[Reading]:
    """Yields the rate of each stage that is a metric."""
    for index, (step, outcome) in enumerate(report.entries):
        name = stage_metric(step)
        if name is None:
            continue
        measured, rate = steps.found_at(report, index), None
        match outcome:
            case Skipped(reason):
                why = reason
            case Failed(error):
                why = f"failed: {error}"
            case _:
                why = f"{step.stage} moved no data"
        if measured is not None and measured.is_intact:
            rate, why = measured.rate, ""
        value = None if rate is None else rate.median
        yield Reading(name, "bytes_per_second", value, why, rate, step=measured)


def stage_metric(step: Step) -> str | None:
    """Returns the metric that a step measures; None: none of the set, or a copy."""
    setting, name = lenient.record(Setting, step.setting), ""
    match step.stage:
        case "loopback":
            name = f"loopback.{step.initiator}"
        case "tcp" if steps.is_undisturbed(step):
            name = f"tcp.{setting.verb}" + (".many" if (setting.streams or 1) > 1 else "")
        case "disk" if setting.cache != "cached":
            is_sequential = setting.pattern in ("", "sequential")
            name = f"disk.{setting.side}.{setting.verb if is_sequential else setting.pattern}"
        # A second dialect, measured beside the share's own, is no reference.
        case "smb-copy" if "engine" not in step.setting and setting.dialect != "smb1":
            if setting.end == "memory" and step.initiator == "client":
                name = f"{setting.copy.partition('.')[0]}.memory"
    return name if name in UNITS else None


def _figures(report: Report, diagnosis: Diagnosis) -> Iterator[Reading]:
    """Yields the metrics that are no rates."""
    headline = next((e.step for e in _copies(report, diagnosis) if e.metric == HEADLINE), None)
    for metric, value in (*_step_metrics(report, headline), *_host_metrics(headline)):
        if value is not None:
            yield Reading(metric, unit(metric), value)


def _step_metrics(
    report: Report, headline: MeasuredStep | None
) -> Iterator[tuple[str, float | None]]:
    for step, outcome in report.entries:
        details = getattr(outcome, "details", None)
        verb = steps.word(step.setting, "verb")
        match step.stage:
            case "latency":
                middle = steps.positive(details, "percentiles", "p50_seconds")
                yield "latency", middle or steps.positive(details, "fit", "latency_seconds")
            case "path":
                middle = steps.positive(details, "rtt", "handshake", "median_seconds")
                yield "path.rtt", middle
            case "small-files" if verb in steps.VERBS and not step.setting.get("tree"):
                yield f"small-files.{verb}", steps.positive(details, "seconds_per_file")
    trip = rtt.rtt(report, headline)
    # The time of a single connect includes the delay of a busy host.
    yield "path.rtt", trip.seconds if trip is not None and trip.is_echo else None
    limits = (each.details.limits for each in steps.measured_steps(report, "tcp"))
    lost = [each.loss_ratio for each in limits if each and each.loss_ratio is not None]
    yield "loss", max(lost, default=None)


def _host_metrics(headline: MeasuredStep | None) -> Iterator[tuple[str, float | None]]:
    """Yields the load of both hosts during the headline's copy."""
    for side in SIDES:
        usage = None if headline is None else headline.usage(side)
        if usage is not None and usage.core_busy_ratios:
            yield f"cpu.{side}", min(1.0, usage.busiest_core_ratio)
        if usage is not None and usage.memory_used_bytes is not None and usage.memory_total_bytes:
            yield f"memory.{side}", usage.memory_used_bytes / usage.memory_total_bytes
