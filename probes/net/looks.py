"""Looks at the sockets of one end of a transfer, 50 a second, and what they come to.

A look is kept as the kernel gave it and read when the transfer is over: the data path runs beside
it on the same interpreter.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any, List, Sequence, Tuple

from probes.host import tcp_info
from probes.net import limits
from probes.net.arrivals import Count, raw_info
from probes.net.flow import Flow
from probes.net.limits import Glimpse
from probes.records import Details

LOOK_SECONDS = 0.02
MOST_LOOKS = 3000
"""Of one transfer; a longer one is looked at less often."""
_SUMMED = (
    *("retransmitted_segments", "sent_bytes", "retransmitted_bytes"),
    *("spurious_segments", "out_of_order_segments"),
)
"""Of all connections; the rest is of the one that moved most."""


def spacing_seconds(seconds: float) -> float:
    """Between two looks at a transfer of so many seconds."""
    return max(LOOK_SECONDS, seconds / MOST_LOOKS)


@dataclass
class Looks:
    """What was seen of each connection."""

    flow: Flow
    began: float = field(default_factory=time.monotonic)
    seen: List[Tuple[float, Sequence[bytes], Sequence[bytes], Sequence[int]]] = field(
        default_factory=list
    )
    """When, then by connection: tcp_info, what fills its buffers, unread bytes."""

    def at_sender(self) -> None:
        """One look at sockets that send."""
        when = time.monotonic() - self.began
        infos = [raw_info(each) for each in self.flow.connections]
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        self.seen.append((when, infos, memories, ()))

    def at_receiver(self, count: Count) -> None:
        """One look at sockets that receive, just counted."""
        memories = [tcp_info.raw_memory(each) for each in self.flow.connections]
        when = count.after_seconds - self.began
        self.seen.append((when, count.infos, memories, count.unread))

    def glimpses(self, index: int) -> List[Glimpse]:
        """The looks at one connection."""
        found = []
        for when, infos, memories, unread in self.seen:
            figures = tcp_info.decode(infos[index])
            figures.update(tcp_info.decode_memory(memories[index]))
            unsent: Any = figures.get("unsent_bytes")
            found.append(Glimpse(when, figures, unread[index] if unread else None, unsent))
        return found

    def of_sender(self) -> Details:
        """limits.of_sender, of all connections together."""
        each = [limits.of_sender(self.glimpses(index)) for index in range(len(self.flow.moved))]
        told = _together(each, self.flow.busiest)
        lost = limits.loss_ratio(told)
        if lost is not None:
            told["loss_ratio"] = lost
        return told

    def of_receiver(self) -> Details:
        """limits.of_receiver, of all connections together."""
        each = [limits.of_receiver(self.glimpses(index)) for index in range(len(self.flow.moved))]
        return _together(each, self.flow.busiest)


def _together(each: Sequence[Details], busiest: int) -> Details:
    told = dict(each[busiest])
    for name in _SUMMED:
        known = [one[name] for one in each if name in one]
        if known:
            told[name] = sum(known)
    return told
