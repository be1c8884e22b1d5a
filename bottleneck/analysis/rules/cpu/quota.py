"""cpu/quota and contention, as a client without an agent sees them: a server that stops and goes.

A CPU quota stops the processes of a group for the rest of its period once they used it up, and lets
all of them go when the next begins. Their client sees replies in bursts that begin at even
distances, the period. Where others take the cores in turn, some replies alone come after a pause.
What the load of a host itself shows of its quota is in cores.py.
Source: Documentation/scheduler/sched-bwc.rst; systemd, Docker and Kubernetes leave it at 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median

from bottleneck.analysis import hardware_limits, steps
from bottleneck.analysis.claim import LIKENESS, SURE, Cause, claim
from bottleneck.analysis.disk_zones import disk_steps
from bottleneck.analysis.evidence.copies import Evidence, client_bound
from bottleneck.analysis.finding import Claim
from bottleneck.analysis.load import load
from bottleneck.analysis.steps import Found
from bottleneck.report.report import Report
from bottleneck.text.units import percent_text, seconds_text

CAUSE = Cause("cpu", "quota", "quota", stays=True)
CONTENTION = Cause("cpu", "contention", "other processes", stays=True)
FIND_OTHERS = (
    "Find the other processes on the {} with `top`. Then stop them, move them or lower their "
    "priority (`renice`)"
)
PERIOD_SECONDS = 0.1
PERIOD_TOLERANCE_RATIO = 0.015
"""A Wi-Fi beacon comes every 102.4 ms, as evenly."""
EVEN_RATIO = 0.1
"""Distance of the quartiles over the median, of what keeps time."""
SILENT_RATIO, KNOWN_SILENT_RATIO = 0.3, 0.15
"""Share of the time without a reply, from which on the stops are what a copy waits for; and where
another copy has shown that the server keeps such time."""
LEAST_REPLIES = 2.0
"""In a burst: on a slow link each reply comes alone, and as evenly."""
OWN_STOPS_RATIO = 0.05
DISK_RATIO = 2.0
"""The client's disk alone over a copy that comes from it: it gives no reason to stop."""
SMALL_BYTES = 256 << 10
"""In flight, up to which a request waits for no other: its time is the server's own."""
PAUSES_RATIO, STOPS_RATIO = 2.0, 10.0
"""Mean over median time of such requests: from a rival's half of the cores to no rival's."""
LEAST_SHAPES = 3
LOST_RATIO = 1e-3
"""Of what a copy moved, sent again: more is a path that loses packets."""
NEAR_SECONDS = 2e-3
"""RTT, above which the mean has a far path's own waits in it."""


def rule(given: Evidence) -> Iterator[Claim]:
    """The copy's own rate, where its replies came in such bursts."""
    report, made = given.report, given.step
    if not given.lone or _by_radio(report):
        return
    if not stopped(report, made, KNOWN_SILENT_RATIO) or _client_stops(made):
        return
    clear = next((each for each in _candidates(report, made) if keeps_time(each)), None)
    if clear is None:
        return
    trust = SURE
    alike = "A traffic shaper with a burst every 100 ms looks the same."
    if given.copy.verb == "push" and not _pulls_stop(report):
        trust = LIKENESS
        alike = "No pull stops so: a disk that is throttled in such periods looks the same."
    apart = seconds_text(clear.details.replies.burst_seconds_median or 0.0)
    silent = percent_text(min(1.0, made.details.replies.silent_ratio))
    yield claim(
        CAUSE,
        "server",
        made,
        f"the server answers in bursts every {apart}, as under a CPU quota, and is silent "
        f"{silent} of the time",
        steps=tuple(dict.fromkeys((made.index, clear.index))),
        standing="inferred",
        reached=True,
        trust=trust,
        evidence=(
            "The client cannot see the size of the quota; an agent on the server (--agent) reads "
            f"it. {alike}",
        ),
    )


def _pulls_stop(report: Report) -> bool:
    """Whether the server stops where nothing is written too: so does a quota, and no disk."""
    copies = steps.measured(report, "smb-copy")
    pulls = (each for each in copies if each.setting.copy.startswith("pull"))
    return any(stopped(report, each, KNOWN_SILENT_RATIO) for each in pulls)


