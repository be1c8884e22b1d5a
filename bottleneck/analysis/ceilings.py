"""All ceilings of one copy: every rule is asked, and what the copy itself refutes is dropped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import (
    bus,
    cache_size,
    cold_twin,
    congestion_control,
    contention,
    cpu,
    delay,
    disk,
    duplex,
    instrument,
    link_end,
    link_rate,
    loss,
    loss_one_end,
    mount,
    mtu,
    receive_window,
    round_trips,
    running,
    send_buffer,
    server_flush,
    server_software,
    server_stops,
    smb_dialect,
    smb_security,
    swap,
    told_ceilings,
    window_one_end,
    writeback,
)
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.sentences import name_with_verb
from bottleneck.analysis.steps import Copy
from bottleneck.report import Report
from bottleneck.reports.units import rate_text

Rule = Callable[[Report, Copy], Iterator[Claim | str]]
Refine = Callable[[Report, Copy, Sequence[Claim]], Iterator[Claim]]

RULES: tuple[Rule, ...] = (
    disk.rule,
    link_rate.rule,
    duplex.rule,
    bus.rule,
    contention.rule,
    cpu.rule,
    instrument.rule,
    round_trips.rule,
    mount.rule,
    receive_window.rule,
    send_buffer.rule,
    congestion_control.rule,
    loss.rule,
    delay.rule,
    mtu.rule,
    running.rule,
    told_ceilings.rule,
    cold_twin.rule,
    cache_size.rule,
    writeback.rule,
    swap.rule,
    server_flush.rule,
    server_stops.rule,
    window_one_end.rule,
    loss_one_end.rule,
)
"""Each yields ceilings of a copy that was made, and remarks for its evidence."""

REFINEMENTS: tuple[Refine, ...] = (
    smb_security.refine,
    smb_dialect.refine,
    server_software.refine,
    link_end.refine,
)
"""Each takes all claims of a copy, and puts the cause behind a finding in the finding's place, or
adds what only follows from all of them."""

REFUTED_RATIO = 1.1
"""A copy this far above a ceiling shows that it was none."""


@dataclass(frozen=True)
class Ladder:
    """What is known of one copy's ceilings."""

    claims: tuple[Claim, ...]
    """Lowest first."""
    remarks: tuple[str, ...]

    @property
    def valid(self) -> tuple[Claim, ...]:
        """Those that are the component's own and not mere lower bounds."""
        return tuple(each for each in self.claims if each.ceiling.standing != "at-least")


def ladder(report: Report, copy: Copy, copy_rate: float) -> Ladder:
    """The ceilings of a copy that ran at a rate, bytes per second."""
    claims: list[Claim] = []
    remarks: list[str] = []
    for rule in RULES:
        for found in rule(report, copy):
            if isinstance(found, str):
                remarks.append(found)
            elif not _refuted(found, copy_rate):
                claims.append(found)
            elif found.ceiling.standing != "at-least":
                alone = rate_text(found.ceiling.bytes_per_second)
                remarks.append(
                    f"The copy ran at {rate_text(copy_rate)}, so that the {alone} of "
                    f"{name_with_verb(found.ceiling)} alone are no ceiling of it."
                )
    for refine in REFINEMENTS:
        claims = list(refine(report, copy, claims))
    claims.sort(key=lambda each: each.ceiling.bytes_per_second)
    return Ladder(tuple(claims), tuple(dict.fromkeys(remarks)))


def _refuted(claim: Claim, copy_rate: float) -> bool:
    ceiling = claim.ceiling
    margin = 1.0 if ceiling.standing == "at-least" else REFUTED_RATIO
    return ceiling.bytes_per_second * margin < copy_rate
