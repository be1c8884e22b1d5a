"""cpu/quota and contention, as a client without an agent observes them: a server that pauses.

A CPU quota stops the processes of a group for the rest of its period once they used it up, and lets
all of them continue when the next begins. Their client receives replies in bursts at the constant
distance of that period. If others take the cores in turn, only some replies come after a pause.
A quota in the load of an observed host is the subject of cores.py.
Source: Documentation/scheduler/sched-bwc.rst; systemd, Docker and Kubernetes leave it at 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.claim import LIKENESS, SURE, Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, is_client_bound
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import load
from bottleneck.analysis.steps import MeasuredStep
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text

CAUSE = Cause("cpu", "quota", "quota", limits_without_fault=True)
CONTENTION = Cause("cpu", "contention", "other processes", limits_without_fault=True)
FIND_OTHERS = (
    "Find the other processes on the {} with `top`. Then stop them, move them or lower their "
    "priority (`renice`)"
)
PERIOD_SECONDS = 0.1
PERIOD_TOLERANCE_RATIO = 0.015
"""Deviation of the period, less than that of a Wi-Fi beacon, which comes every 102.4 ms."""
EVEN_RATIO = 0.1
"""Most interquartile range over median of bursts that count as periodic."""
SILENT_RATIO, KNOWN_SILENT_RATIO = 0.3, 0.15
"""Least silent share of a copy that waits for pauses; once another copy was periodic."""
LEAST_REPLIES = 2.0
"""Least replies in a burst: on a slow link each reply comes alone, at constant distances."""
CLIENT_THROTTLED_RATIO = 0.05
DISK_RATIO = 2.0
"""A client's disk that is alone this many times faster than the copy causes no pauses."""
SMALL_BYTES = 256 << 10
"""Most bytes in flight at which a request waits for no other: its time is the server's own."""
PAUSES_RATIO, STOPS_RATIO = 2.0, 10.0
"""Mean over median request time: as by a rival on half the cores; by another cause."""
LEAST_CELLS = 3
LOST_RATIO = 1e-3
"""Least retransmitted / moved bytes at which a path loses packets."""
NEAR_SECONDS = 2e-3
"""Least RTT of a far path, whose waits are in the mean."""


def rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the copy's own rate, if its replies came in bursts at a quota's period."""
    report, step = evidence.report, evidence.step
    if not evidence.sees_client_only or _has_radio(report):
        return
    if not came_in_bursts(report, step, KNOWN_SILENT_RATIO) or _client_is_held_back(step):
        return
    others = [each for each in steps.measured_steps(report, "smb-copy") if each.index != step.index]
    bursts = (each for each in (step, *others) if came_in_bursts(report, each))
    periodic = next((each for each in bursts if keeps_time(each)), None)
    if periodic is None:
        return
    trust = SURE
    caveat = "A traffic shaper with a burst every 100 ms looks the same."
    if evidence.copy.verb == "push" and not _pulls_pause(report):
        trust = LIKENESS
        caveat = "No pull stops so: a disk that is throttled in such periods looks the same."
    apart = seconds_text(periodic.details.replies.burst_seconds_median or 0.0)
    silent = percent_text(min(1.0, step.details.replies.silent_ratio))
    yield claim(
        CAUSE,
        "server",
        step,
        f"the server answers in bursts every {apart}, as under a CPU quota, and is silent "
        f"{silent} of the time",
        steps=tuple(dict.fromkeys((step.index, periodic.index))),
        standing="inferred",
        reached=True,
        trust=trust,
        evidence=(
            "The client cannot see the size of the quota; an agent on the server (--agent) reads "
            f"it. {caveat}",
        ),
    )


def _pulls_pause(report: Report) -> bool:
    """Whether the server pauses in pulls, too: a quota does so, and a disk's throttle does not."""
    copies = steps.measured_steps(report, "smb-copy")
    pulls = (each for each in copies if each.setting.copy.startswith("pull"))
    return any(came_in_bursts(report, each, KNOWN_SILENT_RATIO) for each in pulls)


