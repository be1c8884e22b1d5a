"""TCP as ttcp shows it: CPU in user and system mode, calls, the share of what a link carries."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck import units
from bottleneck.analysis import steps
from bottleneck.analysis.model import ETHERNET_MTU_BYTES, looks_like, payload_efficiency
from bottleneck.report import Report, Step
from bottleneck.reports.document import Block, Column, Points, Table, points
from bottleneck.words import stage_text
from probes.records import Details, Measured

ENDS = ("sender", "receiver")
OVER_THE_LINK = ("tcp", "udp", "smb-copy", "native-copy")
MOST_MTU_BYTES = 16_000
"""A larger one, as loopback's, belongs to no link."""


def transfers(report: Report) -> Iterator[Block]:
    """What each end spent, then both directions at once, then the shares."""
    table = Table(
        "TCP: processes that sent and received",
        (
            Column("stage"),
            Column("process"),
            Column("user CPU", right=True),
            Column("system CPU", right=True),
            Column("calls", right=True),
            Column("time per call", right=True),
            Column("window granted", right=True),
        ),
    )
    for step, outcome in report.entries:
        details = outcome.details if isinstance(outcome, Measured) else {}
        for end in ENDS:
            told = details.get(end)
            if isinstance(told, dict) and _figure(told, "user_seconds") is not None:
                table.add(stage_text(step), *_of_end(step, end, told))
    if table.rows:
        yield table
    yield from points("Both directions at once", _both_ways(report))
    yield from _shares(report)


def _figure(told: Details, name: str) -> float | None:
    """A figure of an end, as another host may have sent it; None: it is none."""
    value = told.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < float("inf") else None


def _of_end(step: Step, end: str, told: Details) -> tuple[str | None, ...]:
    sender = steps.sender(str(step.setting.get("verb")), step.initiator)
    side = sender if end == "sender" or step.stage == "loopback" else steps.other(sender)
    names = ("user_seconds", "system_seconds", "calls", "seconds_per_call", "granted_bytes")
    user, system, calls, per_call, granted = (_figure(told, name) for name in names)
    return (
        f"{side} {end}",
        None if user is None else units.seconds_text(user),
        None if system is None else units.seconds_text(system),
        None if calls is None else units.count_text(calls),
        None if per_call is None else units.seconds_text(per_call),
        None if granted is None else units.size_text(granted),
    )


def _rates(report: Report) -> Iterator[tuple[Step, float]]:
    """The median rates of all that goes over the link."""
    for index, (step, _) in enumerate(report.entries):
        found = steps.found_at(report, index) if step.stage in OVER_THE_LINK else None
        if found is not None:
            yield step, found.rate.median


def _both_ways(report: Report) -> Iterator[str]:
    """Each direction with what it gets by itself, and the sum."""
    tcp = [(step, rate) for step, rate in _rates(report) if step.stage == "tcp"]
    sums = [0.0, 0.0]
    for step, rate in tcp:
        if not step.setting.get("both_ways"):
            continue
        alone = {**step.setting, "both_ways": False}
        by_itself = next((r for other, r in tcp if other.setting == alone), None)
        if by_itself is None:
            continue
        sums = [sums[0] + rate, sums[1] + by_itself]
        share = units.percent_text(rate / by_itself)
        yield (
            f"{step.setting.get('verb')}: {units.rate_text(rate)}, {share} of "
            f"{units.rate_text(by_itself)} by itself"
        )
    if sums[1]:
        yield f"sum: {units.rate_text(sums[0])}"


def _shares(report: Report) -> Iterator[Points]:
    """What each rate is of the most that TCP carries over the hosts' link."""
    hosts = [each for each in (report.client, report.server) if each is not None]
    cards = [each.interface for each in hosts if each.interface is not None]
    mtu = min((each.mtu_bytes for each in cards if each.mtu_bytes), default=ETHERNET_MTU_BYTES)
    rates = [(step, rate) for step, rate in _rates(report) if steps.undisturbed(step)]
    # A virtual card claims a rate that nothing holds it to.
    told = [each.rate_bits_per_second for each in cards if not each.virtual]
    known = [each for each in told if each]
    match = looks_like(max((rate for _, rate in rates), default=0.0), mtu)
    bits = min(known, default=match.bits_per_second if match is not None else 0)
    if not bits or mtu > MOST_MTU_BYTES:
        return
    most = bits / 8 * payload_efficiency(mtu)
    binary = units.binary_beside(most)
    yield from points(
        f"Share of the practical maximum of {units.link_text(bits)}, "
        f"{units.fine_rate_text(most)}{f' ({binary})' if binary else ''}",
        (f"{stage_text(step)}: {units.percent_text(rate / most)}" for step, rate in rates),
    )
