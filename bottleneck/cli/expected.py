"""What `check` is told to expect, read from its options before anything is reached."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ParamSpec, TypeVar

from bottleneck.analysis.finding import Diagnosis
from bottleneck.cli import loading
from bottleneck.cli.documents import Output
from bottleneck.gate import expectation, judge
from bottleneck.gate.expectation import Expectation, ExpectationError
from bottleneck.gate.judged import Judgement
from bottleneck.report import Report
from probes.stage import Refused

T = TypeVar("T")
P = ParamSpec("P")


@dataclass(frozen=True)
class Terms:
    """What a report is judged by."""

    expectations: tuple[Expectation, ...]
    baseline: Report | None
    tolerance: float
    max_age_seconds: float | None

    @property
    def asked(self) -> bool:
        """Whether anything is expected at all."""
        return bool(self.expectations) or self.baseline is not None

    def shown_by(self, output: Output) -> Terms:
        """The same with the names in the baseline as the report's own are shown."""
        return (
            self
            if self.baseline is None
            else replace(self, baseline=output.showable(self.baseline))
        )

    def judge(self, report: Report, diagnosis: Diagnosis, age_seconds: float) -> Judgement:
        """A report judged by them."""
        return judge(
            report,
            diagnosis,
            self.expectations,
            self.baseline,
            tolerance=self.tolerance,
            age_seconds=age_seconds,
            max_age_seconds=self.max_age_seconds,
        )


def terms(
    warn: list[str] | None,
    crit: list[str] | None,
    expect_cap: list[str] | None,
    baseline: Path | None,
    tolerance: str,
    max_age: str | None,
) -> Terms:
    """The options, read.

    Raises:
        Refused: kind "usage": one is not what it has to be, or the baseline is no report.
    """
    found: list[Expectation] = []
    found += [_read("--warn", expectation.limit, each, "warning") for each in warn or ()]
    found += [_read("--crit", expectation.limit, each, "critical") for each in crit or ()]
    found += [_read("--expect-cap", expectation.cap, each) for each in expect_cap or ()]
    return Terms(
        tuple(found),
        None if baseline is None else loading.load(baseline),
        _read("--tolerance", expectation.share, tolerance),
        None if max_age is None else _read("--max-age", expectation.age, max_age),
    )


def _read(option: str, read: Callable[P, T], *told: P.args, **more: P.kwargs) -> T:
    try:
        return read(*told, **more)
    except ExpectationError as error:
        raise Refused("usage", f"{option}: {error}") from None