def contention_rule(evidence: Evidence) -> Iterator[Claim]:
    """Yields the copy's own rate, if small requests take much longer on average than their median.

    It is a likeness, which counts if no ceiling is reached; nothing is claimed if a quota, this end
    or the path may be the reason.
    """
    report, sockets = evidence.report, evidence.details.sockets
    # Late replies cause only few retransmissions.
    retransmitted_ratio = sockets.retransmitted_bytes / evidence.step.moved_bytes
    lost = sockets.out_of_order_segments or retransmitted_ratio > LOST_RATIO
    excused = lost or _has_radio(report) or _client_is_held_back(evidence.step)
    if not evidence.sees_client_only or excused or shows_quota(report):
        return
    for step in steps.measured_steps(report, "smb-matrix"):
        ratio, rtt = _pauses_ratio(step), step.details.rtt_seconds
        near = rtt is not None and rtt < NEAR_SECONDS
        if near and PAUSES_RATIO <= ratio < STOPS_RATIO and not _client_is_held_back(step):
            yield claim(
                CONTENTION,
                "server",
                evidence.step,
                f"the server pauses before some replies: they take {ratio:.1f} times their median "
                "on average, as where other processes use its CPU",
                steps=(evidence.step.index, step.index),
                standing="inferred",
                reached=False,
                partly=True,
                evidence=(
                    "The client cannot see the server's CPU. A file server that pauses looks the "
                    "same.",
                ),
                remedy=FIND_OTHERS.format("server"),
            )
            return


def _pauses_ratio(step: MeasuredStep) -> float:
    """Returns mean over median time of small requests, as median of the cells; 0: not measured."""
    ratios = []
    for each in step.details.cells:
        size, usual = (each.request_bytes or 0) * (each.depth or 0), each.request_seconds_median
        if each.bytes_per_second and usual and 0 < size <= SMALL_BYTES:
            ratios.append(size / each.bytes_per_second / usual)
    return median(ratios) if len(ratios) >= LEAST_CELLS else 0.0


def _has_radio(report: Report) -> bool:
    """Whether a Wi-Fi card is on the path: it may sleep between two beacons."""
    tops = (link for _, link in hardware_limits.interfaces(report))
    return any(link.kind == "wifi" for top in tops for link in hardware_limits.tree(top))


def keeps_time(step: MeasuredStep) -> bool:
    """Whether the bursts of a copy's replies begin as evenly as a quota's periods."""
    replies = step.details.replies
    middle = replies.burst_seconds_median
    low, high = replies.burst_seconds_low, replies.burst_seconds_high
    if middle is None or low is None or high is None:
        return False
    exact = abs(middle / PERIOD_SECONDS - 1) <= PERIOD_TOLERANCE_RATIO
    return exact and high - low <= EVEN_RATIO * middle


def came_in_bursts(report: Report, step: MeasuredStep, least_ratio: float = SILENT_RATIO) -> bool:
    """Whether replies came in bursts, and neither this end nor the path delayed them."""
    replies = step.details.replies
    replies_per_burst = replies.burst_count_median
    if replies_per_burst is None:
        bursts = replies.bursts
        replies_per_burst = 0.0 if bursts is None else step.details.requests / (bursts + 1)
    waits = replies.silent_ratio >= least_ratio and replies_per_burst >= LEAST_REPLIES
    return waits and not _client_delays_replies(report, step)


def _client_delays_replies(report: Report, step: MeasuredStep) -> bool:
    """Whether this end pauses: it does not read the replies, or its disk delivers nothing."""
    by = step.details.sockets.by
    if by != "sender" or "uncached" not in step.setting.copy:
        return by == "receiver"
    disk = [each.rate.median for each in disk_steps(report, "client", "read", "sequential")]
    return max(disk, default=0.0) < DISK_RATIO * step.rate.median


def shows_quota(report: Report) -> bool:
    """Whether any copy of a report shows periodic pauses of the server."""
    return any(
        came_in_bursts(report, each) and keeps_time(each)
        for each in steps.measured_steps(report, "smb-copy")
    )


def _client_is_held_back(step: MeasuredStep) -> bool:
    """Whether the client itself may pause; True as well if its load is not known."""
    cpu = load(step.usage("client"))
    if cpu is None or is_client_bound(step):
        return True
    return cpu.is_starved or (cpu.throttled_ratio or 0.0) > CLIENT_THROTTLED_RATIO
