"""What a wanted rate needs: every limit that has to rise, and by how much."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import cap as caps
from bottleneck.analysis import model, references, sentences
from bottleneck.analysis.cap import Cap
from bottleneck.analysis.finding import Ceiling, Claim, Ladder, Need, Target
from bottleneck.analysis.outlook import READ_LATE, WRITE_LATE
from bottleneck.analysis.rules.registry import BY_WORDS
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, rate_text, times_text

TOOL_SHARE = 2 / 3
"""Of its own ceiling, up to which this tool's results speak of the path."""


def target(
    wanted: float, report: Report, copy: Copy, made: Found, cap: Cap | None, ladder: Ladder
) -> Target:
    """What has to change for a copy to reach a rate, bytes per second; lowest ceiling first."""
    if made.rate.median >= wanted:
        return Target(wanted, True)
    asked = _Asked(wanted, report, copy, made, cap, ladder)
    return Target(wanted, False, tuple(asked.needs()), tuple(asked.unknown()))


class _Asked:
    """A rate that is wanted of a copy that does not reach it."""

    def __init__(
        self,
        wanted: float,
        report: Report,
        copy: Copy,
        made: Found,
        cap: Cap | None,
        ladder: Ladder,
    ) -> None:
        self.wanted, self.copy, self.made, self.cap, self.ladder = wanted, copy, made, cap, ladder
        links = [e.ceiling.bytes_per_second for e in ladder.valid if e.ceiling.is_link]
        carried = max(links, default=0.0)
        share = references.efficiency(report, copy, carried or wanted)
        if carried * share < wanted:
            # Another link may give another share: what is usual for the one that is needed.
            share = references.efficiency(report, copy, wanted / share)
            carried = references.link_payload(model.faster_link(wanted / share))
        self.share = share
        self.transfer = max(wanted, carried * share)
        """What a copy gets of the link that is there, or of the one that is needed."""

    def needs(self) -> Iterator[Need]:
        """Each ceiling below what its component has to allow."""
        if self.cap is not None and self.cap.claim.ceiling.component == "instrument":
            return
        for claim in self._lowest():
            ceiling = claim.ceiling
            to = self._needed(claim)
            if to > ceiling.bytes_per_second:
                sentence = self._sentence(ceiling, to)
                yield Need(*ceiling.named, ceiling.bytes_per_second, to, sentence)

    def unknown(self) -> Iterator[str]:
        """What was not measured, and what this tool cannot show."""
        rate = rate_text(self.wanted)
        if self.cap is None:
            yield (
                f"The bottleneck at {rate_text(self.made.rate.median)} was not identified: these "
                f"changes may not be enough for {rate}."
            )
        parts = caps.unknown_parts(self.copy, self.ladder, self.wanted)
        if parts:
            names = " and ".join(sentences.part_name(part) for part in parts)
            yield f"Not measured: whether {names} would allow {rate}."
        tools = [each.ceiling for each in self.ladder.valid if each.ceiling.tool]
        least = min(tools, key=lambda each: each.bytes_per_second, default=None)
        if least is not None and self.wanted > TOOL_SHARE * least.bytes_per_second:
            yield (
                f"This tool itself moves at most {rate_text(least.bytes_per_second)} on the "
                f"{least.side}, too little to measure {rate}."
            )

    def _lowest(self) -> Iterator[Claim]:
        """The lowest of each component and cause; what the load was scaled up to, once a part."""
        seen = set()
        for claim in self.ladder.valid:
            ceiling = claim.ceiling
            estimated = ceiling.standing == "estimated"
            kind = (ceiling.part, "" if estimated else ceiling.cause)
            if not ceiling.tool and kind not in seen:
                seen.add(kind)
                yield claim

    def _needed(self, claim: Claim) -> float:
        ceiling = claim.ceiling
        needed = self.wanted
        if ceiling.component == "disk":
            late = READ_LATE if ceiling.side == self.copy.sender else WRITE_LATE
            needed = model.needed_behind(self.wanted, self.transfer, late.median)
        elif ceiling.is_link:
            needed = self.wanted / self.share
        if self.cap is not None and claim == self.cap.claim:
            # It is what holds the copy, however far the copy stays below it.
            below = ceiling.bytes_per_second / self.made.rate.median
            needed = max(needed, self.wanted * below)
        return needed

    def _sentence(self, ceiling: Ceiling, to: float) -> str:
        name = sentences.name(ceiling)
        now, needed = rate_text(ceiling.bytes_per_second), rate_text(to)
        label = BY_WORDS[ceiling.component, ceiling.cause].label
        match ceiling.component, ceiling.cause:
            case "network", "link-rate":
                link = link_text(model.faster_link(to))
                return f"{name} must carry {needed} (now {now}): use a {link} link"
            case "disk", "read" | "write":
                return f"{name} must {ceiling.cause} {needed} (now {now})"
            case "cpu" | "instrument", _:
                times = times_text(to / ceiling.bytes_per_second)
                return f"{name} must do {times} as much (now about {now}, estimated from its load)"
            case _:
                return f"{name} must allow {needed} (now {now}, limited by: {label})"
