"""What a disk on a copy's way did alone: what the rules of the disk's causes start from."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.disk_zones import Place, Zones, place_of, zones_under
from bottleneck.analysis.finding import Ceiling, Claim, Standing
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report, median_run
from bottleneck.reports.units import rate_text

DOES = {"read": "reads", "write": "writes"}


@dataclass(frozen=True)
class Alone:
    """The best step of one side's disk in a copy's direction."""

    report: Report
    copy: Copy
    side: str
    verb: str
    """read, write."""
    best: Found

    @property
    def disk(self) -> str:
        """As a person calls it: "the server's disk"."""
        return f"the {self.side}'s disk"

    @property
    def rate(self) -> float:
        """Median of its runs, bytes per second."""
        return self.best.rate.median

    @property
    def moved_bytes(self) -> int:
        """Payload of the median run."""
        run = median_run(self.best.outcome)
        return run[-1].moved_bytes - run[0].moved_bytes

    @property
    def seconds(self) -> float:
        """Time of the median run."""
        run = median_run(self.best.outcome)
        return run[-1].elapsed_seconds - run[0].elapsed_seconds

    @property
    def place(self) -> Place | None:
        """Where its file lies; None: not known."""
        return place_of(self.best)

    @property
    def zones(self) -> Zones | None:
        """The zones of the device that its file lies on; None: not measured.

        Of a write those that were read, where none were written: a disc turns alike for both.
        """
        for verb in dict.fromkeys((self.verb, "read")):
            found = zones_under(self.report, self.side, verb, self.place)
            if found is not None:
                return found
        return None

    def ceiling(self, cause: str, standing: Standing = "measured") -> Ceiling:
        """The rate of the step, by the cause of it."""
        rate = self.best.rate
        return Ceiling(
            component="disk",
            side=self.side,
            cause=cause,
            bytes_per_second=rate.median,
            low_bytes_per_second=rate.low,
            high_bytes_per_second=rate.high,
            steps=(self.best.index,),
            standing=standing,
        )

    def without(self, where: str, bytes_per_second: float, *steps: int) -> Claim:
        """What the same disk allows once the cause is gone, by the figures of other steps."""
        return Claim(
            Ceiling(
                component="disk",
                side=self.side,
                cause=self.verb,
                bytes_per_second=bytes_per_second,
                low_bytes_per_second=bytes_per_second,
                high_bytes_per_second=bytes_per_second,
                steps=steps,
                standing="inferred",
            ),
            words=f"{self.disk} {DOES[self.verb]} no faster than {rate_text(bytes_per_second)} "
            f"{where}",
        )
