"""The largest packets that pass a path, where larger ones vanish without a word.

A hop that takes less than the hosts believe, and whose "too big" never arrives (RFC 2923 2.1), lets
a connection open and its small messages pass, and stalls it at the first full segment. This is
looked for as TCP would meet it: on a fresh connection something small, then full segments. Nothing
is called a black hole but what let the small through and kept the large back, three times in turn.
"""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Callable, List, Optional, Sequence, Tuple

from probes.records import Details
from probes.stage import Unavailable

CONFIRMATIONS = 3
AT_ONCE = 6
ROUNDS = 4
"""Of connections that narrow the size down: (AT_ONCE + 1) ** ROUNDS sizes can be told apart."""
ETHERNET_BYTES = 1500
"""Where packets larger than this vanish, it is most often a hop without jumbo frames."""
LEAST_BYTES = 576
"""Every IPv4 host takes such a packet (RFC 791)."""


@dataclass(frozen=True)
class Trial:
    """What became of one connection."""

    packet_bytes: int
    """Of its full segments: an IP packet with all headers."""
    passed: Optional[bool]
    """None: the small ones did not come through either, so nothing follows from it."""


Attempt = Callable[[Optional[int]], Trial]
"""Tries a connection with IP packets of so many bytes; None: as large as TCP itself chooses."""


def find(attempt: Attempt, deadline: float) -> Tuple[int, Optional[Details]]:
    """The size of full IP packets of TCP in one direction, and the black hole, None for none.

    deadline: by the monotonic clock; what is known by then is told, and but for a last look at the
    size that was found no more is tried.

    Returns:
        The black hole's passes_bytes and stalls_bytes: sizes of IP packets that came through and
        that did not.

    Raises Unavailable where it stays unclear.
    """
    full: List[int] = []
    for number in range(2 * CONFIRMATIONS):
        if number and time.monotonic() >= deadline:
            raise Unavailable(_too_short(len(full), number))
        trial = attempt(None)
        if trial.passed:
            return trial.packet_bytes, None
        if trial.passed is False:
            full.append(trial.packet_bytes)
        if len(full) == CONFIRMATIONS:
            break
    else:
        raise Unavailable("even small packets do not come through in time")
    if time.monotonic() >= deadline:
        raise Unavailable("full segments do not come through; no time was left to find which do")
    passes, stalls = 0, min(full)
    for _ in range(ROUNDS):
        sizes = between(passes or LEAST_BYTES - 1, stalls)
        if not sizes or time.monotonic() >= deadline:
            break
        tried = _at_once(attempt, sizes)
        passes = max([passes, *(each.packet_bytes for each in tried if each.passed)])
        kept = [each.packet_bytes for each in tried if each.passed is False]
        stalls = min([stalls, *(size for size in kept if size > passes)])
    if not passes:
        raise Unavailable(
            f"nothing that fills packets of {LEAST_BYTES} bytes or more comes through"
        )
    if not _stall_again(attempt, stalls):
        raise Unavailable("full segments are lost now and then, and not by their size")
    return max(full), {"passes_bytes": passes, "stalls_bytes": stalls}


def _too_short(stalled: int, tried: int) -> str:
    """Why nothing follows from what was tried until the deadline."""
    what = f"on {stalled} of {tried} connections full segments did not come through"
    if not stalled:
        what = "even small packets do not come through in time"
    return f"{what}; no time was left to try again"


def between(passes: int, stalls: int) -> List[int]:
    """At most AT_ONCE sizes that cut what lies between two into equal parts; none: nothing does."""
    count = min(AT_ONCE, stalls - passes - 1)
    sizes = [passes + (stalls - passes) * part // (count + 1) for part in range(1, count + 1)]
    if passes < ETHERNET_BYTES < stalls:
        nearest = min(sizes, key=lambda size: abs(size - ETHERNET_BYTES))
        sizes[sizes.index(nearest)] = ETHERNET_BYTES
    return sizes


def _at_once(attempt: Attempt, sizes: Sequence[int]) -> List[Trial]:
    with ThreadPoolExecutor(len(sizes)) as pool:
        return list(pool.map(attempt, sizes))


def _stall_again(attempt: Attempt, size: int) -> bool:
    """Whether the least size that did not pass does not do so again."""
    return attempt(size).passed is False
