"""Files that a user names as reports, with every way in which they can be none."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bottleneck import observations, report, ticket_reading
from bottleneck.report import Report
from bottleneck.reports import units
from probes.stage import Refused


def load(file: Path) -> Report:
    """The report in a file, or the one that observations or a ticket's figures amount to.

    Raises:
        Refused: kind "usage": it cannot be read, or it is none of them.
    """
    try:
        content = report.read(file)
        if observations.is_toml(content):
            return observations.told_report(observations.loads(content))
        if ticket_reading.is_ticket(content):
            return ticket_reading.told_report(content)
        document = report.document(content)
        if observations.is_one(document):
            return observations.told_report(observations.loads(content, document))
        return report.from_json(document)
    except report.ReportError as error:
        raise Refused("usage", f"{file}: {error}") from None
    except OSError as error:
        raise Refused("usage", f"{file}: {error.strerror}") from None


def target_rate(text: str | None) -> float | None:
    """Bytes per second of --target-rate; None: it was not given.

    Raises:
        Refused: kind "usage": it is no rate.
    """
    try:
        rate = None if text is None else units.parse_rate(text)
    except units.UnitError as error:
        raise Refused("usage", f"--target-rate: {error}") from None
    if rate is not None and rate < 1:
        raise Refused(
            "usage", f"--target-rate: {(text or '')[:40]!r} is less than a byte per second"
        )
    return rate


def wanted(loaded: Report, text: str | None) -> Report:
    """A report with the rate of --target-rate; without one the report's own stays.

    Raises:
        Refused: kind "usage": it is no rate.
    """
    rate = target_rate(text)
    return loaded if rate is None else replace(loaded, target_rate_bytes_per_second=rate)
