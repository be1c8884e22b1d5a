"""How long a caller with a wrong token waits for its answer. Pure.

A token cannot be guessed (credentials.PART_BYTES): this keeps the noise down, and locks nobody out:
whoever knows the token is answered at once, from wherever it calls.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

FREE = 4
"""A person may mistype so often; from then on each answer takes twice as long as the one before."""
FIRST_SECONDS, LONGEST_SECONDS = 0.25, 4.0
MOST_PREFIXES = 1024


def prefix(address: str) -> str:
    """Whom a plain address belongs to: itself with IPv4, its /64 with IPv6 (RFC 6177)."""
    return str(ipaddress.ip_network(f"{address}/{64 if ':' in address else 32}", strict=False))


@dataclass
class Throttle:
    """Who has failed how often."""

    counts: dict[str, int] = field(default_factory=dict)
    """By prefix; below zero: it knew the token, and may fail more often."""

    def wrong(self, where: str) -> int:
        """Notes one more; how many they are now."""
        # The last one in the order is the one that came last: the first one goes.
        count = self.counts.pop(where, 0) + 1
        self._note(where, count)
        return count

    def right(self, where: str) -> None:
        """Forgets what came from there."""
        self.counts.pop(where, None)
        self._note(where, -FREE)

    def _note(self, where: str, count: int) -> None:
        self.counts[where] = count
        if len(self.counts) > MOST_PREFIXES:
            del self.counts[next(iter(self.counts))]


def delay_seconds(count: int) -> float:
    """What the answer to that many wrong tokens takes."""
    if count <= FREE:
        return 0.0
    return min(LONGEST_SECONDS, FIRST_SECONDS * 2.0 ** min(count - FREE - 1, 30))
