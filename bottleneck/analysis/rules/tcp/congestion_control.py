"""tcp/congestion-control: the sender's window stands still though the path would take more.

Nothing is lost, nothing queues, the other's window has room, and yet it does not grow each round
trip (RFC 5681 section 3.1): a limit of its route, or a control that is too careful.
"""

from __future__ import annotations

from bottleneck.analysis.claim import Cause

CAUSE = Cause(
    *("tcp", "congestion-control", "congestion control"),
    remedy="Look for a limit on the {side}: `cwnd` in `ip route show`, or its congestion control "
    "(`sysctl net.ipv4.tcp_congestion_control`)",
)
