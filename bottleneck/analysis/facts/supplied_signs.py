"""Signs in the words and figures that a person supplied."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.disk_zones import rate_at, rates_by_place
from bottleneck.analysis.evidence.copies import host
from bottleneck.analysis.facts.record import BUSY, Fact, Level, Sign
from bottleneck.analysis.link_end import slower_link
from bottleneck.analysis.steps import Copy
from bottleneck.report.report import Report
from probes.core.records import SIDES

SUPPLIED = "supplied"
"""Engine of a copy whose program is not known."""
LOST_RATIO = 1e-3
ODD_FROM_BITS_PER_SECOND = 10_000_000
SLOW_ZONE_RATIO, BELOW_LINK_RATIO = 0.7, 0.7
FASTER_RATIO, OTHER_WAY_RATIO = 1.3, 2.0
MORE_RATIO, ALIKE_RATIO = 1.5, 1.15
"""TCP rate of the fastest client over the slowest's: one gets more; all get the same."""


def supplied_signs(report: Report, copy: Copy) -> Iterator[Sign]:
    """Yields all signs in a person's figures about one copy."""
    loss = steps.target_of(report).loss_ratio
    if loss and loss > LOST_RATIO:
        yield Sign("lost", None, loss, f"{loss:.2%} of the packets are lost")
    for side in SIDES:
        yield from _host_signs(report, side)
    words = copy.engine.casefold()
    is_synced = copy.setting.synced or "sync=always" in words.replace(" ", "")
    if is_synced and copy.verb == "push":
        yield Sign("synced", copy.receiver, words="each write is forced to the disk")
    if "signed" in words or "signing" in words or copy.setting.security == "signed":
        yield Sign("signed", words="its packets are signed")
    if copy.setting.security == "encrypted":
        yield Sign("encrypted", words="its packets are encrypted")
    yield from _zones(report, copy)
    yield from _other_copies(report, copy)
    yield from _paths(report, copy)
    yield from _clients(report, copy)


def supplied_facts(copy: Copy) -> Iterator[Fact]:
    """Yields what a person noted of both hosts' busiest cores during a copy."""
    setting = copy.setting
    for side, busy in (("client", setting.client_cpu_ratio), ("server", setting.server_cpu_ratio)):
        if busy is not None:
            words = f"the {side}'s busiest core was {min(1.0, busy):.0%} busy"
            yield Fact(("cpu", side), BUSY, Level.with_spread(min(1.0, busy)), words)


def _host_signs(report: Report, side: str) -> Iterator[Sign]:
    facts = host(report, side)
    if facts is None:
        return
    text = (facts.system or "").casefold()
    link = facts.interface.rate_bits_per_second if facts.interface is not None else None
    standard = link in model.LINK_BITS_PER_SECOND or (link or 0) <= ODD_FROM_BITS_PER_SECOND
    if any(each in text for each in ("wi-fi", "wifi", "wlan")) or not standard:
        yield Sign("radio", side, words="its link is Wi-Fi")


def _zones(report: Report, copy: Copy) -> Iterator[Sign]:
    for side, place in (
        (copy.sender, copy.setting.from_place_ratio),
        (copy.receiver, copy.setting.to_place_ratio),
    ):
        for step in steps.measured_steps(report, "disk"):
            zones = sorted(rates_by_place(step))
            if place is None or step.setting.side != side or not zones:
                continue
            share = rate_at(zones, place) / max(rate for _, rate in zones)
            if share < SLOW_ZONE_RATIO:
                words = f"the disk does {share:.0%} there of what it does elsewhere"
                yield Sign("slow-zone", side, share, words)


def _other_copies(report: Report, copy: Copy) -> Iterator[Sign]:
    for each in steps.copies(report) if copy.step is not None else ():
        same = (each.name, each.initiator) == (copy.name, copy.initiator)
        if each.step is None or copy.step is None or not same:
            continue
        if each.step.rate.median > FASTER_RATIO * copy.step.rate.median:
            both = {each.dialect, copy.dialect}
            by_dialect = len(both) == 2 and "unknown" not in both
            name = "faster-dialect" if by_dialect else "faster-program"
            over = f" over {steps.dialect_name(each.dialect)}" if by_dialect else ""
            by = "" if each.engine == SUPPLIED else f" with {each.engine}"
            yield Sign(name, None, each.step.rate.median, f"the same copy{by}{over} is faster")


def _paths(report: Report, copy: Copy) -> Iterator[Sign]:
    ahead, back = (
        max((e.rate.median for e in hardware_limits.believed_steps(report, side)), default=0.0)
        for side in (copy.sender, copy.receiver)
    )
    slow, level = slower_link(report), max(ahead, copy.step.rate.median if copy.step else 0.0)
    if slow is not None and level:
        mtu_bytes = steps.mtu_bytes(report) or model.ETHERNET_MTU_BYTES
        share = level / (slow.bits_per_second / 8 * model.payload_efficiency(mtu_bytes))
        if share < BELOW_LINK_RATIO:
            words = f"the path carries {share:.0%} of what its link does"
            yield Sign("below-link", None, share, words)
    if ahead and back > OTHER_WAY_RATIO * ahead:
        words = f"the other way carries {back / ahead:.1f} times as much"
        yield Sign("one-way", None, back / ahead, words)


def _clients(report: Report, copy: Copy) -> Iterator[Sign]:
    rates: dict[str, float] = {}
    for each in hardware_limits.believed_steps(report, copy.sender):
        if each.details.client:
            name = each.details.client
            rates[name] = max(rates.get(name, 0.0), each.rate.median)
    if len(rates) < 2:
        return
    lowest, highest = min(rates.values()), max(rates.values())
    if copy.step is not None and highest > MORE_RATIO * lowest:
        yield Sign("other-faster", "client", highest, "another client of that server gets more")
    if highest < ALIKE_RATIO * lowest:
        yield Sign("clients-alike", "server", highest, "every client gets the same")
