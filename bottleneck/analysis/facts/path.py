"""Facts about the path and both ends of TCP: tests of TCP by itself, links, windows, buffers."""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import hardware_limits, model, steps
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.evidence.copies import hindrance_text, host, smb_steps
from bottleneck.analysis.facts.busy import ViewFacts
from bottleneck.analysis.facts.counters import FAR_SECONDS
from bottleneck.analysis.facts.record import (
    ALLOWS,
    ALONE,
    NETWORK,
    SHOWN,
    Fact,
    Kind,
    Level,
    Part,
    each_part,
)
from bottleneck.analysis.facts.windows import ENDS, supplied_windows, window_facts
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.socket_buffers import RECEIVE, grows_to
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import link_text, seconds_text, size_text
from probes.core.records import SIDES

LOST_RATIO = 1e-3
WINDOW_HELD_RATIOS = 0.6, 1.3
"""Rate of a TCP test over its window per round trip, where the window limited it."""
APART_RATIO = 1.3
"""Least ratio of several connections to one at which the ends of TCP allow less than the path."""
CHANGED_RATIO = 1.2
"""Least rate at another time / the copy's at which no standard link explains the copy's."""
SIZED_RATIO, FLYING_RATIO, HIGH_RATIO = 0.75, 0.6, 1.1
"""Copy's rate over requested bytes per round trip: by the known size of requests, by the median of
the bytes in flight; and at most (Little's law)."""


def path_facts(
    report: Report, copy: Copy, time: ViewFacts, rtt: float | None, *, is_path_unmeasured: bool
) -> Iterator[Fact]:
    """Yields facts about the path in a copy's direction, and about TCP at both ends of it.

    is_path_unmeasured: whether something else than the path limited its tests.
    """
    yield from _tests(report, copy, rtt, is_path_unmeasured)
    yield from window_facts(report, copy, time.timed, rtt)
    yield from _link(report, copy, time.view not in ("counters", ""))
    if is_supplied(report) and rtt:
        tests = (e for e in steps.measured_steps(report, "tcp") if e.sender == copy.sender)
        client_tests = (each for each in tests if is_of_client(report, each))
        yield from supplied_windows(report, copy, rtt, client_tests)


# -- TCP by itself ---------------------------------------------------------------------------------


def _tests(report: Report, copy: Copy, rtt: float | None, is_unmeasured: bool) -> Iterator[Fact]:
    tests = hardware_limits.believed_steps(report, copy.sender)
    client_tests = [each for each in tests if is_of_client(report, each)]
    highest = max((each.rate.median for each in client_tests), default=0.0)
    mtu = steps.mtu_bytes(report)
    for each in client_tests:
        streams = each.setting.streams or 1
        level = Level(each.rate.low, each.rate.median, each.rate.high)
        words = f"TCP by itself ({streams:.0f} connection{'s' if streams > 1 else ''})"
        by_window = _is_held_by_window(report, copy, each, rtt)
        by_cpu = any(hindrance_text(each, side) for side in SIDES)
        is_held = by_window or (by_cpu and model.looks_like(level.median, mtu) is None)
        # Losses slow each connection down by itself, and a copy has one connection.
        is_lossy = streams == 1 and _is_lossy(report, each)
        is_whole = (level.median * 1.02 >= highest and not is_unmeasured) or is_lossy
        is_limit = is_whole and not is_held and not steps.on_one_host(report)
        yield Fact(NETWORK, ALONE if is_limit else SHOWN, level, words, _indices(each))
        if streams == 1 and copy.setting.streams in (None, 1):
            is_less = highest > APART_RATIO * level.median or by_window
            kind: Kind = ALONE if is_less else SHOWN
            # A file server may fix its own buffers, which TCP by itself does not use.
            if (rtt or 0.0) >= FAR_SECONDS if is_less else is_supplied(report):
                yield from each_part(ENDS, kind, level, words, each.index)
    for each in tests:
        if not is_of_client(report, each) and (each.setting.streams or 1) == 1:
            # Another host at the client's place: the server's end of the connection is the same.
            level = Level.with_spread(each.rate.median)
            words = "TCP by itself from another client"
            yield Fact(("tcp", "server"), SHOWN, level, words, _indices(each))


def _indices(step: MeasuredStep) -> tuple[int, ...]:
    return (step.index,)