def shared(given: Evidence) -> Iterator[Claim]:
    """The copy's own rate, where small requests take much longer on average than their median.

    A likeness, which counts where no ceiling is reached; nothing where a quota, this end or the
    path may be why.
    """
    report, told = given.report, given.details.sockets
    # What is sent twice because a reply came late is little.
    again_ratio = told.retransmitted_bytes / given.step.moved_bytes
    lost = told.out_of_order_segments or again_ratio > LOST_RATIO
    if not given.lone or lost or _by_radio(report) or _client_stops(given.step) or seen_in(report):
        return
    for found in steps.measured(report, "smb-matrix"):
        ratio, rtt = _pauses_ratio(found), found.details.rtt_seconds
        near = rtt is not None and rtt < NEAR_SECONDS
        if near and PAUSES_RATIO <= ratio < STOPS_RATIO and not _client_stops(found):
            yield claim(
                CONTENTION,
                "server",
                given.step,
                f"the server pauses before some replies: they take {ratio:.1f} times their median "
                "on average, as where other processes use its CPU",
                steps=(given.step.index, found.index),
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


def _pauses_ratio(found: Found) -> float:
    """Mean over median time of small requests, the median of their shapes; 0: not measured."""
    ratios = []
    for each in found.details.cells:
        size, usual = (each.request_bytes or 0) * (each.depth or 0), each.request_seconds_median
        if each.bytes_per_second and usual and 0 < size <= SMALL_BYTES:
            ratios.append(size / each.bytes_per_second / usual)
    return median(ratios) if len(ratios) >= LEAST_SHAPES else 0.0


def _by_radio(report: Report) -> bool:
    """Whether a Wi-Fi card is on the way: it may sleep between two beacons."""
    tops = (link for _, link in hardware_limits.interfaces(report))
    return any(link.kind == "wifi" for top in tops for link in hardware_limits.tree(top))


def _candidates(report: Report, made: Found) -> Iterator[Found]:
    """The copy itself, then the others of the report."""
    others = [each for each in steps.measured(report, "smb-copy") if each.index != made.index]
    return (each for each in (made, *others) if stopped(report, each))


def keeps_time(found: Found) -> bool:
    """Whether the bursts of a copy's replies begin as evenly as a quota's periods."""
    told = found.details.replies
    middle, low, high = told.burst_seconds_median, told.burst_seconds_low, told.burst_seconds_high
    if middle is None or low is None or high is None:
        return False
    exact = abs(middle / PERIOD_SECONDS - 1) <= PERIOD_TOLERANCE_RATIO
    return exact and high - low <= EVEN_RATIO * middle


def stopped(report: Report, found: Found, least_ratio: float = SILENT_RATIO) -> bool:
    """Whether replies came in bursts, and neither this end nor the path kept them back."""
    told = found.details.replies
    several = told.burst_count_median
    if several is None:
        several = 0.0 if told.bursts is None else found.details.requests / (told.bursts + 1)
    waits = told.silent_ratio >= least_ratio and several >= LEAST_REPLIES
    return waits and not _by_itself(report, found)


def _by_itself(report: Report, found: Found) -> bool:
    """Whether it is this end that stops: it does not take what came, or its disk gives nothing."""
    by = found.details.sockets.by
    if by != "sender" or "uncached" not in found.setting.copy:
        return by == "receiver"
    disk = [each.rate.median for each in disk_steps(report, "client", "read", "sequential")]
    return max(disk, default=0.0) < DISK_RATIO * found.rate.median


def seen_in(report: Report) -> bool:
    """Whether any copy of a report shows a server that stops and goes."""
    return any(
        stopped(report, each) and keeps_time(each) for each in steps.measured(report, "smb-copy")
    )


def _client_stops(made: Found) -> bool:
    """Whether the client itself may be what stops; so too where nothing tells of it."""
    seen = load(made.usage("client"))
    if seen is None or client_bound(made):
        return True
    return seen.starved or (seen.throttled_ratio or 0.0) > OWN_STOPS_RATIO
