"""What a disk on a copy's way did alone: what the rules of the disk's causes start from."""

from __future__ import annotations

from dataclasses import dataclass

from bottleneck.analysis.claim import claim
from bottleneck.analysis.disk_zones import Place, Zones, place_of, zones_under
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.rules.disk import read, write
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report import Report
from bottleneck.reports.units import rate_text

DOES = {"read": "reads", "write": "writes"}
CAUSES = {"read": read.CAUSE, "write": write.CAUSE}


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

    def without(self, where: str, bytes_per_second: float, *steps: int) -> Claim:
        """What the same disk allows once the cause is gone, by the figures of other steps."""
        rate = rate_text(bytes_per_second)
        return claim(
            CAUSES[self.verb],
            self.side,
            None,
            f"{self.disk} {DOES[self.verb]} no faster than {rate} {where}",
            level=bytes_per_second,
            steps=steps,
            standing="inferred",
        )
