"""What a report has to say beside its figures: costly settings, what is missing, why it was made.

Lines in the words of the report; each output makes them safe in its own way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bottleneck.report import Report
from bottleneck.reports.safe import safe
from bottleneck.reports.units import seconds_text
from bottleneck.reports.words import stage_text
from probes.records import Failed, Skipped

LONGEST_REASON = 200


def costly_server_settings(report: Report) -> tuple[str, ...]:
    """Lines of the file server's configuration that cost throughput, as its agent found them."""
    return tuple(_costly_server_settings(report))


def _costly_server_settings(report: Report) -> Iterator[str]:
    told = report.target.get("smb_conf")
    for each in told if isinstance(told, list) else ():
        if isinstance(each, dict):
            words = {key: str(each.get(key) or "") for key in ("option", "value", "why", "remedy")}
            yield "{option} = {value}: {why}; {remedy}".format_map(words)


def costly_host_settings(
    report: Report, field: Literal["tcp_settings", "disk_settings"]
) -> tuple[str, ...]:
    """Settings of both hosts that cost throughput: of TCP, or below their folders."""
    return tuple(
        f"{side}: {each.option} = {each.value}: {each.why}; {each.remedy}"
        f"{'' if each.tested else ' (untested on such a system)'}"
        for side, host in (("client", report.client), ("server", report.server))
        for each in (getattr(host, field) if host else ())
    )


def missing(report: Report) -> tuple[str, ...]:
    """What was not measured: each reason once, with all the steps that it holds for."""
    reasons: dict[str, list[str]] = {}
    for step, outcome in report.entries:
        match outcome:
            case Skipped(reason):
                reasons.setdefault(reason, []).append(stage_text(step))
            case Failed(error, samples):
                after = f" after {seconds_text(samples[-1].elapsed_seconds)}" if samples else ""
                reasons.setdefault(f"failed{after}: {error}", []).append(stage_text(step))
    return tuple(f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in reasons.items())


def reasons(report: Report) -> tuple[str, ...]:
    """Why steps were made: each reason once, with the steps that were made for it."""
    made: dict[str, list[str]] = {}
    for step, _ in report.entries:
        if step.why:
            made.setdefault(safe(step.why, LONGEST_REASON), []).append(stage_text(step))
    return tuple(f"{why}: {', '.join(dict.fromkeys(names))}" for why, names in made.items())
