"""What a report itself shows of a copy without one of its stages, and of the shares copies get."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bottleneck.analysis import model, shown, steps
from bottleneck.analysis.evidence.copies import path_rate
from bottleneck.analysis.finding import Ceiling, Part
from bottleneck.analysis.steps import Copy, Found
from bottleneck.report.report import Report, median_run
from probes.core.records import Spread

REACHED_RATIO = 0.85
LIKE_RATIO = 2.0
"""Links whose rates are no further apart give copies alike shares."""
USUAL_RATIO, USUAL_SLOW_RATIO, USUAL_OTHERS_RATIO = 0.975, 0.99, 0.9
"""Of what TCP carries, this tool gets so much, of less than 50 MB/s more; others get less."""
SLOW_BYTES_PER_SECOND = 50e6
OPENING_ROUND_TRIPS = 3
"""Until a copy has filled its path, and again until its last reply."""
PLACED = ("seek", "zone")
_LESSER = {"signing": ("plain",), "encryption": ("signed", "plain")}


@dataclass(frozen=True)
class Reference:
    """A measurement of the same copy that leaves stages out."""

    rate: Spread
    lacks: frozenset[Part]
    """Stages that its bytes did not pass."""


def shown_without(report: Report, copy: Copy, gone: Sequence[Ceiling]) -> Reference | None:
    """The measurement that lacks all that is gone and as little else as can be; None: none does."""
    causes = {(each.component, each.cause) for each in gone}
    components = {component for component, _ in causes}
    if components == {"disk"}:
        if copy.of_file and {cause for _, cause in causes} <= set(PLACED):
            return _placed_well(report, copy)
        return _without_disks(report, copy, {each.part for each in gone})
    if components != {"smb"} or len(gone) != 1:
        return None
    if gone[0].side == "client" and copy.beside is not None:
        return Reference(copy.beside.rate, frozenset())
    if gone[0].cause == "dialect":
        return _newer(report, copy)
    return _unsecured(report, copy, gone[0].cause)


def _without_disks(report: Report, copy: Copy, parts: set[Part]) -> Reference | None:
    sending, own = ("disk", copy.sender), ("disk", copy.initiator)
    name = copy.name.replace(".uncached", ".cached")
    memory = next((each.memory for each in _likes(report, copy) if each.name == name), None)
    memory = memory if memory is not None and steps.from_ram(memory) else None
    found = [(copy.twin, {sending}), (copy.memory, {own}), (memory, {sending, own})]
    for made, lacks in found:
        if made is not None and parts <= lacks:
            return Reference(made.rate, frozenset(lacks))
    return None


def _placed_well(report: Report, copy: Copy) -> Reference | None:
    """A copy of this run's own file, which lies in one piece where there is room."""
    plain = copy.name.removeprefix(steps.OF_FILE)
    made = next((each.made for each in _likes(report, copy) if each.name == plain), None)
    return Reference(made.rate, frozenset()) if made is not None and made.intact else None


def _newer(report: Report, copy: Copy) -> Reference | None:
    """The fastest of the same copies in a newer dialect."""
    made = [
        each.made
        for each in steps.copies(report)
        if (each.name, each.initiator, each.engine) == (copy.name, copy.initiator, copy.engine)
        and not each.native
        and steps.age(each.dialect) > steps.age(copy.dialect)
    ]
    rates = [each.rate for each in made if each is not None and each.intact]
    best = max(rates, key=lambda rate: rate.median, default=None)
    return None if best is None else Reference(best, frozenset())


def _unsecured(report: Report, copy: Copy, cause: str) -> Reference | None:
    """The same bytes to or from memory with less security."""
    for security in _LESSER.get(cause, ()):
        for each in _taxed(report, copy):
            if each.setting.security == security:
                return Reference(each.rate, frozenset({("disk", "client"), ("disk", "server")}))
    return None


def _taxed(report: Report, copy: Copy) -> Iterator[Found]:
    for each in steps.measured(report, "smb-tax"):
        if each.sender == copy.sender and each.intact and each.setting.dialect == copy.dialect:
            yield each


def _likes(report: Report, copy: Copy) -> Iterator[Copy]:
    """The copies of the report by the same program in the same dialect, from the same side."""
    key = (copy.dialect, copy.initiator, copy.engine)
    for each in steps.copies(report):
        if (each.dialect, each.initiator, each.engine) == key:
            yield each


def demonstrated(report: Report, copy: Copy) -> float:
    """The most that was moved over SMB the same way: the CPUs are known to be able to.

    In bytes per second; 0: the copy itself could not be made.
    """
    found = shown.moved(report, copy.sender)
    alike = (each.bytes_per_second for each in found if shown.as_secure(copy, each))
    return max(alike, default=0.0)


def efficiency(report: Report, copy: Copy, link: float) -> float:
    """The share of a link's payload rate that a copy gets, as this report shows it.

    From the copies of this report that fill a link of about this rate, those in the same direction
    first; else the usual share, less the round trips that a copy begins and ends with.
    """
    alike = [each for each in _likes(report, copy) if each.cache == copy.cache]
    for same in (True, False):
        for pool in (alike, list(_likes(report, copy))):
            shares = [
                share
                for each in pool
                if (each.sender == copy.sender) is same
                for share in _shares(report, each, link)
            ]
            if shares:
                return max(shares)
    usual = USUAL_RATIO if copy.engine == steps.OWN else USUAL_OTHERS_RATIO
    usual = USUAL_SLOW_RATIO if link < SLOW_BYTES_PER_SECOND else usual
    return usual - min(0.1, _opening(copy))


def _shares(report: Report, copy: Copy, link: float) -> Iterator[float]:
    carried = path_rate(report, copy.sender)
    if carried is None or not link / LIKE_RATIO <= carried <= link * LIKE_RATIO:
        return
    for made in (copy.made, copy.memory):
        if made is not None and REACHED_RATIO * carried <= made.rate.median:
            yield min(1.0, made.rate.median / carried)
            return


def _opening(copy: Copy) -> float:
    """The round trips at both ends of a copy as a share of it."""
    rtt = None if copy.made is None else copy.made.details.rtt_seconds
    if copy.made is None or rtt is None:
        return 0.0
    return OPENING_ROUND_TRIPS * rtt / median_run(copy.made.outcome)[-1].elapsed_seconds


def link_bits(following: float, cap: float) -> int:
    """The standard link that lifts a link's cap to what comes next, bits per second."""
    # One step more for the last tenth of what the next component allows is not advice.
    return model.faster_link(max(0.9 * following, 1.1 * cap))


def link_payload(bits_per_second: float) -> float:
    """What a standard link carries at the usual MTU, bytes per second."""
    return bits_per_second / 8 * model.payload_efficiency()
