"""What a report has to say beside its figures: costly settings, what is missing, and why."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Literal

from bottleneck.report import Report
from bottleneck.reports.document import Points, points
from bottleneck.reports.safe import safe
from bottleneck.reports.units import seconds_text
from bottleneck.reports.words import stage_text
from probes.records import Failed, Skipped

LONGEST_REASON = 200


def costly(report: Report, most: int | None = None) -> Iterator[Points]:
    """Settings of the server's file sharing and of both hosts that cost throughput."""
    title = "What costs throughput in the {}".format
    yield from points(title("server's smb.conf"), _server_settings(report), most)
    yield from points(title("hosts' TCP settings"), _host_settings(report, "tcp_settings"))
    title = "What costs throughput below the {}".format
    yield from points(title("hosts' folders"), _host_settings(report, "disk_settings"))


def _server_settings(report: Report) -> Iterator[str]:
    """Lines of the file server's configuration, as its agent found them."""
    told = report.target.get("smb_conf")
    for each in told if isinstance(told, list) else ():
        if isinstance(each, dict):
            words = {key: str(each.get(key) or "") for key in ("option", "value", "why", "remedy")}
            yield "{option} = {value}: {why}; {remedy}".format_map(words)


def _host_settings(
    report: Report, field: Literal["tcp_settings", "disk_settings"]
) -> Iterator[str]:
    for side, host in (("client", report.client), ("server", report.server)):
        for each in getattr(host, field) if host else ():
            untested = "" if each.tested else " (untested on such a system)"
            yield f"{side}: {each.option} = {each.value}: {each.why}; {each.remedy}{untested}"


def missing(report: Report) -> Iterator[Points]:
    """What was not measured."""
    yield from points("Not measured", missing_lines(report))


def missing_lines(report: Report) -> tuple[str, ...]:
    """Each reason once, with all the steps that it holds for; not safe."""
    reasons: dict[str, list[str]] = {}
    for step, outcome in report.entries:
        match outcome:
            case Skipped(reason):
                reasons.setdefault(reason, []).append(stage_text(step))
            case Failed(error, samples):
                after = f" after {seconds_text(samples[-1].elapsed_seconds)}" if samples else ""
                reasons.setdefault(f"failed{after}: {error}", []).append(stage_text(step))
    return tuple(f"{', '.join(dict.fromkeys(names))}: {why}" for why, names in reasons.items())


def reasons(report: Report) -> Iterator[Points]:
    """Why steps were made: each reason once, with the steps that were made for it."""
    made: dict[str, list[str]] = {}
    for step, _ in report.entries:
        if step.why:
            made.setdefault(safe(step.why, LONGEST_REASON), []).append(stage_text(step))
    told = (f"{why}: {', '.join(dict.fromkeys(names))}" for why, names in made.items())
    yield from points("Why each step was made", told)


def notes(report: Report) -> Iterator[Points]:
    """What the run had to say."""
    yield from points("Notes", report.notes)
