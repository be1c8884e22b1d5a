"""Signs: observations of a copy that a cause can rest on. Each has one number.

A sign decides nothing by itself; the table of causes says which component it concerns.
"""

from __future__ import annotations

from collections.abc import Iterator

from bottleneck.analysis import steps
from bottleneck.analysis.attribution.patterns import run_and_wait
from bottleneck.analysis.attribution.timed_copy import TimedCopy
from bottleneck.analysis.facts.captured import capture_of, capture_signs
from bottleneck.analysis.facts.path_signs import connection_signs, link_signs
from bottleneck.analysis.facts.record import Sign
from bottleneck.analysis.facts.supplied_signs import supplied_signs
from bottleneck.analysis.facts.windows import window_signs
from bottleneck.analysis.link_end import is_supplied
from bottleneck.analysis.load import is_nearly_full
from bottleneck.analysis.rules.cpu.cores import load_of
from bottleneck.analysis.rules.smb.server_software import software_signs
from bottleneck.analysis.steps import Copy, MeasuredStep
from bottleneck.report.report import Report
from probes.core.records import SIDES

HEADERS_RATIO = 1.06
"""Bytes at an interface over payload: frames, TCP and SMB."""
SLACK_BYTES = 24 << 20
"""Bytes that read-ahead, requests in flight and a journal may add to a device's own."""
SAME_RATIO = 0.01
"""Relative difference between two hosts' counts of the bytes of one device."""


def traffic_signs(
    report: Report, copy: Copy, step: MeasuredStep, timed: TimedCopy | None
) -> Iterator[Sign]:
    """Yields others' shares of the bytes at interfaces (others-traffic) and disks (others-disk)."""
    on_one_host = copy.on_one_host or steps.on_one_host(report)
    if not on_one_host:
        yield from _at_interfaces(copy, step, timed)
    yield from _at_disks(step, on_one_host)


def _at_interfaces(copy: Copy, step: MeasuredStep, timed: TimedCopy | None) -> Iterator[Sign]:
    for side, name in (
        (copy.sender, "interface_sent_bytes"),
        (copy.receiver, "interface_received_bytes"),
    ):
        usage = step.usage(side)
        total = getattr(usage, name) if usage is not None else None
        if usage is None or not total:
            continue
        own_bytes = timed.moved_in(usage) if timed is not None else float(step.moved_bytes)
        others = total - HEADERS_RATIO * own_bytes - step.details.sockets.retransmitted_bytes
        others *= min(1.0, step.seconds / max(1e-6, usage.wall_seconds))
        if others > 0:
            share = others / (others + own_bytes)
            words = f"{share:.0%} of the bytes at the {side}'s interface were others'"
            yield Sign("others-traffic", side, share, words)


def _at_disks(step: MeasuredStep, on_one_host: bool) -> Iterator[Sign]:
    totals: dict[str, int] = {}
    for side in SIDES:
        usage = step.usage(side)
        if usage is not None and usage.device_read_bytes is not None:
            totals[side] = usage.device_read_bytes + (usage.device_written_bytes or 0)
    for side, total in totals.items():
        other = totals.get(steps.other(side))
        # Two hosts with equal counts of one device are one machine: it reads and writes the copy.
        is_same = other is not None and abs(other - total) < SAME_RATIO * total
        others = total - step.moved_bytes * (2 if is_same or on_one_host else 1)
        if others > SLACK_BYTES:
            share = others / total
            words = f"{share:.0%} of the bytes at the {side}'s disk were others'"
            yield Sign("others-disk", side, share, words)


WAITED_RATIO, OTHERS_RATIO = 0.5, 0.3
"""Crowded CPU: least run queue time over core time, and least use by others."""
FULL_CORES_RATIO = 0.92


def host_signs(report: Report, step: MeasuredStep, timed: TimedCopy | None) -> Iterator[Sign]:
    """Yields throttled, quota (what it allows, bytes per second), crowded and all-full."""
    for side in SIDES:
        usage, load = step.usage(side), load_of(report, step, side)
        if usage is None or load is None:
            continue
        stopped = load.throttled_ratio or 0.0
        if stopped:
            words = f"its quota stopped the copy in {stopped:.0%} of the periods"
            yield Sign("throttled", side, stopped, words)
        if used := load.quota_used_ratio or 0.0:
            yield Sign("quota", side, step.rate.median / min(1.0, used))
        run, wait = usage.copy_cpu_seconds, usage.run_delay_seconds or 0.0
        if timed is not None and any(looked := run_and_wait(timed, side)):
            run, wait = looked
        others = load.others_ratio * load.cores
        if wait > WAITED_RATIO * run and others > OTHERS_RATIO and not stopped:
            words = f"other processes used {others:.0%} of a core, and the copy waited for one"
            yield Sign("crowded", side, min(1.0, others), words)
        if min(usage.core_busy_ratios) >= FULL_CORES_RATIO:
            yield Sign("all-full", side, words="all its cores were full")


BURSTS, BURST_REPLIES, SILENT_RATIO = 6, 3, 0.5
"""Server that stalls: least bursts, least replies in each, least share of the time without any."""
FASTER_RATIO = 1.3


def server_signs(copy: Copy, step: MeasuredStep, timed: TimedCopy | None) -> Iterator[Sign]:
    """Yields stalls, synced, writes-most and faster-program."""
    replies = step.details.replies
    together = (replies.burst_count_median or 0) >= BURST_REPLIES
    if (replies.bursts or 0) >= BURSTS and together and replies.silent_ratio > SILENT_RATIO:
        words = f"no reply for {replies.silent_ratio:.0%} of the time, then several at once"
        yield Sign("stalls", steps.other(copy.initiator), replies.silent_ratio, words)
    if timed is not None and timed.is_synced:
        words = "the server flushed its disk after most writes"
        yield Sign("synced", timed.serving, words=words)
    on_one_host = timed is not None and timed.on_one_host
    if timed is not None and on_one_host and timed.thread.mean("write") > timed.thread.mean("read"):
        yield Sign("writes-most", words="its program waited for writes more than for reads")
    beside = copy.beside if copy.beside and steps.has_alike_sources(step, copy.beside) else None
    # A slower program that nearly fills a core does not wait for replies.
    fills = is_nearly_full(step.usage(copy.initiator))
    if beside and not fills and beside.rate.median > FASTER_RATIO * step.rate.median:
        words = "this tool's own copy of the same is faster"
        yield Sign("faster-program", None, beside.rate.median, words)


def signs(report: Report, copy: Copy, timed: TimedCopy | None) -> Iterator[Sign]:
    """Yields the signs observed in a copy, or supplied by a person."""
    step, supplied = copy.step, is_supplied(report)
    if (capture := capture_of(copy)) is not None:
        yield from capture_signs(copy, capture)
    elif step is not None and not supplied:
        yield from traffic_signs(report, copy, step, timed)
        yield from host_signs(report, step, timed)
        yield from connection_signs(step, timed)
        yield from server_signs(copy, step, timed)
        yield from software_signs(report, copy)
        yield from window_signs(report, copy)
    yield from link_signs(report, copy)
    if supplied:
        yield from supplied_signs(report, copy)