def is_of_client(report: Report, test: MeasuredStep) -> bool:
    """Whether a supplied TCP figure concerns the copy's client; one that names nobody does."""
    name, client = (test.details.client or "").casefold(), report.client
    if not name or client is None or not (client.name or client.system):
        return True
    if name.startswith(("another", "other")):
        return False
    return name in f"{client.name} {client.system}".casefold() or (
        bool(client.name) and client.name.casefold() in name
    )


def _is_held_by_window(report: Report, copy: Copy, test: MeasuredStep, rtt: float | None) -> bool:
    limits = test.details.limits
    if limits is not None and limits.by in ("receive-window", "send-buffer"):
        return True
    window: float | None = steps.positive(test.outcome.details, "window_bytes")
    if window is None and is_supplied(report):
        window = grows_to(host(report, copy.receiver), RECEIVE)
    if not window or not rtt:
        return False
    share = test.rate.median / ((test.setting.streams or 1) * window / rtt)
    return WINDOW_HELD_RATIOS[0] <= share <= WINDOW_HELD_RATIOS[1]


def _is_lossy(report: Report, test: MeasuredStep) -> bool:
    """Whether packets were lost in a TCP test, by its own count or by a supplied figure."""
    limits = test.details.limits
    lost = limits.loss_ratio if limits is not None else None
    return (lost or steps.target_of(report).loss_ratio or 0.0) > LOST_RATIO


# -- links -----------------------------------------------------------------------------------------


def _link(report: Report, copy: Copy, is_watched: bool) -> Iterator[Fact]:
    """Yields the rates of the slower end's link, and of a standard link that the rate matches."""
    if steps.on_one_host(report):
        return
    supplied, mtu = is_supplied(report), steps.mtu_bytes(report)
    links = [
        link.rate_bits_per_second
        for _, link in hardware_limits.interfaces(report)
        if link.rate_bits_per_second and (supplied or not link.virtual) and link.kind != "wifi"
    ]
    if links:
        payload = min(links) / 8 * model.payload_efficiency(mtu or model.ETHERNET_MTU_BYTES)
        words = f"the slower end's link ({link_text(min(links))})"
        yield Fact(NETWORK, ALLOWS, Level.with_spread(payload, 0.97, 1.02), words)
    step = copy.step
    if step is None or not is_watched:
        return
    shaped = hardware_limits.shaped_rate(report, copy.sender)
    if shaped is not None and copy.is_running:
        level = Level.with_spread(shaped.bytes_per_second, 0.97, 1.03)
        yield Fact(NETWORK, ALLOWS, level, f"the shaper of {shaped.what}", _indices(step))
    match, carried = model.looks_like(step.rate.median, mtu), _highest_carried(report, copy)
    if match is not None and carried < CHANGED_RATIO * step.rate.median:
        level = Level.with_spread(match.payload_bytes_per_second, 0.97, 1.03)
        words = f"the usable rate of a {link_text(match.bits_per_second)} link"
        yield Fact(NETWORK, ALLOWS, level, words, _indices(step))


def _highest_carried(report: Report, copy: Copy) -> float:
    transfers = [
        *smb_steps(report, copy.sender, copy.initiator),
        *hardware_limits.believed_steps(report, copy.sender),
    ]
    return max((each.rate.median for each in transfers), default=0.0)


# -- requests --------------------------------------------------------------------------------------


def request_facts(
    report: Report, copy: Copy, timed: TimedCopy | None, rtt: float | None
) -> Iterator[Fact]:
    """Yields the rate that the requests in flight allow, by their size and the round trip."""
    part: Part = ("smb", steps.other(copy.initiator))
    flying = timed.in_flight_bytes if timed is not None else 0.0
    if not flying and copy.step is not None:
        flying = copy.step.details.in_flight_bytes or 0.0
    size, depth = copy.setting.request_bytes, copy.setting.depth or 1.0
    size = size if is_supplied(report) else None
    if size:
        flying = size * depth
        for each in steps.measured_steps(report, "latency"):
            rtt = each.details.fit.latency_seconds or rtt
    if flying and rtt and (size or rtt >= FAR_SECONDS):
        level = Level.with_spread(flying / rtt, SIZED_RATIO if size else FLYING_RATIO, HIGH_RATIO)
        words = f"{size_text(flying)} requested at an RTT of {seconds_text(rtt)}"
        yield Fact(part, ALLOWS, level, words)
